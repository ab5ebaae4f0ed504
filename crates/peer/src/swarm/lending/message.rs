//! Lent fetches on the wire.

use crate::{
    page::{
        news::Borrow,
        process::{PageKind, ProcessedPage},
        visited::Visited,
    },
    swarm::{rights::Right, wire},
};
use apoidea_crawl::{Access, Effort, Outcome, lending::FetchId};
use apoidea_fetch::RobotsAnswer;
use apoidea_model::{CrawlId, Link, PageUrl, PeerId, Pending, Time};
use apoidea_overlay::{Kind, Overlay, RequestError};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time;

/// "Fetch this for me."
pub(crate) const LOAN: Kind = Kind::free(10);
/// "This is the result of the fetch that you lent me."
pub(crate) const RESULT: Kind = Kind::free(11);

/// The right that the sender of each kind needs.
pub(in crate::swarm) const RIGHTS: &[(Kind, Right)] = &[
    (LOAN, Right::Lend),
    // It must belong to a fetch that was lent to the sender; the crawler knows these.
    (RESULT, Right::Member),
];

/// Hints that are told at most, so that they fit into a frame beside the links.
const MAX_HINTS: usize = 100;

/// Tries to tell an owner a result, and the wait between two of them.
const TRIES: u32 = 5;
const AGAIN: Duration = Duration::from_secs(2);

/// A fetch that is lent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum LoanAsk {
    /// A robots.txt.
    Robots(PageUrl),
    /// A page as it waits in the owner's queue, with its crawl and the visit that is due.
    Page(Box<Pending>),
}

/// The result of a lent fetch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoanResult {
    pub fetch: FetchId,
    pub answer: LoanAnswer,
}

/// The answer that the fetch brought.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LoanAnswer {
    Page {
        outcome: Outcome,
        effort: Effort,
        page: Option<LentPage>,
    },
    Robots(LentRobots),
    /// A pause came before the request was sent.
    Unsent,
}

/// A page that is in the helper's archive.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LentPage {
    pub kind: PageKind,
    pub links: Vec<Link>,
    pub link_count: u64,
    /// The facts for the next visit, which the owner remembers.
    pub visited: Option<Visited>,
    /// Pages that a list says have changed.
    pub hints: Vec<(PageUrl, Time)>,
    pub bytes: u64,
    pub millis: u64,
}

/// The rules of a robots.txt that a helper fetched.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LentRobots {
    access: Access,
    retry_after: Option<Duration>,
    effort: Effort,
}

/// A helper's answer to the wish to lend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoanReply {
    /// It has no time, or certainly does not know of the loan.
    TurnedAway,
    /// It has taken the fetch, or may have: it will tell.
    Taken,
}

/// Asks a helper to fetch.
pub(crate) async fn ask(overlay: &dyn Overlay, helper: PeerId, borrow: Borrow) -> LoanReply {
    let ask = LoanAsk::from(borrow);
    match overlay.request(helper, LOAN, wire::encode(&ask)).await {
        Err(RequestError::Refused(_) | RequestError::Unreachable(_) | RequestError::Busy) => {
            LoanReply::TurnedAway
        }
        _ => LoanReply::Taken,
    }
}

/// Tells the owner the result of a fetch, until it has heard it or seems gone.
pub(crate) async fn report(overlay: &dyn Overlay, owner: PeerId, result: LoanResult) {
    let bytes = wire::encode(&result);
    for _ in 0..TRIES {
        match overlay.request(owner, RESULT, bytes.clone()).await {
            Ok(_) => return,
            Err(error) => tracing::debug!(?owner, %error, "the owner did not hear a result"),
        }
        time::sleep(AGAIN).await;
    }
}

impl LoanAsk {
    /// The crawl that the fetch is for.
    pub(crate) fn crawl(&self) -> CrawlId {
        match self {
            LoanAsk::Robots(_) => CrawlId::OPEN,
            LoanAsk::Page(pending) => pending.crawl,
        }
    }

    /// The fetch as the helper does it.
    pub(crate) fn into_borrow(self) -> Borrow {
        match self {
            LoanAsk::Robots(url) => Borrow::Robots(url),
            LoanAsk::Page(pending) => Borrow::Page(*pending),
        }
    }
}

impl From<Borrow> for LoanAsk {
    fn from(borrow: Borrow) -> Self {
        match borrow {
            Borrow::Robots(url) => LoanAsk::Robots(url),
            Borrow::Page(pending) => LoanAsk::Page(Box::new(pending)),
        }
    }
}

impl From<RobotsAnswer> for LentRobots {
    fn from(answer: RobotsAnswer) -> Self {
        let RobotsAnswer {
            access,
            retry_after,
            effort,
        } = answer;
        LentRobots {
            access,
            retry_after,
            effort,
        }
    }
}

impl From<LentRobots> for RobotsAnswer {
    fn from(lent: LentRobots) -> Self {
        let LentRobots {
            access,
            retry_after,
            effort,
        } = lent;
        RobotsAnswer {
            access,
            retry_after,
            effort,
        }
    }
}

