//! The rates at which others may come in and ask: token buckets per peer and per origin, and a
//! short memory of offenders.
//!
//! Every map is bounded. When one is full, the entries that say nothing are forgotten first;
//! newcomers are turned away if that does not help.

use super::{Rate, bucket::Bucket, handshakes::AddressProof, origin::Origin};
use apoidea_model::PeerId;
use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

/// Peers and origins remembered; far above the connections held at once.
const REMEMBERED: usize = 4096;
/// Time for which an offender stays out.
const BANISHMENT: Duration = Duration::from_secs(60);
/// Bytes that cost as much as one request.
const BYTES_PER_TOKEN: f64 = 8192.0;

/// All buckets of one transport.
#[derive(Debug)]
pub(crate) struct Gate {
    peers: Buckets<PeerId>,
    origins: Buckets<Origin>,
    newcomers: Buckets<Origin>,
    /// Newcomers whose address is not proven. Anybody can send such a packet in the name of others,
    /// so it must not use up what those others need.
    knocks: Buckets<Origin>,
    banished: HashMap<PeerId, Instant>,
}

impl Gate {
    /// A gate with these rates.
    pub fn new(peer: Rate, origin: Rate, newcomer: Rate) -> Self {
        Gate {
            peers: Buckets::new(peer),
            origins: Buckets::new(origin),
            newcomers: Buckets::new(newcomer),
            knocks: Buckets::new(newcomer),
            banished: HashMap::new(),
        }
    }

    /// Takes the token for one new connection; returns whether there was one.
    pub fn admit_newcomer(&mut self, origin: Origin, address: AddressProof, now: Instant) -> bool {
        let buckets = match address {
            AddressProof::Proven => &mut self.newcomers,
            AddressProof::Claimed => &mut self.knocks,
        };
        buckets.take(origin, now).is_ok()
    }

    /// Counts a newcomer that was let in on its word and has proven its address since.
    pub fn charge_newcomer(&mut self, origin: Origin, now: Instant) {
        self.newcomers.charge(origin, 1.0, now);
    }

    /// Takes the token for one request, or says how long to wait for it.
    pub fn take(&mut self, peer: PeerId, origin: Origin, now: Instant) -> Result<(), Duration> {
        self.peers.take(peer, now)?;
        self.origins.take(origin, now).inspect_err(|_| {
            // Nothing happened yet, so the peer's own token goes back.
            self.peers.charge(peer, -1.0, now);
        })
    }

    /// Counts the bytes of a request.
    pub fn charge(&mut self, peer: PeerId, origin: Origin, bytes: usize, now: Instant) {
        let tokens = bytes as f64 / BYTES_PER_TOKEN;
        self.peers.charge(peer, tokens, now);
        self.origins.charge(origin, tokens, now);
    }

    /// Keeps an offender out for a while.
    pub fn banish(&mut self, peer: PeerId, now: Instant) {
        if self.banished.len() >= REMEMBERED {
            self.banished.retain(|_, until| *until > now);
        }
        if self.banished.len() < REMEMBERED {
            self.banished.insert(peer, now + BANISHMENT);
        }
    }

    /// Whether this peer is being kept out.
    pub fn is_banished(&self, peer: PeerId, now: Instant) -> bool {
        self.banished.get(&peer).is_some_and(|until| *until > now)
    }
}

#[derive(Debug)]
struct Buckets<K> {
    rate: Rate,
    buckets: HashMap<K, Bucket>,
}

impl<K: Eq + Hash> Buckets<K> {
    fn new(rate: Rate) -> Self {
        Buckets {
            rate,
            buckets: HashMap::new(),
        }
    }

    fn take(&mut self, key: K, now: Instant) -> Result<(), Duration> {
        let rate = self.rate;
        self.bucket(key, now)
            .map_or(Err(Duration::from_secs(1)), |bucket| bucket.take(rate, now))
    }

    fn charge(&mut self, key: K, tokens: f64, now: Instant) {
        let rate = self.rate;
        if let Some(bucket) = self.bucket(key, now) {
            bucket.charge(rate, tokens, now);
        }
    }

