//! Domains that come into memory and leave it.

use super::{
    Crawler,
    admitter::{AdmitError, park},
};
use crate::{clock::now, state_codec::decode_state, swarm::tenancy::Claim};
use apoidea_crawl::{DomainState, Event};
use apoidea_model::{Domain, PageId, Time};
use apoidea_store::Commit;

/// Marks a parked domain as being in memory: a start that finds one knows that the last run was cut
/// off.
pub(super) const RESIDENT: Time = Time::NEVER;

impl Crawler {
    /// Brings domains whose time has come into memory.
    pub(super) fn wake(&mut self, limit: usize, now: Time) -> Result<(), AdmitError> {
        let mut parked = self.parts.store.parked(limit + 1)?;
        let due = parked
            .iter()
            .take(limit)
            .take_while(|(wake, _)| *wake <= now)
            .count();
        let next = parked.get(due).map_or(Time::NEVER, |(wake, _)| *wake);
        parked.truncate(due);
        let mut commit = Commit::new();
        let mut domains = Vec::with_capacity(due);
        for (_, domain) in parked {
            match self.parts.swarm.tenancy.claim(domain.key()) {
                Claim::Owned => {}
                Claim::TakingOver => continue,
                Claim::Foreign => {
                    commit.unpark(&domain);
                    continue;
                }
            }
            let stored = self.parts.store.domain(&domain)?;
            let mut state = stored
                .map(|bytes| decode_state(&domain, &bytes))
                .unwrap_or_default();
            state.bound(now);
            commit.park(&domain, RESIDENT);
            domains.push((domain, state));
        }
        self.parts.store.apply(&commit)?;
        self.parts
            .frontier
            .handle(Event::Woke { domains, next }, now);
        Ok(())
    }

    /// The frontier has let go of a domain.
    pub(super) fn leave_memory(
        &mut self,
        domain: Domain,
        mut state: DomainState,
        wake: Time,
    ) -> Result<(), AdmitError> {
        self.dirty.remove(&domain);
        if wake == Time::NEVER {
            // What is left of the queue waits no more.
            self.parts.admitter.note_left(state.counters.queued);
        }
        if wake == Time::NEVER && state.stopped().is_none() {
            // Its queue is empty. A count that says otherwise was cut off from its page by a crash.
            state.counters.queued = 0;
        }
        let mut commit = Commit::new();
        commit.put_domain(&domain, state.encode());
        if self.pages.has(&domain) {
            self.parking.insert(domain, wake);
            return Ok(self.parts.store.apply(&commit)?);
        }
        self.park_or_release(&mut commit, &domain, wake);
        self.parts.store.apply(&commit)?;
        self.left_memory(&domain);
        Ok(())
    }

    /// A domain whose fetch was not sent goes to the disk until its turn comes again, and at least
    /// until the given time.
    pub(super) fn put_back(&mut self, domain: &Domain, not_before: Time) {
        let Some(state) = self.parts.frontier.release(domain) else {
            return;
        };
        self.dirty.remove(domain);
        let mut commit = Commit::new();
        commit.put_domain(domain, state.encode());
        if let Err(error) = self.parts.store.apply(&commit) {
            self.note_trouble(&error.into());
        }
        self.parking
            .insert(domain.clone(), state.ready_at().max(not_before));
    }

    /// A page is out of processing without a result; it stays in its queue.
    pub(super) fn end_page(&mut self, page: &PageId) {
        self.pages.end(page);
        self.park_if_at_rest(&page.domain);
    }

    /// Parks a domain that has left memory, once none of its pages is in processing.
    pub(super) fn park_if_at_rest(&mut self, domain: &Domain) {
        if !self.pages.has(domain) {
            self.park_now(domain);
        }
    }

    pub(super) fn park_now(&mut self, domain: &Domain) {
        let Some(wake) = self.parking.remove(domain) else {
            return;
        };
        let mut commit = Commit::new();
        self.park_or_release(&mut commit, domain, wake);
        match self.parts.store.apply(&commit) {
            Ok(()) => {
                self.parts.frontier.handle(Event::Parked { wake }, now());
                self.left_memory(domain);
            }
            Err(error) => {
                self.parking.insert(domain.clone(), wake);
                self.note_trouble(&error.into());
            }
        }
    }

