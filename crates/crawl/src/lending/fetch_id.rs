//! The name of a fetch, the same for the owner and its helper.

use apoidea_model::{Domain, PageId};
use serde::{Deserialize, Serialize};

/// Something that can be fetched once at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FetchId {
    /// A page of the owner's queue.
    Page(PageId),
    /// The robots.txt of a domain.
    Robots(Domain),
}

impl FetchId {
    /// The domain that is asked.
    pub fn domain(&self) -> &Domain {
        match self {
            FetchId::Page(page) => &page.domain,
            FetchId::Robots(domain) => domain,
        }
    }

    /// Is it a page?
    pub fn is_page(&self) -> bool {
        matches!(self, FetchId::Page(_))
    }
}
