//! The networks that this computer is in, as far as their addresses look like those of the Internet.
//!
//! An interface tells its network: the neighbours that are reached without a router. A provider
//! gives an IPv6 customer at least a /64, often a /56 (RFC 6177), of which the interface shows one
//! part; so the address that others see stands for its /56. Behind a translating router the
//! address that others see is the router's own. A router is in the network of an interface, so it
//! needs no question of its own.

use apoidea_model::{AddressRange, is_global};
use if_addrs::IfAddr;
use std::net::IpAddr;

/// A network of an IPv4 interface has at least so many leading bits; a shorter mask is a mistake
/// that would shut out a part of the web.
const LEAST_PREFIX_V4: u8 = 16;
/// That of an IPv6 interface has so many, and single addresses are of such a network as well.
const PREFIX_V6: u8 = 64;
/// A shorter one is on no link.
const LEAST_PREFIX_V6: u8 = 48;
/// The part of a provider's network that one customer has.
const CUSTOMER_PREFIX_V6: u8 = 56;

/// The networks of all interfaces, and those of the addresses at which others see this computer.
pub fn own_networks(observed: &[IpAddr]) -> Vec<AddressRange> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_else(|error| {
        tracing::debug!(%error, "the interfaces of this computer are not known");
        Vec::new()
    });
    let interfaces = interfaces.iter().map(|interface| match &interface.addr {
        IfAddr::V4(v4) => around_interface(v4.ip.into(), v4.prefixlen),
        IfAddr::V6(v6) => around_interface(v6.ip.into(), v6.prefixlen),
    });
    let observed = observed.iter().copied().map(around_observed);
    let mut networks: Vec<AddressRange> = interfaces
        .chain(observed)
        .filter(|network| is_global(network.first()) || is_global(network.last()))
        .collect();
    networks.sort_unstable();
    networks.dedup();
    networks
}

/// The addresses of all interfaces.
pub fn own_interfaces() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces.iter().map(|interface| interface.ip()).collect()
}

fn around_interface(address: IpAddr, prefix: u8) -> AddressRange {
    let prefix = match address {
        IpAddr::V4(_) => prefix.max(LEAST_PREFIX_V4),
        IpAddr::V6(_) => prefix.clamp(LEAST_PREFIX_V6, PREFIX_V6),
    };
    AddressRange::around(address, prefix)
}

fn around_observed(address: IpAddr) -> AddressRange {
    let address = address.to_canonical();
    let prefix = if address.is_ipv4() {
        32
    } else {
        CUSTOMER_PREFIX_V6
    };
    AddressRange::around(address, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_stands_for_its_link() {
        for (address, prefix, network) in [
            ("93.184.216.34", 28, "93.184.216.32/28"),
            ("93.184.216.34", 32, "93.184.216.34/32"),
            ("93.184.216.34", 0, "93.184.0.0/16"),
            ("2a00:1:2:3::5", 64, "2a00:1:2:3::/64"),
            ("2a00:1:2:3::5", 128, "2a00:1:2:3::/64"),
            ("2a00:1:2:3::5", 60, "2a00:1:2::/60"),
            ("2a00:1:2:3::5", 0, "2a00:1:2::/48"),
        ] {
            let around = around_interface(address.parse().unwrap(), prefix);
            assert_eq!(around.to_string(), network, "{address}/{prefix}");
        }
    }

    #[test]
    fn addresses_that_others_see_are_own_ones_and_special_ones_need_no_mention() {
        let observed = ["93.184.216.34", "2a00:1:2:3::5", "192.168.1.1", "::1"];
        let observed = observed.map(|address| address.parse().unwrap());
        let networks = own_networks(&observed);
        for network in ["93.184.216.34/32", "2a00:1:2::/56"] {
            assert!(networks.contains(&network.parse().unwrap()), "{networks:?}");
        }
        assert!(
            !networks.iter().any(AddressRange::is_special),
            "{networks:?}"
        );
    }
}
