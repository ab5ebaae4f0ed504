//! The catalogue of quirks: each is a host, or a few, that behaves in one unusual way.

use crate::{
    atlas::{Ports, Scheme},
    reply::Reply,
    site::Site,
    truth::Fate,
};
use std::net::{IpAddr, SocketAddr};

/// An unusual way for a host to behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quirk {
    /// robots.txt answers 403, which allows everything.
    RobotsForbidden,
}

/// What a site must know about the web it is part of.
pub(crate) struct Ground {
    pub(crate) ports: Ports,
    /// An address of the web itself.
    pub(crate) here: IpAddr,
    /// Addresses that must never be connected to.
    pub(crate) honeypots: Vec<SocketAddr>,
}

impl Quirk {
    /// Every quirk there is.
    pub const ALL: [Quirk; 1] = [Quirk::RobotsForbidden];

    pub(crate) fn sites(self, ground: &Ground) -> Vec<Site> {
        match self {
            Quirk::RobotsForbidden => {
                vec![Site::new("robots-403", Scheme::Http, ground.ports).robots(Reply::error(403)).page(
                    "/",
                    Fate::Keep,
                    Reply::html("<title>403</title><p>Welcome."),
                )]
            }
        }
    }
}
