//! One client's connection: requests are read, logged, answered, one after another, until somebody
//! closes.

use crate::{
    access_log::Visit,
    atlas::Scheme,
    log::Log,
    reply::{Ending, Reply},
    slowness::Slowness,
};
use apoidea_model::Time;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;

/// Largest request head that is read, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Most headers of a request.
const MAX_HEADERS: usize = 64;

/// Something that knows what to answer.
pub(crate) trait Answer: Send + Sync + 'static {
    /// The answer to a request. The visit is not complete yet: its status and size come from the
    /// answer.
    fn answer(&self, visit: &Visit) -> Reply;
}

/// A stream that can be broken on purpose.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send {
    /// The TCP connection underneath.
    fn tcp(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Socket for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Serves one connection from the first request to the last.
pub(crate) struct Server {
    pub(crate) answer: Arc<dyn Answer>,
    pub(crate) log: Arc<Log>,
    pub(crate) scheme: Scheme,
    /// How long an answer takes to begin.
    pub(crate) slowness: Slowness,
}

impl Server {
    /// Serves until the client or an answer ends the connection.
    pub(crate) async fn serve(&self, mut socket: impl Socket, connection: usize) -> io::Result<()> {
        let server = socket.tcp().local_addr()?;
        let mut buffer = Vec::with_capacity(1024);
        while let Some(visit) = self
            .read(&mut socket, &mut buffer, server, connection)
            .await?
        {
            let ticket = self.log.arrived(visit.clone());
            tokio::time::sleep(self.slowness.of(&visit.host)).await;
            let reply = self.answer.answer(&visit);
            let mut written = 0;
            let result = reply
                .write(&mut socket, &*visit.method == "HEAD", &mut written)
                .await;
            self.log.answered(ticket, reply.status, written);
            result?;
            let asked_to_close = visit
                .connection_header
                .is_some_and(|value| value.eq_ignore_ascii_case("close"));
            match reply.ending {
                Ending::Reset => return socket.tcp().set_zero_linger(),
                Ending::Close => return socket.shutdown().await,
                Ending::KeepAlive if asked_to_close => return socket.shutdown().await,
                Ending::KeepAlive => {}
            }
        }
        Ok(())
    }

    /// The next request; `None` at the end of the connection.
    async fn read(
        &self,
        socket: &mut impl Socket,
        buffer: &mut Vec<u8>,
        server: SocketAddr,
        connection: usize,
    ) -> io::Result<Option<Visit>> {
        loop {
            if let Some((mut visit, length)) = parse(buffer, server, connection)? {
                buffer.drain(..length);
                visit.scheme = match self.scheme {
                    Scheme::Http => "http".into(),
                    Scheme::Https => "https".into(),
                };
                return Ok(Some(visit));
            }
            if buffer.len() > MAX_HEAD_BYTES {
                return Err(invalid("the request's head is too large"));
            }
            if socket.read_buf(buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// Reads a request head, if it is complete, and its length. Requests with bodies are not served.
fn parse(
    buffer: &[u8],
    server: SocketAddr,
    connection: usize,
) -> io::Result<Option<(Visit, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request
        .parse(buffer)
        .map_err(|_| invalid("not an HTTP request"))?
    {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let value = |name: &str| {
        let header = request
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(Arc::from(String::from_utf8_lossy(header.value).as_ref()))
    };
    let has_body = value("content-length").is_some_and(|length: Arc<str>| &*length != "0");
    if has_body || value("transfer-encoding").is_some() {
        return Err(invalid("the request has a body"));
    }
    let host = value("host").unwrap_or_default();
    let visit = Visit {
        received: Duration::ZERO,
        wall: Time::ZERO,
        answered: None,
        scheme: Arc::default(),
        host: host_name(&host).into(),
        server,
        path: request.path.unwrap_or("/").into(),
        method: request.method.unwrap_or("GET").into(),
        user_agent: value("user-agent"),
        if_none_match: value("if-none-match"),
        if_modified_since: value("if-modified-since"),
        accept_encoding: value("accept-encoding"),
        connection_header: value("connection"),
        connection,
        status: 0,
        bytes: 0,
    };
    Ok(Some((visit, length)))
}

/// The name in a `Host` header, without port and trailing dot.
fn host_name(header: &str) -> String {
    let name = header.rsplit_once(':').map_or(header, |(name, _)| name);
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
