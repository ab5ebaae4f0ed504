//! A URL waiting in its domain's queue.

use crate::{PageUrl, Target, Time};
use serde::{Deserialize, Serialize};

/// A place in a domain's queue; the smallest is fetched first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// Importance, 0 first. With the breadth-first order this is the depth.
    pub rank: u16,
    /// Order of arrival at this peer, unique within it.
    pub sequence: u64,
}

/// A URL that was admitted and not yet settled. It stays in the queue on disk until its outcome is
/// durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Where in the queue.
    pub slot: Slot,
    /// What to fetch.
    pub url: PageUrl,
    /// Links followed from a seed.
    pub depth: u16,
    /// What is expected there.
    pub target: Target,
    /// Fetches that failed so far.
    pub attempts: u8,
    /// Not to be fetched earlier: a retry waits.
    pub not_before: Time,
}
