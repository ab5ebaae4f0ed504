//! The wall clock, read in one place, and the way to wait for the disk without holding anybody up.

use apoidea_model::Time;
use std::time::SystemTime;

/// The time now.
pub(crate) fn now() -> Time {
    Time::from(SystemTime::now())
}

/// Runs work that may wait for the disk on a thread of its own.
pub(crate) async fn unblocked<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}
