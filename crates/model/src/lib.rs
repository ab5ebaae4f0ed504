//! The nouns every other crate speaks in: keys on the ring, peers, domains, URLs, content hashes,
//! links.
//!
//! Nothing here does I/O, reads a clock or draws a random number. A value of one of these types is
//! valid by construction: whoever holds a [`PageUrl`] need not canonicalise it again.

mod address;
mod content;
mod crawl_id;
mod domain;
mod key;
mod link;
mod page_url;
mod peer_id;
mod pending;
mod time;
mod typescript;

pub use address::{InvalidNetwork, Network, Reach, is_global};
pub use content::ContentHash;
pub use crawl_id::CrawlId;
pub use domain::{Domain, InvalidDomain};
pub use key::{InvalidKey, Key};
pub use link::{Link, LinkBatch, Target};
pub use page_url::{InvalidUrl, PageUrl, UrlHash};
pub use peer_id::PeerId;
pub use pending::{Pending, Slot};
pub use time::Time;
