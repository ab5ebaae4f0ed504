//! The conversation about lent fetches: an owner with too much to do asks a neighbour to fetch for it
//! (the owner "fetches itself, or leases": Apoidea §2.1, PIER's redirect).
//!
//! The owner keeps the queue, the politeness clock and the seen log, and so the last word on when a
//! host is asked. The helper only fetches, keeps the page in its own archive, and brings the links
//! back when it has it there.

pub(in crate::swarm) mod answer;
pub(crate) mod borrowed;
pub(crate) mod message;
