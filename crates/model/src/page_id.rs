//! The name of a page on its way through a peer: its domain and its place in the domain's queue.

use crate::{Domain, Slot};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One URL of one domain's queue, from its admission until its outcome is durable. Slots are unique
/// within a domain, so two visits of the same URL are two pages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PageId {
    /// The domain that the queue belongs to.
    pub domain: Domain,
    /// The place in that queue.
    pub slot: Slot,
}

impl PageId {
    /// Names a place in a domain's queue.
    pub const fn new(domain: Domain, slot: Slot) -> Self {
        PageId { domain, slot }
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Slot { rank, sequence } = self.slot;
        write!(f, "{} #{rank}.{sequence}", self.domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(domain: &str, rank: u16, sequence: u64) -> PageId {
        PageId::new(domain.parse().unwrap(), Slot { rank, sequence })
    }

    #[test]
    fn pages_sort_by_domain_and_then_in_the_order_of_the_queue() {
        let mut pages = [
            page("b.example", 0, 1),
            page("a.example", 2, 1),
            page("a.example", 1, 9),
        ];
        pages.sort();
        assert_eq!(
            pages.map(|page| page.to_string()),
            ["a.example #1.9", "a.example #2.1", "b.example #0.1"]
        );
    }
}
