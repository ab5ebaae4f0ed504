//! Making a connection to a peer, given its id: the first of its routes that leads there is used.

use super::{
    Inner, Limits,
    address_book::Source,
    close::Close,
    counters::TransportEvent,
    frame::{Head, Writer},
    hello::{Hello, HelloError, printable},
    link::{ANSWERED, Dialler, Link},
    tls::{Expected, proven_peer},
};
use crate::Kind;
use apoidea_model::{PeerId, Route};
use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, Shared},
    stream::FuturesUnordered,
};
use quinn::{Connection, ConnectionError};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{sync::oneshot, time};

/// The next route is tried after this long, without waiting for the one before (RFC 8305 recommends
/// 250 ms).
const STAGGER: Duration = Duration::from_millis(250);
/// Longest explanation of another peer that is passed on.
const MAX_REASON_CHARS: usize = 160;

/// Why no connection was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// No address is known that may be dialled.
    #[error("no usable address is known for it")]
    NoAddress,
    /// The route leads through a relay, and no peer forwards yet.
    #[error("it is behind the relay {0}, and there are no relays yet")]
    NoRelays(PeerId),
    /// Another peer answers at the address.
    #[error("another peer answers at {0}")]
    WrongPeer(SocketAddr),
    /// The address is this peer's own.
    #[error("{0} is this peer's own address")]
    Myself(SocketAddr),
    /// It belongs to another network.
    #[error("{0}")]
    WrongNetwork(String),
    /// It speaks no version of the protocol that this peer does.
    #[error("it speaks another version of the protocol")]
    WrongVersion,
    /// It turned this peer away.
    #[error("it refused: {0}")]
    Refused(String),
    /// It did not answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// The handshake failed.
    #[error("{0}")]
    Failed(String),
    /// It has not proven the work for its identity yet.
    #[error("it has not proven the work for its identity yet")]
    Unproven,
    /// Its hello made no sense.
    #[error("its hello made no sense")]
    Malformed,
    /// Too many dials are under way.
    #[error("too many dials are under way")]
    Busy,
    /// The transport was shut down.
    #[error("the transport is shut down")]
    Closed,
}

impl DialError {
    /// The more telling of two failures of one dial: any other than the lack of a route.
    fn or(self, other: DialError) -> DialError {
        match self {
            DialError::NoAddress => other,
            telling => telling,
        }
    }
}

/// A dial under way, shared by everyone who waits for it.
pub(crate) type Dial = Shared<BoxFuture<'static, Result<Arc<Link>, DialError>>>;

impl Inner {
    /// The connection to a peer, made if need be.
    pub(crate) async fn link_to(self: &Arc<Self>, peer: PeerId) -> Result<Arc<Link>, DialError> {
        if let Some(link) = self.table().link(peer) {
            return Ok(link);
        }
        self.dial(peer)?.await
    }

    /// Joins the dial under way, or begins one. The dial goes on even if nobody waits for it any
    /// more.
    fn dial(self: &Arc<Self>, peer: PeerId) -> Result<Dial, DialError> {
        if self.stop.is_cancelled() {
            return Err(DialError::Closed);
        }
        let mut dials = self.dials();
        if let Some(dial) = dials.get(&peer) {
            return Ok(dial.clone());
        }
        if dials.len() >= Limits::DIALS {
            return Err(DialError::Busy);
        }
        let (done, outcome) = oneshot::channel();
        let dial = outcome
            .map(|outcome| outcome.unwrap_or(Err(DialError::Closed)))
            .boxed()
            .shared();
        dials.insert(peer, dial.clone());
        let inner = self.clone();
        self.spawn(async move {
            let outcome = inner.dial_all(peer).await;
            inner.dials().remove(&peer);
            let _ = done.send(outcome);
        });
        Ok(dial)
    }

    async fn dial_all(self: &Arc<Self>, peer: PeerId) -> Result<Arc<Link>, DialError> {
        let routes = self.book().routes(peer, self.settings.addresses);
        let attempts = routes
            .into_iter()
            .filter(|route| self.may_reach(*route))
            .zip(0u32..);
        let mut attempts: FuturesUnordered<_> = attempts
            .map(|(route, nth)| async move {
                time::sleep(STAGGER * nth).await;
                self.dial_route(route, peer)
                    .await
                    .map_err(|error| (route, error))
            })
            .collect();
        let mut last = DialError::NoAddress;
        while let Some(outcome) = attempts.next().await {
            match outcome {
                Ok(link) => return Ok(link),
                // It was not tried, so it says nothing about the route or about the peer.
                Err((_, error @ DialError::NoRelays(_))) => last = last.or(error),
                Err((route, error)) => {
                    self.book().note_failure(peer, route);
                    last = error;
                }
            }
        }
        Err(last)
    }

    fn may_reach(&self, route: Route) -> bool {
        route
            .address()
            .is_none_or(|address| self.port(address).is_some())
    }

