//! Where this peer may connect to: global addresses on the allowed ports, except those of the
//! network that it is in, and the operator's own networks.
//!
//! URLs come from strangers and the crawler sits inside someone's home network, so the rule is
//! asked three times: for the URL (an IP literal never reaches the resolver), for every address a
//! name resolves to, and for the address that finally answered.

use crate::Home;
use apoidea_model::{AddressRange, PageUrl, Reach};
use std::net::IpAddr;

/// The rule.
#[derive(Debug, Clone)]
pub struct Contactable {
    ports: Vec<u16>,
    private: Vec<AddressRange>,
    home: Home,
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
    /// It looks like one, but is of the network that this peer is in.
    #[error("{0} is in this peer's own network {1}")]
    Home(IpAddr, AddressRange),
    /// A gateway of this peer's network would lead elsewhere.
    #[error("a gateway turns {0} into another address: {1}")]
    Translated(IpAddr, Box<ContactRefused>),
}

impl Contactable {
    /// Allows these ports, and the operator's own networks besides the open Internet.
    pub fn new(ports: Vec<u16>, private: Vec<AddressRange>) -> Self {
        Contactable {
            ports,
            private,
            home: Home::default(),
        }
    }

    /// Refuses the network that this peer is in, as far as it is known at the time of the question.
    pub fn outside_of(self, home: Home) -> Self {
        Contactable { home, ..self }
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
            Reach::Global => self.check_home(address),
            Reach::Special(_) if self.is_private(address) => Ok(()),
            Reach::Special(why) => Err(ContactRefused::Address(address, why)),
        }
    }

    fn check_home(&self, address: IpAddr) -> Result<(), ContactRefused> {
        if let Some(network) = self.home.own_network_of(address) {
            return Err(ContactRefused::Home(address, network));
        }
        let mut hidden = self.home.translated(address).into_iter();
        hidden.try_for_each(|hidden| {
            let checked = self.check_address(hidden.into());
            checked.map_err(|why| ContactRefused::Translated(address, Box::new(why)))
        })
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
    use crate::Change;
    use apoidea_model::Translator;

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

    #[test]
    fn the_network_that_the_peer_is_in_is_refused_as_soon_as_it_is_known() {
        let home = Home::default();
        let rule = Contactable::new(vec![80], Vec::new()).outside_of(home.clone());
        let check = |address: &str| rule.check_address(address.parse().unwrap());
        let own = ["93.184.216.34", "2a00:1450:4001:81b::5"];
        for address in own {
            assert_eq!(check(address), Ok(()));
        }
        let networks = ["93.184.216.32/28", "2a00:1450:4001:81b::/64"];
        let networks = || networks.map(|network| network.parse().unwrap()).to_vec();
        assert_eq!(home.set_own(networks()), Change::Moved);
        assert_eq!(home.set_own(networks()), Change::None);
        for address in own {
            assert!(matches!(check(address), Err(ContactRefused::Home(..))));
        }
        for beside in ["93.184.216.48", "2a00:1450:4001:81c::5"] {
            assert_eq!(check(beside), Ok(()));
        }
    }

    #[test]
    fn an_address_behind_a_gateway_is_judged_by_where_the_gateway_leads() {
        let home = Home::default();
        let private = vec!["192.168.7.0/24".parse().unwrap()];
        let rule = Contactable::new(vec![80], private).outside_of(home.clone());
        home.set_translators(Translator::told_by("2a00:1:2:3::c000:aa".parse().unwrap()).collect());
        home.set_own(vec!["93.184.216.34".parse().unwrap()]);
        let check = |address: &str| rule.check_address(address.parse().unwrap());
        for refused in [
            "2a00:1:2:3::c0a8:101",
            "2a00:1:2:3::7f00:1",
            "2a00:1:2:3::5db8:d822",
        ] {
            let checked = check(refused);
            assert!(
                matches!(checked, Err(ContactRefused::Translated(..))),
                "{checked:?}"
            );
        }
        for allowed in [
            "2a00:1:2:3::808:808",
            "2a00:1:2:3::c0a8:709",
            "2a00:1:2:4::c0a8:101",
        ] {
            assert_eq!(check(allowed), Ok(()), "{allowed}");
        }
    }
}
