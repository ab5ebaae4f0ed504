//! A network whose members are known beforehand: one company's machines, one laboratory's, one
//! test's.
//!
//! All members have the same list, so they compute the same owners without asking. Each asks the
//! others from time to time whether they are there. The keys of a member that is down belong to the
//! next member clockwise, and come back when it does.

mod circle;
mod member;

pub use member::Member;

use crate::{
    AddressBook, Identity, Kind, LookupError, Overlay, OverlayStartError, Reachability,
    RequestError, Service, Source, Transport, TransportSettings, lock::lock, overlay::ARC_CHANGES,
};
use apoidea_chord::{ArcChange, Membership, Touch};
use apoidea_model::{Key, PeerId};
use bytes::Bytes;
use circle::Circle;
use futures::future::BoxFuture;
use rand::RngExt;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore, broadcast},
    time,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Members asked at a time whether they are there.
const PROBES: usize = 16;

/// The settings of a fixed network.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FixedSettings {
    /// All members, this one among them.
    pub members: Vec<Member>,
    /// Time between two questions to a member whether it is there; as often as useful connections
    /// are pinged.
    pub probe_every_ms: u64,
}

impl Default for FixedSettings {
    fn default() -> Self {
        FixedSettings {
            members: Vec::new(),
            probe_every_ms: 15_000,
        }
    }
}

/// A network of known members.
pub struct Fixed {
    shared: Arc<Shared>,
    /// The other members; each is asked at once whether it is there when it is notified.
    others: HashMap<PeerId, Arc<Notify>>,
    _stop: DropGuard,
}

struct Shared {
    transport: Transport,
    circle: Circle,
    probes: Semaphore,
    down: Mutex<Arc<HashSet<PeerId>>>,
    changes: broadcast::Sender<ArcChange>,
}

impl Fixed {
    /// Begins to listen, to answer and to watch over the other members.
    pub fn start(
        identity: Identity,
        transport: TransportSettings,
        fixed: FixedSettings,
        service: Arc<dyn Service>,
    ) -> Result<Self, OverlayStartError> {
        let transport = Transport::start(identity, transport, AddressBook::default(), service)?;
        Ok(Self::over(transport, &fixed))
    }

    /// The same over a transport that is running already.
    pub fn over(transport: Transport, fixed: &FixedSettings) -> Self {
        let me = transport.me();
        for member in &fixed.members {
            transport.learn(
                member.id,
                member.addresses.iter().copied(),
                Source::Configured,
            );
        }
        let others = fixed
            .members
            .iter()
            .map(|member| member.id)
            .filter(|id| *id != me);
        let others: HashMap<_, _> = others.map(|id| (id, Arc::new(Notify::new()))).collect();
        transport.mark_useful(others.keys().copied());
        let shared = Arc::new(Shared {
            transport,
            circle: Circle::new(&fixed.members),
            probes: Semaphore::new(PROBES),
            down: Mutex::default(),
            changes: broadcast::Sender::new(ARC_CHANGES),
        });
        let stop = CancellationToken::new();
        let every = Duration::from_millis(fixed.probe_every_ms.max(1));
        for (id, suspected) in &others {
            let watch = shared.clone().watch(*id, suspected.clone(), every);
            tokio::spawn(stop.clone().run_until_cancelled_owned(watch));
        }
        Fixed {
            shared,
            others,
            _stop: stop.drop_guard(),
        }
    }

    /// The transport underneath.
    pub fn transport(&self) -> &Transport {
        &self.shared.transport
    }

    /// The number of members, this one included.
    pub fn size(&self) -> usize {
        self.others.len() + 1
    }

    /// The members that do not answer at present.
    pub fn down(&self) -> HashSet<PeerId> {
        self.shared.down().as_ref().clone()
    }
}

impl Overlay for Fixed {
    fn me(&self) -> PeerId {
        self.shared.transport.me()
    }

