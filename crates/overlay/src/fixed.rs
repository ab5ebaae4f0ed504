//! A network whose members are known beforehand: one company's machines, one laboratory's, one test's.
//!
//! Everyone has the same list and so computes the same owners without asking. Who is down is found out by asking; its
//! keys then belong to the next member clockwise, and come back when it does.

mod circle;

pub use circle::Member;

use crate::{
    AddressBook, Identity, Kind, LookupError, Overlay, RequestError, Service, Settings, Source, StartError,
    Transport, overlay::ARC_CHANGES,
};
use apoidea_chord::ArcChange;
use apoidea_model::{Key, PeerId};
use bytes::Bytes;
use circle::Circle;
use futures::{StreamExt, future::BoxFuture, stream};
use std::{
    collections::HashSet,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio::{
    sync::{broadcast, mpsc},
    time,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Members asked at a time whether they are there.
const PROBES: usize = 16;
/// Members that failed a request and wait to be asked whether they are there.
const SUSPECTS: usize = 64;

/// What can be chosen about a fixed network.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FixedSettings {
    /// All members, this one among them.
    pub members: Vec<Member>,
    /// Time between two rounds of asking all members whether they are there; as often as useful connections are pinged.
    pub probe_every_ms: u64,
}

impl Default for FixedSettings {
    fn default() -> Self {
        FixedSettings { members: Vec::new(), probe_every_ms: 15_000 }
    }
}

/// A network of known members.
pub struct Fixed {
    shared: Arc<Shared>,
    suspects: mpsc::Sender<PeerId>,
    _stop: DropGuard,
}

struct Shared {
    transport: Transport,
    circle: Circle,
    others: Vec<PeerId>,
    down: RwLock<Arc<HashSet<PeerId>>>,
    changes: broadcast::Sender<ArcChange>,
}

impl Fixed {
    /// Begins to listen, to answer and to watch over the other members.
    pub fn start(
        identity: Identity,
        transport: Settings,
        fixed: FixedSettings,
        service: Arc<dyn Service>,
    ) -> Result<Self, StartError> {
        let transport = Transport::start(identity, transport, AddressBook::default(), service)?;
        Ok(Self::over(transport, &fixed))
    }

    /// The same over a transport that is running already.
    pub fn over(transport: Transport, fixed: &FixedSettings) -> Self {
        let me = transport.me();
        for member in &fixed.members {
            transport.learn(member.id, member.addresses.iter().copied(), Source::Configured);
        }
        let others: Vec<_> = fixed.members.iter().map(|member| member.id).filter(|id| *id != me).collect();
        transport.mark_useful(others.iter().copied());
        let shared = Arc::new(Shared {
            transport,
            circle: Circle::new(&fixed.members),
            others,
            down: RwLock::default(),
            changes: broadcast::Sender::new(ARC_CHANGES),
        });
        let (suspects, suspected) = mpsc::channel(SUSPECTS);
        let stop = CancellationToken::new();
        let every = Duration::from_millis(fixed.probe_every_ms.max(1));
        tokio::spawn(stop.clone().run_until_cancelled_owned(watch(shared.clone(), suspected, every)));
        Fixed { shared, suspects, _stop: stop.drop_guard() }
    }

    /// The transport underneath.
    pub fn transport(&self) -> &Transport {
        &self.shared.transport
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
        self.shared.circle.owners(key, 1, &self.shared.down()).first() == Some(&self.me())
    }

    fn request(&self, to: PeerId, kind: Kind, body: Bytes) -> BoxFuture<'_, Result<Bytes, RequestError>> {
        Box::pin(async move {
            let answer = self.shared.transport.request(to, kind, body).await;
            if answer.as_ref().is_err_and(RequestError::is_absence) {
                // If too many are waiting already, the next round finds it.
                let _ = self.suspects.try_send(to);
            }
            answer
        })
    }

    fn arc_changes(&self) -> broadcast::Receiver<ArcChange> {
        self.shared.changes.subscribe()
    }
}

impl Shared {
    fn down(&self) -> Arc<HashSet<PeerId>> {
        self.down.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks some members whether they are there and draws the consequences.
    async fn probe(&self, members: &[PeerId]) {
        let probes = members.iter().copied().map(|id| async move { (id, self.is_there(id).await) });
        let mut probes = stream::iter(probes).buffer_unordered(PROBES);
        while let Some((id, is_there)) = probes.next().await {
            self.note(id, is_there);
        }
    }

    /// One failure may be an accident; two in a row are taken for an absence.
    async fn is_there(&self, id: PeerId) -> bool {
        self.transport.ping(id).await.is_ok() || self.transport.ping(id).await.is_ok()
    }

    fn note(&self, id: PeerId, is_there: bool) {
        let before = self.down();
        if before.contains(&id) != is_there {
            return;
        }
        let mut after = before.as_ref().clone();
        if is_there {
            after.remove(&id)
        } else {
            after.insert(id)
        };
        tracing::info!(peer = ?id, is_there, "a member's presence changed");
        let changes = self.circle.changes(self.transport.me(), &before, &after);
        *self.down.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(after);
        for change in changes {
            // Fails only if nobody listens.
            let _ = self.changes.send(change);
        }
    }
}

/// Asks everyone from time to time, and those who failed a request at once.
async fn watch(shared: Arc<Shared>, mut suspected: mpsc::Receiver<PeerId>, every: Duration) {
    let mut rounds = time::interval(every);
    rounds.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = rounds.tick() => shared.probe(&shared.others).await,
            Some(suspect) = suspected.recv() => {
                if shared.others.contains(&suspect) {
                    shared.probe(&[suspect]).await;
                }
            }
        }
    }
}
