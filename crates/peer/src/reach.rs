//! Where this peer may connect to: global addresses on the allowed ports, and the operator's own
//! networks.
//!
//! URLs come from strangers and the crawler sits inside someone's home network, so the answer is
//! asked three times: for the URL (an IP literal never reaches the resolver), for every address a
//! name resolves to, and for the address that finally answered.

use crate::config::CrawlConfig;
use apoidea_model::{Network, PageUrl, Reach};
use std::net::IpAddr;

/// The rule.
#[derive(Debug, Clone)]
pub struct Contactable {
    ports: Vec<u16>,
    private: Vec<Network>,
}

/// Why a contact is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A port outside the allow-list.
    #[error("port {0} is not among the allowed ports")]
    Port(u16),
    /// Not an address of the public Internet.
    #[error("{0} is not a global address ({1})")]
    Address(IpAddr, &'static str),
}

impl Contactable {
    /// The rule that the settings describe.
    pub fn new(config: &CrawlConfig) -> Self {
        Contactable {
            ports: config.ports.clone(),
            private: config.private_networks.clone(),
        }
    }

    /// May this URL be asked for at all, as far as its text tells?
    pub fn check_url(&self, url: &PageUrl) -> Result<(), Refusal> {
        if !self.ports.contains(&url.port()) {
            return Err(Refusal::Port(url.port()));
        }
        url.domain()
            .ip()
            .map_or(Ok(()), |address| self.check_address(address))
    }

    /// May this address be connected to?
    pub fn check_address(&self, address: IpAddr) -> Result<(), Refusal> {
        match Reach::of(address) {
            Reach::Global => Ok(()),
            Reach::Special(_) if self.is_private(address) => Ok(()),
            Reach::Special(why) => Err(Refusal::Address(address, why)),
        }
    }

    /// Is it in one of the operator's own networks, where the operator sets the pace?
    pub fn is_private(&self, address: IpAddr) -> bool {
        self.private.iter().any(|network| network.contains(address))
    }
}
