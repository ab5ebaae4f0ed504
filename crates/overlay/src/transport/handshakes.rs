//! Handshakes under way: few at a time, and only some of them from one neighbourhood, so that
//! newcomers who never finish theirs cannot keep everyone else out.

use super::{Limits, gate::Neighbourhood, lock};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex},
};

/// How the door stands when a newcomer knocks.
#[derive(Debug)]
pub(crate) enum Door {
    /// Come in.
    Open(Handshake),
    /// Prove your address first: many are at the door.
    Ajar,
    /// No room.
    Shut,
}

/// All handshakes under way.
#[derive(Debug, Default)]
pub(crate) struct Handshakes(Arc<Mutex<HashMap<Neighbourhood, usize>>>);

/// One of them, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Handshake {
    all: Arc<Mutex<HashMap<Neighbourhood, usize>>>,
    home: Neighbourhood,
}

/// What is known about a newcomer's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Address {
    /// It has received a packet there.
    Proven,
    /// It says so.
    Claimed,
}

impl Handshakes {
    /// May a newcomer from here begin its handshake?
    pub fn begin(&self, from: IpAddr, address: Address) -> Door {
        let home = Neighbourhood::of(from);
        let mut all = lock(&self.0);
        let total: usize = all.values().sum();
        let here = all.get(&home).copied().unwrap_or_default();
        if total >= Limits::HANDSHAKES || here >= Limits::HANDSHAKES_PER_NEIGHBOURHOOD {
            return Door::Shut;
        }
        if total >= Limits::HANDSHAKES_UNDER_LOAD && address == Address::Claimed {
            return Door::Ajar;
        }
        *all.entry(home).or_default() += 1;
        Door::Open(Handshake {
            all: self.0.clone(),
            home,
        })
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        if let Some(count) = all.get_mut(&self.home) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.home);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn ip(home: u8, host: u8) -> IpAddr {
        Ipv4Addr::new(9, 9, home, host).into()
    }

    #[test]
    fn one_neighbourhood_cannot_take_all_handshakes() {
        let handshakes = Handshakes::default();
        let mut held = Vec::new();
        for host in 0..Limits::HANDSHAKES_PER_NEIGHBOURHOOD as u8 {
            let Door::Open(handshake) = handshakes.begin(ip(1, host), Address::Proven) else {
                panic!("{host}")
            };
            held.push(handshake);
        }
        assert!(matches!(
            handshakes.begin(ip(1, 200), Address::Proven),
            Door::Shut
        ));
        assert!(matches!(
            handshakes.begin(ip(2, 1), Address::Proven),
            Door::Open(_)
        ));
        held.pop();
        assert!(matches!(
            handshakes.begin(ip(1, 200), Address::Proven),
            Door::Open(_)
        ));
    }

    #[test]
    fn under_load_only_proven_addresses_come_in() {
        let handshakes = Handshakes::default();
        let knock = |n: u8, address| handshakes.begin(ip(n, 1), address);
        let mut held: Vec<_> = (0..Limits::HANDSHAKES_UNDER_LOAD as u8)
            .map(|n| knock(n, Address::Claimed))
            .collect();
        assert!(held.iter().all(|door| matches!(door, Door::Open(_))));
        assert!(matches!(knock(100, Address::Claimed), Door::Ajar));
        while held.len() < Limits::HANDSHAKES {
            held.push(knock(held.len() as u8, Address::Proven));
        }
        assert!(held.iter().all(|door| matches!(door, Door::Open(_))));
        assert!(matches!(knock(200, Address::Proven), Door::Shut));
        held.clear();
        assert!(
            lock(&handshakes.0).is_empty(),
            "nothing is remembered of those who are through"
        );
    }
}
