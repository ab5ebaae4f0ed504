//! IP addresses of the open Internet, and those that a stranger's URL must never lead to.
//!
//! The crawler sits inside a volunteer's home network, so the table is our own and complete: every
//! range of the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), also those marked
//! globally reachable, since no web site lives there; multicast (RFC 5771, RFC 4291); and all of
//! IPv6 outside 2000::/3, which nobody was given. Who resolves names, and what to do about a
//! refused address, is left to the fetcher.

use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// The networks from which an address can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// From anywhere on the Internet.
    Global,
    /// From somewhere else, or nowhere; what the range is for.
    Special(&'static str),
}

impl Reach {
    /// Looks the address up. An IPv4 address in its IPv6 clothes (`::ffff:a.b.c.d`) is judged by
    /// what it wears them over; addresses that a gateway would translate (NAT64, 6to4, Teredo) are
    /// special whatever they contain.
    pub fn of(address: IpAddr) -> Reach {
        let found = SPECIAL
            .iter()
            .find(|(network, _)| network.contains(address));
        found.map_or(Reach::Global, |&(_, what)| Reach::Special(what))
    }
}

/// Whether an address can be reached from anywhere on the Internet, so that it may be crawled.
pub fn is_global(address: IpAddr) -> bool {
    Reach::of(address) == Reach::Global
}

/// A range of addresses that share their first bits, written `10.0.0.0/8`. A single address is a
/// network of one.
///
/// IPv4 networks contain the IPv4-mapped spelling of their addresses; IPv6 networks never contain
/// IPv4 addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressRange {
    first: IpAddr,
    prefix: u8,
}

/// The text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNetwork {
    /// The part before the slash is no address.
    #[error("{0:?} is not an IP address; a network is written like 10.0.0.0/8 or fd00::/8")]
    Address(String),
    /// The part after the slash is no number of bits.
    #[error("{text:?} is not a prefix length; it must be a number from 0 to {max}")]
    Prefix {
        /// The text as it was written.
        text: String,
        /// Bits of such an address.
        max: u8,
    },
    /// The address has bits set that the prefix leaves open.
    #[error("{written} is an address inside a network; the network itself is {network}")]
    HostBits {
        /// The text as it was written.
        written: String,
        /// The network that was probably meant.
        network: AddressRange,
    },
}

impl AddressRange {
    /// Longest spelling that is looked at: a full IPv6 address ending in dotted form, a slash and
    /// three digits.
    const MAX_CHARS: usize = 49;

    /// Whether the address is in this network.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                (first.to_bits() ^ address.to_bits()) & mask_v4(self.prefix) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                (first.to_bits() ^ address.to_bits()) & mask_v6(self.prefix) == 0
            }
            _ => false,
        }
    }

    /// Whether all of it is special. Only such a network can be somebody's own; one that reaches
    /// into the open Internet cannot be declared private.
    pub fn is_special(&self) -> bool {
        SPECIAL
            .iter()
            .any(|(range, _)| range.prefix <= self.prefix && range.contains(self.first))
    }

    /// The lowest address.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// The highest address.
    pub fn last(&self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => {
                Ipv4Addr::from_bits(first.to_bits() | !mask_v4(self.prefix)).into()
            }
            IpAddr::V6(first) => {
                Ipv6Addr::from_bits(first.to_bits() | !mask_v6(self.prefix)).into()
            }
        }
    }

    /// The network of so many leading bits that an address is in; more bits than an address has
    /// count as all.
    pub fn around(address: IpAddr, prefix: u8) -> Self {
        let prefix = prefix.min(if address.is_ipv4() { 32 } else { 128 });
        let first = match address {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & mask_v4(prefix)).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & mask_v6(prefix)).into(),
        };
        AddressRange { first, prefix }
    }

    /// `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
    fn unmapped(self) -> Self {
        match (self.first.to_canonical(), self.prefix.checked_sub(96)) {
            (first @ IpAddr::V4(_), Some(prefix)) if self.first.is_ipv6() => {
                AddressRange { first, prefix }
            }
            _ => self,
        }
    }
}

