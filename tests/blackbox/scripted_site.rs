//! A small HTTP server that answers by a script, on one address, for what the toy web has no host
//! for.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Largest request that is read, in bytes.
const MAX_REQUEST_BYTES: usize = 16 << 10;

/// What is answered.
pub enum Reply {
    /// 200 with this HTML.
    Html(String),
    /// 302 to this place.
    Redirect(String),
    /// 404.
    Missing,
}

/// A running server; dropping it ends it.
pub struct ScriptedSite {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl ScriptedSite {
    /// Serves `script`, which is asked with the Host header's name and the path.
    pub fn start(
        listener: TcpListener,
        script: impl Fn(&str, &str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (script, log) = (Arc::new(script), requests.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, log) = (script.clone(), log.clone());
                tokio::spawn(async move { serve(stream, &*script, &log).await });
            }
        });
        ScriptedSite {
            address,
            requests,
            task,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was asked so far, as `host/path`.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for ScriptedSite {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    script: &(impl Fn(&str, &str) -> Reply + ?Sized),
    log: &Mutex<Vec<String>>,
) {
    let Some(head) = read_head(&mut stream).await else {
        return;
    };
    let path = head.split(' ').nth(1).unwrap_or_default();
    let host = head
        .lines()
        .find_map(|line| line.strip_prefix("Host: "))
        .unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(name, _)| name);
    log.lock().unwrap().push(format!("{host}{path}"));
    let (line, header, body) = match script(host, path) {
        Reply::Html(body) => ("200 OK", "Content-Type: text/html".to_owned(), body),
        Reply::Redirect(to) => ("302 Found", format!("Location: {to}"), String::new()),
        Reply::Missing => ("404 Not Found", "X-Nothing: here".to_owned(), String::new()),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {line}\r\n{header}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    // Whoever went away does not want the answer.
    let _ = stream.write_all(answer.as_bytes()).await;
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > MAX_REQUEST_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    String::from_utf8(head).ok()
}
