//! Links of pages that are done, which are not with their owners yet.
//!
//! The replicas learn that a page is done together with such links: an errand. A peer that owns the
//! domain next carries it out. An errand that is carried out twice does no harm.

use super::{Crawler, admitter::AdmitError};
use crate::clock::now;
use apoidea_crawl::{PageLinks, Sent};
use apoidea_model::{PageId, Time};
use apoidea_store::{Commit, Errand};

/// Errands read at a time.
const AT_ONCE: usize = 1000;

impl Crawler {
    /// Makes an errand of the links of a page that are still in the outbox, and gives them.
    pub(super) fn begin_errand(
        &mut self,
        page: &PageId,
        sent: Sent,
    ) -> Result<Option<PageLinks>, AdmitError> {
        let Some(record) = sent.record else {
            return Ok(None);
        };
        let Some(record) = self.parts.store.outbox_record(record)? else {
            return Ok(None);
        };
        let mut commit = Commit::new();
        commit.put_errand(page, record.crawl, &record.links);
        self.parts.store.apply(&commit)?;
        self.pages.send_on_errand(page.clone(), record.sequence);
        Ok(Some(PageLinks {
            slot: page.slot,
            crawl: record.crawl,
            links: record.links,
        }))
    }

    /// The links of these outbox records are with their owners.
    pub(super) fn take_delivered(&mut self, records: &[u64]) {
        let (mut commit, now) = (Commit::new(), now());
        for record in records {
            if let Some(page) = self.pages.delivered(*record) {
                commit.remove_errand(&page);
                self.ledger.note_delivered(page, now);
            }
        }
        if let Err(error) = self.parts.store.apply(&commit) {
            self.note_trouble(&error.into());
        }
    }

    /// Tells of the last delivered pages of a crawl, too.
    pub(super) fn tell_delivered_in_time(&mut self) {
        if self.ledger.is_delivered_due(now()) {
            self.tell_soon();
        }
    }

    /// Carries out what the last owners of this peer's domains have left undone.
    pub(super) fn take_up_errands(&mut self, now: Time) -> Result<(), AdmitError> {
        let mut last: Option<Errand> = None;
        loop {
            let some = self.parts.store.errands(last.as_ref(), AT_ONCE)?;
            let Some(end) = some.last().cloned() else {
                return Ok(());
            };
            last = Some(end);
            let tenancy = self.parts.swarm.tenancy.clone();
            let mine = some
                .into_iter()
                .filter(|errand| tenancy.is_owned(errand.page.domain.key()));
            self.take_up(mine.collect(), now)?;
        }
    }

    /// Puts the links of errands into the outbox, unless they are there already.
    pub(super) fn take_up(&mut self, errands: Vec<Errand>, now: Time) -> Result<(), AdmitError> {
        for Errand { page, crawl, links } in errands {
            if self.pages.is_on_errand(&page) {
                continue;
            }
            match self.send_out(crawl, links, now)? {
                Some(record) => self.pages.send_on_errand(page, record),
                None => self.end_errand(page, now)?,
            }
        }
        Ok(())
    }

