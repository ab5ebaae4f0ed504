//! A ring that anyone may join: [`apoidea_chord::Ring`] driven over the transport.
//!
//! One task owns the ring ([`actor`]). Another finds a way in and back in ([`bootstrap`]). This
//! file is the handle that the crawler uses.

mod actor;
mod bootstrap;
mod dial_back;
mod entry;
mod entry_point;
mod local_network;
mod local_peers;
mod mailbox;
mod openness;
mod seat_keeper;

pub use dial_back::Reachability;
pub use entry::{Entries, EntryState, EntryStatus, EntryWay};
pub use entry_point::{EntryPlace, EntryPoint, InvalidEntryPoint};
#[cfg(feature = "fuzzing")]
pub(crate) use mailbox::{decode, encode};

use crate::{
    AddressBook, AddressPolicy, Identity, Kind, LookupError, Overlay, OverlayStartError, Refusal,
    RequestError, Service, Source, Transport, TransportSettings, lock::lock, overlay::ARC_CHANGES,
};
use actor::{Actor, Graces, MeasuredRoundTrips};
use apoidea_chord::{
    Arc as RingArc, ArcChange, Contact, Freshness, Membership, Message, Neighbourhood, Phase,
    RequestId, RingRequest, RingStatus, Seat, Seating, Touch,
};
use apoidea_model::{Key, PeerId, Time};
use bootstrap::{Bootstrap, RendezvousSwitch};
use bytes::Bytes;
use dial_back::Prober;
use futures::future::BoxFuture;
use mailbox::{Command, Doorman, Mailbox};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};
use tokio::{
    sync::{Notify, broadcast, oneshot, watch},
    time,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Longest that a lookup may take: a dozen hops with a timeout or two.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(10);
/// Positions of peers outside the view that are remembered.
const MAX_POSITIONS: usize = 4096;

/// The settings of a member of the ring.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChordSettings {
    /// The places to enter the ring; a few at random are tried at a time. Peers remembered from the
    /// last run are tried too.
    pub entry_points: Vec<EntryPoint>,
    /// The name in DNS that the program was built with; tried like an entry point.
    pub entry_name: Option<EntryPoint>,
    /// Whether peers are looked for on the local network.
    pub local_network: LocalDiscovery,
    /// Nodes where BitTorrent's DHT begins, for the rendezvous; with none, there is no rendezvous.
    pub rendezvous_nodes: Vec<EntryPoint>,
    /// Addresses under which others can reach this peer, if it cannot find them out itself.
    pub advertise: Vec<SocketAddr>,
    /// The ring's own parameters.
    pub ring: apoidea_chord::Settings,
    /// Whether the rendezvous may be used; can be changed later ([`Chord::allow_rendezvous`]).
    #[serde(skip)]
    pub rendezvous: RendezvousUse,
    /// The time to look for the ring.
    #[serde(skip)]
    pub setting_out: SettingOut,
}

/// May the rendezvous be used?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RendezvousUse {
    /// Yes, if nothing else helps.
    #[default]
    Allowed,
    /// No.
    Forbidden,
}

/// The time at which a peer looks for the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SettingOut {
    /// As soon as it starts.
    #[default]
    AtOnce,
    /// When it is told to ([`Chord::enter`]); until then it calls nobody.
    WhenTold,
}

/// Whether peers are looked for on the local network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalDiscovery {
    /// By multicast DNS.
    #[default]
    On,
    /// Not at all.
    Off,
}

/// This peer's place in the ring, in short.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RingStanding {
    /// Alone, joining, a member.
    pub phase: Phase,
    /// The arc that this peer owns.
    pub arc: Option<RingArc>,
    /// The seat that this peer has, or would take.
    pub seat: Seat,
    /// Members of the ring, as far as can be told from here.
    pub size_estimate: f64,
    /// Whether this peer still hears the members that it knew.
    pub touch: Touch,
}

/// A member of the ring.
pub struct Chord {
    transport: Transport,
    mailbox: Mailbox,
    standing: watch::Receiver<RingStanding>,
    round_trips: watch::Receiver<MeasuredRoundTrips>,
    neighbourhood: watch::Receiver<Arc<Neighbourhood>>,
    graces: watch::Receiver<Graces>,
    /// Peers outside the neighbourhood, where they were found last.
    found: Mutex<HashMap<PeerId, Key>>,
    reachability: watch::Receiver<Reachability>,
    seating: Seating,
    changes: broadcast::Sender<ArcChange>,
    /// Rung to enter again after leaving.
    again: Arc<Notify>,
    entries: watch::Receiver<Entries>,
    rendezvous: RendezvousSwitch,
    _stop: DropGuard,
}

