//! Links on the wire.

use crate::swarm::{rights::Right, trust::voucher::Seal};
use apoidea_overlay::Kind;
use serde::{Deserialize, Serialize};

/// Links for the owner of their domains.
pub(crate) const LINKS: Kind = Kind::free(0);

/// The right that the sender of each kind needs.
pub(in crate::swarm) const RIGHTS: &[(Kind, Right)] = &[(LINKS, Right::Member)];

/// The owner's answer to a batch of links.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LinksAnswer {
    /// The links are durable, except those at some places of the batch.
    Taken {
        /// These belong to another peer, or it is too early to say.
        declined: Vec<u16>,
        /// These the owner does not want, by its rules.
        dropped: Vec<u16>,
        /// The owner's signature under all others. A peer needs none to itself.
        seal: Option<Seal>,
    },
    /// None was taken: the owner takes no part in the crawl.
    UnknownCrawl,
}
