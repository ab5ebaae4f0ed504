//! Handshakes under way: few at a time, and only some of them from one origin. Newcomers who never
//! finish theirs cannot keep everyone else out, and those who only claim an address cannot keep out
//! those who have it.

use super::{Limits, origin::Origin};
use crate::lock::lock;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

/// The answer to a newcomer who knocks.
#[derive(Debug)]
pub(crate) enum Door {
    /// The handshake may begin.
    Open(Handshake),
    /// The newcomer must prove its address first: many are at the door, or many claim to come from
    /// there.
    Ajar,
    /// There is no room.
    Shut,
}

/// All handshakes under way.
#[derive(Debug, Default)]
pub(crate) struct Handshakes(Arc<Mutex<Counts>>);

type Counts = HashMap<(Origin, AddressProof), usize>;

/// One of them, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Handshake {
    all: Arc<Mutex<Counts>>,
    of: (Origin, AddressProof),
}

/// The evidence for a newcomer's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AddressProof {
    /// The newcomer has received a packet there.
    Proven,
    /// The newcomer only says so.
    Claimed,
}

impl Handshakes {
    /// Begins the handshake of a newcomer, if there is room for it.
    pub fn begin(&self, origin: Origin, address: AddressProof) -> Door {
        let mut all = lock(&self.0);
        let total: usize = all.values().sum();
        let of = (origin, address);
        let here = all.get(&of).copied().unwrap_or_default();
        let is_crowded = here >= Limits::HANDSHAKES_PER_ORIGIN;
        match address {
            AddressProof::Claimed if is_crowded || total >= Limits::HANDSHAKES_UNDER_LOAD => {
                return Door::Ajar;
            }
            AddressProof::Proven if is_crowded || total >= Limits::HANDSHAKES => {
                return Door::Shut;
            }
            AddressProof::Claimed | AddressProof::Proven => {}
        }
        *all.entry(of).or_default() += 1;
        Door::Open(Handshake {
            all: self.0.clone(),
            of,
        })
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        if let Some(count) = all.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::{Key, PeerId, Route};
    use std::net::Ipv4Addr;

    fn ip(home: u8, host: u8) -> Origin {
        Origin::at(Ipv4Addr::new(9, 9, home, host).into())
    }

    #[test]
    fn one_origin_cannot_take_all_handshakes() {
        let handshakes = Handshakes::default();
        let mut held = Vec::new();
        for host in 0..Limits::HANDSHAKES_PER_ORIGIN as u8 {
            let Door::Open(handshake) = handshakes.begin(ip(1, host), AddressProof::Proven) else {
                panic!("{host}")
            };
            held.push(handshake);
        }
        assert!(matches!(
            handshakes.begin(ip(1, 200), AddressProof::Proven),
            Door::Shut
        ));
        assert!(matches!(
            handshakes.begin(ip(2, 1), AddressProof::Proven),
            Door::Open(_)
        ));
        held.pop();
        assert!(matches!(
            handshakes.begin(ip(1, 200), AddressProof::Proven),
            Door::Open(_)
        ));
    }

    #[test]
    fn claims_do_not_shut_the_door_to_those_who_have_the_address() {
        let handshakes = Handshakes::default();
        let mut held = Vec::new();
        while let Door::Open(claim) = handshakes.begin(ip(1, 1), AddressProof::Claimed) {
            held.push(claim);
        }
        for _ in 0..Limits::HANDSHAKES_PER_ORIGIN {
            let door = handshakes.begin(ip(1, 2), AddressProof::Proven);
            let Door::Open(handshake) = door else {
                panic!("{door:?}")
            };
            held.push(handshake);
        }
        let claim = handshakes.begin(ip(1, 1), AddressProof::Claimed);
        assert!(matches!(claim, Door::Ajar));
    }

    #[test]
    fn peers_behind_one_relay_knock_for_themselves() {
        let handshakes = Handshakes::default();
        let id = |n: usize| PeerId::at(Key::hash(n.to_be_bytes()));
        let relay = id(1000);
        let held: Vec<_> = (0..=Limits::HANDSHAKES_PER_ORIGIN)
            .map(|n| Origin::of(id(n), Route::Via { relay }))
            .map(|origin| handshakes.begin(origin, AddressProof::Proven))
            .collect();
        assert!(held.iter().all(|door| matches!(door, Door::Open(_))));
    }

    #[test]
    fn under_load_only_proven_addresses_come_in() {
        let handshakes = Handshakes::default();
        let knock = |n: u8, address| handshakes.begin(ip(n, 1), address);
        let mut held: Vec<_> = (0..Limits::HANDSHAKES_UNDER_LOAD as u8)
            .map(|n| knock(n, AddressProof::Claimed))
            .collect();
        assert!(held.iter().all(|door| matches!(door, Door::Open(_))));
        assert!(matches!(knock(100, AddressProof::Claimed), Door::Ajar));
        while held.len() < Limits::HANDSHAKES {
            held.push(knock(held.len() as u8, AddressProof::Proven));
        }
        assert!(held.iter().all(|door| matches!(door, Door::Open(_))));
        assert!(matches!(knock(200, AddressProof::Proven), Door::Shut));
        held.clear();
        assert!(
            lock(&handshakes.0).is_empty(),
            "nothing is remembered of those who are through"
        );
    }
}
