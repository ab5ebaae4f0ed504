//! QUIC between peers that prove their ids by their keys.
//!
//! A peer is asked by its id. The transport finds the route, reuses a connection or makes one. One
//! request is one bidirectional stream with one frame each way. A peer is a stranger: [`Limits`]
//! bound everything that it can make this side hold, wait for or compute.
//!
//! The owners of keys and the meaning of requests are left to others.

mod address_book;
mod address_policy;
mod arrivals;
mod ballot;
mod bucket;
mod close;
mod counters;
mod dial;
mod frame;
mod gate;
mod greet;
mod handshakes;
mod hello;
mod link;
mod origin;
mod port;
mod serve;
mod settings;
mod socket;
mod sweep;
mod table;
mod throttle;
mod tls;
mod view;

pub use address_book::{AddressBook, KnownPeer, Source};
pub use address_policy::AddressPolicy;
pub use counters::{KindTotals, Traffic};
pub use dial::DialError;
#[cfg(feature = "fuzzing")]
pub(crate) use frame::Head;
pub use frame::MAX_BODY_BYTES;
pub(crate) use hello::Hello;
pub use hello::{Capabilities, InvalidNetworkId, NetworkId};
pub use link::Dialler;
pub use settings::{Limits, Rate, Sockets, TransportSettings};
pub use throttle::Bandwidth;
pub use tls::TlsError;
pub use view::PeerView;

use crate::{Identity, Kind, Request, RequestError, Service, lock::lock};
use apoidea_chord::{Effort, Toil};
use apoidea_model::{PeerId, Route};
use arrivals::Arrivals;
use ballot::Ballot;
use bytes::Bytes;
use close::Close;
use counters::{TrafficCounters, TransportEvent};
use dial::Dial;
use gate::Gate;
use handshakes::Handshakes;
use link::{AskError, Link, frame_bytes};
use port::Port;
use std::{
    collections::HashMap,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};
