//! Many peers, one crawl: who crawls what, and how nobody's knowledge is lost with him.
//!
//! The crawler decides about the domains of its own arc as if it were alone; everything that
//! crosses to other peers stands here. Links go to the owners of their domains ([`courier`]),
//! content is asked about where its hash lives ([`ring_index`]), every change to a domain goes to
//! the holders of its copies ([`replication`]), and whenever the ring moves, one way of comparing
//! copies and fetching what is missing ([`settling`], [`sweep`], [`puller`]) serves joins, leaves,
//! crashes and returns alike. Who has too much to do leaves fetches to its neighbours ([`lease`]).
//! [`desk`] answers what other peers ask.

pub(crate) mod change;
pub(crate) mod courier;
pub(crate) mod desk;
pub(crate) mod holdings;
pub(crate) mod lease;
pub(crate) mod orders;
pub(crate) mod puller;
pub(crate) mod replication;
pub(crate) mod ring_index;
pub(crate) mod settling;
pub(crate) mod sweep;
pub(crate) mod tenancy;
pub(crate) mod value;
pub(crate) mod wire;

/// Holders of a domain's state and of a content fact, the owner among them (Apoidea §2.2 takes R
/// keys k1…kR).
pub const COPIES: usize = 3;
