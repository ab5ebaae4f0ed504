//! Fetching for other peers.

use super::{Crawler, Finding, writer::WriteOrder};
use crate::{
    clock::now,
    page::news::{Borrow, BorrowedAnswer},
    swarm::lending::message::{self, LentPage, LoanAnswer, LoanResult},
};
use apoidea_crawl::lending::FetchId;
use apoidea_model::PeerId;
use tokio::sync::oneshot;

impl Crawler {
    /// An owner asks this peer to fetch something; no answer means that there is no time for it.
    pub(super) fn borrow(&mut self, owner: PeerId, borrow: Borrow, reply: oneshot::Sender<()>) {
        let has_time = !self.is_stuck()
            && self.with_load(|load| self.lending.may_borrow(load))
            && self.parts.limits.throttle.wait().is_none()
            && self.is_my_turn_at(&borrow);
        // A bare address may be one of this volunteer's network that nobody here knows to be so. Its
        // owner can ask there itself.
        let is_literal = borrow.url().domain().ip().is_some();
        if has_time && !is_literal && self.parts.admitter.check(borrow.url(), now()).is_ok() {
            self.parts.limits.throttle.start();
            self.lending.on_borrowed();
            let _ = reply.send(());
            tokio::spawn(self.parts.work.clone().fetch_for(owner, borrow));
        }
    }

    /// An owner and its neighbours share the pace of its hosts, as if all of them fetched.
    fn is_my_turn_at(&self, borrow: &Borrow) -> bool {
        let helpers = self.parts.swarm.tenancy.neighbours().len() + 1;
        let helpers = u32::try_from(helpers).unwrap_or(u32::MAX);
        let host = borrow.url().domain();
        self.parts.work.helper_turns.has_come(&host, helpers)
    }

