//! The clock of one address for all peers: it divides the requests that the address may get among
//! the peers that want to ask it.
//!
//! Many names, also of many sites, may lead to one machine, and their owners are different peers.
//! The owner of the address on the ring keeps this clock. It gives each peer that asks a [`Grant`]:
//! one request in so long, for a term. The grants of an address that are valid together never add
//! up to more than one request in the address's delay. A newcomer waits until the others have
//! renewed theirs for less; a peer that does not renew gives its share back at the end of the term.
//!
//! Shares are fair in the sense of max and min: no peer gets less because another one wants more. A
//! crowd takes turns: only [`MAX_HOLDERS`] hold a share at a time, so that each gets some requests
//! in its term.
//!
//! A value without clock or network. It is kept in memory alone: a new owner of the address begins
//! with an empty one, which is why peers ask the owner and its successor and believe the slower.

use apoidea_model::{PeerId, Time};
use std::{collections::HashMap, net::IpAddr, time::Duration};

/// The whole of an address's requests, in parts that can be given: divisible by the number of
/// holders, up to the most.
const UNITS: u32 = 720_720;
/// Peers that hold a share of one address at a time. With more, an interval would come near the
/// term, and no holder would get anything.
pub const MAX_HOLDERS: usize = 16;
/// Peers that wait for a share of one address; others are told to ask later.
const MAX_WAITING: usize = 64;
/// Addresses at a time, some 200 bytes each without a crowd.
const MAX_ADDRESSES: usize = 16_384;
/// Questions of one peer in a term: four times as many as it has domains in memory, in a ring so
/// small that a peer owns a quarter of all addresses.
const MAX_ASKS: u32 = 16_384;
/// Peers whose questions are counted.
const MAX_PEERS: usize = 4096;
/// A grant is valid for so many delays of its address: four minutes on the Internet.
const TERM: u32 = 120;
/// A peer that waits asks again after so many delays.
const ASK_AGAIN: u32 = 30;

/// A peer's wish to ask an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressWish {
    /// The address.
    pub address: IpAddr,
    /// It has no use for more than one request in this time.
    pub wanted: Duration,
}

/// The clock's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// The address may be asked.
    Every {
        /// Once in this time.
        interval: Duration,
        /// For so long, from the question on.
        term: Duration,
    },
    /// Not at all for now; ask again after this.
    Wait(Duration),
}

/// The clocks of the addresses that a peer looks after.
#[derive(Debug, Default)]
pub struct AddressClock {
    addresses: HashMap<IpAddr, Shares>,
    askers: HashMap<PeerId, Asker>,
    swept: Time,
}

/// The shares of one address.
#[derive(Debug, Default)]
struct Shares {
    held: Vec<Share>,
    /// In the order of their first question.
    waiting: Vec<Share>,
}

/// The part of one peer; none while it waits.
#[derive(Debug, Clone, Copy)]
struct Share {
    peer: PeerId,
    units: u32,
    wanted: u32,
    until: Time,
}

/// The questions of one peer.
#[derive(Debug)]
struct Asker {
    asks: u32,
    until: Time,
}

impl Grant {
    /// The one that allows less. Of two answers to one question it is the one to believe.
    pub fn slower(self, other: Grant) -> Grant {
        match (self, other) {
            (Grant::Wait(a), Grant::Wait(b)) => Grant::Wait(a.max(b)),
            (wait @ Grant::Wait(_), _) | (_, wait @ Grant::Wait(_)) => wait,
            (
                Grant::Every { interval, term },
                Grant::Every {
                    interval: other,
                    term: others,
                },
            ) => Grant::Every {
                interval: interval.max(other),
                term: term.min(others),
            },
        }
    }
}

impl AddressClock {
    /// A peer wants to ask an address that may be asked once in `delay`. Whatever it was granted
    /// before ends with this question.
    pub fn ask(&mut self, peer: PeerId, wish: AddressWish, delay: Duration, now: Time) -> Grant {
        let later = Grant::Wait(delay.saturating_mul(ASK_AGAIN));
        let has_room = self.has_room(wish.address, now);
        if !self.may_ask(peer, delay, now) || !has_room {
            return later;
        }
        let shares = self.addresses.entry(wish.address).or_default();
        shares.expire(now);
        match shares.ask(peer, units(wish.wanted, delay), delay, now) {
            0 => later,
            units => Grant::Every {
                interval: interval(units, delay),
                term: delay.saturating_mul(TERM),
            },
        }
    }

