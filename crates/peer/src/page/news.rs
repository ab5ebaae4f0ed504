//! The news that the work on pages reports to the crawler.

use crate::page::process::ProcessedPage;
use apoidea_crawl::{Effort, FetchReport, Origin, Outcome, lending::FetchId};
use apoidea_fetch::{ResolveError, RobotsAnswer};
use apoidea_model::{Domain, PageId, PageUrl, PeerId, Pending};
use std::net::IpAddr;

/// Something that the work on pages has found out.
#[derive(Debug)]
pub(crate) enum PageNews {
    /// The address of a domain, or the reason why there is none.
    Resolved {
        domain: Domain,
        address: Result<IpAddr, ResolveError>,
    },
    /// The rules of a site's robots.txt.
    Robots {
        domain: Domain,
        origin: Origin,
        answer: RobotsAnswer,
    },
    /// A fetch is over.
    Fetched {
        report: FetchReport,
        pending: Pending,
    },
    /// A pause came before the request was sent, or the body was lost: the URL is still to be
    /// fetched.
    Unsent(FetchId),
    /// The body of a page that waits for its verdict is on the disk.
    PutAside(PageId),
    /// A fetched page is processed.
    Processed(PageId, Box<ProcessedPage>),
    /// The server has answered a request for another peer.
    BorrowedAnswered,
    /// A fetch for another peer is over.
    Borrowed {
        owner: PeerId,
        fetch: FetchId,
        answer: BorrowedAnswer,
    },
}

/// A fetch that another peer asks for.
#[derive(Debug, Clone)]
pub(crate) enum Borrow {
    /// A page of the owner's queue.
    Page(Pending),
    /// A robots.txt.
    Robots(PageUrl),
}

/// The result of a fetch for another peer.
#[derive(Debug)]
pub(crate) enum BorrowedAnswer {
    /// Of a page.
    Page {
        outcome: Outcome,
        effort: Effort,
        page: Option<Box<ProcessedPage>>,
    },
    /// Of a robots.txt.
    Robots(RobotsAnswer),
    /// Nothing was asked for, or the body was lost.
    Unsent,
}

impl Borrow {
    /// The name that the owner knows the fetch by.
    pub(crate) fn id(&self) -> FetchId {
        match self {
            Borrow::Page(pending) => FetchId::Page(page_id(pending)),
            Borrow::Robots(url) => FetchId::Robots(url.domain()),
        }
    }

    /// The URL to be fetched.
    pub(crate) fn url(&self) -> &PageUrl {
        match self {
            Borrow::Page(pending) => &pending.url,
            Borrow::Robots(url) => url,
        }
    }
}

/// The page at a place of its domain's queue.
pub(crate) fn page_id(pending: &Pending) -> PageId {
    PageId {
        domain: pending.url.domain(),
        slot: pending.slot,
    }
}
