//! The party that limits are counted by.
//!
//! A peer that comes from its own address is counted with its neighbourhood, since one party
//! usually controls many addresses there and can make as many ids as it likes. A relayed peer has
//! no address here: all peers behind a relay would share the relay's. So it is counted by its own
//! id at its relay. The relay vouches for the number of its guests; limiting them is its task.

use apoidea_model::{PeerId, Route};
use std::net::IpAddr;

/// The party that a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// The neighbourhood of the peer's address.
    Direct(Neighbourhood),
    /// The peer itself, at its relay.
    Relayed {
        /// The peer.
        peer: PeerId,
        /// The relay that forwards to it.
        relay: PeerId,
    },
}

/// The /24 of IPv4 addresses or /48 of IPv6 addresses that an address lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Neighbourhood([u8; 6]);

impl Origin {
    /// The origin of a peer that is reached on this route.
    pub fn of(peer: PeerId, route: Route) -> Self {
        match route {
            Route::Direct(address) => Origin::at(address.ip()),
            Route::Via { relay } => Origin::Relayed { peer, relay },
        }
    }

    /// The origin of a newcomer at this address, whose id is not known yet.
    pub fn at(address: IpAddr) -> Self {
        Origin::Direct(Neighbourhood::of(address))
    }
}

impl Neighbourhood {
    /// The neighbourhood of an address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                Neighbourhood([0, 0, 0, a, b, c])
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, ..] = address.octets();
                Neighbourhood([a, b, c, d, e, f])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn peer(name: &str) -> PeerId {
        PeerId::at(Key::hash(name))
    }

    #[test]
    fn a_neighbourhood_of_ipv6_is_a_48() {
        let near = |text: &str| Neighbourhood::of(text.parse::<Ipv6Addr>().unwrap().into());
        assert_eq!(near("2a00:1:2:3::1"), near("2a00:1:2:ffff::2"));
        assert_ne!(near("2a00:1:2::1"), near("2a00:1:3::1"));
        assert_eq!(
            near("::ffff:1.2.3.4"),
            Neighbourhood::of(Ipv4Addr::new(1, 2, 3, 99).into())
        );
    }

    #[test]
    fn direct_peers_of_one_neighbourhood_have_one_origin_whatever_their_ids() {
        let from = |name, text: &str| Origin::of(peer(name), text.parse().unwrap());
        assert_eq!(from("a", "9.1.1.1:1"), from("b", "9.1.1.200:2"));
        assert_ne!(from("a", "9.1.1.1:1"), from("a", "9.1.2.1:1"));
        assert_eq!(
            from("a", "9.1.1.1:1"),
            Origin::at(Ipv4Addr::new(9, 1, 1, 7).into())
        );
    }

    #[test]
    fn peers_behind_one_relay_have_an_origin_each() {
        let at = |name, relay| Origin::of(peer(name), Route::Via { relay: peer(relay) });
        assert_eq!(at("a", "relay"), at("a", "relay"));
        assert_ne!(at("a", "relay"), at("b", "relay"));
        assert_ne!(at("a", "relay"), at("a", "another relay"));
    }
}