impl Chord {
    /// Begins to listen and to answer, and sets out to join. The book holds the peers remembered
    /// from the last run.
    pub fn start(
        identity: Identity,
        transport: TransportSettings,
        mut chord: ChordSettings,
        book: AddressBook,
        service: Arc<dyn Service>,
    ) -> Result<Self, OverlayStartError> {
        let is_open = transport.addresses == AddressPolicy::Global;
        if is_open && chord.ring.seating == Seating::Private {
            chord.ring.seating = Seating::OPEN;
        }
        let seating = chord.ring.seating;
        let (mailbox, commands) = mailbox::open();
        let doorman = Arc::new(Doorman::new(mailbox.clone(), service));
        let network = transport.network.clone();
        let transport = Transport::start(identity, transport, book, doorman)?;
        let changes = broadcast::Sender::new(ARC_CHANGES);
        let stop = CancellationToken::new();
        let (actor, watches) = Actor::new(
            transport.clone(),
            mailbox.clone(),
            commands,
            changes.clone(),
            &chord,
        );
        tokio::spawn(stop.clone().run_until_cancelled_owned(actor.run()));
        let (found, reachability) = watch::channel(Reachability::default());
        let prober = Prober {
            transport: transport.clone(),
            standing: watches.standing.clone(),
            found,
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(prober.run()));
        let again = Arc::new(Notify::new());
        let (bootstrap, entries, rendezvous) = Bootstrap::new(
            transport.clone(),
            mailbox.clone(),
            (watches.standing.clone(), reachability.clone()),
            network,
            chord,
            again.clone(),
        );
        tokio::spawn(stop.clone().run_until_cancelled_owned(bootstrap.run()));
        Ok(Chord {
            transport,
            mailbox,
            standing: watches.standing,
            round_trips: watches.round_trips,
            neighbourhood: watches.neighbourhood,
            graces: watches.graces,
            found: Mutex::default(),
            reachability,
            seating,
            changes,
            again,
            entries,
            rendezvous,
            _stop: stop.drop_guard(),
        })
    }

    /// The transport underneath.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// This peer's place in the ring now and whenever it changes.
    pub fn standing(&self) -> watch::Receiver<RingStanding> {
        self.standing.clone()
    }

    /// The ways into the ring, and how each went.
    pub fn entries(&self) -> Entries {
        *self.entries.borrow()
    }

    /// Whether the rendezvous may be used from now on.
    pub fn allow_rendezvous(&self, may_use: RendezvousUse) {
        self.rendezvous.allow(may_use == RendezvousUse::Allowed);
    }

    /// Bytes that the rendezvous has sent and received since the start.
    pub fn rendezvous_bytes(&self) -> u64 {
        self.rendezvous.bytes()
    }

    /// Takes note of peers that an invite names, and calls them.
    pub async fn learn(&self, peers: Vec<Contact>) {
        for peer in &peers {
            let routes = peer.routes.as_slice().iter().copied();
            self.transport.learn(peer.id, routes, Source::Configured);
        }
        self.mailbox.send(Command::Learned(peers)).await;
    }

    /// The peers after this one on the ring.
    pub async fn neighbours(&self) -> Vec<Contact> {
        let status = self.status().await;
        let near = status.into_iter().flat_map(|status| status.successors);
        near.collect()
    }

    /// Everything that the ring shows of itself; none after shutting down.
    pub async fn status(&self) -> Option<RingStatus> {
        let (reply, status) = oneshot::channel();
        self.mailbox.send(Command::Status(reply)).await;
        status.await.ok()
    }

    /// The owners of a key by their own word, not from memory.
    pub async fn owners_afresh(&self, key: Key, count: usize) -> Result<Vec<PeerId>, LookupError> {
        self.look_up(key, count, Freshness::Fresh).await
    }

    /// Gives the place in the ring up and tells the neighbours. Requests are still answered, so
    /// that the neighbours can fetch the replicas that they take over.
    pub async fn leave(&self) {
        let (reply, left) = oneshot::channel();
        self.mailbox.send(Command::Leave(reply)).await;
        let _ = time::timeout(Duration::from_secs(1), left).await;
    }

    /// Sets out to join, again after having left or for the first time; a member stays where it is.
    pub fn enter(&self) {
        self.again.notify_one();
    }

