//! The clocks of the addresses that this peer looks after, shared by those that ask it: other
//! peers and this one.

use crate::lock::lock;
use apoidea_crawl::{AddressClock, AddressWish, Grant, Pace, PrivatePace};
use apoidea_model::{Key, PeerId, Time};
use std::{net::IpAddr, sync::Mutex};

/// The clocks.
#[derive(Default)]
pub(crate) struct AddressClocks {
    clock: Mutex<AddressClock>,
    private: PrivatePace,
}

impl AddressClocks {
    /// Nobody has asked yet. Private networks have the pace of this peer's operator.
    pub(crate) fn new(private: PrivatePace) -> Self {
        AddressClocks {
            clock: Mutex::default(),
            private,
        }
    }

    /// A peer's wishes, answered one by one.
    pub(crate) fn ask(&self, peer: PeerId, wishes: &[AddressWish], now: Time) -> Vec<Grant> {
        let mut clock = lock(&self.clock);
        let grants = wishes.iter().map(|wish| {
            let delay = Pace::of(wish.address, &self.private).per_address();
            clock.ask(peer, *wish, delay, now)
        });
        grants.collect()
    }
}

/// An address's place on the ring, which decides who keeps its clock.
pub(crate) fn key(address: IpAddr) -> Key {
    match address {
        IpAddr::V4(address) => Key::hash(address.octets()),
        IpAddr::V6(address) => Key::hash(address.octets()),
    }
}
