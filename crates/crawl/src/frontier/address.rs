//! The addresses that resident hosts live at, each with the hosts that wait for their turn.
//!
//! An address may be asked once in a while whatever the host; so the addresses are ordered by the
//! time at which both the address and its first host are ready, and a crowded address costs no more
//! than a lonely one. How often that is, this peer decides alone or is told ([`Turns`]).

use super::turns::{Spacing, Turns};
use crate::{AddressWish, Grant};
use apoidea_model::{Domain, Time};
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, HashMap, hash_map::Entry},
    net::IpAddr,
    time::Duration,
};

/// All addresses in use.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    known: HashMap<IpAddr, Address>,
    /// Addresses with waiting hosts, by when the first may be asked.
    order: BTreeSet<(Time, IpAddr)>,
    /// Addresses without, by when they may be forgotten.
    idle: BTreeSet<(Time, IpAddr)>,
}

#[derive(Debug, Default)]
struct Address {
    /// The requests of this peer.
    turns: Turns,
    /// Up to when turns were promised to hosts that found it crowded.
    promised: Time,
    /// Waiting hosts, by when they may be asked.
    hosts: BinaryHeap<Reverse<(Time, Domain)>>,
    /// Its key in `order` or `idle`.
    key: Time,
}

/// Turns are promised at most so far ahead.
const PROMISE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Wishes that are put to the clocks at a time; the others follow a second later.
const MAX_WISHES: usize = 512;

impl Addresses {
    /// Lets a host wait for its turn, not earlier than `ready`.
    pub(super) fn enqueue(&mut self, address: IpAddr, domain: Domain, ready: Time) {
        self.change(address, |known| known.hosts.push(Reverse((ready, domain))));
    }

