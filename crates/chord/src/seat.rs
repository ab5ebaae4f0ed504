//! The seat of a member: a position on the ring that follows from its address, so that nobody can
//! choose it by trying keys.
//!
//! A position that is the hash of a public key is free to choose: thousands of keys are tried in a
//! second. Addresses are not free. So every /24 of IPv4 and every /48 of IPv6 has a few seats, the
//! peer's id says in which of them it sits, and all seats move once in an epoch (BEP 42 binds ids
//! to addresses in a similar way). One party with one prefix has a few positions, whatever it
//! computes.
//!
//! An address counts only if another peer has reached the member there. The overlay finds that out.

use apoidea_model::{Key, PeerId, Time, is_global};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

/// Addresses that one party usually controls together: a /24 of IPv4, a /48 of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prefix {
    /// The first three bytes.
    V4([u8; 3]),
    /// The first six bytes.
    V6([u8; 6]),
}

/// The network in which positions are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seating {
    /// The open Internet: a member without a global address has no seat.
    Open,
    /// A network of friends, or a test: where addresses are not global, the peer's id is its
    /// position.
    Private,
}

/// A member's position on the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seat {
    /// At its own id.
    Free(PeerId),
    /// Where its address puts it.
    Bound {
        /// The address's prefix.
        prefix: Prefix,
        /// One of [`Seat::PER_PREFIX`].
        number: u8,
        /// The epoch in which it sits there.
        epoch: u64,
    },
}

impl Prefix {
    /// The prefix of an address of the open Internet; none for any other. An IPv4 address in IPv6
    /// clothes counts as what it is.
    pub fn of(address: IpAddr) -> Option<Self> {
        let address = address.to_canonical();
        is_global(address).then(|| match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        })
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [a, b, c, _] = address.octets();
        Prefix::V4([a, b, c])
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let bytes = address.octets();
        Prefix::V6([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]])
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Prefix::V4(bytes) => bytes,
            Prefix::V6(bytes) => bytes,
        }
    }

    /// The part of an epoch by which this prefix is ahead of the others: they do not all move at
    /// once.
    fn ahead(&self) -> Duration {
        let hash = Key::hash([b"apoidea epoch ", self.bytes()].concat());
        Seat::EPOCH.mul_f64(hash.fraction())
    }

    fn epoch(&self, now: Time) -> u64 {
        let now = now + self.ahead();
        now.as_millis() / Seat::EPOCH.as_millis() as u64
    }
}

impl Seat {
    /// Seats of one prefix. With 8 among 1,000 members, one prefix owns a chosen key with a chance
    /// of 0.8 %. More members of one prefix find no seat and stay workers.
    pub const PER_PREFIX: u8 = 8;
    /// Time for which a seat stays where it is. A member hands its keys over once in it. A party
    /// that has got a good seat by luck loses it.
    pub const EPOCH: Duration = Duration::from_secs(7 * 24 * 3600);
    /// Time around a change of epoch in which both seats count, since clocks differ.
    pub const GRACE: Duration = Duration::from_secs(600);

    /// The seat of a peer that was reached at this address; none if it has none there.
    pub fn of(id: PeerId, address: IpAddr, now: Time, seating: Seating) -> Option<Self> {
        match (Prefix::of(address), seating) {
            (Some(prefix), _) => Some(Seat::Bound {
                prefix,
                number: number(id),
                epoch: prefix.epoch(now),
            }),
            (None, Seating::Private) => Some(Seat::Free(id)),
            (None, Seating::Open) => None,
        }
    }

    /// The position on the ring. Two peers of one seat have the same position: the one that came
    /// first keeps it.
    pub fn key(&self) -> Key {
        match self {
            Seat::Free(id) => id.key(),
            Seat::Bound {
                prefix,
                number,
                epoch,
            } => Key::hash(
                [
                    b"apoidea seat ",
                    prefix.bytes(),
                    &[*number],
                    &epoch.to_be_bytes(),
                ]
                .concat(),
            ),
        }
    }