    /// Addresses that some peer holds or waits for, as far as known.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Is no address asked?
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Counts a question.
    fn may_ask(&mut self, peer: PeerId, delay: Duration, now: Time) -> bool {
        if self.askers.len() >= MAX_PEERS && !self.askers.contains_key(&peer) {
            self.askers.retain(|_, asker| asker.until > now);
            if self.askers.len() >= MAX_PEERS {
                return false;
            }
        }
        let asker = self.askers.entry(peer).or_insert(Asker {
            asks: 0,
            until: Time::ZERO,
        });
        if asker.until <= now {
            let until = now + delay.saturating_mul(TERM);
            *asker = Asker { asks: 0, until };
        }
        asker.asks = asker.asks.saturating_add(1);
        asker.asks <= MAX_ASKS
    }

    /// Is there room for this address? Those that nobody asks any more make some, at most once a
    /// second.
    fn has_room(&mut self, address: IpAddr, now: Time) -> bool {
        let is_full = self.addresses.len() >= MAX_ADDRESSES;
        if !is_full || self.addresses.contains_key(&address) {
            return true;
        }
        if now.since(self.swept) >= Duration::from_secs(1) {
            self.swept = now;
            self.addresses.retain(|_, shares| {
                shares.expire(now);
                !shares.held.is_empty() || !shares.waiting.is_empty()
            });
        }
        self.addresses.len() < MAX_ADDRESSES
    }
}

impl Shares {
    fn expire(&mut self, now: Time) {
        self.held.retain(|share| share.until > now);
        self.waiting.retain(|share| share.until > now);
    }

    /// Gives a peer its part, or none for now.
    fn ask(&mut self, peer: PeerId, wanted: u32, delay: Duration, now: Time) -> u32 {
        self.held.retain(|share| share.peer != peer);
        let place = self.waiting.iter().position(|share| share.peer == peer);
        let ahead = place.unwrap_or(self.waiting.len());
        let has_turn = self.held.len() + ahead < MAX_HOLDERS;
        let free = UNITS - self.held.iter().map(|share| share.units).sum::<u32>();
        let fair = self.level(peer, wanted).min(wanted);
        let units = fair.min(free);
        // Less than half of its part would bind it for a term: it waits for the others' renewals.
        if has_turn && units >= fair.div_ceil(2) {
            self.waiting.retain(|share| share.peer != peer);
            self.held.push(Share {
                peer,
                units,
                wanted,
                until: now + delay.saturating_mul(TERM),
            });
            return units;
        }
        self.wait(
            place,
            peer,
            wanted,
            now + delay.saturating_mul(2 * ASK_AGAIN),
        );
        0
    }

    fn wait(&mut self, place: Option<usize>, peer: PeerId, wanted: u32, until: Time) {
        let share = Share {
            peer,
            units: 0,
            wanted,
            until,
        };
        match place {
            Some(place) => self.waiting[place] = share,
            None if self.waiting.len() < MAX_WAITING => self.waiting.push(share),
            None => {}
        }
    }

    /// The most that any peer may have, if those who want less get just that: with it everything is
    /// given away, unless all want less.
    fn level(&self, peer: PeerId, wanted: u32) -> u32 {
        let others = self.held.iter().chain(&self.waiting);
        let others = others.filter(|share| share.peer != peer);
        let mut wants: Vec<u32> = others.map(|share| share.wanted).collect();
        wants.truncate(MAX_HOLDERS - 1);
        wants.push(wanted);
        wants.sort_unstable();
        let (mut left, mut peers) = (UNITS, u32::try_from(wants.len()).unwrap_or(u32::MAX));
        for want in wants {
            let equal = left / peers;
            if want >= equal {
                return equal;
            }
            left -= want;
            peers -= 1;
        }
        UNITS
    }
}

/// The part of an address that one request in `wanted` takes.
fn units(wanted: Duration, delay: Duration) -> u32 {
    let (wanted, delay) = (wanted.as_millis().max(1), delay.as_millis().max(1));
    let units = (u128::from(UNITS) * delay).div_ceil(wanted);
    u32::try_from(units).unwrap_or(UNITS).clamp(1, UNITS)
}

