//! The settings that a fetch depends on.

use apoidea_crawl::{Contactable, Home};
use apoidea_model::AddressRange;
use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// What may be contacted, at which pace, and with whose help.
#[derive(Debug, Clone, Default)]
pub struct FetchConfig {
    /// Ports that may be contacted.
    pub ports: Vec<u16>,
    /// Networks that count as the operator's own.
    pub private_networks: Vec<AddressRange>,
    /// The networks around this peer, which are not contacted.
    pub home: Home,
    /// Least time between two requests to one private host.
    pub private_delay: Duration,
    /// Least time between two requests to one private address.
    pub private_address_delay: Duration,
    /// Name servers; empty means those of the system.
    pub dns: Vec<SocketAddr>,
    /// Certificates (PEM) trusted in addition to the system's.
    pub trusted_certificates: Vec<PathBuf>,
}

impl FetchConfig {
    /// The rule about contacts that these settings describe.
    pub fn contactable(&self) -> Contactable {
        let rule = Contactable::new(self.ports.clone(), self.private_networks.clone());
        rule.outside_of(self.home.clone())
    }
}
