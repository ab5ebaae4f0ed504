//! A peer's memory on disk: its domains and their queues, the outbox, content facts, and the
//! pages themselves.
//!
//! Two parts that meet in one commit. The [`Store`] is a database of small facts with one atomic,
//! durable [`Commit`] at a time; the [`archive`] is a folder of WARC files. A commit carries the
//! archive's [`archive::Mark`], so that after a crash both tell the same story. This crate knows
//! bytes and order; what a domain's state means, and when to commit, is left to the peer.

pub mod archive;
mod commit;
mod content_facts;
mod domains;
mod due;
mod errands;
mod lock;
mod outbox;
mod pages;
mod parked;
mod private_folder;
mod queue;
mod read_error;
mod seen_log;
mod sent;
mod sites;
mod store;
mod tables;
mod values;

pub use commit::{Commit, CommitError};
pub use content_facts::Fact;
pub use domains::DomainBatches;
pub use errands::Errand;
pub use outbox::OutboxRecord;
pub use pages::{ArchivePlace, Archived, PageRecord, PageStanding};
pub use read_error::ReadError;
pub use seen_log::Seen;
pub use sent::SentBatch;
pub use store::{OpenError, Store, StoreOptions};
