//! The crawler's inbox: everything that the tasks around it report.

use crate::{crawler::writer::WriterNews, page::news::PageNews, swarm::addresses::asking::Grants};
use apoidea_crawl::lending::FetchId;
use apoidea_model::{Domain, PeerId, Time};

/// A report to the crawler.
#[derive(Debug)]
pub(crate) enum Finding {
    /// News of the work on pages.
    Page(Box<PageNews>),
    /// News of the writing thread.
    Writer(WriterNews),
    /// The links of these outbox records are with their owners.
    Delivered(Vec<u64>),
    /// A round is over. The changes of these domains reached no replica.
    Replicated { unheld: Vec<Domain> },
    /// A helper had no time for a fetch.
    TurnedAway { helper: PeerId, fetch: FetchId },
    /// A helper has taken a fetch, or may have.
    Taken { helper: PeerId, fetch: FetchId },
    /// An owner knows the result of the fetch that this peer did for it, or cannot be told.
    Returned,
    /// A peer that was told of something to hear watches nothing at that domain.
    Unwatched { subscriber: PeerId, domain: Domain },
    /// The clocks of addresses have answered the wishes of the time `asked`, or have not.
    Granted { asked: Time, grants: Grants },
}
