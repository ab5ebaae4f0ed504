//! Waiting for something that can be observed, for a limited time.

use std::time::{Duration, Instant};

/// Between two looks. Short against every deadline, long against what a look costs.
const PERIOD: Duration = Duration::from_millis(50);

/// Looks until there is something to see; gives up after `patience`.
pub async fn look<T>(patience: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(seen) = look().await {
            return Some(seen);
        }
        if Instant::now() >= deadline {
            return None;
        }
        tokio::time::sleep(PERIOD).await;
    }
}
