//! The seat of a member: a position on the ring that follows from its address, so that nobody can
//! choose it by trying keys.
//!
//! A position that is the hash of a public key is free to choose: thousands of keys are tried in a
//! second. Addresses are not free. So every /24 of IPv4 and every /48 of IPv6 has a few seats, the
//! peer's id says in which of them it sits, and all seats move once in an epoch (BEP 42 binds ids
//! to addresses in a similar way). One party with one prefix has a few positions, whatever it
//! computes.
//!
//! Nobody believes a seat. A peer that meets a member compares the seat with the address at which
//! the member speaks ([`Seating::admits`]). The overlay knows that address.

use apoidea_model::{Key, PeerId, Time, is_global};
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

/// Addresses that one party usually controls together: a /24 of IPv4, a /48 of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Prefix {
    /// The first three bytes.
    V4([u8; 3]),
    /// The first six bytes.
    V6([u8; 6]),
}

/// The network in which positions are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seating {
    /// A network of friends, or a test: a peer stands at its own id.
    #[default]
    Private,
    /// The open Internet: a member stands where its address puts it.
    Open {
        /// Time for which a seat stays where it is; the same for all peers of the network.
        epoch: Duration,
    },
}

/// The word of a member about its position. The position itself is [`Seat::key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Seat {
    /// At its own id.
    #[default]
    Free,
    /// Where its address puts it.
    Bound {
        /// The address's prefix.
        prefix: Prefix,
        /// One of [`Seat::PER_PREFIX`].
        number: u8,
        /// The epoch in which it sits there.
        epoch: u32,
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
    fn ahead(&self, epoch: Duration) -> Duration {
        let hash = Key::hash([b"apoidea epoch ", self.bytes()].concat());
        epoch.mul_f64(hash.fraction())
    }

    fn epoch(&self, now: Time, epoch: Duration) -> u32 {
        let now = now + self.ahead(epoch);
        let length = u64::try_from(epoch.as_millis()).unwrap_or(u64::MAX).max(1);
        u32::try_from(now.as_millis() / length).unwrap_or(u32::MAX)
    }
}

impl Seating {
    /// The open network that all volunteers share.
    pub const OPEN: Seating = Seating::Open { epoch: Seat::EPOCH };

    /// The seat with this number of a peer in this prefix now.
    pub fn seat(self, prefix: Prefix, number: u8, now: Time) -> Seat {
        match self {
            Seating::Private => Seat::Free,
            Seating::Open { epoch } => Seat::Bound {
                prefix,
                number: number % Seat::PER_PREFIX,
                epoch: prefix.epoch(now, epoch),
            },
        }
    }

    /// Whether a member may stand there now that speaks from this address. It fails closed: without
    /// an address there is no seat in the open network.
    ///
    /// An address that is not global belongs to a network that this peer is in itself, behind the
    /// same router. So it counts as `mine`, this peer's own prefix. In a home that is cut off, where
    /// nobody has such a prefix, peers stand at their ids. A member behind a relay has no address
    /// here: the prefix that several observers of it agree on is to come in its place.
    pub fn admits(self, seat: Seat, from: Option<IpAddr>, mine: Option<Prefix>, now: Time) -> bool {
        match (self, seat) {
            (Seating::Private, Seat::Free) => true,
            (Seating::Open { .. }, Seat::Free) => {
                mine.is_none() && from.is_some_and(|from| Prefix::of(from).is_none())
            }
            (
                Seating::Open { epoch: length },
                Seat::Bound {
                    prefix,
                    number,
                    epoch,
                },
            ) => {
                let seen = from.and_then(|from| Prefix::of(from).or(mine));
                number < Seat::PER_PREFIX
                    && seen == Some(prefix)
                    && is_present(prefix, epoch, length, now)
            }
            _ => false,
        }
    }

    /// Time around a change of epoch in which both seats count, since clocks differ.
    fn grace(epoch: Duration) -> Duration {
        Seat::GRACE.min(epoch / 8)
    }
}

/// Whether some clock that is right to within the grace says that it is this epoch.
fn is_present(prefix: Prefix, epoch: u32, length: Duration, now: Time) -> bool {
    let grace = Seating::grace(length);
    let earlier = now.as_millis().saturating_sub(grace.as_millis() as u64);
    let moments = [now, Time::from_millis(earlier), now + grace];
    let mut present = moments
        .map(|moment| prefix.epoch(moment, length))
        .into_iter();
    present.any(|present| present == epoch)
}

impl Seat {
    /// Seats of one prefix. With 8 among 1,000 members, one prefix owns a chosen key with a chance
    /// of 0.8 %. More members of one prefix find no seat.
    pub const PER_PREFIX: u8 = 8;
    /// Time for which a seat stays where it is. A member hands its keys over once in it. A party
    /// that has got a good seat by luck loses it.
    pub const EPOCH: Duration = Duration::from_secs(7 * 24 * 3600);
    /// Most time around a change of epoch in which both seats count.
    pub const GRACE: Duration = Duration::from_secs(600);

    /// The number of the seat that a peer tries first. If another member of its prefix has that
    /// one, it takes another: a party with many ids could do so anyway.
    pub fn first_number(id: PeerId) -> u8 {
        Key::hash(id.key().as_bytes()).as_bytes()[0] % Self::PER_PREFIX
    }