    /// Leaves the ring and stops listening.
    pub async fn shut_down(&self) {
        self.leave().await;
        self.transport.shut_down().await;
    }

    /// The position that a peer has by its own word, if that belongs to the address from which it
    /// speaks.
    async fn ask_position(&self, peer: PeerId) -> Option<Key> {
        if self.seating == Seating::Private {
            return Some(peer.key());
        }
        let ping = mailbox::encode(&Message::Request(RequestId(0), RingRequest::Ping));
        let answer = self.transport.request(peer, Kind::RING, ping).await.ok()?;
        let Some(Message::Response(_, seat, _)) = mailbox::decode(&answer) else {
            return None;
        };
        let mine = self.standing.borrow().seat.prefix();
        let (at, now) = (
            self.transport.proven_address(peer),
            Time::from(SystemTime::now()),
        );
        let is_its_own = self.seating.admits(seat, at, mine, now);
        is_its_own.then(|| seat.key(peer))
    }

    fn note_found(&self, peer: PeerId, position: Key) {
        let mut found = lock(&self.found);
        if found.len() >= MAX_POSITIONS {
            found.clear();
        }
        found.insert(peer, position);
    }

    async fn look_up(
        &self,
        key: Key,
        count: usize,
        freshness: Freshness,
    ) -> Result<Vec<PeerId>, LookupError> {
        let (reply, answer) = oneshot::channel();
        self.mailbox
            .send(Command::LookUp {
                key,
                count,
                freshness,
                reply,
            })
            .await;
        match time::timeout(LOOKUP_DEADLINE, answer).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => Err(LookupError::Closed),
            Err(_) => Err(LookupError::TimedOut(LOOKUP_DEADLINE)),
        }
    }
}

impl Overlay for Chord {
    fn me(&self) -> PeerId {
        self.transport.me()
    }

    fn owners(&self, key: Key, count: usize) -> BoxFuture<'_, Result<Vec<PeerId>, LookupError>> {
        Box::pin(self.look_up(key, count, Freshness::Cached))
    }

    fn owns(&self, key: Key) -> bool {
        self.standing
            .borrow()
            .arc
            .is_some_and(|arc| arc.contains(key))
    }

    fn near(&self, key: Key, count: usize) -> Vec<PeerId> {
        self.neighbourhood.borrow().after(key).take(count).collect()
    }

    fn before(&self, key: Key) -> Option<PeerId> {
        self.neighbourhood.borrow().before(key)
    }

    fn membership(&self, peer: PeerId) -> Membership {
        self.neighbourhood.borrow().membership(peer)
    }

    fn position(&self, peer: PeerId) -> Option<Key> {
        let near = self.neighbourhood.borrow().position(peer);
        near.or_else(|| lock(&self.found).get(&peer).copied())
    }

    fn has_place(&self, peer: PeerId) -> BoxFuture<'_, Result<bool, LookupError>> {
        Box::pin(async move {
            let Some(position) = self.ask_position(peer).await else {
                return Ok(false);
            };
            let owners = self.look_up(position, 1, Freshness::Cached).await?;
            let is_there = owners.first() == Some(&peer);
            if is_there {
                self.note_found(peer, position);
            }
            Ok(is_there)
        })
    }

    fn request(
        &self,
        to: PeerId,
        kind: Kind,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Bytes, RequestError>> {
        Box::pin(async move {
            let answer = self.transport.request(to, kind, body).await;
            match &answer {
                Err(RequestError::Refused(Refusal::NotMine)) => {
                    self.mailbox.send(Command::Redirected(to)).await
                }
                Err(RequestError::Unreachable(_)) => {
                    self.mailbox.send(Command::Unreachable(to)).await
                }
                _ => {}
            }
            answer
        })
    }

    fn round_trip(&self, peer: PeerId) -> Option<Duration> {
        let measured = self.round_trips.borrow().get(&peer).copied();
        measured.or_else(|| self.transport.round_trip(peer))
    }

    fn reachability(&self) -> Reachability {
        *self.reachability.borrow()
    }

    fn touch(&self) -> Touch {
        self.standing.borrow().touch
    }

    fn grace(&self, peer: PeerId) -> Duration {
        let graces = self.graces.borrow();
        let until = graces.iter().find(|(lost, _)| *lost == peer);
        until.map_or(Duration::ZERO, |(_, until)| {
            until.since(Time::from(SystemTime::now()))
        })
    }

    fn arc_changes(&self) -> broadcast::Receiver<ArcChange> {
        self.changes.subscribe()
    }
}
