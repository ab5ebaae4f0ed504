//! The running peer: the only place where the crawl's decisions, the store and the network meet.
//!
//! Follow a URL through it: [`crawler`] asks the frontier what may be fetched and starts the work;
//! `page` fetches, judges and processes one page; `content` asks whether it is known; the crawler
//! delivers its links to their domains' `admitter`, and the `writer` makes it all durable. The
//! local API is in `api`.

mod api;
mod clock;
mod config;
mod crawler;
mod deadline;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handle;
mod lock;
mod network;
mod page;
mod peer;
pub mod qr;
mod report;
mod sink;
mod sowing;
mod state_codec;
mod swarm;
#[cfg(test)]
mod typescript;
mod volunteer;

pub use api::history::Hour;
pub use api::journal::{Note, Topic};
pub use api::places::{Country, Whereabouts};
pub use api::{
    API_IDLE, ApiClient, AskError, DomainQuery, FindError, InviteAnswer, InviteContents,
    InviteRequest, JoinRequest, OpenLink, OpenedInvite, RefusalRequest, RefusedSeed, SeedAnswer,
    SeedRequest, SnoozeRequest, StartSeedsRequest, WatchList, WatchRequest,
};
pub use apoidea_fetch::{MAX_BODY_BYTES, PRODUCT_TOKEN, USER_AGENT};
pub use apoidea_governor as governor;
pub use apoidea_overlay::{EntryState, EntryStatus, EntryWay, Invite, LocalDiscovery};
pub use config::{
    ApiConfig, ArchiveConfig, Bounded, Config, ConfigError, Consent, CrawlConfig, NetworkConfig,
    OutOfRange, OverlayChoice, SeedListError, SeedSource,
};
pub use deadline::end_process_within;
pub use handle::{CommandError, Handle, JoinError, Joined, SeedReceipt, Stopped, WatchRefusal};
pub use network::{NetworkError, NetworkState, NetworkStatus};
pub use peer::{API_ADDRESS_FILE, API_TOKEN_FILE, ARCHIVE_FOLDER, Peer, StartError};
pub use report::outcome::{PageOutcome, UnknownOutcome};
pub use report::status::{
    Attention, DomainRow, DomainStatus, Door, Missing, PageEvent, RobotsStatus, Role, State,
    Status, StopReason, Totals, Usage,
};
pub use report::words;
pub use swarm::REPLICATION_FACTOR;
pub use swarm::lending::borrowed::Help;
pub use swarm::trust::standing::{FoundLie, LieKind, Standing};
pub use swarm::watching::watchlist::{
    ChangeKind, InvalidTarget, OwnWatch, USUAL_WATCH, WatchError, WatchStanding, WatchTarget,
    WatchedChange,
};
pub use volunteer::membership::{Membership, MembershipError};
pub use volunteer::preferences_file::{PREFERENCES_FILE, PreferencesError};
pub use volunteer::start_list::{START_LIST_FILE, SeedOrigin, StartSeeds};
pub use volunteer::steward::ChangeError;