    /// Takes out the next host that may be asked now, with the time it was enqueued for.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(IpAddr, Domain, Time)> {
        self.forget(now);
        let &(due, address) = self.order.first()?;
        if due > now {
            return None;
        }
        let host = self.change(address, |known| known.hosts.pop());
        host.map(|Reverse((ready, domain))| (address, domain, ready))
    }

    /// The time at which the next host may be asked; never if none waits.
    pub(super) fn next_due(&self) -> Time {
        self.order.first().map_or(Time::NEVER, |&(due, _)| due)
    }

    /// A request to the address begins.
    pub(super) fn start(&mut self, address: IpAddr, now: Time, spacing: Spacing) {
        self.change(address, |known| known.turns.start(spacing, now));
    }

    /// The wishes to be put to the clocks of addresses now.
    pub(super) fn wishes(&mut self, now: Time) -> Vec<AddressWish> {
        let waiting: Vec<IpAddr> = self.order.iter().map(|(_, address)| *address).collect();
        let wishes = waiting.into_iter().filter_map(|address| {
            let known = self.known.get(&address)?;
            if !known.turns.is_due(now) {
                return None;
            }
            let wanted = self.change(address, |known| {
                let hosts = known.hosts.len();
                known.turns.wish(hosts, now)
            })?;
            Some(AddressWish { address, wanted })
        });
        wishes.take(MAX_WISHES).collect()
    }

    /// The answer to a wish of the time `asked`; none came if there is none.
    pub(super) fn granted(&mut self, address: IpAddr, grant: Option<Grant>, asked: Time) {
        if self.known.contains_key(&address) {
            self.change(address, |known| known.turns.granted(grant, asked));
        }
    }

    /// The turn of a host that begins to wait now.
    pub(super) fn expected(&self, address: IpAddr, now: Time, gap: Duration) -> Time {
        self.known.get(&address).map_or(now, |known| {
            let waiting = u32::try_from(known.hosts.len()).unwrap_or(u32::MAX);
            let gap = known.turns.usual_gap(gap);
            known.turns.hoped().max(now) + gap.saturating_mul(waiting)
        })
    }

    /// Promises a turn after `earliest` and after all turns promised before, so that those who
    /// found the address crowded do not all come back at once.
    pub(super) fn promise(
        &mut self,
        address: IpAddr,
        now: Time,
        earliest: Time,
        gap: Duration,
    ) -> Time {
        self.change(address, |known| {
            let gap = known.turns.usual_gap(gap);
            known.promised = (known.promised.max(earliest) + gap).min(now + PROMISE_MAX);
            known.promised
        })
    }

    /// Addresses in memory.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Changes an address and puts it where it then belongs.
    fn change<T>(&mut self, address: IpAddr, change: impl FnOnce(&mut Address) -> T) -> T {
        let known = match self.known.entry(address) {
            Entry::Occupied(known) => {
                let known = known.into_mut();
                let list = if known.hosts.is_empty() {
                    &mut self.idle
                } else {
                    &mut self.order
                };
                list.remove(&(known.key, address));
                known
            }
            Entry::Vacant(vacant) => vacant.insert(Address::default()),
        };
        let result = change(known);
        let (list, key) = match known.hosts.peek() {
            Some(Reverse((ready, _))) => (&mut self.order, known.turns.next().max(*ready)),
            None => {
                let until = known.turns.next().max(known.turns.ends());
                (&mut self.idle, until.max(known.promised))
            }
        };
        known.key = key;
        list.insert((key, address));
        result
    }

    fn forget(&mut self, now: Time) {
        while let Some(&(until, address)) = self.idle.first().filter(|(until, _)| *until <= now) {
            self.idle.remove(&(until, address));
            self.known.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pace, frontier::turns::Clock};

    const GAP: Duration = Duration::from_secs(2);
    const OWN: Spacing = Spacing {
        pace: Pace::GLOBAL,
        clock: Clock::Own,
    };
    const RING: Spacing = Spacing {
        pace: Pace::GLOBAL,
        clock: Clock::Ring,
    };
    const START: Time = Time::from_millis(10_000);

    fn address(last: u8) -> IpAddr {
        [198, 51, 100, last].into()
    }

    fn host(name: &str) -> Domain {
        name.parse().unwrap()
    }

    #[test]
    fn hosts_of_one_address_take_turns_and_other_addresses_do_not_wait() {
        let mut addresses = Addresses::default();
        for name in ["a.example", "b.example"] {
            addresses.enqueue(address(1), host(name), START);
        }
        addresses.enqueue(address(2), host("c.example"), START + GAP / 2);
        assert_eq!(
            addresses.pop_due(START),
            Some((address(1), host("a.example"), START))
        );
        addresses.start(address(1), START, OWN);
        assert_eq!(addresses.pop_due(START), None);
        assert_eq!(addresses.next_due(), START + GAP / 2);
        assert_eq!(addresses.pop_due(START + GAP).unwrap().1, host("c.example"));
        assert_eq!(addresses.pop_due(START + GAP).unwrap().1, host("b.example"));
        assert_eq!(addresses.next_due(), Time::NEVER);
    }

    #[test]
    fn an_address_is_remembered_until_it_may_be_asked_again() {
        let mut addresses = Addresses::default();
        addresses.start(address(1), START, OWN);
        addresses.enqueue(address(1), host("a.example"), START);
        assert_eq!(addresses.pop_due(START + GAP / 2), None);
        assert!(addresses.pop_due(START + GAP).is_some());
        assert_eq!(addresses.pop_due(START + GAP * 2), None);
        assert_eq!(addresses.len(), 0);
    }

    #[test]
    fn a_granted_interval_takes_the_place_of_the_delay() {
        let mut addresses = Addresses::default();
        for name in ["a.example", "b.example", "c.example"] {
            addresses.enqueue(address(1), host(name), START);
        }
        assert_eq!(addresses.wishes(START), [], "the first request is free");
        addresses.pop_due(START).unwrap();
        addresses.start(address(1), START, RING);
        let wished = addresses.wishes(START);
        let wanted = Duration::from_millis(2500);
        assert_eq!(
            wished,
            [AddressWish {
                address: address(1),
                wanted
            }]
        );
        assert_eq!(addresses.wishes(START), [], "it is asked once");
        assert!(addresses.next_due() > START + GAP * 3);
        let (interval, term) = (GAP * 3, GAP * 120);
        addresses.granted(address(1), Some(Grant::Every { interval, term }), START);
        assert_eq!(addresses.next_due(), START + interval);
        let crowd = addresses.expected(address(1), START, GAP);
        assert_eq!(crowd, START + interval * 3);
        assert_eq!(addresses.wishes(START + term / 2).len(), 1, "it is renewed");
    }

    #[test]
    fn a_grant_is_remembered_for_its_term() {
        let mut addresses = Addresses::default();
        addresses.start(address(1), START, RING);
        addresses.enqueue(address(1), host("a.example"), START);
        addresses.wishes(START);
        let (interval, term) = (GAP, GAP * 120);
        addresses.granted(address(1), Some(Grant::Every { interval, term }), START);
        assert!(addresses.pop_due(START + GAP).is_some());
        assert_eq!(addresses.pop_due(START + term / 2), None);
        assert_eq!(addresses.len(), 1);
        assert_eq!(addresses.pop_due(START + term), None);
        assert_eq!(addresses.len(), 0);
        addresses.granted(address(2), None, START);
        assert_eq!(addresses.len(), 0, "an answer makes no address known");
    }

    #[test]
    fn a_crowded_address_promises_distinct_turns() {
        let mut addresses = Addresses::default();
        (0..10).for_each(|i| addresses.enqueue(address(1), host(&format!("h{i}.example")), START));
        assert_eq!(addresses.expected(address(1), START, GAP), START + GAP * 10);
        let later = START + GAP * 100;
        assert_eq!(
            addresses.promise(address(1), START, later, GAP),
            later + GAP
        );
        assert_eq!(
            addresses.promise(address(1), START, later, GAP),
            later + GAP * 2
        );
    }
}