    async fn dial_route(
        self: &Arc<Self>,
        route: Route,
        peer: PeerId,
    ) -> Result<Arc<Link>, DialError> {
        match route {
            Route::Direct(address) => self.dial_one(address, Expected::Peer(peer)).await,
            Route::Via { relay } => Err(DialError::NoRelays(relay)),
        }
    }

    /// Dials one address and introduces this peer.
    pub(crate) async fn dial_one(
        self: &Arc<Self>,
        address: SocketAddr,
        expected: Expected,
    ) -> Result<Arc<Link>, DialError> {
        let deadline = self.settings.limits.dial_deadline();
        self.note_spoken(address);
        let outcome = tokio::select! {
            outcome = time::timeout(deadline, self.connect(address, expected)) => outcome.unwrap_or(Err(DialError::TimedOut)),
            () = self.stop.cancelled() => Err(DialError::Closed),
        };
        match outcome {
            Ok(link) => {
                self.counters.note(TransportEvent::Dialled);
                self.book().learn(link.peer, address.into(), Source::Proven);
                self.place(link).ok_or(DialError::Busy)
            }
            Err(error) => {
                self.counters.note(TransportEvent::DialFailed);
                tracing::debug!(%address, %error, "dial failed");
                Err(error)
            }
        }
    }

    async fn connect(&self, address: SocketAddr, expected: Expected) -> Result<Link, DialError> {
        let endpoint = self.port(address).ok_or(DialError::NoAddress)?.endpoint();
        let connecting = endpoint
            .connect_with(self.client.clone(), address, &expected.server_name())
            .map_err(|error| DialError::Failed(error.to_string()))?;
        let connection = connecting
            .await
            .map_err(|error| dial_error(error, address))?;
        let peer = proven_peer(&connection).ok_or(DialError::Malformed)?;
        if peer == self.me() {
            return Err(DialError::Myself(address));
        }
        let hello = self.introduce(&connection, peer).await.map_err(|error| {
            // The other side's reason for closing tells more than the stream that broke.
            connection
                .close_reason()
                .map_or(error, |reason| dial_error(reason, address))
        })?;
        let link = Link::direct(peer, Dialler::Me, hello, address, connection);
        self.note_observed(&link);
        Ok(link)
    }

    /// Says hello first and reads the other side's.
    async fn introduce(&self, connection: &Connection, peer: PeerId) -> Result<Hello, DialError> {
        let (send, mut receive) = connection
            .open_bi()
            .await
            .map_err(|error| DialError::Failed(error.to_string()))?;
        let hello = self.hello(connection.remote_address().into());
        let mut writer = Writer::new(send);
        let _ = writer
            .write(Kind::HELLO.as_byte(), hello.encode().into())
            .await;
        let malformed = |_| DialError::Malformed;
        let head = Head::read(&mut receive, Hello::MAX_BYTES)
            .await
            .map_err(malformed)?;
        if head.tag != ANSWERED {
            return Err(DialError::Malformed);
        }
        let body = head.body(&mut receive).await.map_err(malformed)?;
        let hello = Hello::decode(&body, &self.settings.network, self.me());
        let hello = hello.and_then(|hello| {
            hello.check_toil(peer, self.settings.effort)?;
            Ok(hello)
        });
        hello.map_err(|error| match error {
            HelloError::Malformed => DialError::Malformed,
            HelloError::NoToil => {
                Close::NoToil.end(connection);
                DialError::Unproven
            }
            HelloError::WrongNetwork { .. } => {
                Close::WrongNetwork.end_because(connection, &error.to_string());
                DialError::WrongNetwork(error.to_string())
            }
        })
    }
}

/// A failed handshake in the terms of this crate.
fn dial_error(error: ConnectionError, address: SocketAddr) -> DialError {
    // TLS alerts (RFC 8446 §6): access_denied is raised by this side's own verifier,
    // no_application_protocol by either.
    let alert = |code| u64::from(quinn::TransportErrorCode::crypto(code));
    const ACCESS_DENIED: u8 = 49;
    const NO_APPLICATION_PROTOCOL: u8 = 120;
    let reason = |bytes: &[u8]| printable(&String::from_utf8_lossy(bytes), MAX_REASON_CHARS);
    match &error {
        ConnectionError::TransportError(e) if u64::from(e.code) == alert(ACCESS_DENIED) => {
            DialError::WrongPeer(address)
        }
        ConnectionError::TransportError(e)
            if u64::from(e.code) == alert(NO_APPLICATION_PROTOCOL) =>
        {
            DialError::WrongVersion
        }
        ConnectionError::ConnectionClosed(e)
            if u64::from(e.error_code) == alert(NO_APPLICATION_PROTOCOL) =>
        {
            DialError::WrongVersion
        }
        ConnectionError::VersionMismatch => DialError::WrongVersion,
        ConnectionError::ApplicationClosed(e) if Close::WrongNetwork.ended(&error) => {
            DialError::WrongNetwork(reason(&e.reason))
        }
        ConnectionError::ApplicationClosed(e) => DialError::Refused(reason(&e.reason)),
        ConnectionError::TimedOut => DialError::TimedOut,
        _ => DialError::Failed(printable(&error.to_string(), MAX_REASON_CHARS)),
    }
}