    fn owners(&self, key: Key, count: usize) -> BoxFuture<'_, Result<Vec<PeerId>, LookupError>> {
        let owners = self.shared.circle.owners(key, count, &self.shared.down());
        Box::pin(std::future::ready(Ok(owners)))
    }

    fn owns(&self, key: Key) -> bool {
        self.shared
            .circle
            .owners(key, 1, &self.shared.down())
            .first()
            == Some(&self.me())
    }

    fn near(&self, key: Key, count: usize) -> Vec<PeerId> {
        self.shared.circle.owners(key, count, &self.shared.down())
    }

    /// A member has many points, so no one peer is before it.
    fn before(&self, _: Key) -> Option<PeerId> {
        None
    }

    fn membership(&self, peer: PeerId) -> Membership {
        if peer == self.me() || self.others.contains_key(&peer) {
            Membership::Member
        } else {
            Membership::Stranger
        }
    }

    fn position(&self, peer: PeerId) -> Option<Key> {
        let is_member = self.membership(peer) == Membership::Member;
        is_member.then(|| circle::first_point(peer))
    }

    fn has_place(&self, peer: PeerId) -> BoxFuture<'_, Result<bool, LookupError>> {
        let is_member = self.membership(peer) == Membership::Member;
        Box::pin(std::future::ready(Ok(is_member)))
    }

    fn request(
        &self,
        to: PeerId,
        kind: Kind,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Bytes, RequestError>> {
        Box::pin(async move {
            let answer = self.shared.transport.request(to, kind, body).await;
            if answer.as_ref().is_err_and(RequestError::is_absence)
                && let Some(suspected) = self.others.get(&to)
            {
                suspected.notify_one();
            }
            answer
        })
    }

    fn round_trip(&self, peer: PeerId) -> Option<Duration> {
        self.shared.transport.round_trip(peer)
    }

    fn reachability(&self) -> Reachability {
        // The members were given addresses by their operator, and each probes the others.
        Reachability::Open
    }

    /// The operator looks after the members. Where they fall apart, each part does all the work.
    fn touch(&self) -> Touch {
        Touch::All
    }

    fn grace(&self, _: PeerId) -> Duration {
        Duration::ZERO
    }

    fn arc_changes(&self) -> broadcast::Receiver<ArcChange> {
        self.shared.changes.subscribe()
    }
}

impl Shared {
    fn down(&self) -> Arc<HashSet<PeerId>> {
        lock(&self.down).clone()
    }

    /// Asks a member from time to time whether it is there, and at once when it is suspected not to
    /// be.
    async fn watch(self: Arc<Self>, id: PeerId, suspected: Arc<Notify>, every: Duration) {
        loop {
            let presence = self.probe(id).await;
            self.note(id, presence);
            // Spread, so that members that started together do not ask together.
            let pause = every.mul_f64(rand::rng().random_range(0.5..1.5));
            tokio::select! {
                () = time::sleep(pause) => {}
                () = suspected.notified() => {}
            }
        }
    }

    /// One failure may be an accident; two in a row are taken for an absence.
    async fn probe(&self, id: PeerId) -> Presence {
        let _permit = self.probes.acquire().await;
        for _ in 0..2 {
            match self.transport.ping(id).await {
                Ok(()) => return Presence::Up,
                Err(error) if !error.is_absence() => return Presence::Unknown,
                Err(_) => {}
            }
        }
        Presence::Down
    }

    fn note(&self, id: PeerId, presence: Presence) {
        let mut down = lock(&self.down);
        let mut after = down.as_ref().clone();
        let has_changed = match presence {
            Presence::Up => after.remove(&id),
            Presence::Down => after.insert(id),
            Presence::Unknown => false,
        };
        if !has_changed {
            return;
        }
        tracing::info!(peer = ?id, ?presence, "a member's presence changed");
        let changes = self.circle.changes(self.transport.me(), &down, &after);
        *down = Arc::new(after);
        for change in changes {
            // Fails only if nobody listens.
            let _ = self.changes.send(change);
        }
    }
}

/// The result of asking a member whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Up,
    Down,
    Unknown,
}
