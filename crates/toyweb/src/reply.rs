//! What a server answers: an ordinary HTTP response, or a script of bytes, pauses and broken
//! connections.
//!
//! Responses are written by hand, not by an HTTP library, because a server that misbehaves cannot
//! be built on one that never does.

use bytes::Bytes;
use std::{borrow::Cow, fmt::Write, io, time::Duration};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::sleep,
};

/// An answer to one request.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    version: &'static str,
    headers: Vec<(&'static str, Cow<'static, str>)>,
    framing: Framing,
    body: Vec<Step>,
    pub(crate) ending: Ending,
}

/// How the end of the body is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// By its true length.
    Length,
    /// By a length that may be a lie.
    Claimed(u64),
    /// By chunks, one per step.
    Chunked,
    /// By closing the connection.
    Close,
    /// There is no head at all: the body is everything that is sent.
    Raw,
}

/// What becomes of the connection afterwards.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    KeepAlive,
    Close,
    /// A TCP reset, so that the other side sees an error instead of an end.
    Reset,
}

/// A part of a body.
#[derive(Clone)]
pub(crate) enum Step {
    /// Bytes at once.
    Send(Bytes),
    /// Nothing, for a while.
    Wait(Duration),
    /// One byte at a time.
    Trickle(Bytes, Duration),
    /// The same bytes again and again; without a number, until the other side has had enough.
    Repeat(Bytes, Option<u64>),
}

impl Reply {
    /// A response with a body of some type.
    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let mut reply = Reply::empty(status).header("Content-Type", content_type);
        reply.body = vec![Step::Send(body.into())];
        reply
    }

    /// A response without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Reply {
            status,
            version: "HTTP/1.1",
            headers: Vec::new(),
            framing: Framing::Length,
            body: Vec::new(),
            ending: Ending::KeepAlive,
        }
    }

    /// An HTML page in UTF-8.
    pub(crate) fn html(body: impl Into<Bytes>) -> Self {
        Reply::new(200, "text/html; charset=utf-8", body)
    }

    /// A small error page.
    pub(crate) fn error(status: u16) -> Self {
        let reason = reason(status);
        Reply::new(
            status,
            "text/html; charset=utf-8",
            format!("<title>{reason}</title><h1>{reason}</h1>"),
        )
    }

    /// A redirect with one of the 3xx statuses.
    pub(crate) fn redirect(status: u16, location: impl Into<Cow<'static, str>>) -> Self {
        Reply::error(status).header("Location", location)
    }

    pub(crate) fn header(
        mut self,
        name: &'static str,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Replaces the body and how its end is told; whatever is not framed ends with the connection.
    pub(crate) fn body(mut self, framing: Framing, body: Vec<Step>) -> Self {
        if matches!(framing, Framing::Close | Framing::Raw | Framing::Claimed(_)) {
            self.ending = Ending::Close;
        }
        (self.framing, self.body) = (framing, body);
        self
    }

    pub(crate) fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    pub(crate) fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// Writes the answer; of a `HEAD` request only its head. Counts the bytes in `written` as it
    /// goes, so that they are known even if the other side goes away.
    pub(crate) async fn write(
        &self,
        to: &mut impl Sink,
        is_head: bool,
        written: &mut u64,
    ) -> io::Result<()> {
        let mut head = self.head().into_bytes();
        if let ([Step::Send(body)], Framing::Length, false) =
            (&self.body[..], self.framing, is_head)
        {
            head.extend_from_slice(body);
            send(to, &head, written).await?;
            return to.flush().await;
        }
        send(to, &head, written).await?;
        if !is_head {
            self.write_body(to, written).await?;
        }
        to.flush().await
    }

    async fn write_body(&self, to: &mut impl Sink, written: &mut u64) -> io::Result<()> {
        for step in &self.body {
            match step {
                Step::Send(bytes) => self.write_piece(to, bytes, written).await?,
                Step::Wait(time) => wait(to, *time).await?,
                Step::Trickle(bytes, pause) => {
                    for byte in bytes.chunks(1) {
                        self.write_piece(to, byte, written).await?;
                        wait(to, *pause).await?;
                    }
                }
                Step::Repeat(bytes, times) => {
                    for _ in 0..times.unwrap_or(u64::MAX) {
                        self.write_piece(to, bytes, written).await?;
                    }
                }
            }
        }
        match self.framing {
            Framing::Chunked => send(to, b"0\r\n\r\n", written).await,
            _ => Ok(()),
        }
    }

    async fn write_piece(
        &self,
        to: &mut impl Sink,
        bytes: &[u8],
        written: &mut u64,
    ) -> io::Result<()> {
        if self.framing != Framing::Chunked {
            return send(to, bytes, written).await;
        }
        let size = format!("{:x}\r\n", bytes.len());
        send(to, &[size.as_bytes(), bytes, b"\r\n"].concat(), written).await
    }

    fn head(&self) -> String {
        let mut head = String::with_capacity(256);
        if self.framing == Framing::Raw {
            return head;
        }
        let _ = write!(
            head,
            "{} {} {}\r\nServer: toyweb\r\n",
            self.version,
            self.status,
            reason(self.status)
        );
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let _ = match self.framing {
            Framing::Length if self.status == 304 => Ok(()),
            Framing::Length => write!(head, "Content-Length: {}\r\n", self.length()),
            Framing::Claimed(length) => write!(head, "Content-Length: {length}\r\n"),
            Framing::Chunked => write!(head, "Transfer-Encoding: chunked\r\n"),
            Framing::Close | Framing::Raw => Ok(()),
        };
        if self.ending == Ending::Close && self.version == "HTTP/1.1" {
            head.push_str("Connection: close\r\n");
        }
        head.push_str("\r\n");
        head
    }

    fn length(&self) -> u64 {
        let steps = self.body.iter().map(|step| match step {
            Step::Send(bytes) | Step::Trickle(bytes, _) => bytes.len() as u64,
            Step::Wait(_) => 0,
            Step::Repeat(bytes, times) => bytes.len() as u64 * times.unwrap_or(1),
        });
        steps.sum()
    }
}

/// Where answers are written to.
pub(crate) trait Sink: AsyncWrite + Unpin + Send {}

impl<T: AsyncWrite + Unpin + Send> Sink for T {}

async fn send(to: &mut impl Sink, bytes: &[u8], written: &mut u64) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let sent = to.write(rest).await?;
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        *written += sent as u64;
        rest = &rest[sent..];
    }
    Ok(())
}

async fn wait(to: &mut impl Sink, time: Duration) -> io::Result<()> {
    to.flush().await?;
    sleep(time).await;
    Ok(())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        410 => "Gone",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}