    fn bucket(&mut self, key: K, now: Instant) -> Option<&mut Bucket> {
        let rate = self.rate;
        if self.buckets.len() >= REMEMBERED && !self.buckets.contains_key(&key) {
            self.buckets.retain(|_, bucket| !bucket.is_full(rate, now));
            if self.buckets.len() >= REMEMBERED {
                return None;
            }
        }
        Some(
            self.buckets
                .entry(key)
                .or_insert_with(|| Bucket::full(rate, now)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;
    use apoidea_model::Route;
    use std::net::{IpAddr, Ipv4Addr};

    const SLOW: Rate = Rate {
        per_second: 0.001,
        burst: 2.0,
    };
    const FAST: Rate = Rate {
        per_second: 1e6,
        burst: 1e6,
    };

    fn peer(name: &str) -> PeerId {
        PeerId::at(Key::hash(name))
    }

    fn v4(a: u8, d: u8) -> Origin {
        Origin::at(Ipv4Addr::new(a, 0, 0, d).into())
    }

    fn relayed(name: &str) -> Origin {
        let relay = peer("relay");
        Origin::of(peer(name), Route::Via { relay })
    }

    #[test]
    fn one_peer_cannot_use_up_another_s_share() {
        let (mut gate, now) = (Gate::new(SLOW, FAST, FAST), Instant::now());
        assert!((0..2).all(|_| gate.take(peer("a"), v4(1, 1), now).is_ok()));
        assert!(gate.take(peer("a"), v4(1, 1), now).is_err());
        assert!(gate.take(peer("b"), v4(1, 1), now).is_ok());
    }

    #[test]
    fn many_names_in_one_neighbourhood_share_one_bucket() {
        let (mut gate, now) = (Gate::new(FAST, SLOW, SLOW), Instant::now());
        assert!(gate.take(peer("a"), v4(1, 1), now).is_ok());
        assert!(gate.take(peer("b"), v4(1, 2), now).is_ok());
        assert!(gate.take(peer("c"), v4(1, 3), now).is_err());
        assert!(gate.take(peer("d"), v4(2, 1), now).is_ok());
        let mut admit = |origin| gate.admit_newcomer(origin, AddressProof::Proven, now);
        assert!((0..2).all(|_| admit(v4(3, 1))));
        assert!(!admit(v4(3, 9)));
    }

    #[test]
    fn peers_behind_one_relay_do_not_share_a_bucket() {
        let (mut gate, now) = (Gate::new(FAST, SLOW, SLOW), Instant::now());
        for name in ["a", "b", "c"] {
            assert!((0..2).all(|_| gate.take(peer(name), relayed(name), now).is_ok()));
            assert!(gate.take(peer(name), relayed(name), now).is_err());
            let mut admit = || gate.admit_newcomer(relayed(name), AddressProof::Proven, now);
            assert!((0..2).all(|_| admit()));
            assert!(!admit());
        }
    }

    #[test]
    fn knocks_in_the_name_of_others_use_up_nothing_of_theirs() {
        let (mut gate, now) = (Gate::new(FAST, FAST, SLOW), Instant::now());
        while gate.admit_newcomer(v4(3, 1), AddressProof::Claimed, now) {}
        assert!(gate.admit_newcomer(v4(3, 1), AddressProof::Proven, now));
        gate.charge_newcomer(v4(3, 1), now);
        assert!(!gate.admit_newcomer(v4(3, 1), AddressProof::Proven, now));
    }

    #[test]
    fn large_requests_cost_more() {
        let (mut gate, now) = (
            Gate::new(
                Rate {
                    per_second: 1.0,
                    burst: 10.0,
                },
                FAST,
                FAST,
            ),
            Instant::now(),
        );
        gate.charge(peer("a"), v4(1, 1), 64 * 1024, now);
        assert_eq!(
            (0..10)
                .filter(|_| gate.take(peer("a"), v4(1, 1), now).is_ok())
                .count(),
            2
        );
    }

    #[test]
    fn memory_is_bounded_and_full_buckets_make_room() {
        let (mut gate, now) = (Gate::new(FAST, SLOW, FAST), Instant::now());
        for n in 0..REMEMBERED as u32 {
            let address = Origin::at(IpAddr::from(Ipv4Addr::from(n << 8)));
            assert!(gate.take(peer("a"), address, now).is_ok());
        }
        assert!(
            gate.take(peer("a"), v4(200, 1), now).is_err(),
            "all buckets are in use"
        );
        assert_eq!(gate.origins.buckets.len(), REMEMBERED);
        let next_day = now + Duration::from_secs(86_400);
        assert!(gate.take(peer("a"), v4(200, 1), next_day).is_ok());
        assert_eq!(gate.origins.buckets.len(), 1);
    }

    #[test]
    fn an_offender_stays_out_for_a_minute() {
        let (mut gate, now) = (Gate::new(FAST, FAST, FAST), Instant::now());
        gate.banish(peer("a"), now);
        assert!(gate.is_banished(peer("a"), now + Duration::from_secs(59)));
        assert!(!gate.is_banished(peer("a"), now + Duration::from_secs(61)));
        assert!(!gate.is_banished(peer("b"), now));
    }
}
