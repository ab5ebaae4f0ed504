//! Links on their way from the page that mentions them to the peer that owns their domain.

use crate::{CrawlId, PageUrl};
use serde::{Deserialize, Serialize};

/// The kind of document expected behind a URL, which decides how the answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Target {
    /// A page: archived, and its links are followed.
    #[default]
    Page,
    /// A sitemap: only read for the URLs it lists.
    Sitemap,
}

/// A URL to be considered for crawling, with what its finder knows about it. The crawl that it
/// belongs to is told by the container that it travels in; see [`CrawlId`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The page.
    pub url: PageUrl,
    /// Links followed from a seed to get here; 0 for a seed.
    pub depth: u16,
    /// The kind of document expected there.
    pub target: Target,
}

/// Links for one owner, sent when full or old and acknowledged when durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkBatch {
    /// The crawl they belong to.
    pub crawl: CrawlId,
    /// At most [`LinkBatch::MAX_LINKS`].
    pub links: Vec<Link>,
}

impl LinkBatch {
    /// Most links in a batch, so that a full batch of longest URLs still has a bounded size on the
    /// wire.
    pub const MAX_LINKS: usize = 256;
}
