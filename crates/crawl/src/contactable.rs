//! Where this peer may connect to: global addresses on the allowed ports, and the operator's own
//! networks.
//!
//! URLs come from strangers and the crawler sits inside someone's home network, so the rule is
//! asked three times: for the URL (an IP literal never reaches the resolver), for every address a
//! name resolves to, and for the address that finally answered.

use apoidea_model::{AddressRange, PageUrl, Reach};
use std::net::IpAddr;

/// The rule.
#[derive(Debug, Clone)]
pub struct Contactable {
    ports: Vec<u16>,
    private: Vec<AddressRange>,
}

/// The contact is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContactRefused {
    /// A port outside the allow-list.
    #[error("port {0} is not among the allowed ports")]
    Port(u16),
    /// Not an address of the public Internet.
    #[error("{0} is not a global address ({1})")]
    Address(IpAddr, &'static str),
}

impl Contactable {
    /// Allows these ports, and the operator's own networks besides the open Internet.
    pub fn new(ports: Vec<u16>, private: Vec<AddressRange>) -> Self {
        Contactable { ports, private }
    }

    /// Refuses a URL whose text tells that it must not be asked for.
    pub fn check_url(&self, url: &PageUrl) -> Result<(), ContactRefused> {
        if !self.ports.contains(&url.port()) {
            return Err(ContactRefused::Port(url.port()));
        }
        url.domain()
            .ip()
            .map_or(Ok(()), |address| self.check_address(address))
    }

    /// Refuses an address that must not be connected to.
    pub fn check_address(&self, address: IpAddr) -> Result<(), ContactRefused> {
        match Reach::of(address) {
            Reach::Global => Ok(()),
            Reach::Special(_) if self.is_private(address) => Ok(()),
            Reach::Special(why) => Err(ContactRefused::Address(address, why)),
        }
    }

    /// Whether an address is in one of the operator's own networks, where the operator sets the
    /// pace.
    pub fn is_private(&self, address: IpAddr) -> bool {
        self.private.iter().any(|network| network.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_literal_addresses_are_told_from_the_url_alone() {
        let rule = Contactable::new(vec![80, 443], vec!["192.168.7.0/24".parse().unwrap()]);
        let check = |url: &str| rule.check_url(&PageUrl::parse(url).unwrap());
        for allowed in [
            "https://a.example/",
            "http://93.184.216.34/",
            "http://192.168.7.9/",
        ] {
            assert_eq!(check(allowed), Ok(()), "{allowed}");
        }
        assert_eq!(
            check("http://a.example:8080/"),
            Err(ContactRefused::Port(8080))
        );
        for refused in ["http://127.0.0.1/", "http://192.168.8.9/", "http://[::1]/"] {
            assert!(
                matches!(check(refused), Err(ContactRefused::Address(..))),
                "{refused}"
            );
        }
    }
}
