//! The name of a crawl, and where it is carried.
//!
//! All links of a page belong to the crawl that asked for the page, and no container mixes crawls.
//! So the id stands once per container, and a [`crate::Link`] by itself has none: a
//! [`crate::LinkBatch`] on the wire, a record of the outbox, an errand, and a [`crate::Pending`] in
//! a queue each carry one. The id of the open crawl takes one byte there.

use serde::{Deserialize, Serialize};

/// Names a crawl. Every container of links and every pending URL carries one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct CrawlId(pub u64);

/// This peer takes no part in the crawl, so nothing of it is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this peer takes no part in crawl {:#x}", .0.0)]
pub struct UnknownCrawl(pub CrawlId);

impl CrawlId {
    /// The open crawl that all volunteers share.
    pub const OPEN: CrawlId = CrawlId(0);

    /// Refuses a crawl that this peer takes no part in: every crawl but the open one.
    pub fn check(self) -> Result<(), UnknownCrawl> {
        if self == Self::OPEN {
            Ok(())
        } else {
            Err(UnknownCrawl(self))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_crawl_is_known_and_takes_one_byte() {
        assert_eq!(CrawlId::OPEN.check(), Ok(()));
        assert_eq!(postcard::to_stdvec(&CrawlId::OPEN).unwrap().len(), 1);
    }

    #[test]
    fn another_crawl_is_refused_by_its_name() {
        let refused = CrawlId(0x2a).check().unwrap_err();
        assert_eq!(refused, UnknownCrawl(CrawlId(0x2a)));
        assert!(refused.to_string().contains("0x2a"));
    }
}