use table::{Placed, Table};
use throttle::{Throttle, Way};
use tls::Expected;
use tokio::{
    sync::{Semaphore, watch},
    time,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use view::Observed;

/// A running transport; clones share it. It stops with [`Transport::shut_down`], or when the last
/// clone is dropped.
#[derive(Clone)]
pub struct Transport {
    inner: Arc<Inner>,
    _stop: Arc<DropGuard>,
}

/// Why a transport could not be started.
#[derive(Debug, thiserror::Error)]
pub enum OverlayStartError {
    /// Nothing to listen on.
    #[error("no address to listen on was given")]
    NoAddress,
    /// None of the addresses could be listened on; this is the error of the last one.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The cryptography is not usable.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

pub(crate) struct Inner {
    identity: Identity,
    settings: TransportSettings,
    service: Arc<dyn Service>,
    incarnation: u64,
    client: quinn::ClientConfig,
    ports: Vec<Arc<Port>>,
    table: Mutex<Table>,
    book: Mutex<AddressBook>,
    gate: Mutex<Gate>,
    dials: Mutex<HashMap<PeerId, Dial>>,
    observed: Mutex<Observed>,
    /// The proof of the work for this peer's identity, once it is there.
    toil: watch::Sender<Option<Toil>>,
    ballot: Mutex<Ballot>,
    arrivals: Mutex<Arrivals>,
    counters: TrafficCounters,
    handshakes: Handshakes,
    throttle: Throttle,
    slots: Semaphore,
    bodies: Semaphore,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Transport {
    /// Begins to listen and to answer. The book holds the peers remembered from the last run.
    pub fn start(
        identity: Identity,
        settings: TransportSettings,
        book: AddressBook,
        service: Arc<dyn Service>,
    ) -> Result<Self, OverlayStartError> {
        let config = Arc::new(port::transport_config(&settings.limits));
        let mut client = quinn::ClientConfig::new(Arc::new(tls::client(&identity)?));
        client.transport_config(config.clone());
        let mut server = quinn::ServerConfig::with_crypto(Arc::new(tls::server(&identity)?));
        server.transport_config(config);
        port::limit_incoming(&mut server);
        let ports = open_ports(&settings, &server)?;
        let limits = &settings.limits;
        let inner = Arc::new(Inner {
            table: Mutex::new(Table::new(identity.id(), limits)),
            gate: Mutex::new(Gate::new(
                limits.peer_rate,
                limits.origin_rate,
                limits.newcomer_rate,
            )),
            identity,
            settings,
            service,
            incarnation: rand::random(),
            client,
            ports,
            book: Mutex::new(book),
            dials: Mutex::default(),
            observed: Mutex::default(),
            toil: watch::Sender::new(None),
            ballot: Mutex::default(),
            arrivals: Mutex::default(),
            counters: TrafficCounters::default(),
            handshakes: Handshakes::default(),
            throttle: Throttle::default(),
            slots: Semaphore::new(Limits::SERVING),
            bodies: Semaphore::new(Limits::BODIES_BYTES),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        for port in &inner.ports {
            inner.spawn(inner.clone().greet(port.clone()));
        }
        inner.spawn(inner.clone().sweep());
        inner.spawn(inner.clone().close_when_stopped());
        let stop = Arc::new(inner.stop.clone().drop_guard());
        Ok(Transport { inner, _stop: stop })
    }

    /// This peer.
    pub fn me(&self) -> PeerId {
        self.inner.me()
    }

    /// Asks a peer something. Dropping the future cancels the request at both ends. A request to
    /// this peer itself is answered by its own service.
    pub async fn request(
        &self,
        to: PeerId,
        kind: Kind,
        body: Bytes,
    ) -> Result<Bytes, RequestError> {
        let deadline = self.inner.settings.limits.request_deadline();
        time::timeout(deadline, self.inner.ask(to, kind, body))
            .await
            .unwrap_or(Err(RequestError::TimedOut(deadline)))
    }

    /// Asks whether the peer is there; connects if need be.
    pub async fn ping(&self, peer: PeerId) -> Result<(), RequestError> {
        self.request(peer, Kind::PING, Bytes::new())
            .await
            .map(|_| ())
    }

    /// Dials an address without knowing the peer there; only for addresses that the user gave or that
    /// are on the same link.
    pub async fn meet(&self, address: SocketAddr) -> Result<PeerId, DialError> {
        self.inner
            .dial_one(address, Expected::Anyone)
            .await
            .map(|link| link.peer)
    }

    /// Takes note of the ways to a peer.
    pub fn learn(
        &self,
        peer: PeerId,
        routes: impl IntoIterator<Item = impl Into<Route>>,
        source: Source,
    ) {
        if peer == self.me() {
            return;
        }
        let mut book = self.inner.book();
        for route in routes.into_iter().take(AddressBook::ROUTES) {
            book.learn(peer, route.into(), source);
        }
    }

    /// The routes on which a peer would be dialled, best first.
    pub fn routes(&self, peer: PeerId) -> Vec<Route> {
        self.inner
            .book()
            .routes(peer, self.inner.settings.addresses)
    }

    /// The smoothed round trip to a peer, as QUIC measures it; none without a connection.
    pub fn round_trip(&self, peer: PeerId) -> Option<time::Duration> {
        if peer == self.me() {
            return Some(time::Duration::ZERO);
        }
        let link = self.inner.table().link(peer)?;
        Some(link.connection.rtt())
    }

    /// The address from which a peer speaks, or at which it was dialled; none without a direct
    /// connection. It is that of the handshake, so the peer has proven it.
    pub fn proven_address(&self, peer: PeerId) -> Option<IpAddr> {
        self.inner.table().link(peer)?.proven_ip()
    }

    /// Dials a peer at an address because another peer asks for it. Returns whether it answered.
    pub(crate) async fn call(&self, peer: PeerId, address: SocketAddr) -> bool {
        let outcome = self.inner.dial_one(address, Expected::Peer(peer)).await;
        outcome.is_ok()
    }

    /// The work that this network asks of every identity.
    pub fn effort(&self) -> Effort {
        self.inner.settings.effort
    }

    /// Shows this proof of work to others from now on.
    pub fn show_toil(&self, toil: Toil) {
        self.inner.toil.send_replace(Some(toil));
    }

    /// Waits for the proof of work, if this network asks for one. Others turn this peer away before.
    pub(crate) async fn toiled(&self) {
        if self.effort() != Effort::NONE {
            let mut toil = self.inner.toil.subscribe();
            let _ = toil.wait_for(Option::is_some).await;
        }
    }

    /// The policy about addresses that others supply.
    pub fn policy(&self) -> AddressPolicy {
        self.inner.settings.addresses
    }

    /// The peers to remember until the next run.
    pub fn address_book(&self) -> Vec<KnownPeer> {
        self.inner.book().snapshot()
    }

    /// Names the peers whose connections are kept alive and never evicted, in place of those named
    /// before. Only the first [`Limits::USEFUL`] count.
    pub fn mark_useful(&self, peers: impl IntoIterator<Item = PeerId>) {
        self.inner.table().mark_useful(peers);
    }

    /// Whether it was shut down.
    pub fn is_closed(&self) -> bool {
        self.inner.stop.is_cancelled()
    }

    /// Whether there is a connection to this peer.
    pub fn is_connected(&self, peer: PeerId) -> bool {
        self.inner.table().link(peer).is_some()
    }

    /// The addresses that this peer listens on.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.inner
            .ports
            .iter()
            .filter_map(|port| port.endpoint().local_addr().ok())
            .collect()
    }

    /// Limits the bandwidth of the crawler's requests and answers from now on; the overlay's own
    /// messages are exempt.
    pub fn limit_bandwidth(&self, bandwidth: Bandwidth) {
        self.inner.throttle.set(bandwidth);
    }

    /// Bytes received and sent since the start; cheaper than all totals.
    pub fn traffic_bytes(&self) -> (u64, u64) {
        self.inner.counters.bytes()
    }

    /// Totals since the start.
    pub fn traffic(&self) -> Traffic {
        self.inner.counters.traffic()
    }

    /// Takes new sockets after a change of network. Connections go on where they can.
    pub fn rebind(&self) -> io::Result<()> {
        self.inner.ports.iter().try_for_each(|port| port.rebind())
    }

    /// Starts afresh after the machine slept: the others have given the old connections up.
    pub fn wake_up(&self) {
        self.inner.wake_up();
    }

    /// Tells all peers goodbye and waits until they have heard it or a second has passed.
    pub async fn shut_down(&self) {
        self.inner.shut_down().await;
    }
}

fn open_ports(
    settings: &TransportSettings,
    server: &quinn::ServerConfig,
) -> Result<Vec<Arc<Port>>, OverlayStartError> {
    let mut failed = OverlayStartError::NoAddress;
    let mut ports = Vec::new();
    for &address in &settings.listen {
        match Port::open(address, settings.sockets, server.clone()) {
            Ok(port) => ports.push(Arc::new(port)),
            Err(source) => {
                tracing::warn!(%address, error = %source, "cannot listen");
                failed = OverlayStartError::Listen { address, source };
            }
        }
    }
    if ports.is_empty() {
        Err(failed)
    } else {
        Ok(ports)
    }
}

impl Inner {
    fn me(&self) -> PeerId {
        self.identity.id()
    }

    async fn ask(
        self: &Arc<Self>,
        to: PeerId,
        kind: Kind,
        body: Bytes,
    ) -> Result<Bytes, RequestError> {
        if body.len() > MAX_BODY_BYTES {
            return Err(RequestError::TooLarge(body.len()));
        }
        if to == self.me() {
            return self.ask_myself(kind, body).await;
        }
        let sent = frame_bytes(&body);
        self.spend(Way::Up, kind, sent).await;
        let answer = match self.ask_once(to, kind, body.clone()).await? {
            // The connection had ended without anyone noticing: nothing was sent, so a new one may
            // carry it.
            Err(AskError::NotSent(_)) => self.ask_once(to, kind, body).await?,
            answer => answer,
        };
        let answer = answer.map_err(request_error)?;
        self.spend(Way::Down, kind, frame_bytes(&answer)).await;
        self.counters.asked(kind, sent, frame_bytes(&answer));
        Ok(answer)
    }

    async fn ask_once(
        self: &Arc<Self>,
        to: PeerId,
        kind: Kind,
        body: Bytes,
    ) -> Result<Result<Bytes, AskError>, RequestError> {
        let link = self.link_to(to).await.map_err(|error| match error {
            DialError::Closed => RequestError::Closed,
            DialError::Busy => RequestError::Busy,
            error => RequestError::Unreachable(error.to_string()),
        })?;
        Ok(link.ask(kind, body).await)
    }

    async fn ask_myself(&self, kind: Kind, body: Bytes) -> Result<Bytes, RequestError> {
        match kind {
            Kind::PING => Ok(Bytes::new()),
            kind => Ok(self
                .service
                .answer(self.me(), Request { kind, body })
                .await?),
        }
    }

    /// Waits for the volunteer's bandwidth, which does not hold for the overlay's own messages.
    async fn spend(&self, way: Way, kind: Kind, bytes: usize) {
        if !kind.is_reserved() {
            self.throttle.spend(way, bytes).await;
        }
    }

    /// Puts a new connection to use; returns the connection to use from now on.
    fn place(self: &Arc<Self>, link: Link) -> Option<Arc<Link>> {
        let link = Arc::new(link);
        let placed = self.table().place(link.clone());
        if matches!(placed, Placed::Full) {
            self.counters.note(TransportEvent::TurnedAway);
            link.close(Close::Full);
            return None;
        }
        self.spawn(self.clone().serve(link.clone()));
        match placed {
            Placed::Kept { replaced, evicted } => {
                if let Some(evicted) = evicted {
                    self.counters.note(TransportEvent::Evicted);
                    evicted.close(Close::Full);
                }
                if let Some(replaced) = replaced {
                    self.retire(replaced);
                }
                Some(link)
            }
            Placed::Retired { in_use } => {
                self.retire(link);
                Some(in_use)
            }
            Placed::Full => None,
        }
    }

    /// Lets the requests on a connection finish before it is closed.
    fn retire(self: &Arc<Self>, link: Arc<Link>) {
        let grace = self.settings.limits.request_deadline();
        let stop = self.stop.clone();
        self.spawn(async move {
            tokio::select! {
                () = time::sleep(grace) => {}
                _ = link.connection.closed() => {}
                () = stop.cancelled() => {}
            }
            link.close(Close::Duplicate);
        });
    }

    async fn close_when_stopped(self: Arc<Self>) {
        self.stop.cancelled().await;
        self.close_ports();
    }

    fn close_ports(&self) {
        for port in &self.ports {
            port.endpoint().close(
                quinn::VarInt::from_u32(Close::ShuttingDown as u32),
                b"shutting down",
            );
        }
    }

    async fn shut_down(&self) {
        const FAREWELL: time::Duration = time::Duration::from_secs(1);
        self.stop.cancel();
        self.close_ports();
        self.tasks.close();
        let _ = time::timeout(FAREWELL, async {
            for port in &self.ports {
                port.endpoint().wait_idle().await;
            }
            self.tasks.wait().await;
        })
        .await;
    }

    fn hello(&self, observed: Route) -> Hello {
        Hello {
            network: self.settings.network.clone(),
            incarnation: self.incarnation,
            observed,
            capabilities: self.settings.capabilities,
            toil: self.toil.borrow().unwrap_or(Toil(0)),
            version: self.settings.version.clone(),
        }
    }

    fn port(&self, address: SocketAddr) -> Option<&Arc<Port>> {
        self.ports.iter().find(|port| port.reaches(address))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Takes note of how the other side of a link sees this peer. Both ends of a direct connection
    /// are direct, so anything else would be a lie.
    fn note_observed(&self, link: &Link) {
        let observed = link.hello.observed;
        if observed.relay().is_some() == link.route().relay().is_some() {
            lock(&self.observed).note(observed, link.peer);
            let by = (link.peer, link.proven.ip());
            lock(&self.ballot).note(by.0, by.1, link.dialler, observed);
        }
    }

    /// A connection came from this address. It proves that this peer can be reached if none was
    /// there before.
    fn note_arrival(&self, from: SocketAddr) {
        let (ip, now) = (from.ip().to_canonical(), Instant::now());
        let is_known = self
            .table()
            .links()
            .any(|link| link.proven_ip() == Some(ip));
        let mut arrivals = lock(&self.arrivals);
        if is_known {
            arrivals.note_spoken(ip, now);
        } else {
            arrivals.note_arrival(ip, now);
        }
    }

    /// Packets go to this address.
    fn note_spoken(&self, to: SocketAddr) {
        lock(&self.arrivals).note_spoken(to.ip(), Instant::now());
    }

    /// This peer may be somewhere else now: what others said about its address is out of date.
    fn forget_whereabouts(&self) {
        lock(&self.ballot).clear();
        lock(&self.arrivals).clear();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    fn book(&self) -> MutexGuard<'_, AddressBook> {
        lock(&self.book)
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        lock(&self.gate)
    }

    fn dials(&self) -> MutexGuard<'_, HashMap<PeerId, Dial>> {
        lock(&self.dials)
    }
}

fn request_error(error: AskError) -> RequestError {
    match error {
        AskError::NotSent(error) | AskError::Lost(error) => RequestError::Lost(error.to_string()),
        AskError::Refused(refusal) => RequestError::Refused(refusal),
        AskError::Malformed => RequestError::Malformed,
    }
}
