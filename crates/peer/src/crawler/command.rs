//! The orders of the volunteer to the crawler.

use apoidea_model::{Domain, PageUrl};
use std::collections::BTreeSet;
use tokio::sync::oneshot;

/// An order to the crawler.
#[derive(Debug)]
pub(crate) enum Command {
    /// Admit these URLs; answered when they are durable.
    Seed(
        Vec<PageUrl>,
        oneshot::Sender<Result<SeedReceipt, CommandError>>,
    ),
    /// Change the refused domains; answered with all of them.
    Refusal(
        RefusalChange,
        oneshot::Sender<Result<BTreeSet<Domain>, CommandError>>,
    ),
}

/// The result of adding seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedReceipt {
    /// Seeds that were accepted.
    pub accepted: u64,
    /// Seeds that were refused, with the reason.
    pub refused: Vec<(PageUrl, String)>,
}

/// A change of the domains that this volunteer refuses to crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefusalChange {
    /// Change nothing.
    Ask,
    /// Crawl this domain, and those below it, no more.
    Add(Domain),
    /// Crawl it again, where it is found again.
    Remove(Domain),
}

/// The reason why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CommandError(pub(crate) String);
