//! Who may come in, and how fast: token buckets per peer and per neighbourhood, and a short memory
//! of offenders.
//!
//! A neighbourhood is what one party usually controls: a /24 of IPv4 addresses, a /48 of IPv6 ones.
//! Every map is bounded; when one is full, the entries that say nothing are forgotten first, and
//! newcomers are turned away if that does not help.

use super::{Rate, bucket::Bucket};
use apoidea_model::PeerId;
use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    time::{Duration, Instant},
};

/// Peers and neighbourhoods remembered; far above the connections held at once.
const REMEMBERED: usize = 4096;
/// How long an offender stays out.
const BANISHMENT: Duration = Duration::from_secs(60);
/// Bytes that cost as much as one request.
const BYTES_PER_TOKEN: f64 = 8192.0;

/// The /24 or /48 that an address lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Neighbourhood([u8; 6]);

impl Neighbourhood {
    /// The neighbourhood of an address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                Neighbourhood([0, 0, 0, a, b, c])
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, ..] = address.octets();
                Neighbourhood([a, b, c, d, e, f])
            }
        }
    }
}

/// All buckets of one transport.
#[derive(Debug)]
pub(crate) struct Gate {
    peers: Buckets<PeerId>,
    neighbourhoods: Buckets<Neighbourhood>,
    newcomers: Buckets<Neighbourhood>,
    banished: HashMap<PeerId, Instant>,
}

impl Gate {
    /// A gate with these rates.
    pub fn new(peer: Rate, neighbourhood: Rate, newcomer: Rate) -> Self {
        Gate {
            peers: Buckets::new(peer),
            neighbourhoods: Buckets::new(neighbourhood),
            newcomers: Buckets::new(newcomer),
            banished: HashMap::new(),
        }
    }

    /// May someone from this address open a connection now?
    pub fn admits_newcomer(&mut self, address: IpAddr, now: Instant) -> bool {
        self.newcomers.take(Neighbourhood::of(address), now).is_ok()
    }

    /// Takes the token for one request, or says how long to wait for it.
    pub fn take(&mut self, peer: PeerId, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.peers.take(peer, now)?;
        self.neighbourhoods
            .take(Neighbourhood::of(address), now)
            .inspect_err(|_| {
                // Nothing happened yet, so the peer's own token goes back.
                self.peers.charge(peer, -1.0, now);
            })
    }

    /// Counts the bytes of a request.
    pub fn charge(&mut self, peer: PeerId, address: IpAddr, bytes: usize, now: Instant) {
        let tokens = bytes as f64 / BYTES_PER_TOKEN;
        self.peers.charge(peer, tokens, now);
        self.neighbourhoods
            .charge(Neighbourhood::of(address), tokens, now);
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

    /// Is this peer being kept out?
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
    use std::net::{Ipv4Addr, Ipv6Addr};

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

    fn v4(a: u8, d: u8) -> IpAddr {
        Ipv4Addr::new(a, 0, 0, d).into()
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
        assert!((0..2).all(|_| gate.admits_newcomer(v4(3, 1), now)));
        assert!(!gate.admits_newcomer(v4(3, 9), now));
    }

    #[test]
    fn a_neighbourhood_of_ipv6_is_a_48() {
        let near = |text: &str| Neighbourhood::of(text.parse::<Ipv6Addr>().unwrap().into());
        assert_eq!(near("2a00:1:2:3::1"), near("2a00:1:2:ffff::2"));
        assert_ne!(near("2a00:1:2::1"), near("2a00:1:3::1"));
        assert_eq!(
            near("::ffff:1.2.3.4"),
            Neighbourhood::of(Ipv4Addr::new(1, 2, 3, 99).into())
        );
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
            let address = IpAddr::from(Ipv4Addr::from(n << 8));
            assert!(gate.take(peer("a"), address, now).is_ok());
        }
        assert!(
            gate.take(peer("a"), v4(200, 1), now).is_err(),
            "all buckets are in use"
        );
        assert_eq!(gate.neighbourhoods.buckets.len(), REMEMBERED);
        let next_day = now + Duration::from_secs(86_400);
        assert!(gate.take(peer("a"), v4(200, 1), next_day).is_ok());
        assert_eq!(gate.neighbourhoods.buckets.len(), 1);
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
