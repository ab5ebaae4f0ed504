//! The cost of a lookup over real QUIC: from memory (warm), and by the owner's own word (fresh).
//!
//! Run with `cargo run --release -p apoidea-overlay --example lookup_cost [peers] [seconds per
//! row]`. All peers live in this process, each with its own transport on loopback, so a fresh
//! lookup's CPU time is that of everyone it asks.

use apoidea_model::Key;
use apoidea_overlay::{
    AddressBook, AddressPolicy, Chord, ChordSettings, EntryPlace, EntryPoint, Identity, Kind,
    Limits, LocalDiscovery, Overlay, Rate, RingSettings, Silent, TransportSettings,
};
use futures::{StreamExt, stream};
use std::{
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time;

/// Peers, unless said otherwise: three times as many as know each other without asking.
const PEERS: u8 = 99;
/// Keys that are looked up again and again: a crawler's domains.
const KEYS: u32 = 10_000;
/// The owner and the holders of two copies.
const OWNERS: usize = 3;

/// A member that throttles nobody, in a neighbourhood of its own.
fn start(number: u8, entry: Option<&Chord>) -> Chord {
    let open = Rate {
        per_second: 1e9,
        burst: 1e9,
    };
    let limits = Limits {
        peer_rate: open,
        origin_rate: open,
        newcomer_rate: open,
        ..Limits::default()
    };
    let settings = TransportSettings {
        listen: vec![(Ipv4Addr::new(127, 99, number, 1), 0).into()],
        addresses: AddressPolicy::Private,
        limits,
        ..TransportSettings::default()
    };
    let entry = entry.map(|chord| chord.transport().local_addresses()[0]);
    let entry = entry.map(|address| EntryPoint {
        id: None,
        place: EntryPlace::Address(address),
    });
    let ring = RingSettings {
        stabilize_every: Duration::from_secs(1),
        ..RingSettings::default()
    };
    let chord = ChordSettings {
        entry_points: entry.into_iter().collect(),
        local_network: LocalDiscovery::Off,
        ring,
        ..ChordSettings::default()
    };
    let identity = Identity::ephemeral().expect("the system has randomness");
    Chord::start(
        identity,
        settings,
        chord,
        AddressBook::default(),
        Arc::new(Silent),
    )
    .expect("loopback can be listened on")
}

/// A ring in which each peer owns what lies after the one before it.
async fn ring(peers: u8) -> Vec<Chord> {
    let mut ring = vec![start(0, None)];
    for number in 1..peers {
        let newcomer = start(number, ring.first());
        ring.push(newcomer);
        time::sleep(Duration::from_millis(20)).await;
    }
    let share = |chord: &Chord| chord.standing().borrow().arc.map(|arc| arc.share());
    // All have joined, and no key has two owners.
    while ring
        .iter()
        .map(share)
        .sum::<Option<f64>>()
        .is_none_or(|sum| (sum - 1.0).abs() > 1e-9)
    {
        time::sleep(Duration::from_millis(100)).await;
    }
    ring
}

/// From memory if possible, or never.
#[derive(Clone, Copy)]
enum Lookups {
    Warm,
    Fresh,
}

async fn look_up(asker: &Chord, number: u32, lookups: Lookups) -> Duration {
    let key = Key::hash((number % KEYS).to_be_bytes());
    let start = Instant::now();
    let found = match lookups {
        Lookups::Warm => asker.owners(key, OWNERS).await,
        Lookups::Fresh => asker.owners_afresh(key, OWNERS).await,
    };
    found.expect("the ring is at rest");
    start.elapsed()
}

fn ring_requests(asker: &Chord) -> u64 {
    asker
        .transport()
        .traffic()
        .kinds
        .get(&Kind::RING.as_byte())
        .map_or(0, |ring| ring.asked)
}

async fn measure(asker: &Chord, lookups: Lookups, parallel: usize, lasting: Duration) {
    let (before, start) = (ring_requests(asker), Instant::now());
    let running = stream::iter(0..)
        .map(|number| look_up(asker, number, lookups))
        .buffer_unordered(parallel);
    let running = running.take_while(|_| std::future::ready(start.elapsed() < lasting));
    let mut times: Vec<Duration> = running.collect().await;
    let lasted = start.elapsed().as_secs_f64();
    times.sort();
    let micros = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e6;
    let name = match lookups {
        Lookups::Warm => "warm",
        Lookups::Fresh => "fresh",
    };
    let rate = times.len() as f64 / lasted;
    let requests = (ring_requests(asker) - before) as f64 / times.len() as f64;
    let (p50, p99) = (micros(0.5), micros(0.99));
    println!("{name:<6} {parallel:>8} {rate:>12.0} {p50:>10.0} {p99:>10.0} {requests:>20.4}");
}

async fn compare(peers: u8, lasting: Duration) {
    let ring = ring(peers).await;
    let asker = &ring[ring.len() / 2];
    for number in 0..KEYS {
        look_up(asker, number, Lookups::Warm).await;
    }
    println!("{peers} peers, {KEYS} keys");
    println!(
        "{:<6} {:>8} {:>12} {:>10} {:>10} {:>20}",
        "", "parallel", "lookups/s", "p50 µs", "p99 µs", "requests per lookup"
    );
    for lookups in [Lookups::Warm, Lookups::Fresh] {
        for parallel in [1, 16] {
            measure(asker, lookups, parallel, lasting).await;
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let peers = arguments
        .next()
        .map_or(PEERS, |peers| peers.parse().expect("peers, up to 255"));
    let seconds = arguments
        .next()
        .map_or(3, |seconds| seconds.parse().expect("seconds"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime
        .expect("threads can be started")
        .block_on(compare(peers, Duration::from_secs(seconds)));
}
