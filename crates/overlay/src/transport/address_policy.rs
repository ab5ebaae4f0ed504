//! The addresses that may be dialled. A stranger who names an address in a volunteer's home network
//! must not make this peer send packets there.

use apoidea_model::{Route, is_global};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The addresses supplied by other peers that may be dialled. Addresses that the user configured
/// always may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressPolicy {
    /// Only those of the open Internet.
    #[default]
    Global,
    /// Private and loopback ones too: the network is one company's, one home's or one test's.
    Private,
}

impl AddressPolicy {
    /// Whether this address may be dialled.
    pub fn allows(self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let is_a_host = address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast();
        is_a_host && (self == AddressPolicy::Private || is_global(ip))
    }

    /// Whether this route may be dialled. A relay is a peer of its own, whose address is judged
    /// when the relay is dialled.
    pub fn allows_route(self, route: Route) -> bool {
        route.address().is_none_or(|address| self.allows(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_networks_are_only_dialled_in_a_private_network() {
        for inner in [
            "127.0.0.1:1",
            "10.0.0.1:1",
            "192.168.1.1:1",
            "[::1]:1",
            "[fe80::1]:1",
            "[::ffff:10.0.0.1]:1",
        ] {
            let inner = inner.parse().unwrap();
            assert!(!AddressPolicy::Global.allows(inner), "{inner}");
            assert!(AddressPolicy::Private.allows(inner), "{inner}");
        }
        assert!(AddressPolicy::Global.allows("1.1.1.1:1".parse().unwrap()));
    }

    #[test]
    fn what_is_no_host_is_never_dialled() {
        for nowhere in [
            "1.1.1.1:0",
            "0.0.0.0:1",
            "[::]:1",
            "224.0.0.1:1",
            "[ff02::1]:1",
        ] {
            assert!(
                !AddressPolicy::Private.allows(nowhere.parse().unwrap()),
                "{nowhere}"
            );
        }
    }
}
