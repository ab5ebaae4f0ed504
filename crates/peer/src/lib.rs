//! The running peer: the only place where the crawl's decisions, the store and the network meet.
//!
//! Follow a URL through it: [`crawler`] asks the frontier what may be fetched and starts the work;
//! `page` fetches, judges and processes one page; `content` asks whether it is known; the crawler
//! delivers its links to their domains' `admitter`, and the `writer` makes it all durable. The
//! local API is in `api`.

mod absence;
mod admitter;
mod api;
mod aside;
mod body;
mod body_memory;
mod config;
mod content;
mod crawler;
mod deadline;
mod domains;
mod fetch;
mod gate;
mod handle;
mod helped;
mod history;
mod journal;
mod judge;
mod network;
mod page;
mod peer;
mod places;
mod preferences_file;
mod process;
mod processing;
mod rate;
mod reach;
mod recent_links;
mod reporter;
mod resolver;
mod robots_fetch;
mod seen_cache;
mod status;
mod steward;
mod swarm;
mod throttle;
mod trust;
#[cfg(test)]
mod typescript;
mod writer;

pub use api::{
    DomainQuery, OpenLink, RefusalRequest, RefusedSeed, SeedAnswer, SeedRequest, SnoozeRequest,
};
pub use apoidea_governor as governor;
pub use apoidea_overlay::LocalDiscovery;
pub use config::{
    ApiConfig, ArchiveConfig, Bounded, Config, ConfigError, Consent, CrawlConfig, NetworkConfig,
    OutOfRange, OverlayChoice,
};
pub use deadline::end_process_within;
pub use fetch::{MAX_BODY_BYTES, PRODUCT_TOKEN, USER_AGENT};
pub use handle::{Handle, Stopped};
pub use helped::Help;
pub use history::Hour;
pub use journal::{Note, Topic};
pub use network::{NetworkError, NetworkStatus};
pub use peer::{API_ADDRESS_FILE, API_TOKEN_FILE, ARCHIVE_FOLDER, Peer, StartError};
pub use places::{Country, Whereabouts};
pub use preferences_file::{PREFERENCES_FILE, PreferencesError};
pub use status::{DomainRow, PageEvent, Role, State, Status, Totals};
pub use steward::ChangeError;
pub use swarm::COPIES;