    /// A fetch for another peer is over. The owner is told when the page is on the disk.
    pub(super) async fn return_borrowed(
        &mut self,
        owner: PeerId,
        fetch: FetchId,
        answer: BorrowedAnswer,
    ) {
        let (written, durable) = oneshot::channel();
        let mut order = WriteOrder {
            reply: Some(written),
            ..WriteOrder::default()
        };
        let answer = match answer {
            BorrowedAnswer::Unsent => LoanAnswer::Unsent,
            BorrowedAnswer::Robots(answer) => LoanAnswer::Robots(answer.into()),
            BorrowedAnswer::Page {
                outcome,
                effort,
                page,
            } => {
                let mut lent = None;
                if let Some(page) = page {
                    self.totals.borrowed += 1;
                    self.totals.bytes = self.totals.bytes.saturating_add(page.bytes);
                    let (told, rest) = LentPage::of(&page);
                    if let Err(error) = self.send_out(page.crawl, rest, now()) {
                        self.lending.on_returned();
                        return self.note_trouble(&error);
                    }
                    lent = Some(told);
                    order.records = page.records;
                }
                LoanAnswer::Page {
                    outcome,
                    effort,
                    page: lent,
                }
            }
        };
        let result = LoanResult { fetch, answer };
        self.parts
            .borrowed
            .note(owner, &result, now(), &mut order.commit);
        self.order(order).await;
        let swarm = &self.parts.swarm;
        let (overlay, findings) = (swarm.overlay.clone(), swarm.findings.clone());
        tokio::spawn(async move {
            if durable.await.is_ok() {
                message::report(overlay.as_ref(), owner, result).await;
            }
            // A peer that has stopped takes no more findings.
            let _ = findings.send(Finding::Returned);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        crawler::testing::{EFFORT, TestCrawler, fetch_of, other, pending, processed, url},
        page::news::PageNews,
        swarm::{lending::message::RESULT, orders::SwarmOrder, wire},
    };
    use apoidea_crawl::Outcome;
    use apoidea_model::{Domain, PageUrl};

    /// Does this peer agree to fetch a page of a domain?
    async fn agrees(crawler: &mut TestCrawler, domain: &Domain) -> bool {
        let (reply, mut answer) = oneshot::channel();
        let borrow = Borrow::Page(pending(domain, 0, 1));
        let order = SwarmOrder::Borrow(other(), borrow, reply);
        crawler.order_swarm(order).await;
        answer.try_recv().is_ok()
    }

    /// The results that owners were told.
    fn results(crawler: &TestCrawler) -> Vec<LoanResult> {
        let requests = crawler.ring.requests.lock().unwrap();
        let results = requests.iter().filter(|(_, kind, _)| *kind == RESULT);
        results
            .map(|(_, _, body)| wire::decode(body).unwrap())
            .collect()
    }

    #[tokio::test]
    async fn a_peer_with_time_fetches_for_others_up_to_its_limit() {
        let mut crawler = TestCrawler::in_swarm();
        let foreign = crawler.foreign(0);
        crawler.lending.set_own(2);
        assert!(agrees(&mut crawler, &foreign).await);
        assert!(agrees(&mut crawler, &foreign).await);
        assert!(!agrees(&mut crawler, &foreign).await, "it has enough to do");
        assert_eq!(crawler.lending.borrowed_count(), 2);
    }

    #[tokio::test]
    async fn a_peer_that_rests_or_cannot_write_fetches_for_nobody() {
        let mut crawler = TestCrawler::in_swarm();
        let foreign = crawler.foreign(0);
        crawler.break_disk().await;
        assert!(!agrees(&mut crawler, &foreign).await);
        crawler.mend_disk().await;
        let (_rest, over) = crawler.wish_for_rest().await;
        assert!(!agrees(&mut crawler, &foreign).await);
        over.cancel();
        crawler.come_to_rest();
        assert!(agrees(&mut crawler, &foreign).await);
    }

    #[tokio::test]
    async fn a_bare_address_is_fetched_for_nobody() {
        let mut crawler = TestCrawler::in_swarm();
        for literal in ["93.184.216.34", "[2a00:1450:4001:81b::5]"] {
            let url = PageUrl::parse(&format!("http://{literal}/")).unwrap();
            assert!(!agrees(&mut crawler, &url.domain()).await, "{literal}");
        }
        let named = crawler.foreign(0);
        assert!(agrees(&mut crawler, &named).await);
    }

    #[tokio::test]
    async fn a_domain_that_the_volunteer_refuses_is_fetched_for_nobody() {
        let mut crawler = TestCrawler::in_swarm();
        let foreign = crawler.foreign(0);
        crawler
            .parts
            .admitter
            .refused_by_hand()
            .insert(foreign.clone());
        assert!(!agrees(&mut crawler, &foreign).await);
        let another = crawler.foreign(1);
        assert!(agrees(&mut crawler, &another).await);
    }

    #[tokio::test]
    async fn the_owner_is_told_when_the_page_is_on_the_disk() {
        let mut crawler = TestCrawler::in_swarm();
        let foreign = crawler.foreign(0);
        crawler.ring.answer_with(|_, _, _| Ok(bytes::Bytes::new()));
        assert!(agrees(&mut crawler, &foreign).await);
        let waiting = pending(&foreign, 0, 1);
        crawler
            .tell_page(PageNews::Borrowed {
                owner: other(),
                fetch: fetch_of(&waiting),
                answer: BorrowedAnswer::Page {
                    outcome: Outcome::Page,
                    effort: EFFORT,
                    page: Some(Box::new(processed(&waiting, &[url(&foreign, 7)]))),
                },
            })
            .await;
        crawler.take_turns().await;
        assert_eq!(results(&crawler).len(), 0);
        assert_eq!(crawler.lending.borrowed_count(), 1);
        crawler.write().await;
        let [
            LoanResult {
                fetch,
                answer:
                    LoanAnswer::Page {
                        page: Some(page), ..
                    },
            },
        ] = &results(&crawler)[..]
        else {
            panic!("one page is told");
        };
        assert_eq!((fetch, page.links.len()), (&fetch_of(&waiting), 1));
        assert_eq!(crawler.lending.borrowed_count(), 0);
        assert_eq!(crawler.totals.borrowed, 1);
        assert_eq!(crawler.outbox().len(), 0, "its links are the owner's");
    }
}
