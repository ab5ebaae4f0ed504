//! Peers for tests: transports on loopback with a service that answers predictably.

use apoidea_model::PeerId;
use apoidea_overlay::{
    AddressBook, AddressPolicy, Identity, Kind, Refusal, Request, Service, Source, Transport,
    TransportSettings,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// Answers with the request's own body.
pub const ECHO: Kind = Kind::free(0);
/// Answers with the answering peer's id and the asker's.
pub const WHO: Kind = Kind::free(1);
/// Never answers.
pub const HANG: Kind = Kind::free(2);
/// Answers that the request made no sense.
pub const NONSENSE: Kind = Kind::free(3);

/// Longest that any condition may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The tests' service; counts what is in its hands.
pub struct Desk {
    pub id: PeerId,
    pub hanging: Arc<AtomicUsize>,
}

impl Desk {
    pub fn new(id: PeerId) -> Self {
        Desk {
            id,
            hanging: Arc::default(),
        }
    }
}

struct Hanging(Arc<AtomicUsize>);

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Service for Desk {
    fn answer(&self, from: PeerId, request: Request) -> BoxFuture<'_, Result<Bytes, Refusal>> {
        Box::pin(async move {
            match request.kind {
                ECHO => Ok(request.body),
                WHO => Ok([self.id.key().as_bytes().as_slice(), from.key().as_bytes()]
                    .concat()
                    .into()),
                NONSENSE => Err(Refusal::Malformed),
                HANG => {
                    self.hanging.fetch_add(1, SeqCst);
                    let _hanging = Hanging(self.hanging.clone());
                    std::future::pending().await
                }
                _ => Err(Refusal::UnknownKind),
            }
        })
    }
}

/// TransportSettings for loopback.
pub fn settings() -> TransportSettings {
    TransportSettings {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        addresses: AddressPolicy::Private,
        network: "test".parse().unwrap(),
        ..TransportSettings::default()
    }
}

/// A transport of its own identity, and the number of requests that hang in its service.
pub fn start(settings: TransportSettings) -> (Transport, Arc<AtomicUsize>) {
    start_as(Identity::ephemeral().unwrap(), settings)
}

/// A transport of this identity.
pub fn start_as(identity: Identity, settings: TransportSettings) -> (Transport, Arc<AtomicUsize>) {
    let desk = Desk::new(identity.id());
    let hanging = desk.hanging.clone();
    (
        Transport::start(identity, settings, AddressBook::default(), Arc::new(desk)).unwrap(),
        hanging,
    )
}

/// A transport with default settings.
pub fn peer() -> Transport {
    start(settings()).0
}

/// Two peers of which the first knows where the second is.
pub fn pair(settings: TransportSettings) -> (Transport, Transport) {
    let (a, b) = (start(settings.clone()).0, start(settings).0);
    introduce(&a, &b);
    (a, b)
}

/// Tells `a` where `b` is.
pub fn introduce(a: &Transport, b: &Transport) {
    a.learn(b.me(), b.local_addresses(), Source::Told);
}

/// The address that a peer listens on.
pub fn address(peer: &Transport) -> SocketAddr {
    peer.local_addresses()[0]
}

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A loopback address of its own, for a test that must know an address before it is listened on: a
/// port that was free a moment ago on an address that all tests share may be another test's by
/// then.
pub fn own_loopback() -> Ipv4Addr {
    static TAKEN: AtomicU8 = AtomicU8::new(0);
    Ipv4Addr::new(127, 88, TAKEN.fetch_add(1, SeqCst), 1)
}
