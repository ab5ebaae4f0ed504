//! The cost of a lookup in a ring that is too large for full membership lists.

use crate::peers::{Desk, PATIENCE, own_loopback, settings};
use apoidea_chord::Settings as RingSettings;
use apoidea_model::{Key, PeerId};
use apoidea_overlay::{
    AddressBook, Chord, ChordSettings, Identity, Kind, LocalDiscovery, Overlay, TransportSettings,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time;

/// Successors kept: up to nine peers know each other, above that there are arcs to be remembered.
const R: usize = 4;
/// Peers of the ring: a neighbourhood is less than half of it.
const PEERS: usize = 20;
/// Keys looked up.
const KEYS: u32 = 48;

fn start(entry_points: &[&Chord], stabilize_every: Duration) -> Chord {
    let entry = |chord: &&Chord| {
        chord.transport().local_addresses()[0]
            .to_string()
            .parse()
            .unwrap()
    };
    let ring = RingSettings {
        successors: R,
        stabilize_every,
        check_every: Duration::from_secs(3600),
        // A busy machine is not to look like dead peers.
        least_timeout: Duration::from_secs(2),
        ..RingSettings::default()
    };
    let chord = ChordSettings {
        entry_points: entry_points.iter().map(entry).collect(),
        local_network: LocalDiscovery::Off,
        ring,
        ..ChordSettings::default()
    };
    // Each in a neighbourhood of its own, as volunteers are.
    let transport = TransportSettings {
        listen: vec![(own_loopback(), 0).into()],
        ..settings()
    };
    let identity = Identity::ephemeral().unwrap();
    let desk = Arc::new(Desk::new(identity.id()));
    Chord::start(identity, transport, chord, AddressBook::default(), desk).unwrap()
}

/// Everyone by position.
fn in_order(ring: &[Chord]) -> Vec<PeerId> {
    let mut order: Vec<PeerId> = ring.iter().map(Overlay::me).collect();
    order.sort();
    order
}

/// Waits until each peer has the one before it as its predecessor and the ones after it as its
/// successors.
async fn comes_to_rest(ring: &[Chord]) {
    let order = in_order(ring);
    let start = Instant::now();
    for chord in ring {
        let place = order.binary_search(&chord.me()).unwrap();
        let at = |offset: usize| order[(place + offset) % order.len()];
        let after: Vec<PeerId> = (1..=R).map(at).collect();
        loop {
            let status = chord.status().await.unwrap();
            let successors: Vec<PeerId> =
                status.successors.iter().map(|contact| contact.id).collect();
            if status
                .arc
                .is_some_and(|arc| arc.from == at(order.len() - 1).key())
                && successors == after
            {
                break;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "{:?} follow {place}, not {after:?}",
                status.successors
            );
            time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The owner and the two peers after it, for each key.
async fn look_all_up(asker: &Chord, order: &[PeerId]) {
    for number in 0..KEYS {
        let key = Key::hash(number.to_be_bytes());
        let first = order.partition_point(|peer| peer.key() < key);
        let expected: Vec<PeerId> = (0..3).map(|at| order[(first + at) % order.len()]).collect();
        assert_eq!(asker.owners(key, 3).await.unwrap(), expected);
    }
}

/// Requests about the ring: those that set out, and those that came back.
async fn ring_requests(asker: &Chord) -> (u64, u64) {
    let counters = asker.status().await.unwrap().counters;
    let is_request = |kind| {
        !matches!(
            kind,
            apoidea_chord::MessageKind::Response | apoidea_chord::MessageKind::Notice
        )
    };
    let sent = counters
        .iter()
        .filter(|counter| is_request(counter.kind))
        .map(|counter| counter.sent)
        .sum();
    let answered = asker
        .transport()
        .traffic()
        .kinds
        .get(&Kind::RING.as_byte())
        .map_or(0, |ring| ring.asked);
    (sent, answered)
}

/// The asker does nothing of its own accord for an hour after it has joined, so that every request
/// is a lookup's.
#[tokio::test]
async fn a_warm_lookup_takes_no_network_hop() {
    let mut ring = vec![start(&[], Duration::from_millis(300))];
    for _ in 2..PEERS {
        ring.push(start(&[&ring[0]], Duration::from_millis(300)));
    }
    comes_to_rest(&ring).await;
    ring.push(start(&[&ring[0]], Duration::from_secs(3600)));
    comes_to_rest(&ring).await;
    let (asker, order) = (&ring[PEERS - 1], in_order(&ring));

    let cold = ring_requests(asker).await;
    look_all_up(asker, &order).await;
    let warm = ring_requests(asker).await;
    assert!(warm.0 > cold.0, "far keys must be asked for once");
    assert!(asker.status().await.unwrap().cached_arcs > 0);

    // The last answers of the way in and of the first lookups may still come.
    let start = Instant::now();
    loop {
        let before = ring_requests(asker).await;
        look_all_up(asker, &order).await;
        if ring_requests(asker).await == before {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "warm lookups keep asking");
    }
}