const fn mask_v4(prefix: u8) -> u32 {
    if prefix == 0 {
        0
    } else {
        u32::MAX << (32 - prefix)
    }
}

const fn mask_v6(prefix: u8) -> u128 {
    if prefix == 0 {
        0
    } else {
        u128::MAX << (128 - prefix)
    }
}

impl FromStr for AddressRange {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let text = text.trim();
        let (address, prefix) = text
            .split_once('/')
            .map_or((text, None), |(a, p)| (a, Some(p)));
        let shown = |text: &str| text.chars().take(Self::MAX_CHARS).collect::<String>();
        let address: IpAddr = address
            .parse()
            .map_err(|_| InvalidNetwork::Address(shown(address)))?;
        let max = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => max,
            Some(digits) => parse_prefix(digits, max).ok_or_else(|| InvalidNetwork::Prefix {
                text: shown(digits),
                max,
            })?,
        };
        let network = AddressRange::around(address, prefix);
        if network.first != address {
            return Err(InvalidNetwork::HostBits {
                written: shown(text),
                network: network.unmapped(),
            });
        }
        Ok(network.unmapped())
    }
}

fn parse_prefix(digits: &str, max: u8) -> Option<u8> {
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|&prefix| is_number && prefix <= max)
}

impl TryFrom<String> for AddressRange {
    type Error = InvalidNetwork;

    fn try_from(text: String) -> Result<Self, InvalidNetwork> {
        text.parse()
    }
}