impl LentPage {
    /// A page as the owner is told of it, and the links that do not fit into a frame.
    pub(crate) fn of(page: &ProcessedPage) -> (Self, Vec<Link>) {
        let mut portions = wire::portions(page.links.clone(), usize::MAX).into_iter();
        let links = portions.next().unwrap_or_default();
        let lent = LentPage {
            kind: page.kind,
            links,
            link_count: page.link_count,
            visited: page.visited.clone(),
            hints: page.hints.iter().take(MAX_HINTS).cloned().collect(),
            bytes: page.bytes,
            millis: page.millis,
        };
        (lent, portions.flatten().collect())
    }

    /// The page as if it had been processed here, without records for the archive.
    pub(crate) fn into_processed(self, helper: PeerId, pending: &Pending) -> ProcessedPage {
        ProcessedPage {
            links: self.links,
            link_count: self.link_count,
            records: None,
            url: pending.url.clone(),
            depth: pending.depth,
            target: pending.target,
            crawl: pending.crawl,
            visit: pending.visit.clone(),
            visited: self.visited,
            hints: self.hints,
            changed: None,
            helper: Some(helper),
            bytes: self.bytes,
            millis: self.millis,
            kind: self.kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{TestRing, link, peer, waiting_url};
    use apoidea_overlay::Refusal;
    use bytes::Bytes;
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    };
    use tokio::time::Instant;

    const ME: u8 = 0x20;
    const OTHER: u8 = 0x80;

    fn ring() -> Arc<TestRing> {
        TestRing::new([ME, OTHER].map(peer))
    }

    async fn reply_to(answer: Result<Bytes, RequestError>) -> LoanReply {
        let ring = ring();
        ring.answer_with(move |_, _, _| answer.clone());
        let borrow = Borrow::Page(waiting_url(&ring.domain_of(peer(ME)), 1));
        ask(ring.as_ref(), peer(OTHER), borrow).await
    }

    #[tokio::test]
    async fn a_loan_counts_as_taken_unless_the_helper_certainly_does_not_know_of_it() {
        assert_eq!(reply_to(Ok(Bytes::new())).await, LoanReply::Taken);
        let lost = RequestError::Lost(String::new());
        assert_eq!(reply_to(Err(lost)).await, LoanReply::Taken);
        let late = RequestError::TimedOut(AGAIN);
        assert_eq!(reply_to(Err(late)).await, LoanReply::Taken);
        for error in [
            Refusal::Busy.into(),
            Refusal::NotMine.into(),
            RequestError::Unreachable(String::new()),
            RequestError::Busy,
        ] {
            assert_eq!(reply_to(Err(error)).await, LoanReply::TurnedAway);
        }
    }

    #[test]
    fn a_page_is_lent_with_its_crawl_and_comes_back_the_same() {
        let pending = Pending {
            crawl: CrawlId(7),
            ..waiting_url(&ring().domain_of(peer(ME)), 1)
        };
        let lent = LoanAsk::from(Borrow::Page(pending.clone()));
        let sent: LoanAsk = wire::decode(&wire::encode(&lent)).unwrap();
        assert_eq!(sent.crawl(), CrawlId(7));
        let Borrow::Page(borrowed) = sent.into_borrow() else {
            panic!("a page was lent");
        };
        assert_eq!(borrowed, pending);
    }

    fn result(ring: &TestRing) -> LoanResult {
        LoanResult {
            fetch: FetchId::Robots(ring.domain_of(peer(OTHER))),
            answer: LoanAnswer::Unsent,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_told_until_the_owner_has_heard_it() {
        let (ring, tries) = (ring(), AtomicU32::new(0));
        ring.answer_with(move |_, _, _| match tries.fetch_add(1, Relaxed) {
            0 | 1 => Err(RequestError::Lost(String::new())),
            _ => Ok(Bytes::new()),
        });
        let begun = Instant::now();
        report(ring.as_ref(), peer(OTHER), result(&ring)).await;
        assert_eq!(ring.asked(RESULT), [peer(OTHER); 3]);
        assert_eq!(begun.elapsed(), 2 * AGAIN);
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_is_gone_is_told_a_few_times_only() {
        let ring = ring();
        report(ring.as_ref(), peer(OTHER), result(&ring)).await;
        assert_eq!(ring.asked(RESULT).len(), TRIES as usize);
    }

    #[test]
    fn links_that_do_not_fit_into_a_frame_stay_with_the_helper() {
        let domain = ring().domain_of(peer(ME));
        let links: Vec<Link> = (0..5000).map(|number| link(&domain, number)).collect();
        let pending = waiting_url(&domain, 1);
        let page = ProcessedPage {
            links: links.clone(),
            link_count: 9000,
            records: None,
            url: pending.url.clone(),
            depth: 0,
            target: pending.target,
            crawl: CrawlId::OPEN,
            visit: pending.visit.clone(),
            visited: None,
            hints: Vec::new(),
            changed: None,
            helper: None,
            bytes: 7,
            millis: 8,
            kind: PageKind::New,
        };
        let (lent, rest) = LentPage::of(&page);
        assert!(!rest.is_empty() && wire::plain_bytes(&lent.links) <= wire::FRAME_BYTES + 8);
        let told = lent.into_processed(peer(OTHER), &pending);
        assert_eq!((told.helper, told.link_count), (Some(peer(OTHER)), 9000));
        assert_eq!([told.links, rest].concat(), links);
    }
}
