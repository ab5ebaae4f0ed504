//! The seat that this peer wants: it follows from its address, and changes with the epoch, with the
//! address, and when another member has it.

use apoidea_chord::{Contact, Prefix, Routes, Seat, Seating};
use apoidea_model::{PeerId, Time};
use rand::{Rng, RngExt};
use std::{net::IpAddr, time::Duration};

/// Time for which a member that moves to another seat stays away: as long as its neighbours ignore
/// one that has said goodbye, and a moment to fetch what it held.
const AWAY: Duration = Duration::from_secs(5);
/// Time after which seats that were taken are tried again.
const TRY_AGAIN: Duration = Duration::from_secs(600);

/// Chooses this peer's seat.
#[derive(Debug)]
pub(crate) struct SeatKeeper {
    seating: Seating,
    number: u8,
    /// The numbers that others have, and when that was found out last.
    taken: [bool; Seat::PER_PREFIX as usize],
    taken_at: Time,
    /// When this peer may take its next seat, while it moves.
    moves_at: Option<Time>,
}

impl SeatKeeper {
    pub fn new(me: PeerId, seating: Seating) -> Self {
        SeatKeeper {
            seating,
            number: Seat::first_number(me),
            taken: Default::default(),
            taken_at: Time::ZERO,
            moves_at: None,
        }
    }

    /// The seat of a peer at these addresses now, which come best first; none where it has none.
    /// IPv4 comes first: prefixes are scarcer there.
    pub fn seat(&mut self, addresses: &[IpAddr], now: Time) -> Option<Seat> {
        if self.seating == Seating::Private {
            return Some(Seat::Free);
        }
        if now.since(self.taken_at) >= TRY_AGAIN {
            self.taken = Default::default();
        }
        let mut prefixes: Vec<Prefix> = addresses.iter().copied().filter_map(Prefix::of).collect();
        prefixes.sort_by_key(|prefix| matches!(prefix, Prefix::V6(_)));
        let is_free = !self.taken[usize::from(self.number)];
        let prefix = prefixes.first().filter(|_| is_free)?;
        Some(self.seating.seat(*prefix, self.number, now))
    }

    /// Another member has the seat: one of the other numbers is next, at random, so that two peers
    /// that gave way to each other do not meet again.
    pub fn lose(&mut self, now: Time, rng: &mut dyn Rng) {
        self.taken[usize::from(self.number)] = true;
        self.taken_at = now;
        let free: Vec<u8> = (0..Seat::PER_PREFIX)
            .filter(|number| !self.taken[usize::from(*number)])
            .collect();
        if !free.is_empty() {
            self.number = free[rng.random_range(0..free.len())];
        }
    }

    /// A member leaves its seat for another.
    pub fn begin_moving(&mut self, now: Time) {
        self.moves_at = Some(now + AWAY);
    }

    /// Whether a move is over now: the next seat may be taken.
    pub fn ends_moving(&mut self, now: Time) -> bool {
        self.moves_at.take_if(|at| *at <= now).is_some()
    }

    /// This peer was told to leave, or to enter: no move is under way any more.
    pub fn stop_moving(&mut self) {
        self.moves_at = None;
    }

    /// The seat that another peer probably has, by an address of it: most have their first number.
    /// Its first answer corrects it.
    pub fn guess(
        &self,
        peer: Contact,
        seen: Option<IpAddr>,
        mine: Option<Prefix>,
        now: Time,
    ) -> Contact {
        if self.seating == Seating::Private || peer.seat() != Seat::Free {
            return peer;
        }
        let told = peer.routes.as_slice().iter();
        let told = told.filter_map(|route| Some(route.address()?.ip()));
        let global = seen.into_iter().chain(told).find_map(Prefix::of);
        let Some(prefix) = global.or(mine) else {
            return peer;
        };
        let number = Seat::first_number(peer.id);
        peer.at(self.seating.seat(prefix, number, now))
    }
}

/// The routes on which a peer is dialled: those in the prefix of its seat, where it can be checked;
/// all if there are none.
pub(crate) fn routes_to(contact: &Contact) -> Routes {
    let Some(prefix) = contact.seat().prefix() else {
        return contact.routes.clone();
    };
    let all = contact.routes.as_slice().iter().copied();
    let is_there = |ip: IpAddr| Prefix::of(ip) == Some(prefix);
    let there = all.filter(|route| {
        route
            .address()
            .is_some_and(|address| is_there(address.ip()))
    });
    let there: Vec<_> = there.collect();
    if there.is_empty() {
        contact.routes.clone()
    } else {
        Routes::new(&there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;
    use rand::{SeedableRng, rngs::StdRng};
    use std::collections::BTreeSet;

    const NOW: Time = Time::from_millis(1_790_000_000_000);

    fn me() -> PeerId {
        PeerId::at(Key::hash("me"))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_seat_follows_from_the_first_global_address_and_ipv4_comes_first() {
        let mut keeper = SeatKeeper::new(me(), Seating::OPEN);
        assert_eq!(keeper.seat(&[], NOW), None);
        assert_eq!(keeper.seat(&[ip("192.168.1.1"), ip("::1")], NOW), None);
        let both = [ip("2a01:4f8:1::1"), ip("5.1.1.1")];
        let seat = keeper.seat(&both, NOW).unwrap();
        assert_eq!(seat.prefix(), Prefix::of(ip("5.1.1.200")));
        let mut friend = SeatKeeper::new(me(), Seating::Private);
        assert_eq!(friend.seat(&both, NOW), Some(Seat::Free));
    }

    #[test]
    fn taken_seats_are_left_one_after_the_other_and_tried_again_later() {
        let mut keeper = SeatKeeper::new(me(), Seating::OPEN);
        let rng = &mut StdRng::seed_from_u64(1);
        let mut seats = BTreeSet::new();
        for _ in 0..Seat::PER_PREFIX {
            let seat = keeper.seat(&[ip("5.1.1.1")], NOW).expect("one is free");
            seats.insert(seat.key(me()));
            keeper.lose(NOW, rng);
        }
        assert_eq!(seats.len(), usize::from(Seat::PER_PREFIX));
        assert_eq!(keeper.seat(&[ip("5.1.1.1")], NOW), None, "all are taken");
        assert!(keeper.seat(&[ip("5.1.1.1")], NOW + TRY_AGAIN).is_some());
    }

    #[test]
    fn a_member_is_dialled_in_the_prefix_of_its_seat() {
        let routes = ["5.1.1.1:1", "[2a01:4f8:1::1]:1"].map(|route| route.parse().unwrap());
        let contact = Contact::new(me(), &routes);
        assert_eq!(routes_to(&contact).as_slice(), routes);
        let v6 = Prefix::of(ip("2a01:4f8:1::1")).unwrap();
        let seated = contact.at(Seating::OPEN.seat(v6, 0, NOW));
        assert_eq!(routes_to(&seated).as_slice(), [routes[1]]);
        let elsewhere = contact.at(Seating::OPEN.seat(Prefix::V4([9, 9, 9]), 0, NOW));
        assert_eq!(routes_to(&elsewhere).as_slice(), routes);
    }
}
