//! Getting one URL over HTTP, within the limits of good citizenship.
//!
//! The client follows no redirect, keeps no cookie, uses no proxy and decodes nothing: what came
//! back is handed on as data. It connects only to the address it is given, which has been checked;
//! the address that answered is checked again.

use crate::{
    body::Extent,
    body_memory::Holding,
    config::FetchConfig,
    gate::{Gaps, Gate},
    judge,
    request::{RequestHead, Wanted, WebRequest},
    throttle::{Throttle, Ticket},
    trust::{self, TrustError},
};
use apoidea_crawl::{ContactRefused, Contactable};
use apoidea_model::Domain;
use bytes::{Bytes, BytesMut};
use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
    header::HeaderMap,
};
use std::{
    collections::HashMap,
    error::Error as _,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// How this crawler introduces itself: product token, version, and a page that explains it and how
/// to refuse it. Not a setting, so that a site owner always knows whom to ask.
pub const USER_AGENT: &str = concat!(
    "Apoidea/",
    env!("CARGO_PKG_VERSION"),
    " (+https://github.com/apoidea-crawler/apoidea/blob/main/docs/crawler.md)"
);
/// The name that robots.txt files and robots directives address.
pub const PRODUCT_TOKEN: &str = "Apoidea";
/// Largest body that is read, in bytes; the rest is cut off.
pub const MAX_BODY_BYTES: usize = 2 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(20);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(60);
/// An idle connection is kept a little longer than the longest usual delay between two requests.
const KEEP_ALIVE: Duration = Duration::from_secs(65);

/// Fetches URLs.
pub struct Fetcher {
    client: Client,
    pins: Pins,
    contactable: Contactable,
    gate: Gate,
    gaps: PerNetwork,
    throttle: Arc<Throttle>,
}

/// The floors between requests; see [`Gaps`].
struct PerNetwork {
    global: Gaps,
    private: Gaps,
}

/// What a server answered.
#[derive(Debug)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The body as sent, up to [`MAX_BODY_BYTES`]; empty where the type is not wanted.
    pub raw_body: Bytes,
    /// Whether the body is whole.
    pub extent: Extent,
    /// Who answered.
    pub address: IpAddr,
    /// From the first byte sent to the last received.
    pub elapsed: Duration,
    /// The head of the request, as it was sent.
    pub request: RequestHead,
    /// The memory that it takes.
    pub holding: Holding,
}

/// What a request may use.
struct Means<'a> {
    ticket: Ticket<'a>,
    holding: Holding,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// Not an address or port for us.
    #[error(transparent)]
    Refused(#[from] ContactRefused),
    /// No connection came about.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The server's certificate or its TLS is not right.
    #[error("no secure connection: {0}")]
    Tls(String),
    /// The connection broke, or what came was not HTTP.
    #[error("the answer broke off: {0}")]
    Read(String),
    /// It took too long.
    #[error("no answer in time")]
    Timeout,
    /// A pause came before it was sent.
    #[error("a pause came first")]
    Paused,
}

/// Why no fetcher could be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// There is nobody whose certificates can be believed.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// There is no client.
    #[error("cannot set up HTTP: {0}")]
    Client(String),
}

impl Fetcher {
    /// A fetcher for these settings.
    pub fn new(
        config: &FetchConfig,
        contactable: Contactable,
        global: Gaps,
        throttle: Arc<Throttle>,
    ) -> Result<Self, SetupError> {
        let pins = Pins::default();
        let client = Client::builder()
            .tls_backend_preconfigured(trust::client_config(&config.trusted_certificates)?)
            .dns_resolver(pins.clone())
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .http1_only()
            .http1_title_case_headers()
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(KEEP_ALIVE)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .build()
            .map_err(|error| SetupError::Client(describe(&error)))?;
        let private = Gaps {
            host: config.private_delay,
            address: config.private_address_delay,
        };
        let gaps = PerNetwork { global, private };
        Ok(Fetcher {
            client,
            pins,
            contactable,
            gate: Gate::default(),
            gaps,
            throttle,
        })
    }

