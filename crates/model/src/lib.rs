//! The nouns every other crate speaks in: keys on the ring, peers, domains, URLs, content hashes,
//! links.
//!
//! Nothing here does I/O, reads a clock or draws a random number. A value of one of these types is
//! valid by construction: a holder of a [`PageUrl`] need not canonicalise it again.

mod address;
mod change_history;
mod content;
mod content_mark;
mod crawl_id;
mod domain;
mod key;
mod link;
mod page_id;
mod page_url;
mod peer_id;
mod pending;
mod route;
mod time;
mod translator;
mod typescript;
mod validators;
mod visit;

pub use address::{AddressRange, InvalidNetwork, Reach, is_global};
pub use change_history::{ChangeHistory, PageChange};
pub use content::ContentHash;
pub use content_mark::{ContentMark, TextHash};
pub use crawl_id::{CrawlId, UnknownCrawl};
pub use domain::{Domain, InvalidDomain};
pub use key::{InvalidKey, Key};
pub use link::{Link, LinkBatch, Target};
pub use page_id::PageId;
pub use page_url::{InvalidUrl, PageUrl, UrlHash};
pub use peer_id::PeerId;
pub use pending::{Pending, Slot};
pub use route::{InvalidRoute, Route};
pub use time::Time;
pub use translator::Translator;
pub use validators::{ETag, InvalidValidator, LastModified, Validators};
pub use visit::{PreviousVisit, Visit};
