//! The conversation about turns at an address: many names may lead to one machine, and all peers
//! together must ask it no faster than one alone.
//!
//! The owner of an address on the ring keeps its clock and divides its requests among the peers
//! that want some (`apoidea_crawl::AddressClock`). A peer asks the owner and its successor, and
//! believes the slower: one that lies, or has just become the owner and knows nothing yet, speeds
//! nobody up.

pub(in crate::swarm) mod answer;
pub(crate) mod asking;
pub(crate) mod clocks;
pub(crate) mod message;
