//! The networks around this peer that look like the Internet and are not: those that it is in
//! itself, and those behind a gateway from IPv6 to IPv4.
//!
//! The address of a volunteer's own router, or of a device beside this computer, is often a global
//! one. Firewalls trust the computer inside, so a stranger's URL must not lead there. Clones share
//! one state: the part that watches the network changes it while the crawl runs. How the networks
//! are found out is left to others.

use apoidea_model::{AddressRange, Translator};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, PoisonError, RwLock},
};

/// Networks and gateways that are kept; no computer has as many.
const MAX_NETWORKS: usize = 256;

/// What is known of the networks around this peer.
#[derive(Debug, Clone, Default)]
pub struct Home(Arc<RwLock<Networks>>);

#[derive(Debug, Default)]
struct Networks {
    own: Vec<AddressRange>,
    translators: Vec<Translator>,
}

/// Whether something is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// As before.
    None,
    /// Other networks than before.
    Moved,
}

impl Home {
    /// Replaces the networks that this peer is in.
    pub fn set_own(&self, mut own: Vec<AddressRange>) -> Change {
        own.truncate(MAX_NETWORKS);
        let mut networks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if networks.own == own {
            return Change::None;
        }
        networks.own = own;
        Change::Moved
    }

    /// Replaces the gateways of the network that this peer is in.
    pub fn set_translators(&self, mut translators: Vec<Translator>) {
        translators.truncate(MAX_NETWORKS);
        let mut networks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        networks.translators = translators;
    }

    /// The network of this peer that an address is in.
    pub(crate) fn own_network_of(&self, address: IpAddr) -> Option<AddressRange> {
        let networks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let own = networks.own.iter();
        own.copied().find(|network| network.contains(address))
    }

    /// The IPv4 addresses that the gateways may send to for this address.
    pub(crate) fn translated(&self, address: IpAddr) -> Vec<Ipv4Addr> {
        let networks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let translators = networks.translators.iter();
        translators
            .filter_map(|translator| translator.ipv4_of(address))
            .collect()
    }
}
