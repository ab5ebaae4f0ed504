//! Which crawl a message belongs to.

use serde::{Deserialize, Serialize};

/// Names a crawl; every crawl message carries one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct CrawlId(pub u64);

impl CrawlId {
    /// The open crawl that all volunteers share.
    pub const OPEN: CrawlId = CrawlId(0);
}
