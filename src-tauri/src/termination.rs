//! The system's wish that the app ends: a session that closes, or Ctrl-C where it was started by
//! hand.

/// Waits for it; for ever where it cannot be heard.
pub async fn asked_for() {
    if let Err(error) = signalled().await {
        tracing::warn!(%error, "the system cannot ask this app to end");
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
async fn signalled() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn signalled() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