    /// The least pause after a request to a host at this address.
    pub fn gap(&self, address: IpAddr) -> Duration {
        self.gaps(address).host
    }

    fn gaps(&self, address: IpAddr) -> Gaps {
        match self.contactable.is_private(address) {
            true => self.gaps.private,
            false => self.gaps.global,
        }
    }

    /// Sends a request. Waits at the gate first; that time is not part of [`Response::elapsed`].
    pub async fn get(&self, request: &WebRequest) -> Result<Response, FetchError> {
        let WebRequest { url, address, .. } = request;
        self.contactable.check_url(url)?;
        self.contactable.check_address(*address)?;
        let domain = url.domain();
        let gaps = self.gaps(*address);
        let head = request.head();
        let holding = self.throttle.bodies().enter(request.wanted).await;
        let ticket = self.throttle.request(head.bytes()).await;
        let ticket = ticket.ok_or(FetchError::Paused)?;
        let _pass = self.gate.enter(&domain, *address, gaps).await;
        let _pin = self.pins.pin(domain, *address);
        self.exchange(request, head, Means { ticket, holding })
            .await
    }

    async fn exchange(
        &self,
        request: &WebRequest,
        head: RequestHead,
        mut means: Means<'_>,
    ) -> Result<Response, FetchError> {
        let started = Instant::now();
        let deadline = started + TOTAL_TIMEOUT + self.throttle.slack(MAX_BODY_BYTES);
        let get = self.client.get(request.url.to_url());
        let get = get.headers(request.header_map());
        let sent = timeout_at(deadline, get.send())
            .await
            .map_err(|_| FetchError::Timeout)?;
        let mut response = sent.map_err(|error| classify(&error))?;
        let address = response
            .remote_addr()
            .map_or(request.address, |remote| remote.ip());
        self.contactable.check_address(address)?;
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        means.ticket.receive(head_bytes(&headers)).await;
        let is_wanted = request.wanted == Wanted::Anything || judge::is_page(&headers);
        let (raw_body, extent) = if is_wanted {
            read_body(&mut response, &mut means, deadline).await?
        } else {
            (Bytes::new(), Extent::Truncated)
        };
        let elapsed = started.elapsed();
        Ok(Response {
            status,
            headers,
            raw_body,
            extent,
            address,
            elapsed,
            request: head,
            holding: means.holding,
        })
    }
}

/// About what a response head takes on the wire.
fn head_bytes(headers: &HeaderMap) -> u64 {
    const STATUS_LINE: usize = 19;
    let lines = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4);
    (STATUS_LINE + lines.sum::<usize>()) as u64
}

/// Reads as bytes and memory allow. Time spent waiting for memory is not the server's fault.
async fn read_body(
    response: &mut reqwest::Response,
    means: &mut Means<'_>,
    mut deadline: Instant,
) -> Result<(Bytes, Extent), FetchError> {
    let expected = response
        .content_length()
        .unwrap_or(0)
        .min(MAX_BODY_BYTES as u64) as usize;
    means.holding.expect(expected as u64);
    let mut body = BytesMut::new();
    loop {
        deadline += means.holding.wait_for_room().await;
        let read = timeout_at(deadline, response.chunk())
            .await
            .map_err(|_| FetchError::Timeout)?;
        let Some(chunk) = read.map_err(|error| classify(&error))? else {
            break;
        };
        means.holding.note(chunk.len() as u64);
        means.ticket.receive(chunk.len() as u64).await;
        if body.is_empty() && chunk.len() == expected {
            return Ok((chunk, Extent::Whole));
        }
        if body.is_empty() {
            body.reserve(expected);
        }
        let room = MAX_BODY_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((body.freeze(), Extent::Truncated));
        }
    }
    Ok((body.freeze(), Extent::Whole))
}

