//! The addresses that resident hosts live at, each with the hosts that wait for their turn.
//!
//! An address may be asked once in a while whatever the host; so the addresses are ordered by the
//! time at which both the address and its first host are ready, and a crowded address costs no more
//! than a lonely one.

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
    /// The time at which it may be asked again.
    next: Time,
    /// Up to when turns were promised to hosts that found it crowded.
    promised: Time,
    /// Waiting hosts, by when they may be asked.
    hosts: BinaryHeap<Reverse<(Time, Domain)>>,
    /// Its key in `order` or `idle`.
    key: Time,
}

/// Turns are promised at most so far ahead.
const PROMISE_MAX: Duration = Duration::from_secs(24 * 3600);

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

    /// A request to the address begins: the next may follow after `gap`.
    pub(super) fn start(&mut self, address: IpAddr, now: Time, gap: Duration) {
        self.change(address, |known| known.next = known.next.max(now + gap));
    }

    /// The turn of a host that begins to wait now.
    pub(super) fn expected(&self, address: IpAddr, now: Time, gap: Duration) -> Time {
        self.known.get(&address).map_or(now, |known| {
            let waiting = u32::try_from(known.hosts.len()).unwrap_or(u32::MAX);
            known.next.max(now) + gap.saturating_mul(waiting)
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
            Some(Reverse((ready, _))) => (&mut self.order, known.next.max(*ready)),
            None => (&mut self.idle, known.next.max(known.promised)),
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

    const GAP: Duration = Duration::from_secs(2);
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
        addresses.start(address(1), START, GAP);
        assert_eq!(addresses.pop_due(START), None);
        assert_eq!(addresses.next_due(), START + GAP / 2);
        assert_eq!(addresses.pop_due(START + GAP).unwrap().1, host("c.example"));
        assert_eq!(addresses.pop_due(START + GAP).unwrap().1, host("b.example"));
        assert_eq!(addresses.next_due(), Time::NEVER);
    }

    #[test]
    fn an_address_is_remembered_until_it_may_be_asked_again() {
        let mut addresses = Addresses::default();
        addresses.start(address(1), START, GAP);
        addresses.enqueue(address(1), host("a.example"), START);
        assert_eq!(addresses.pop_due(START + GAP / 2), None);
        assert!(addresses.pop_due(START + GAP).is_some());
        assert_eq!(addresses.pop_due(START + GAP * 2), None);
        assert_eq!(addresses.len(), 0);
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
