//! Whole networks for tests, of either kind, whose members can crash and start late.

use crate::peers::{Desk, PATIENCE, own_loopback, settings};
use apoidea_chord::Settings as RingSettings;
use apoidea_model::{Key, PeerId};
use apoidea_overlay::{
    AddressBook, Chord, ChordSettings, EntryPlace, EntryPoint, Fixed, FixedSettings, Identity,
    Limits, LocalDiscovery, Member, Overlay, TransportSettings,
};
use futures::future::join_all;
use std::{
    collections::HashSet,
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::runtime::{Builder, Runtime};

/// Which lookup system a network uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kin {
    Fixed,
    Chord,
}

/// A running member. It has a runtime of its own, so that it can crash without a farewell.
pub struct Node {
    pub overlay: Arc<dyn Overlay>,
    runtime: Option<Runtime>,
}

impl Node {
    pub fn me(&self) -> PeerId {
        self.overlay.me()
    }

    /// Stops at once, without telling anyone; nothing of it runs any more when this returns.
    pub async fn crash(mut self) {
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(PATIENCE))
            .await
            .unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Members by their identities, of which some may be running.
pub struct Network {
    kin: Kin,
    identities: Vec<Identity>,
    addresses: Vec<SocketAddr>,
}

impl Network {
    /// A network that will have `count` members at most.
    pub fn new(kin: Kin, count: usize) -> Self {
        let identities = (0..count).map(|_| Identity::ephemeral().unwrap()).collect();
        let host = own_loopback();
        let reserved: Vec<_> = (0..count)
            .map(|_| UdpSocket::bind((host, 0)).unwrap())
            .collect();
        let addresses = reserved
            .iter()
            .map(|socket| socket.local_addr().unwrap())
            .collect();
        Network {
            kin,
            identities,
            addresses,
        }
    }

    /// Starts one member.
    pub fn start(&self, n: usize) -> Node {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let guard = runtime.enter();
        let identity = self.identities[n].clone();
        let desk = Arc::new(Desk::new(identity.id()));
        let limits = Limits {
            request_deadline_ms: 4000,
            dial_deadline_ms: 2500,
            ..Limits::default()
        };
        let transport = TransportSettings {
            listen: vec![self.addresses[n]],
            limits,
            ..settings()
        };
        let overlay: Arc<dyn Overlay> = match self.kin {
            Kin::Fixed => {
                Arc::new(Fixed::start(identity, transport, self.members(), desk).unwrap())
            }
            Kin::Chord => Arc::new(
                Chord::start(
                    identity,
                    transport,
                    self.ring(n),
                    AddressBook::default(),
                    desk,
                )
                .unwrap(),
            ),
        };
        drop(guard);
        Node {
            overlay,
            runtime: Some(runtime),
        }
    }

    /// Starts the first `count` members and waits until they agree.
    pub async fn grow(&self, count: usize) -> Vec<Node> {
        let nodes: Vec<_> = (0..count).map(|n| self.start(n)).collect();
        settle(&nodes).await;
        nodes
    }

    fn members(&self) -> FixedSettings {
        let members = self.identities.iter().zip(&self.addresses);
        let member = |(identity, address): (&Identity, &SocketAddr)| Member {
            id: identity.id(),
            addresses: vec![*address],
            capacity: 1,
        };
        FixedSettings {
            members: members.map(member).collect(),
            probe_every_ms: 300,
        }
    }

    fn ring(&self, n: usize) -> ChordSettings {
        // The first has nobody to ask. Half of the others know the id of the first.
        let entry = EntryPoint {
            id: n.is_multiple_of(2).then(|| self.identities[0].id()),
            place: EntryPlace::Address(self.addresses[0]),
        };
        let ring = RingSettings {
            stabilize_every: Duration::from_millis(300),
            check_every: Duration::from_secs(2),
            first_timeout: Duration::from_millis(500),
            least_timeout: Duration::from_millis(300),
            most_timeout: Duration::from_millis(1000),
            ..RingSettings::default()
        };
        ChordSettings {
            entry_points: if n == 0 { vec![] } else { vec![entry] },
            local_network: LocalDiscovery::Off,
            ring,
            ..ChordSettings::default()
        }
    }
}

/// Some keys, always the same.
pub fn keys() -> Vec<Key> {
    (0..40).map(|n| Key::hash(format!("key {n}"))).collect()
}

/// Waits until all nodes name only each other as owners, and name the same.
pub async fn settle(nodes: &[Node]) {
    let start = Instant::now();
    loop {
        match agreement(nodes).await {
            Ok(()) => return,
            Err(why) => assert!(start.elapsed() < PATIENCE, "no agreement: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Checks that all nodes name the same distinct owners, and that only the first of these takes
/// itself for the owner.
pub async fn agreement(nodes: &[Node]) -> Result<(), String> {
    let alive: HashSet<_> = nodes.iter().map(Node::me).collect();
    for key in keys() {
        let count = 3.min(nodes.len());
        let named = join_all(nodes.iter().map(|node| node.overlay.owners(key, 3))).await;
        let named: Vec<_> = named
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        if named.iter().any(|owners| *owners != named[0]) {
            return Err(format!("{key:?} belongs to {named:?}"));
        }
        let distinct: HashSet<_> = named[0].iter().copied().collect();
        if distinct.len() != count || named[0].len() != count || !distinct.is_subset(&alive) {
            return Err(format!("{key:?} belongs to {:?}", named[0]));
        }
        let takers: Vec<_> = nodes
            .iter()
            .filter(|node| node.overlay.owns(key))
            .map(Node::me)
            .collect();
        if takers != named[0][..1] {
            return Err(format!(
                "{key:?} belongs to {:?} and is taken by {takers:?}",
                named[0]
            ));
        }
    }
    Ok(())
}