fn classify(error: &reqwest::Error) -> FetchError {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
            return FetchError::Tls(tls.to_string());
        }
        let wrapped = inner
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        if let Some(tls) = wrapped.and_then(|wrapped| wrapped.downcast_ref::<rustls::Error>()) {
            return FetchError::Tls(tls.to_string());
        }
        cause = inner.source();
    }
    match error {
        error if error.is_connect() => FetchError::Connect(describe(error)),
        error if error.is_timeout() => FetchError::Timeout,
        error => FetchError::Read(describe(error)),
    }
}

/// The innermost cause, which is the one that tells something.
fn describe(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Which address each domain with a request under way is to be connected at. The client asks here
/// instead of any resolver, so it can connect to nothing that was not checked.
#[derive(Debug, Clone, Default)]
struct Pins(Arc<Mutex<HashMap<Domain, IpAddr>>>);

/// Keeps a pin in place.
struct Pin<'a>(&'a Pins, Domain);

impl Pins {
    fn pin(&self, domain: Domain, address: IpAddr) -> Pin<'_> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(domain.clone(), address);
        Pin(self, domain)
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.1);
    }
}

impl Resolve for Pins {
    fn resolve(&self, name: Name) -> Resolving {
        let pinned = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name.as_str())
            .copied();
        Box::pin(std::future::ready(match pinned {
            Some(address) => Ok(Box::new(std::iter::once(SocketAddr::new(address, 0))) as Addrs),
            None => Err(format!("no checked address for {}", name.as_str()).into()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_crawl::Connection;
    use apoidea_model::{PageUrl, Validators};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    /// Answers one request and gives its bytes.
    async fn answer_one(listener: TcpListener, answer: &'static [u8]) -> Vec<u8> {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut got = Vec::new();
        while !got.ends_with(b"\r\n\r\n") {
            let read = stream.read_buf(&mut got).await.unwrap();
            assert!(read > 0, "the request broke off");
        }
        stream.write_all(answer).await.unwrap();
        got
    }

    fn fetcher(port: u16) -> Fetcher {
        let config = FetchConfig {
            ports: vec![port],
            private_networks: vec!["127.0.0.0/8".parse().unwrap()],
            ..FetchConfig::default()
        };
        let gaps = Gaps {
            host: Duration::ZERO,
            address: Duration::ZERO,
        };
        let throttle = Arc::new(Throttle::new());
        Fetcher::new(&config, config.contactable(), gaps, throttle).unwrap()
    }

    fn text(head: &RequestHead) -> Vec<u8> {
        let mut text = format!("{}\r\n", head.first_line).into_bytes();
        for (name, value) in &head.headers {
            text.extend_from_slice(format!("{name}: ").as_bytes());
            text.extend_from_slice(value);
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"\r\n");
        text
    }

    #[tokio::test]
    async fn the_archived_head_is_what_the_server_got() {
        const OK: &[u8] = b"HTTP/1.1 304 Not Modified\r\nETag: \"b\"\r\n\r\n";
        let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
        for (connection, known) in [
            (Connection::KeepAlive, Validators::default()),
            (Connection::Close, Validators::read(Some(b"\"a\""), None)),
            (Connection::Close, Validators::read(None, Some(date))),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let url = format!("http://a.test:{}/x?y=1", address.port());
            let request = WebRequest {
                url: PageUrl::parse(&url).unwrap(),
                address: address.ip(),
                wanted: Wanted::Page,
                connection,
                known,
            };
            let fetcher = fetcher(address.port());
            let (got, response) = tokio::join!(answer_one(listener, OK), fetcher.get(&request));
            let response = response.unwrap();
            assert_eq!(response.status, 304);
            assert_eq!(
                String::from_utf8(got.clone()).unwrap(),
                String::from_utf8(text(&response.request)).unwrap()
            );
            assert_eq!(response.request.bytes(), got.len() as u64);
        }
    }
}
