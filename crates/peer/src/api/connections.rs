//! The API's connections: so many at a time, and none that only takes up a place.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Twice as many as there are streams of events; a browser opens six. The next ones wait until one
/// of these ends.
pub(super) const MAX_CONNECTIONS: usize = 64;
/// A request's head comes within this, and so does the next request of a connection that is kept.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// A client keeps an idle connection for less than that: a request on a connection that is just
/// being closed would be lost.
pub const API_IDLE: Duration = Duration::from_secs(5);
/// Of a request this much is held at a time; the longest head that a browser sends is shorter.
const BUFFER_BYTES: usize = 64 << 10;
/// Before the next try, if the system gives no connection: it has no more files to open, as a rule.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Serves until cancelled, and then until the answers under way are given.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let tracker = TaskTracker::new();
    while let Some((stream, place)) = stop
        .run_until_cancelled(next(&listener, places.clone()))
        .await
    {
        let (router, stop) = (router.clone(), stop.clone());
        tracker.spawn(async move {
            answer(stream, router, stop).await;
            drop(place);
        });
    }
    drop(listener);
    tracker.close();
    tracker.wait().await;
}

/// A connection, when there is a place for it.
async fn next(
    listener: &TcpListener,
    places: Arc<Semaphore>,
) -> (TcpStream, Option<tokio::sync::OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let place = places.acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                tracing::debug!(%error, "the local API got no connection");
                time::sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, router: Router, stop: CancellationToken) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    // A connection that breaks is the other side's affair.
    if stop
        .run_until_cancelled(connection.as_mut())
        .await
        .is_none()
    {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::{io, net::SocketAddr};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::timeout,
    };

    const SOON: Duration = Duration::from_secs(5);

    async fn start() -> (SocketAddr, CancellationToken) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let router = Router::new().route("/", get(|| async { "hello" }));
        tokio::spawn(serve(listener, router, stop.clone()));
        (address, stop)
    }

    async fn ask(address: SocketAddr) -> io::Result<String> {
        let mut stream = TcpStream::connect(address).await?;
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn a_connection_past_the_last_place_waits_for_one() {
        let (address, stop) = start().await;
        let mut idle = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let waiting = timeout(Duration::from_millis(300), ask(address)).await;
        assert!(waiting.is_err(), "a connection too many was answered");
        idle.pop();
        let answer = timeout(SOON, ask(address)).await.unwrap().unwrap();
        assert!(answer.ends_with("hello"), "{answer}");
        stop.cancel();
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_come_ends_the_connection() {
        let (address, stop) = start().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
        let began = time::Instant::now();
        let mut rest = Vec::new();
        let ended = timeout(6 * HEAD_WITHIN, stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "the connection is kept");
        assert!(began.elapsed() >= HEAD_WITHIN);
        stop.cancel();
    }
}
