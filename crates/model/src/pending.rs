//! A URL waiting in its domain's queue.

use crate::{CrawlId, Link, PageUrl, Target, Time, Visit};
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
    /// The place in the queue.
    pub slot: Slot,
    /// The page to fetch.
    pub url: PageUrl,
    /// Links followed from a seed.
    pub depth: u16,
    /// The kind of document expected there.
    pub target: Target,
    /// The crawl that asked for it; its links belong to the same one.
    pub crawl: CrawlId,
    /// The first visit of the page, or a later one.
    pub visit: Visit,
    /// Fetches that failed so far.
    pub attempts: u8,
    /// Not to be fetched earlier: a retry waits.
    pub not_before: Time,
}

impl Pending {
    /// A link of a crawl that has just been admitted to a place in its domain's queue.
    pub fn admitted(link: Link, slot: Slot, crawl: CrawlId) -> Self {
        let Link { url, depth, target } = link;
        Pending {
            slot,
            url,
            depth,
            target,
            crawl,
            visit: Visit::First,
            attempts: 0,
            not_before: Time::ZERO,
        }
    }
}