    /// Parks a domain, unless another peer owns it now.
    fn park_or_release(&self, commit: &mut Commit, domain: &Domain, wake: Time) {
        match self.parts.swarm.tenancy.claim(domain.key()) {
            Claim::Foreign => commit.unpark(domain),
            Claim::Owned | Claim::TakingOver => park(commit, domain, wake),
        }
    }

    /// Nothing of a domain is under way any more.
    fn left_memory(&mut self, domain: &Domain) {
        if self.is_foreign(domain) {
            self.release_done();
        }
        self.adopt_if_waiting(domain);
    }

    /// Is the domain in memory, or a page of it in processing?
    pub(super) fn is_under_way(&self, domain: &Domain) -> bool {
        self.parts.frontier.is_resident(domain)
            || self.pages.has(domain)
            || self.parking.contains_key(domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawler::testing::{TestCrawler, url};
    use apoidea_crawl::Outcome;
    use std::time::Duration;

    #[tokio::test]
    async fn a_domain_in_memory_is_marked_so_that_a_crash_is_noticed() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        crawler.admit(&[url(&here, 0)]);
        assert!(crawler.store().wake(&here).unwrap().unwrap() < RESIDENT);
        crawler.pump();
        assert_eq!(crawler.store().wake(&here).unwrap(), Some(RESIDENT));
    }

    #[tokio::test]
    async fn a_domain_is_parked_only_when_its_last_page_is_durable() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.processed(&pending, &[]).await;
        crawler.pump();
        assert!(!crawler.parts.frontier.is_resident(&here));
        assert_eq!(crawler.store().wake(&here).unwrap(), Some(RESIDENT));
        assert!(crawler.is_under_way(&here));
        crawler.write().await;
        assert_eq!(crawler.store().wake(&here).unwrap(), None, "it has no URL");
        assert!(!crawler.is_under_way(&here));
    }

    #[tokio::test]
    async fn a_url_that_comes_while_its_domain_leaves_memory_wakes_it_in_time() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.fetched(&pending, Outcome::Page).await;
        crawler.pump();
        crawler.admit(&[url(&here, 1)]);
        crawler.pump();
        let is_resident = crawler.parts.frontier.is_resident(&here);
        assert!(!is_resident, "its first page could be fetched twice");
        let page = crate::crawler::testing::processed(&pending, &[]);
        let id = crate::page::news::page_id(&pending);
        let news = crate::page::news::PageNews::Processed(id, Box::new(page));
        crawler.tell_page(news).await;
        crawler.write().await;
        crawler.begin(&here).await;
        assert_eq!(crawler.first_under_way(&here).url, url(&here, 1));
        assert_eq!(crawler.queue(&here).len(), 1);
    }

    #[tokio::test]
    async fn a_domain_of_another_peer_is_not_woken() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        crawler.admit(&[url(&own, 0)]);
        crawler.lose_everything();
        crawler.pump();
        assert!(!crawler.parts.frontier.is_resident(&own));
        assert_eq!(crawler.store().wake(&own).unwrap(), None);
        assert_eq!(crawler.queue(&own).len(), 1, "it is a replica now");
    }

    #[tokio::test]
    async fn a_domain_that_others_may_know_better_is_not_woken_yet() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        crawler.admit(&[url(&own, 0)]);
        let tenancy = crawler.parts.swarm.tenancy.clone();
        tenancy.begin_taking_over(TestCrawler::everything(), None);
        crawler.pump();
        assert!(!crawler.parts.frontier.is_resident(&own));
        assert!(crawler.store().wake(&own).unwrap().is_some());
    }

    #[tokio::test]
    async fn a_fetch_that_was_not_sent_goes_back_until_its_time() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 2).await;
        let later = now() + Duration::from_secs(20);
        let fetch = crate::crawler::testing::fetch_of(&pending);
        crawler.return_to_queue(&fetch, later);
        assert_eq!(crawler.parts.frontier.fetching(), 0);
        assert_eq!(crawler.queue(&here).len(), 2);
        assert_eq!(crawler.store().wake(&here).unwrap(), Some(later));
        assert_eq!(crawler.stage(&pending), None);
    }
}
