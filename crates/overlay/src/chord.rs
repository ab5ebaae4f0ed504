//! A ring that anyone may join: [`apoidea_chord::Ring`] driven over the transport.
//!
//! One task owns the ring ([`actor`]). Another finds a way in and back in ([`bootstrap`]). This
//! file is the handle that the crawler uses.

mod actor;
mod bootstrap;
mod entry_point;
mod local_network;
mod local_peers;
mod mailbox;

pub use entry_point::{EntryPlace, EntryPoint, InvalidEntryPoint};
#[cfg(feature = "fuzzing")]
pub(crate) use mailbox::{decode, encode};

use crate::{
    AddressBook, Identity, Kind, LookupError, Overlay, OverlayStartError, Refusal, RequestError,
    Service, Transport, TransportSettings, overlay::ARC_CHANGES,
};
use actor::{Actor, MeasuredRoundTrips};
use apoidea_chord::{
    Arc as RingArc, ArcChange, Freshness, Membership, Neighbourhood, Phase, RingStatus,
};
use apoidea_model::{Key, PeerId};
use bootstrap::Bootstrap;
use bytes::Bytes;
use futures::future::BoxFuture;
use mailbox::{Command, Doorman, Mailbox};
use serde::{Deserialize, Serialize};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, broadcast, oneshot, watch},
    time,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Longest that a lookup may take: a dozen hops with a timeout or two.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(10);

/// The settings of a member of the ring.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChordSettings {
    /// The places to enter the ring; a few at random are tried at a time. Peers remembered from the
    /// last run are tried too.
    pub entry_points: Vec<EntryPoint>,
    /// Whether peers are looked for on the local network.
    pub local_network: LocalDiscovery,
    /// Addresses under which others can reach this peer, if it cannot find them out itself.
    pub advertise: Vec<SocketAddr>,
    /// The ring's own parameters.
    pub ring: apoidea_chord::Settings,
    /// The time to look for the ring.
    #[serde(skip)]
    pub setting_out: SettingOut,
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
    /// Members of the ring, as far as can be told from here.
    pub size_estimate: f64,
}

/// A member of the ring.
pub struct Chord {
    transport: Transport,
    mailbox: Mailbox,
    standing: watch::Receiver<RingStanding>,
    round_trips: watch::Receiver<MeasuredRoundTrips>,
    neighbourhood: watch::Receiver<Arc<Neighbourhood>>,
    changes: broadcast::Sender<ArcChange>,
    /// Rung to enter again after leaving.
    again: Arc<Notify>,
    _stop: DropGuard,
}

impl Chord {
    /// Begins to listen and to answer, and sets out to join. The book holds the peers remembered
    /// from the last run.
    pub fn start(
        identity: Identity,
        transport: TransportSettings,
        chord: ChordSettings,
        book: AddressBook,
        service: Arc<dyn Service>,
    ) -> Result<Self, OverlayStartError> {
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
        let again = Arc::new(Notify::new());
        let bootstrap = Bootstrap::new(
            transport.clone(),
            mailbox.clone(),
            watches.standing.clone(),
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
            changes,
            again,
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

    fn membership(&self, peer: PeerId) -> Membership {
        self.neighbourhood.borrow().membership(peer)
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

    fn arc_changes(&self) -> broadcast::Receiver<ArcChange> {
        self.changes.subscribe()
    }
}
