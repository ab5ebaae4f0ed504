//! IPv6 addresses that a gateway turns into IPv4 ones (NAT64), so that what looks like an address of
//! the Internet may be one of the network behind the gateway.
//!
//! Such a gateway has a prefix; the IPv4 address stands in the bits after it (RFC 6052, section
//! 2.2). A network tells its prefix through a name that has only IPv4 addresses: an IPv6 address of
//! it can only come from the gateway (RFC 7050).

use crate::AddressRange;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A gateway that turns the addresses of its prefix into IPv4 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translator {
    prefix: AddressRange,
    /// The bytes of an address that hold the IPv4 address.
    bytes: [usize; 4],
}

/// Lengths of a prefix, and the bytes that hold the IPv4 address then. Byte 8 is always left out.
const FORMS: [(u8, [usize; 4]); 6] = [
    (32, [4, 5, 6, 7]),
    (40, [5, 6, 7, 9]),
    (48, [6, 7, 9, 10]),
    (56, [7, 9, 10, 11]),
    (64, [9, 10, 11, 12]),
    (96, [12, 13, 14, 15]),
];

impl Translator {
    /// The name that has only IPv4 addresses.
    pub const WELL_KNOWN_NAME: &str = "ipv4only.arpa";
    /// Its addresses.
    const WELL_KNOWN: [Ipv4Addr; 2] =
        [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];

    /// The gateways that an IPv6 address of the well-known name tells of; more than one only if it
    /// can be read in two ways.
    pub fn told_by(answer: Ipv6Addr) -> impl Iterator<Item = Translator> {
        FORMS.into_iter().filter_map(move |(length, bytes)| {
            let prefix = AddressRange::around(answer.into(), length);
            let translator = Translator { prefix, bytes };
            let embedded = translator.ipv4_of(answer.into())?;
            Self::WELL_KNOWN.contains(&embedded).then_some(translator)
        })
    }

    /// The IPv4 address that the gateway sends to, if this address is one of its own.
    pub fn ipv4_of(&self, address: IpAddr) -> Option<Ipv4Addr> {
        let IpAddr::V6(v6) = address else {
            return None;
        };
        let octets = v6.octets();
        let embedded = Ipv4Addr::from(self.bytes.map(|at| octets[at]));
        self.prefix.contains(address).then_some(embedded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_by(answer: &str) -> Vec<Translator> {
        Translator::told_by(answer.parse().unwrap()).collect()
    }

    /// The examples of RFC 6052, section 2.4, with another IPv4 address in each.
    #[test]
    fn every_form_of_a_prefix_is_found_and_read() {
        for (answer, address) in [
            ("2a00:db8:c000:aa::", "2a00:db8:c0a8:101::"),
            ("2a00:db8:1c0:0:aa::", "2a00:db8:1c0:a801:1::"),
            ("2a00:db8:122:c000:0:aa00::", "2a00:db8:122:c0a8:1:100::"),
            ("2a00:db8:122:3c0:0:aa::", "2a00:db8:122:3c0:a8:101::"),
            (
                "2a00:db8:122:344:c0:0:aa00::",
                "2a00:db8:122:344:c0:a801:100::",
            ),
            ("2a00:db8:122:344::c000:ab", "2a00:db8:122:344::c0a8:101"),
        ] {
            let found = told_by(answer);
            assert_eq!(found.len(), 1, "{answer}: {found:?}");
            let hidden = found[0].ipv4_of(address.parse().unwrap());
            assert_eq!(hidden, Some(Ipv4Addr::new(192, 168, 1, 1)), "{address}");
            assert_eq!(found[0].ipv4_of("2a01::c0a8:101".parse().unwrap()), None);
            assert_eq!(found[0].ipv4_of("192.168.1.1".parse().unwrap()), None);
        }
    }

    #[test]
    fn an_address_without_the_well_known_one_tells_of_no_gateway() {
        for answer in ["2a00:db8::1", "2a00:db8::c000:ac", "::", "2606:4700::1111"] {
            assert_eq!(told_by(answer), [], "{answer}");
        }
    }
}