    /// The position of a peer on the ring that has this seat. Two peers of one seat have the same
    /// position: the one that the others have met first keeps it.
    pub fn key(&self, id: PeerId) -> Key {
        match self {
            Seat::Free => id.key(),
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

    /// The prefix that it is bound to.
    pub fn prefix(&self) -> Option<Prefix> {
        match self {
            Seat::Free => None,
            Seat::Bound { prefix, .. } => Some(*prefix),
        }
    }
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

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn seat(number: u8, address: &str, now: Time) -> Option<Seat> {
        let prefix = Prefix::of(ip(address))?;
        Some(Seating::OPEN.seat(prefix, number, now))
    }

    fn position(number: u8, address: &str, now: Time) -> Option<Key> {
        seat(number, address, now).map(|seat| seat.key(id(1)))
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
    fn where_addresses_are_not_global_a_seat_is_missing_on_the_open_internet() {
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
            assert_eq!(Prefix::of(ip(address)), None, "{address}");
            let mine = Prefix::of(ip("5.1.1.1"));
            let admits =
                |seating: Seating, mine| seating.admits(Seat::Free, Some(ip(address)), mine, NOW);
            assert!(!admits(Seating::OPEN, mine), "{address}");
            assert!(
                admits(Seating::OPEN, None),
                "{address}: a home without the Internet"
            );
            assert!(admits(Seating::Private, mine), "{address}");
        }
        for from in [None, Some(ip("9.9.9.9"))] {
            assert!(!Seating::OPEN.admits(Seat::Free, from, None, NOW));
        }
        assert_eq!(Seat::Free.key(id(1)), id(1).key());
    }

    #[test]
    fn a_seat_counts_only_from_its_own_prefix() {
        let seat = seat(3, "198.41.0.4", NOW).expect("global");
        let mine = Prefix::of(ip("198.41.0.77"));
        for (from, mine, is_admitted) in [
            (Some("198.41.0.9"), None, true),
            (Some("198.41.1.9"), None, false),
            (Some("198.41.1.9"), mine, false),
            (None, mine, false),
            (Some("192.168.1.9"), None, false),
            (Some("192.168.1.9"), mine, true),
        ] {
            let from = from.map(ip);
            let admits = Seating::OPEN.admits(seat, from, mine, NOW);
            assert_eq!(admits, is_admitted, "{from:?} {mine:?}");
            assert!(!Seating::Private.admits(seat, from, mine, NOW));
        }
    }

    #[test]
    fn a_number_beyond_the_last_is_no_seat() {
        let prefix = Prefix::of(ip("198.41.0.4")).expect("global");
        let Seat::Bound { epoch, .. } = Seating::OPEN.seat(prefix, 0, NOW) else {
            panic!("bound");
        };
        for number in 0..=u8::MAX {
            let seat = Seat::Bound {
                prefix,
                number,
                epoch,
            };
            let admits = Seating::OPEN.admits(seat, Some(ip("198.41.0.4")), None, NOW);
            assert_eq!(admits, number < Seat::PER_PREFIX, "{number}");
        }
    }

    #[test]
    fn a_seat_moves_once_in_an_epoch_and_both_count_for_a_moment() {
        let address = ip("198.41.0.4");
        let at = |now: Time| seat(1, "198.41.0.4", now).expect("global");
        let hour = Duration::from_secs(3600);
        let seats: Vec<Seat> = (0..1 + 3 * 7 * 24).map(|n| at(NOW + hour * n)).collect();
        let keys = seats.iter().map(|seat| seat.key(id(1)));
        assert_eq!(BTreeSet::from_iter(keys).len(), 4, "three weeks touch four");
        let change = (1..seats.len())
            .find(|&n| seats[n] != seats[n - 1])
            .expect("a change");
        let (before, after) = (seats[change - 1], seats[change]);
        let minute = Duration::from_secs(60);
        let start = NOW + hour * (change as u32 - 1);
        let moment = (0..=60)
            .map(|n| start + minute * n)
            .find(|&m| at(m) == after);
        let moment = moment.expect("within the hour");
        for (when, old, new) in [
            (moment, true, true),
            (moment + Seat::GRACE + minute, false, true),
        ] {
            let admits = |seat| Seating::OPEN.admits(seat, Some(address), None, when);
            assert_eq!(admits(before), old);
            assert_eq!(admits(after), new);
        }
    }

    #[test]
    fn prefixes_move_at_different_times() {
        let prefix = |n: u8| Prefix::of(IpAddr::from([198, 41, n, 4])).expect("global");
        let epoch = |n: u8, now: Time| prefix(n).epoch(now, Seat::EPOCH);
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
    fn a_seat_takes_few_bytes_on_the_wire() {
        let length =
            |seat: Option<Seat>| postcard::to_stdvec(&seat.expect("global")).unwrap().len();
        assert_eq!(postcard::to_stdvec(&Seat::Free).unwrap().len(), 1);
        assert!(length(seat(1, "198.41.0.4", NOW)) <= 8);
        assert!(length(seat(1, "2a01:4f8:1::1", NOW)) <= 11);
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
            let seats = (0..Seat::PER_PREFIX).filter_map(|n| position(n, &address, now));
            ring.extend(seats.map(|key| (key, true)));
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
            claimed in any::<[u8; 3]>(),
            millis in 0..4_000_000_000_000u64,
            number in any::<u8>(),
        ) {
            let now = Time::from_millis(millis);
            for ip in [IpAddr::from(address), IpAddr::from(v4)] {
                let elsewhere = Seating::OPEN.seat(Prefix::V4(claimed), number, now);
                let is_there = Prefix::of(ip) == Some(Prefix::V4(claimed));
                prop_assert_eq!(Seating::OPEN.admits(elsewhere, Some(ip), None, now), is_there);
                if let Some(prefix) = Prefix::of(ip) {
                    let seat = Seating::OPEN.seat(prefix, number, now);
                    prop_assert!(Seating::OPEN.admits(seat, Some(ip), None, now));
                    prop_assert!(seat.key(id(1)) != id(1).key());
                }
            }
        }
    }
}