    /// Whether a peer that was reached at this address may say that it stands at `key`.
    pub fn is_at(key: Key, id: PeerId, address: IpAddr, now: Time, seating: Seating) -> bool {
        let earlier = Time::from_millis(
            now.as_millis()
                .saturating_sub(Self::GRACE.as_millis() as u64),
        );
        [now, earlier, now + Self::GRACE]
            .into_iter()
            .filter_map(|moment| Seat::of(id, address, moment, seating))
            .any(|seat| seat.key() == key)
    }
}

/// The seat that an id has in any prefix.
fn number(id: PeerId) -> u8 {
    Key::hash(id.key().as_bytes()).as_bytes()[0] % Seat::PER_PREFIX
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};
    use std::collections::BTreeSet;

    const NOW: Time = Time::from_millis(1_790_000_000_000);

    fn id(number: u32) -> PeerId {
        PeerId::of_public_key(&number.to_be_bytes())
    }

    fn seat(number: u32, address: &str, now: Time) -> Option<Key> {
        let address = address.parse().expect("an address");
        Seat::of(id(number), address, now, Seating::Open).map(|seat| seat.key())
    }

    #[test]
    fn addresses_of_one_prefix_share_their_seats() {
        for (a, b, is_shared) in [
            ("198.41.0.4", "198.41.0.200", true),
            ("198.41.0.4", "::ffff:198.41.0.9", true),
            ("198.41.0.4", "198.41.1.4", false),
            ("2a01:4f8:1:2::1", "2a01:4f8:1:ffff::9", true),
            ("2a01:4f8:1::1", "2a01:4f8:2::1", false),
        ] {
            assert!(seat(1, a, NOW).is_some(), "{a}");
            assert_eq!(seat(1, a, NOW) == seat(1, b, NOW), is_shared, "{a} {b}");
        }
    }

    #[test]
    fn where_addresses_are_not_global_a_seat_is_free_among_friends_and_missing_elsewhere() {
        for address in [
            "127.0.0.1",
            "192.168.1.2",
            "10.0.0.1",
            "100.64.0.1",
            "fe80::1",
            "fd00::1",
            "::1",
            "2002:c629:4::1",
            "2001:0:1::1",
            "64:ff9b::1.1.1.1",
            "0.0.0.0",
            "224.0.0.1",
        ] {
            let ip = address.parse().expect("an address");
            assert_eq!(Seat::of(id(1), ip, NOW, Seating::Open), None, "{address}");
            let private = Seat::of(id(1), ip, NOW, Seating::Private);
            assert_eq!(private, Some(Seat::Free(id(1))), "{address}");
            assert!(!Seat::is_at(id(1).key(), id(1), ip, NOW, Seating::Open));
            assert!(Seat::is_at(id(1).key(), id(1), ip, NOW, Seating::Private));
        }
    }

    #[test]
    fn a_seat_moves_once_in_an_epoch_and_both_count_for_a_moment() {
        let ip: IpAddr = "198.41.0.4".parse().expect("an address");
        let key = |now: Time| {
            Seat::of(id(1), ip, now, Seating::Open)
                .expect("a seat")
                .key()
        };
        let hour = Duration::from_secs(3600);
        let keys: Vec<Key> = (0..1 + 3 * 7 * 24).map(|n| key(NOW + hour * n)).collect();
        assert_eq!(
            BTreeSet::from_iter(&keys).len(),
            4,
            "three weeks touch four"
        );
        let change = (1..keys.len())
            .find(|&n| keys[n] != keys[n - 1])
            .expect("a change");
        let (before, after) = (keys[change - 1], keys[change]);
        let minute = Duration::from_secs(60);
        let start = NOW + hour * (change as u32 - 1);
        let moment = (0..=60)
            .map(|n| start + minute * n)
            .find(|&m| key(m) == after);
        let moment = moment.expect("within the hour");
        for (when, old, new) in [
            (moment, true, true),
            (moment + Seat::GRACE + minute, false, true),
        ] {
            assert_eq!(Seat::is_at(before, id(1), ip, when, Seating::Open), old);
            assert_eq!(Seat::is_at(after, id(1), ip, when, Seating::Open), new);
        }
    }

    #[test]
    fn prefixes_move_at_different_times() {
        let address = |n: u8| IpAddr::from([198, 41, n, 4]);
        let epoch = |n: u8, now: Time| Prefix::of(address(n)).expect("global").epoch(now);
        let half = NOW + Seat::EPOCH / 2;
        let moved = (0..200)
            .filter(|&n| epoch(n, NOW) != epoch(n, half))
            .count();
        assert!(
            (70..130).contains(&moved),
            "{moved} of 200 in half an epoch"
        );
    }

    #[test]
    fn a_prefix_with_any_number_of_keys_has_few_seats() {
        let all = (0..5_000).filter_map(|n| seat(n, "198.41.0.4", NOW));
        assert_eq!(
            BTreeSet::from_iter(all).len(),
            usize::from(Seat::PER_PREFIX)
        );
    }

    /// The share of chosen domains that a party with so many prefixes owns among 1,000 honest
    /// members, with all keys that it wants: in one epoch, and in that and the next.
    fn owned(prefixes: u8) -> (f64, f64) {
        const CHOSEN: u32 = 100;
        const RINGS: u64 = 80;
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(1);
        let (mut once, mut twice) = (0, 0);
        for ring in 0..RINGS {
            let now = NOW + Seat::EPOCH * (2 * ring as u32);
            let mut seats = |now: Time| hostile_seats(prefixes, now, rng);
            let (first, second) = (seats(now), seats(now + Seat::EPOCH));
            for chosen in 0..CHOSEN {
                let key = Key::hash(format!("{ring}.{chosen}.example"));
                let is_owned = owns(&first, key);
                once += u32::from(is_owned);
                twice += u32::from(is_owned && owns(&second, key));
            }
        }
        let all = f64::from(CHOSEN) * RINGS as f64;
        (f64::from(once) / all, f64::from(twice) / all)
    }

    /// A ring as (position, hostile), sorted.
    fn hostile_seats(prefixes: u8, now: Time, rng: &mut impl Rng) -> Vec<(Key, bool)> {
        let mut ring: Vec<(Key, bool)> = (0..1000)
            .map(|_| {
                let mut key = [0; 32];
                rng.fill_bytes(&mut key);
                (Key::from_bytes(key), false)
            })
            .collect();
        for prefix in 0..prefixes {
            let address = format!("198.{prefix}.7.1");
            let seats = (0..64).filter_map(|n| seat(n, &address, now));
            ring.extend(
                BTreeSet::from_iter(seats)
                    .into_iter()
                    .map(|key| (key, true)),
            );
        }
        ring.sort_unstable();
        ring
    }

    fn owns(ring: &[(Key, bool)], key: Key) -> bool {
        ring[ring.partition_point(|(at, _)| *at < key) % ring.len()].1
    }

    #[test]
    fn one_prefix_with_all_keys_that_it_wants_rarely_owns_a_chosen_domain() {
        let (once, _) = owned(1);
        assert!(once <= 0.01, "{once}");
    }

    #[test]
    fn many_prefixes_do_not_keep_a_chosen_domain() {
        let (once, twice) = owned(16);
        assert!((0.05..0.17).contains(&once), "{once}");
        assert!(twice <= 0.025, "{twice}");
    }

    proptest! {
        #[test]
        fn a_peer_stands_only_where_its_address_puts_it(
            address in any::<[u8; 16]>(),
            v4 in any::<[u8; 4]>(),
            claimed in any::<[u8; 32]>(),
            millis in 0..4_000_000_000_000u64,
        ) {
            let now = Time::from_millis(millis);
            for ip in [IpAddr::from(address), IpAddr::from(v4)] {
                let claimed = Key::from_bytes(claimed);
                prop_assert!(!Seat::is_at(claimed, id(1), ip, now, Seating::Open));
                if let Some(seat) = Seat::of(id(1), ip, now, Seating::Open) {
                    prop_assert!(Seat::is_at(seat.key(), id(1), ip, now, Seating::Open));
                    prop_assert!(seat.key() != id(1).key());
                }
            }
        }
    }
}
