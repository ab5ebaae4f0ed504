//! Another program on the port of a peer that has died: it learns nothing from ours.

use crate::peer_process::{Launch, program};
use std::{
    fs,
    process::Command,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Answers every request with nonsense, as long as the test runs, and keeps what it was sent.
async fn impostor(address: &str) -> Arc<Mutex<String>> {
    let listener = TcpListener::bind(address.strip_prefix("http://").unwrap());
    let listener = listener.await.unwrap();
    let heard = Arc::<Mutex<String>>::default();
    let log = heard.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let log = log.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                    let said = String::from_utf8_lossy(&buffer[..length]).into_owned();
                    log.lock().unwrap().push_str(&said);
                    let body = format!(r#"{{"proof":"{}"}}"#, "0".repeat(64));
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                    let _ = stream.write_all((head + &body).as_bytes()).await;
                }
            });
        }
    });
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_took_the_port_of_a_dead_peer_does_not_hear_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let launch = Launch::new(&data);
    let peer = launch.start().await;
    let (address, token) = (peer.address().to_owned(), peer.token().to_owned());
    let status = async || {
        let mut command = Command::new(program());
        let command = command.arg("--data").arg(&data).arg("status");
        tokio::task::block_in_place(|| command.output().unwrap())
    };
    assert!(status().await.status.success(), "the peer itself is known");

    let note = fs::read(data.join("api-address")).unwrap();
    peer.stop().await;
    // As a crash leaves it.
    fs::write(data.join("api-address"), note).unwrap();
    let heard = impostor(&address).await;
    let output = status().await;
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        words.contains("another program answers on") && words.contains("not running"),
        "{words}"
    );
    let heard = heard.lock().unwrap();
    assert!(heard.contains("/api/hello?nonce="), "{heard}");
    assert!(
        !heard.contains(&token) && !heard.contains("Bearer"),
        "{heard}"
    );
}
