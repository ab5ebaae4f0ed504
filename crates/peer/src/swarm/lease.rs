//! Fetches that the owner of a domain leaves to a neighbour on the ring, because it has more to do
//! than it may or because its volunteer refuses the domain (the owner "fetches itself, or leases":
//! Apoidea §2.1, PIER's redirect).
//!
//! The owner keeps the queue, the politeness clock and the seen log, and so the last word on when a
//! host is asked. The neighbour only fetches, keeps the page in its own archive, and brings the
//! links back when it has it there.

use super::wire;
use crate::{page::PageSight, process::ProcessedPage, robots_fetch::RobotsAnswer};
use apoidea_crawl::{Access, Effort, Outcome};
use apoidea_model::{Domain, Link, PageUrl, PeerId, Pending, Slot, Target, Time};
use apoidea_overlay::{Overlay, RequestError};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time;

/// How often the owner is told what came of a lease, if it does not answer, and how long to wait in
/// between.
const TRIES: u32 = 5;
const AGAIN: Duration = Duration::from_secs(2);

/// "Fetch this for me."
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LeaseAsk {
    pub url: PageUrl,
    pub what: Leased,
}

/// What is to be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Leased {
    Robots,
    /// The page at this place of the owner's queue.
    Page {
        slot: Slot,
        depth: u16,
        target: Target,
    },
}

/// What came of a lease.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LeaseResult {
    pub domain: Domain,
    pub what: Leased,
    pub answer: LeaseAnswer,
}

/// What came of a fetch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LeaseAnswer {
    Page {
        outcome: Outcome,
        cost: Cost,
        page: Option<LeasedPage>,
    },
    Robots {
        access: Access,
        retry_after: Option<Duration>,
        cost: Cost,
    },
    /// A pause came before anything was asked for.
    Held,
}

impl LeaseAnswer {
    pub(crate) fn of_robots(answer: RobotsAnswer) -> Self {
        let RobotsAnswer {
            access,
            retry_after,
            effort,
        } = answer;
        LeaseAnswer::Robots {
            access,
            retry_after,
            cost: effort.into(),
        }
    }
}

/// What it took.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Cost {
    took: Duration,
    bytes: u64,
}

/// A page that is in the neighbour's archive.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LeasedPage {
    pub sight: PageSight,
    pub links: Vec<Link>,
    pub link_count: u64,
    pub bytes: u64,
    pub millis: u64,
}

impl Leased {
    /// As if it stood in a queue of this peer; none for a robots.txt.
    pub(crate) fn pending(self, url: PageUrl) -> Option<Pending> {
        match self {
            Leased::Robots => None,
            Leased::Page {
                slot,
                depth,
                target,
            } => Some(Pending {
                slot,
                url,
                depth,
                target,
                attempts: 0,
                not_before: Time::ZERO,
            }),
        }
    }
}

impl From<Effort> for Cost {
    fn from(Effort { took, bytes }: Effort) -> Self {
        Cost { took, bytes }
    }
}

impl From<Cost> for Effort {
    fn from(Cost { took, bytes }: Cost) -> Self {
        Effort { took, bytes }
    }
}

/// Has the helper no time, or is it certain that it does not know of the lease?
pub(crate) async fn is_turned_away(overlay: &dyn Overlay, helper: PeerId, ask: &LeaseAsk) -> bool {
    let answer = overlay
        .request(helper, wire::LEASE, wire::encode(ask))
        .await;
    // Whoever did not answer may be at it all the same, and will tell.
    matches!(
        answer,
        Err(RequestError::Refused(_) | RequestError::Unreachable(_) | RequestError::Busy)
    )
}

/// Tells the owner what came of a lease, until it has heard it or seems gone.
pub(crate) async fn report(overlay: &dyn Overlay, owner: PeerId, result: LeaseResult) {
    let bytes = wire::encode(&result);
    for _ in 0..TRIES {
        match overlay.request(owner, wire::LEASED, bytes.clone()).await {
            Ok(_) => return,
            Err(error) => {
                tracing::debug!(?owner, %error, "the owner did not hear what came of a lease")
            }
        }
        time::sleep(AGAIN).await;
    }
}

impl LeasedPage {
    /// What the owner is told of a page, and the links that do not fit into a frame.
    pub(crate) fn of(page: &ProcessedPage, sight: PageSight) -> (Self, Vec<Link>) {
        let mut portions = wire::portions(page.links.clone(), usize::MAX).into_iter();
        let links = portions.next().unwrap_or_default();
        let ProcessedPage {
            link_count,
            bytes,
            millis,
            ..
        } = *page;
        (
            LeasedPage {
                sight,
                links,
                link_count,
                bytes,
                millis,
            },
            portions.flatten().collect(),
        )
    }

    /// As if it had been processed here, without records for the archive.
    pub(crate) fn into_processed(self, url: PageUrl) -> (ProcessedPage, PageSight) {
        let LeasedPage {
            sight,
            links,
            link_count,
            bytes,
            millis,
        } = self;
        (
            ProcessedPage {
                links,
                link_count,
                records: None,
                url,
                bytes,
                millis,
            },
            sight,
        )
    }
}
