//! Many peers, one crawl: each domain has one owner, and no knowledge is lost with a peer.
//!
//! The crawler decides about the domains of its own arc as if it were alone. Everything that
//! crosses to other peers stands here. Links go to the owners of their domains ([`links`]).
//! Questions about content go to the owner of its hash ([`content`]). Every change to a domain goes
//! to its replicas, and when the ring moves, peers compare replicas and fetch what they lack, in
//! the same way for joins, leaves, crashes and returns ([`replicas`]). A peer with too much to do
//! lends fetches to its neighbours ([`lending`]). Peers whose hosts live at one address share its
//! clock ([`addresses`]). A peer that watches a page asks its owner what has changed ([`watching`]).
//! [`service`] answers the requests of other peers, each of which passes
//! [`rights`] first. A word about what is done is taken from those alone that had the right to do it
//! (`last_owners`).

pub(crate) mod addresses;
pub(crate) mod budgets;
pub(crate) mod content;
mod last_owners;
pub(crate) mod lending;
pub(crate) mod links;
pub(crate) mod orders;
pub(crate) mod replicas;
pub(crate) mod rights;
pub(crate) mod service;
pub(crate) mod tenancy;
#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(not(test), allow(dead_code))]
#[allow(clippy::unwrap_used)]
pub(crate) mod testing;
pub(crate) mod trust;
pub(crate) mod watching;
pub(crate) mod wire;

/// Replicas of a domain and of a content fact, that of the owner among them (Apoidea §2.2 takes R
/// keys k1…kR).
pub const REPLICATION_FACTOR: usize = 3;
