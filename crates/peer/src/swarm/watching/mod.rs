//! The conversation about watched pages: a peer wants to be told when something changes.
//!
//! A watch lives in the state of its domain, at the owner ([`apoidea_crawl::Watches`]), and moves
//! with it. The peer that watches asks the owner, which it looks up itself, now and then; the answer
//! brings the changes since it last heard of any. So nobody but the owner can tell of a change. When
//! there is something to hear, the owner sends a nudge, which says no more than that: a false one
//! makes this peer ask the true owner.

pub(in crate::swarm) mod answer;
pub(crate) mod asking;
pub(crate) mod message;
pub(crate) mod tellings;
pub(crate) mod watchlist;
