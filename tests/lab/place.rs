//! A place in the lab: a peer or a site of the web, and its address.

use std::net::Ipv4Addr;

/// The second byte of all sites' addresses; below it are those of peers.
const WEB: u8 = 200;
/// Sites by the last byte of their addresses.
const SITES_IN_A_ROW: usize = 250;

/// An end of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A peer, in a network of its own.
    Peer(usize),
    /// An address of the web.
    Site(usize),
}

impl Place {
    /// The address of this place. Each peer has another network, as on the Internet.
    pub fn address(self) -> Ipv4Addr {
        let byte = |number: usize| u8::try_from(number).expect("a lab has few places");
        match self {
            Place::Peer(peer) => {
                assert!(peer + 1 < usize::from(WEB), "a lab has few peers");
                Ipv4Addr::new(10, byte(peer + 1), 0, 1)
            }
            Place::Site(site) => {
                let (row, place) = (site / SITES_IN_A_ROW, site % SITES_IN_A_ROW);
                Ipv4Addr::new(10, WEB, byte(row), byte(place + 1))
            }
        }
    }

    /// The place of an address, if it is one of the lab's.
    pub(super) fn of(address: Ipv4Addr) -> Option<Self> {
        match address.octets() {
            [10, WEB, row, place] if place > 0 => Some(Place::Site(
                usize::from(row) * SITES_IN_A_ROW + usize::from(place) - 1,
            )),
            [10, peer, 0, 1] if (1..WEB).contains(&peer) => {
                Some(Place::Peer(usize::from(peer) - 1))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_an_address_of_its_own() {
        let peers = (0..30).map(Place::Peer);
        for place in peers.chain((0..1000).map(Place::Site)) {
            assert_eq!(Place::of(place.address()), Some(place));
        }
        assert_eq!(Place::of(Ipv4Addr::new(10, 3, 0, 2)), None);
        assert_eq!(Place::of(Ipv4Addr::new(8, 8, 8, 8)), None);
    }
}