    /// Ends an errand with links that no peer would take.
    fn end_errand(&mut self, page: PageId, now: Time) -> Result<(), AdmitError> {
        let mut commit = Commit::new();
        commit.remove_errand(&page);
        self.parts.store.apply(&commit)?;
        self.ledger.note_delivered(page, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        crawler::testing::{At, TestCrawler, link, page, pending, url},
        swarm::orders::SwarmOrder,
    };
    use apoidea_model::{CrawlId, PageUrl, Pending};
    use tokio::sync::oneshot;

    /// A page of the first own domain is durable. One of its links waits for another owner.
    async fn with_outgoing() -> (TestCrawler, Pending, u64) {
        let mut crawler = TestCrawler::in_swarm();
        let (here, foreign) = (crawler.own(0), crawler.foreign(0));
        let pending = crawler.fetching(&here, 2).await;
        crawler.processed(&pending, &[url(&foreign, 6)]).await;
        crawler.write().await;
        let record = crawler.outbox()[0].sequence;
        (crawler, pending, record)
    }

    async fn activate(crawler: &mut TestCrawler) {
        let (reply, _) = oneshot::channel();
        let order = SwarmOrder::Activate(TestCrawler::everything(), reply);
        crawler.order_swarm(order).await;
    }

    #[tokio::test]
    async fn a_page_is_told_together_with_its_links_that_are_not_delivered() {
        let (mut crawler, pending, record) = with_outgoing().await;
        crawler.save().await;
        let told = crawler.told();
        let delta = told.iter().find(|delta| !delta.removes.is_empty()).unwrap();
        assert_eq!(delta.removes, [pending.slot]);
        assert_eq!(delta.errands[0].slot, pending.slot);
        assert_eq!(delta.errands[0].links, crawler.outbox()[0].links);
        assert_eq!(crawler.stage(&pending), Some(At::Errand(record)));
        assert_eq!(crawler.errands()[0].page, page(&pending));
    }

    #[tokio::test]
    async fn an_errand_ends_when_its_links_are_delivered_and_the_replicas_learn_it() {
        let (mut crawler, pending, record) = with_outgoing().await;
        crawler.save().await;
        crawler.told();
        crawler.delivered(record).await;
        assert_eq!(crawler.errands(), []);
        assert_eq!(crawler.stage(&pending), None);
        let here = pending.url.domain();
        crawler.admit(&[url(&here, 9)]);
        crawler.save().await;
        let told = crawler.told();
        assert!(told.iter().any(|delta| delta.delivered == [pending.slot]));
    }

    #[tokio::test]
    async fn links_that_are_delivered_before_their_page_is_told_need_no_errand() {
        let (mut crawler, pending, record) = with_outgoing().await;
        crawler.delivered(record).await;
        crawler.save().await;
        let told = crawler.told();
        assert!(told.iter().any(|delta| delta.removes == [pending.slot]));
        assert!(told.iter().all(|delta| delta.errands.is_empty()));
        assert_eq!((crawler.errands(), crawler.stage(&pending)), (vec![], None));
    }

    #[tokio::test]
    async fn an_errand_survives_a_crash_and_is_carried_out_by_the_next_run() {
        let (mut crawler, pending, record) = with_outgoing().await;
        crawler.save().await;
        let mut crawler = crawler.crash();
        assert_eq!(crawler.errands()[0].page, page(&pending));
        activate(&mut crawler).await;
        let [first, again] = &crawler.outbox()[..] else {
            panic!("its links are sent once more");
        };
        assert_eq!((first.sequence, &first.links), (record, &again.links));
        let again = again.sequence;
        crawler.delivered(record).await;
        assert_eq!(
            crawler.errands().len(),
            1,
            "the last run's record is not known"
        );
        crawler.delivered(again).await;
        assert_eq!(crawler.errands(), []);
    }

    #[tokio::test]
    async fn an_errand_whose_links_are_in_the_outbox_is_not_taken_up_again() {
        let (mut crawler, _, _) = with_outgoing().await;
        crawler.save().await;
        activate(&mut crawler).await;
        activate(&mut crawler).await;
        assert_eq!(crawler.outbox().len(), 1);
    }

    #[tokio::test]
    async fn errands_of_domains_of_others_are_left_to_them() {
        let mut crawler = TestCrawler::in_swarm();
        let foreign = crawler.foreign(0);
        let mut commit = Commit::new();
        let done = page(&pending(&foreign, 0, 1));
        commit.put_errand(&done, CrawlId::OPEN, &[link(&url(&crawler.foreign(1), 6))]);
        crawler.store().apply(&commit).unwrap();
        activate(&mut crawler).await;
        assert_eq!((crawler.outbox().len(), crawler.errands().len()), (0, 1));
    }

    #[tokio::test]
    async fn an_errand_with_links_that_no_peer_would_take_is_over() {
        let mut crawler = TestCrawler::in_swarm();
        let (own, foreign) = (crawler.own(0), crawler.foreign(0));
        let mail = PageUrl::parse(&format!("http://{foreign}:25/")).unwrap();
        let mut commit = Commit::new();
        let done = page(&pending(&own, 0, 1));
        commit.put_errand(&done, CrawlId::OPEN, &[link(&mail)]);
        crawler.store().apply(&commit).unwrap();
        activate(&mut crawler).await;
        assert_eq!((crawler.outbox().len(), crawler.errands()), (0, vec![]));
    }
}
