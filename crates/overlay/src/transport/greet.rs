//! Letting newcomers in: first the rates are checked, then comes the handshake, then the hello.

use super::{
    Inner,
    address_book::Source,
    close::Close,
    counters::TransportEvent,
    frame::{FrameError, Head, Writer},
    handshakes::{AddressProof, Door, Handshake},
    hello::{Hello, HelloError},
    link::{ANSWERED, Dialler, Link},
    origin::Origin,
    port::Port,
    tls::proven_peer,
};
use crate::Kind;
use apoidea_model::Route;
use quinn::{Connection, ConnectionError, Incoming};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time;

/// Pause before an endpoint that stopped is made again.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

/// Why a newcomer was not let in.
#[derive(Debug, thiserror::Error)]
enum GreetError {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Hello(#[from] HelloError),
    #[error("the first stream was not a hello")]
    NotAHello,
    #[error("it is banished")]
    Banished,
    #[error("it took too long")]
    TimedOut,
    #[error("it is this peer itself")]
    Myself,
}

impl Inner {
    /// Lets others in through one port, for as long as the transport runs.
    pub(crate) async fn greet(self: Arc<Self>, port: Arc<Port>) {
        loop {
            let endpoint = port.endpoint();
            while let Some(incoming) = endpoint.accept().await {
                self.admit(incoming);
            }
            if self.stop.is_cancelled() {
                return;
            }
            tracing::warn!("the socket was lost: opening another");
            time::sleep(REOPEN_PAUSE).await;
            if let Err(error) = port.reopen() {
                tracing::warn!(%error, "the port cannot be opened again yet");
            }
        }
    }

    /// Decides about a newcomer before any cryptography is spent on it. One that comes too often, or
    /// that claims an address of which too many come, must prove its address; only then it is
    /// turned away.
    fn admit(self: &Arc<Self>, incoming: Incoming) {
        let origin = Origin::at(incoming.remote_address().ip());
        let address = if incoming.remote_address_validated() {
            AddressProof::Proven
        } else {
            AddressProof::Claimed
        };
        let has_token = self.gate().admit_newcomer(origin, address, Instant::now());
        let door = match (has_token, address) {
            (true, _) => self.handshakes.begin(origin, address),
            (false, AddressProof::Claimed) => Door::Ajar,
            (false, AddressProof::Proven) => Door::Shut,
        };
        match door {
            Door::Open(handshake) => self.spawn(self.clone().welcome(incoming, handshake)),
            Door::Ajar => {
                self.counters.note(TransportEvent::Retried);
                // Cannot fail: an address that is not proven may always be asked to be.
                let _ = incoming.retry();
            }
            Door::Shut => self.turn_away(incoming),
        }
    }

    fn turn_away(&self, incoming: Incoming) {
        self.counters.note(TransportEvent::TurnedAway);
        incoming.refuse();
    }

    async fn welcome(self: Arc<Self>, incoming: Incoming, handshake: Handshake) {
        let outcome = time::timeout(
            self.settings.limits.dial_deadline(),
            self.shake_hands(incoming),
        )
        .await;
        drop(handshake);
        match outcome.unwrap_or(Err(GreetError::TimedOut)) {
            Ok(link) => {
                self.counters.note(TransportEvent::Accepted);
                self.place(link);
            }
            Err(error) => self.note_failed_greeting(&error),
        }
    }

    async fn shake_hands(&self, incoming: Incoming) -> Result<Link, GreetError> {
        let is_claimed = !incoming.remote_address_validated();
        let address = incoming.remote_address();
        let origin = Origin::at(address.ip());
        let connection = incoming.accept()?.await?;
        if is_claimed {
            self.gate().charge_newcomer(origin, Instant::now());
        }
        let outcome = self.hear_hello(&connection, address).await;
        match &outcome {
            Ok(_) => {}
            Err(GreetError::Hello(error @ HelloError::WrongNetwork { .. })) => {
                Close::WrongNetwork.end_because(&connection, &error.to_string());
            }
            Err(GreetError::Hello(HelloError::NoToil)) => Close::NoToil.end(&connection),
            Err(GreetError::Banished) => Close::Banished.end(&connection),
            Err(_) => Close::Malformed.end(&connection),
        }
        outcome
    }

    async fn hear_hello(
        &self,
        connection: &Connection,
        address: SocketAddr,
    ) -> Result<Link, GreetError> {
        let peer = proven_peer(connection).ok_or(GreetError::NotAHello)?;
        if peer == self.me() {
            return Err(GreetError::Myself);
        }
        if self.gate().is_banished(peer, Instant::now()) {
            return Err(GreetError::Banished);
        }
        let (send, mut receive) = connection.accept_bi().await?;
        let head = Head::read(&mut receive, Hello::MAX_BYTES).await?;
        if head.tag != Kind::HELLO.as_byte() {
            return Err(GreetError::NotAHello);
        }
        let body = head.body(&mut receive).await?;
        let theirs = Hello::decode(&body, &self.settings.network, self.me())?;
        theirs.check_toil(peer, self.settings.effort)?;
        let route = Route::Direct(address);
        let mut writer = Writer::new(send);
        writer
            .write(ANSWERED, self.hello(route).encode().into())
            .await
            .map_err(|_| FrameError::Cancelled)?;
        // The other side dials from the socket that it listens on, so it can be dialled there.
        self.book().learn(peer, route, Source::Proven);
        let link = Link::direct(peer, Dialler::Them, theirs, address, connection.clone());
        self.note_observed(&link);
        self.note_arrival(address);
        Ok(link)
    }

    fn note_failed_greeting(&self, error: &GreetError) {
        tracing::debug!(%error, "a newcomer was not let in");
        match error {
            GreetError::Hello(HelloError::WrongNetwork { .. }) => {
                self.counters.note(TransportEvent::WrongNetwork)
            }
            GreetError::Hello(HelloError::NoToil) => self.counters.note(TransportEvent::TurnedAway),
            GreetError::Hello(_) | GreetError::NotAHello => {
                self.counters.note(TransportEvent::Malformed)
            }
            GreetError::Frame(error) if error.is_malformed() => {
                self.counters.note(TransportEvent::Malformed)
            }
            GreetError::Banished => self.counters.note(TransportEvent::TurnedAway),
            _ => self.counters.note(TransportEvent::HandshakeFailed),
        }
    }
}