impl From<AddressRange> for String {
    fn from(network: AddressRange) -> String {
        network.to_string()
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl fmt::Debug for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const fn v4(octets: [u8; 4], prefix: u8) -> AddressRange {
    let [a, b, c, d] = octets;
    AddressRange {
        first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        prefix,
    }
}

const fn v6(bits: u128, prefix: u8) -> AddressRange {
    AddressRange {
        first: IpAddr::V6(Ipv6Addr::from_bits(bits << (128 - prefix))),
        prefix,
    }
}

/// Every special range, the narrower before the wider so that the reason is the more telling one.
/// IPv6 networks are written as their leading bits alone, cut off after `prefix` bits.
const SPECIAL: &[(AddressRange, &str)] = &[
    (v4([0, 0, 0, 0], 8), "this network (RFC 791)"),
    (v4([10, 0, 0, 0], 8), "private use (RFC 1918)"),
    (
        v4([100, 64, 0, 0], 10),
        "shared by customers of a provider (RFC 6598)",
    ),
    (v4([127, 0, 0, 0], 8), "loopback (RFC 1122)"),
    (v4([169, 254, 0, 0], 16), "link-local (RFC 3927)"),
    (v4([172, 16, 0, 0], 12), "private use (RFC 1918)"),
    (v4([192, 0, 0, 0], 24), "protocol assignments (RFC 6890)"),
    (v4([192, 0, 2, 0], 24), "documentation (RFC 5737)"),
    (v4([192, 31, 196, 0], 24), "AS112 name servers (RFC 7535)"),
    (v4([192, 52, 193, 0], 24), "multicast tunnels (RFC 7450)"),
    (
        v4([192, 88, 99, 0], 24),
        "6to4 relays, deprecated (RFC 7526)",
    ),
    (v4([192, 168, 0, 0], 16), "private use (RFC 1918)"),
    (v4([192, 175, 48, 0], 24), "AS112 name servers (RFC 7534)"),
    (v4([198, 18, 0, 0], 15), "benchmarking (RFC 2544)"),
    (v4([198, 51, 100, 0], 24), "documentation (RFC 5737)"),
    (v4([203, 0, 113, 0], 24), "documentation (RFC 5737)"),
    (v4([224, 0, 0, 0], 4), "multicast (RFC 5771)"),
    (v4([255, 255, 255, 255], 32), "broadcast (RFC 919)"),
    (v4([240, 0, 0, 0], 4), "reserved (RFC 1112)"),
    (v6(0, 128), "unspecified (RFC 4291)"),
    (v6(1, 128), "loopback (RFC 4291)"),
    (v6(0, 96), "IPv4-compatible, deprecated (RFC 4291)"),
    (v6(0xffff_0000, 96), "IPv4-translated (RFC 2765)"),
    (
        v6(0x0064_ff9b_0000_0000_0000_0000, 96),
        "IPv4 behind a translator (RFC 6052)",
    ),
    (
        v6(0x0064_ff9b_0001, 48),
        "IPv4 behind a local translator (RFC 8215)",
    ),
    (v6(0x0100_0000_0000_0000, 64), "discard only (RFC 6666)"),
    (v6(0x0100_0000_0000_0001, 64), "dummy prefix (RFC 9780)"),
    (v6(0x2001_0000, 32), "Teredo (RFC 4380)"),
    (v6(0x2001_0002_0000, 48), "benchmarking (RFC 5180)"),
    (v6(0x2001_0003, 32), "multicast tunnels (RFC 7450)"),
    (v6(0x2001_0004_0112, 48), "AS112 name servers (RFC 7535)"),
    (v6(0x2001_0010 >> 4, 28), "ORCHID, deprecated (RFC 4843)"),
    (v6(0x2001_0020 >> 4, 28), "ORCHIDv2 (RFC 7343)"),
    (
        v6(0x2001_0030 >> 4, 28),
        "drone remote identification (RFC 9374)",
    ),
    (v6(0x2001_0000 >> 9, 23), "protocol assignments (RFC 2928)"),
    (v6(0x2001_0db8, 32), "documentation (RFC 3849)"),
    (v6(0x2002, 16), "6to4 (RFC 3056)"),
    (v6(0x2620_004f_8000, 48), "AS112 name servers (RFC 7534)"),
    (v6(0x3ffe, 16), "6bone, ended (RFC 3701)"),
    (v6(0x3fff_0000 >> 12, 20), "documentation (RFC 9637)"),
    (v6(0x5f00, 16), "segment routing (RFC 9602)"),
    (v6(0xfc00 >> 9, 7), "unique local (RFC 4193)"),
    (v6(0xfe80 >> 6, 10), "link-local (RFC 4291)"),
    (v6(0xfec0 >> 6, 10), "site-local, deprecated (RFC 3879)"),
    (v6(0xff, 8), "multicast (RFC 4291)"),
    (v6(0b000, 3), "not global unicast (RFC 3587)"),
    (v6(0b01, 2), "not global unicast (RFC 3587)"),
    (v6(0b1, 1), "not global unicast (RFC 3587)"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageUrl;

    /// First and last address of every range of both registries and of multicast, each with its
    /// outer neighbour's reach: `+` is global, `-` belongs to another special range.
    const RANGES: &[(&str, &str, &str)] = &[
        ("-", "0.0.0.0 0.255.255.255", "+"),
        ("+", "10.0.0.0 10.255.255.255", "+"),
        ("+", "100.64.0.0 100.127.255.255", "+"),
        ("+", "127.0.0.0 127.255.255.255", "+"),
        ("+", "169.254.0.0 169.254.255.255", "+"),
        ("+", "172.16.0.0 172.31.255.255", "+"),
        ("+", "192.0.0.0 192.0.0.255", "+"),
        ("-", "192.0.0.8 192.0.0.10", "-"),
        ("-", "192.0.0.170 192.0.0.171", "-"),
        ("+", "192.0.2.0 192.0.2.255", "+"),
        ("+", "192.31.196.0 192.31.196.255", "+"),
        ("+", "192.52.193.0 192.52.193.255", "+"),
        ("+", "192.88.99.0 192.88.99.255", "+"),
        ("+", "192.168.0.0 192.168.255.255", "+"),
        ("+", "192.175.48.0 192.175.48.255", "+"),
        ("+", "198.18.0.0 198.19.255.255", "+"),
        ("+", "198.51.100.0 198.51.100.255", "+"),
        ("+", "203.0.113.0 203.0.113.255", "+"),
        ("+", "224.0.0.0 239.255.255.255", "-"),
        ("-", "240.0.0.0 255.255.255.255", "-"),
        ("-", ":: ::1", "-"),
        ("-", "::2 ::ffff:ffff", "-"),
        ("-", "::ffff:0:0:0 ::ffff:0:ffff:ffff", "-"),
        ("-", "64:ff9b:: 64:ff9b::ffff:ffff", "-"),
        ("-", "64:ff9b:1:: 64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "100:: 100::ffff:ffff:ffff:ffff", "-"),
        ("-", "100:0:0:1:: 100::1:ffff:ffff:ffff:ffff", "-"),
        ("+", "2001:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "+"),
        ("-", "2001:1:: 2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "2001:2:: 2001:2:0:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "2001:3:: 2001:3:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "2001:4:112:: 2001:4:112:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "2001:10:: 2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "2001:20:: 2001:2f:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "2001:30:: 2001:3f:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        (
            "+",
            "2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            "+",
        ),
        ("+", "2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "+"),
        (
            "+",
            "2620:4f:8000:: 2620:4f:8000:ffff:ffff:ffff:ffff:ffff",
            "+",
        ),
        ("+", "3ffe:: 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "+"),
        ("+", "4000:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "5f00:: 5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "fc00:: fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "fe80:: febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "fec0:: feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", "ff00:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ("-", ":: 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "+"),
    ];

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// The address so many places away; past either end it stays at the end.
    fn shifted(address: IpAddr, by: i8) -> IpAddr {
        match address {
            IpAddr::V4(a) => {
                Ipv4Addr::from_bits(a.to_bits().saturating_add_signed(by.into())).into()
            }
            IpAddr::V6(a) => {
                Ipv6Addr::from_bits(a.to_bits().saturating_add_signed(by.into())).into()
            }
        }
    }

    #[test]
    fn every_special_range_is_refused_exactly_to_its_ends() {
        for (before, ends, after) in RANGES {
            let (first, last) = ends.split_once(' ').unwrap();
            let (first, last) = (ip(first), ip(last));
            for address in [first, last, shifted(first, 1), shifted(last, -1)] {
                assert!(!is_global(address), "{address} is special");
            }
            for (neighbour, reach) in [(shifted(first, -1), before), (shifted(last, 1), after)] {
                assert_eq!(
                    is_global(neighbour),
                    reach.contains('+'),
                    "{neighbour} next to {first}–{last}"
                );
            }
        }
    }

    #[test]
    fn every_row_of_the_table_is_tested_by_its_ends() {
        let tested = |end: IpAddr| {
            RANGES
                .iter()
                .any(|(_, ends, _)| ends.split(' ').any(|text| ip(text) == end))
        };
        let untested: Vec<_> = SPECIAL
            .iter()
            .filter(|(network, _)| !(tested(network.first()) || tested(network.last())))
            .filter(|(network, _)| network.to_string() != "8000::/1")
            .collect();
        assert!(untested.is_empty(), "{untested:?}");
    }

    #[test]
    fn the_open_internet_is_global() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.215.14",
            "192.0.1.1",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
        ] {
            assert_eq!(Reach::of(ip(text)), Reach::Global, "{text}");
        }
    }

    #[test]
    fn the_reason_names_the_narrowest_range() {
        for (text, what) in [
            ("::ffff:192.168.1.1", "private use (RFC 1918)"),
            ("255.255.255.255", "broadcast (RFC 919)"),
            ("::1", "loopback (RFC 4291)"),
            ("2001:0:4136:e378::1", "Teredo (RFC 4380)"),
            ("64:ff9b::8.8.8.8", "IPv4 behind a translator (RFC 6052)"),
            ("2002:808:808::", "6to4 (RFC 3056)"),
            ("fd00::1", "unique local (RFC 4193)"),
        ] {
            assert_eq!(Reach::of(ip(text)), Reach::Special(what), "{text}");
        }
    }

    #[test]
    fn no_spelling_of_an_inner_address_passes_through_a_url() {
        for host in [
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "127.0.1",
            "0x7f.1",
            "0x7f.0.0.1",
            "0X7F000001",
            "0177.0.0.1",
            "017700000001",
            "2130706433",
            "2130706433.",
            "0",
            "0.0.0.0",
            "127.0x0.00.0001",
            "１２７.０.０.１",
            "127。0。0。1",
            "①②⑦.0.0.1",
            "%31%32%37.0.0.1",
            "127%2e0%2e0%2e1",
            "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1",
            "127.0.0.1%2e",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::FFFF:7F00:0001]",
            "[0:0:0:0:0:ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[::ffff:0:127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "[2002:7f00:1::]",
            "192.168.257",
            "0xc0a80101",
            "0300.0250.1.1",
            "169.254.169.254",
            "2852039166",
            "[fe80::1]",
            "[fd00:ec2::254]",
        ] {
            let url = PageUrl::parse(&format!("http://{host}/"))
                .unwrap_or_else(|e| panic!("{host}: {e}"));
            let address = url
                .domain()
                .ip()
                .unwrap_or_else(|| panic!("{host} became the name {}", url.host()));
            assert!(!is_global(address), "{host} became {address}");
        }
    }

    #[test]
    fn hosts_that_only_look_like_addresses_are_no_urls() {
        for host in [
            "127.0.0.0x100",
            "256.1.1.1",
            "4294967296",
            "1.2.3.4.5",
            "[fe80::1%25eth0]",
            "[::1",
            "127.0.0.09",
        ] {
            assert!(
                PageUrl::parse(&format!("http://{host}/")).is_err(),
                "{host}"
            );
        }
    }

    #[test]
    fn networks_are_read_and_written_in_one_spelling() {
        for (text, canonical) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            (" 127.0.0.1 ", "127.0.0.1/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("FD00:0::/8", "fd00::/8"),
            ("::1", "::1/128"),
            ("::/0", "::/0"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ] {
            assert_eq!(text.parse::<AddressRange>().unwrap().to_string(), canonical);
        }
    }

    #[test]
    fn a_bad_network_says_what_is_wrong_with_it() {
        for (text, complaint) in [
            (
                "home",
                r#""home" is not an IP address; a network is written like 10.0.0.0/8 or fd00::/8"#,
            ),
            (
                "10.0.0.0/33",
                r#""33" is not a prefix length; it must be a number from 0 to 32"#,
            ),
            (
                "fd00::/",
                r#""" is not a prefix length; it must be a number from 0 to 128"#,
            ),
            (
                "10.0.0.0/+8",
                r#""+8" is not a prefix length; it must be a number from 0 to 32"#,
            ),
            (
                "10.1.2.3/8",
                "10.1.2.3/8 is an address inside a network; the network itself is 10.0.0.0/8",
            ),
        ] {
            assert_eq!(
                text.parse::<AddressRange>().unwrap_err().to_string(),
                complaint
            );
        }
    }

    #[test]
    fn a_network_contains_what_lies_between_its_ends() {
        let network: AddressRange = "192.168.4.0/22".parse().unwrap();
        assert_eq!(
            (network.first(), network.last()),
            (ip("192.168.4.0"), ip("192.168.7.255"))
        );
        for (text, inside) in [
            ("192.168.4.0", true),
            ("192.168.7.255", true),
            ("::ffff:192.168.5.1", true),
            ("192.168.8.0", false),
            ("192.168.3.255", false),
            ("::192.168.5.1", false),
        ] {
            assert_eq!(network.contains(ip(text)), inside, "{text}");
        }
        assert!(
            !"::/0"
                .parse::<AddressRange>()
                .unwrap()
                .contains(ip("10.0.0.1"))
        );
    }

    #[test]
    fn only_a_wholly_special_network_can_be_private() {
        for (text, special) in [
            ("192.168.0.0/16", true),
            ("127.0.0.0/8", true),
            ("fd12::/16", true),
            ("0.0.0.0/0", false),
            ("10.0.0.0/7", false),
            ("8.8.8.8", false),
            ("::/0", false),
            ("2000::/3", false),
        ] {
            assert_eq!(
                text.parse::<AddressRange>().unwrap().is_special(),
                special,
                "{text}"
            );
        }
    }
}