/// One request in this time is that part of an address.
fn interval(units: u32, delay: Duration) -> Duration {
    let millis = (delay.as_millis() * u128::from(UNITS)).div_ceil(u128::from(units.max(1)));
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;
    use proptest::prelude::*;

    const DELAY: Duration = Duration::from_secs(2);
    const NOW: Time = Time::from_millis(1_000_000);
    const TERM_TIME: Duration = Duration::from_secs(240);

    fn peer(number: u32) -> PeerId {
        PeerId::at(Key::hash(number.to_be_bytes()))
    }

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    fn wish(wanted: Duration) -> AddressWish {
        AddressWish {
            address: address(1),
            wanted,
        }
    }

    /// The interval that a peer gets, in seconds; `None` if it waits.
    fn ask(clock: &mut AddressClock, number: u32, now: Time) -> Option<f64> {
        match clock.ask(peer(number), wish(DELAY), DELAY, now) {
            Grant::Every { interval, term } => {
                assert_eq!(term, TERM_TIME);
                Some(interval.as_secs_f64())
            }
            Grant::Wait(_) => None,
        }
    }

    #[test]
    fn the_only_peer_gets_all_that_it_wants() {
        let mut clock = AddressClock::default();
        assert_eq!(ask(&mut clock, 1, NOW), Some(2.0));
        assert_eq!(ask(&mut clock, 1, NOW + DELAY), Some(2.0));
        let modest = clock.ask(peer(1), wish(5 * DELAY), DELAY, NOW);
        let interval = 5 * DELAY;
        let term = TERM_TIME;
        assert_eq!(modest, Grant::Every { interval, term });
    }

    #[test]
    fn a_newcomer_waits_until_the_others_have_renewed_for_less() {
        let mut clock = AddressClock::default();
        assert_eq!(ask(&mut clock, 1, NOW), Some(2.0));
        assert_eq!(ask(&mut clock, 2, NOW), None);
        assert_eq!(ask(&mut clock, 1, NOW + DELAY), Some(4.0));
        assert_eq!(ask(&mut clock, 2, NOW + DELAY), Some(4.0));
        assert_eq!(ask(&mut clock, 1, NOW + DELAY), Some(4.0));
    }

    #[test]
    fn peers_that_want_little_share_without_waiting() {
        let mut clock = AddressClock::default();
        let mut modest = |number| clock.ask(peer(number), wish(3 * DELAY), DELAY, NOW);
        for number in 1..=3 {
            assert!(
                matches!(modest(number), Grant::Every { interval, .. } if interval == 3 * DELAY)
            );
        }
        assert!(matches!(modest(4), Grant::Wait(_)));
    }

    #[test]
    fn a_peer_that_wants_little_leaves_the_rest_to_others() {
        let mut clock = AddressClock::default();
        clock.ask(peer(1), wish(4 * DELAY), DELAY, NOW);
        let three_quarters = ask(&mut clock, 2, NOW).unwrap();
        assert!((three_quarters - 2.0 / 0.75).abs() < 0.002);
    }

    #[test]
    fn a_peer_that_stops_renewing_gives_its_share_back() {
        let mut clock = AddressClock::default();
        ask(&mut clock, 1, NOW);
        let later = NOW + TERM_TIME;
        assert_eq!(ask(&mut clock, 2, later - Duration::from_millis(1)), None);
        assert_eq!(ask(&mut clock, 2, later), Some(2.0));
    }

    #[test]
    fn a_crowd_takes_turns() {
        let mut clock = AddressClock::default();
        let mut served = std::collections::BTreeSet::new();
        let mut now = NOW;
        for _ in 0..400 {
            now = now + Duration::from_secs(10);
            for number in 0..50 {
                if let Some(seconds) = ask(&mut clock, number, now) {
                    assert!(seconds <= 2.0 * 2.0 * MAX_HOLDERS as f64, "{seconds}");
                    served.insert(number);
                }
            }
        }
        assert_eq!(served.len(), 50);
    }

    #[test]
    fn of_two_answers_the_slower_counts() {
        let every = |interval, term| Grant::Every {
            interval: Duration::from_secs(interval),
            term: Duration::from_secs(term),
        };
        let wait = |seconds| Grant::Wait(Duration::from_secs(seconds));
        assert_eq!(every(2, 9).slower(every(4, 20)), every(4, 9));
        assert_eq!(every(2, 9).slower(wait(1)), wait(1));
        assert_eq!(wait(1).slower(wait(3)), wait(3));
    }

    #[test]
    fn a_flood_of_addresses_or_peers_takes_bounded_memory() {
        let mut clock = AddressClock::default();
        let flood = |clock: &mut AddressClock, peer, count: u32| {
            for number in 0..count {
                let address = address(number);
                let wanted = DELAY;
                clock.ask(peer, AddressWish { address, wanted }, DELAY, NOW);
            }
        };
        flood(&mut clock, peer(1), 2 * MAX_ASKS);
        assert_eq!(clock.len(), MAX_ASKS as usize);
        let fresh = AddressWish {
            address: address(u32::MAX),
            wanted: DELAY,
        };
        let answer = |clock: &mut AddressClock, now| clock.ask(peer(2), fresh, DELAY, now);
        assert!(matches!(answer(&mut clock, NOW), Grant::Wait(_)), "full");
        let later = NOW + TERM_TIME;
        assert!(matches!(answer(&mut clock, later), Grant::Every { .. }));
        assert_eq!(clock.len(), 1);
        for number in 0..2 * MAX_PEERS as u32 {
            clock.ask(peer(number), fresh, DELAY, later);
        }
        assert!(clock.askers.len() <= MAX_PEERS);
        let [shares] = &clock.addresses.values().collect::<Vec<_>>()[..] else {
            panic!("there is one address");
        };
        assert!(shares.held.len() <= MAX_HOLDERS && shares.waiting.len() <= MAX_WAITING);
    }

    #[derive(Debug, Clone)]
    enum Event {
        /// A peer asks, wanting one request in so many milliseconds; the answer may be lost.
        Ask(u32, u64, bool),
        Pass(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (0..24u32, 1..60_000u64, any::<bool>()).prop_map(|(p, w, l)| Event::Ask(p, w, l)),
            2 => (0..400_000u64).prop_map(Event::Pass),
        ]
    }

    proptest! {
        /// Whoever asks when, and whatever answers are lost: the valid grants together never allow
        /// more than one request in the delay.
        #[test]
        fn grants_never_add_up_to_more_than_the_delay_allows(
            events in prop::collection::vec(event(), 0..200),
        ) {
            let mut clock = AddressClock::default();
            let mut now = NOW;
            let mut valid: HashMap<u32, (Duration, Time)> = HashMap::new();
            for event in events {
                match event {
                    Event::Pass(millis) => now = now + Duration::from_millis(millis),
                    Event::Ask(number, wanted, is_lost) => {
                        valid.remove(&number);
                        let wish = wish(Duration::from_millis(wanted));
                        let grant = clock.ask(peer(number), wish, DELAY, now);
                        if let (Grant::Every { interval, term }, false) = (grant, is_lost) {
                            prop_assert!(interval >= DELAY);
                            valid.insert(number, (interval, now + term));
                        }
                    }
                }
                valid.retain(|_, (_, until)| *until > now);
                let rates = valid.values().map(|(interval, _)| 1.0 / interval.as_secs_f64());
                prop_assert!(rates.sum::<f64>() <= 1.0 / DELAY.as_secs_f64() + 1e-9);
            }
        }

        /// Peers that all want everything, and renew, soon have equal parts and all of it together.
        #[test]
        fn peers_that_renew_come_to_equal_parts(peers in 1..=(MAX_HOLDERS as u32)) {
            let mut clock = AddressClock::default();
            let mut intervals = Vec::new();
            for round in 0..4u64 {
                let now = NOW + Duration::from_secs(60 * round);
                intervals = (0..peers).filter_map(|number| ask(&mut clock, number, now)).collect();
            }
            let fair = 2.0 * f64::from(peers);
            prop_assert_eq!(intervals.len(), peers as usize);
            prop_assert!(intervals.iter().all(|interval| (interval - fair).abs() < 0.01));
        }
    }
}
