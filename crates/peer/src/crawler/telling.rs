//! Telling the replicas what changed, round by round.
//!
//! That a page is done is told together with its links that their owners have not acknowledged (an
//! errand). Links to other domains of this peer go one round ahead: the replicas have them before
//! they learn that the page is done. So at any crash a living peer has the page or its links, and
//! no page is fetched again because its links were under way.

use super::{Crawler, admitter::AdmitError, finding::Finding};
use crate::{
    clock::now,
    state_codec::decode_state,
    swarm::replicas::{
        known_pages,
        message::Delta,
        replication::{Replication, ReplicationResult},
    },
};
use apoidea_crawl::{ChangeExtent, DomainChange, PageNote, Round, Sent, Versions};
use apoidea_model::{Domain, PageId, Pending};
use apoidea_store::Commit;
use std::collections::HashSet;
use tokio::sync::oneshot;

impl Crawler {
    /// A URL waits for another try.
    pub(super) fn put_again(
        &mut self,
        domain: &Domain,
        pending: &Pending,
    ) -> Result<(), AdmitError> {
        let mut commit = Commit::new();
        commit.put_pending(domain, pending);
        self.save_soon();
        self.parts.store.apply(&commit)?;
        self.change(domain)?.puts.push(pending.clone());
        Ok(())
    }

    /// A URL is settled without a page.
    pub(super) fn leave_queue(&mut self, page: &PageId, sent: Sent) -> Result<(), AdmitError> {
        self.leave_queue_with(page, sent, Commit::new())
    }

    /// The same, with what else follows.
    pub(super) fn leave_queue_with(
        &mut self,
        page: &PageId,
        sent: Sent,
        mut commit: Commit,
    ) -> Result<(), AdmitError> {
        commit.remove_pending(&page.domain, page.slot);
        self.parts.admitter.note_left(1);
        self.tell_soon();
        self.parts.store.apply(&commit)?;
        self.pages.settle(page, sent);
        Ok(())
    }

    /// More of a domain's state has changed than follows from its queue.
    pub(super) fn note_state(&mut self, domain: &Domain) -> Result<(), AdmitError> {
        self.change(domain)?.extent = ChangeExtent::State;
        Ok(())
    }

    /// The changes to a domain that the replicas do not know yet.
    pub(super) fn change(&mut self, domain: &Domain) -> Result<&mut DomainChange, AdmitError> {
        let (frontier, store) = (&mut self.parts.frontier, &self.parts.store);
        self.dirty.insert(domain.clone());
        self.ledger.change(domain, |tenure| {
            if let Some(step) = frontier.advance(domain, tenure) {
                return Ok(step);
            }
            let stored = store.domain(domain)?;
            let mut state = stored
                .map(|bytes| decode_state(domain, &bytes))
                .unwrap_or_default();
            let step = state.versions.advance(tenure);
            let mut commit = Commit::new();
            commit.put_domain(domain, state.encode());
            store.apply(&commit)?;
            Ok(step)
        })
    }

    /// Begins to send what changed, unless the last round is still under way. Gives whom to tell
    /// when all of it is durable here, too.
    pub(super) fn begin_round(&mut self) -> Option<oneshot::Sender<()>> {
        if !self.ledger.is_round_over() {
            return None;
        }
        let tellable = self.pages.tellable(self.ledger.held());
        self.tell_done(tellable);
        self.tell_delivered();
        // A done page waits for a round also where that has nothing to tell, since all links of the
        // page were known.
        let is_quiet = self.ledger.is_empty() && self.pages.is_all_told();
        if is_quiet && self.unacknowledged.is_empty() {
            return None;
        }
        let round = self.ledger.begin_round()?;
        let deltas = self.deltas(round);
        let unacknowledged = std::mem::take(&mut self.unacknowledged);
        let swarm = &self.parts.swarm;
        let (findings, is_alone) = (swarm.findings.clone(), swarm.tenancy.is_alone());
        let replication = Replication {
            overlay: swarm.overlay.clone(),
            puller: swarm.puller.clone(),
            sweep: swarm.sweep.clone(),
            provenance: swarm.provenance.clone(),
        };
        let (reply, durable) = oneshot::channel();
        tokio::spawn(async move {
            let ReplicationResult { unheld } = match is_alone {
                true => ReplicationResult::default(),
                false => replication.send(deltas).await,
            };
            // A sender repeats links that no peer but this one has.
            let is_held = unheld.is_empty();
            // A peer that has stopped takes no more findings.
            let _ = findings.send(Finding::Replicated { unheld });
            if is_held && durable.await.is_ok() {
                // The sender may have gone; its links are here all the same.
                unacknowledged
                    .into_iter()
                    .for_each(|(reply, answer)| drop(reply.send(answer)));
            }
        });
        Some(reply)
    }

    /// A round as it is sent.
    fn deltas(&self, Round { changed, announced }: Round) -> Vec<Delta> {
        let mut deltas = Vec::with_capacity(changed.len() + announced.len());
        for (domain, change) in changed {
            let (versions, state) = self.versions_and_state(&domain);
            let state = state.filter(|_| change.extent == ChangeExtent::State);
            deltas.push(Delta::of(change, domain, versions, state));
        }
        for domain in announced {
            let (versions, _) = self.versions_and_state(&domain);
            deltas.push(Delta::announcement(domain, versions));
        }
        deltas
    }

    fn versions_and_state(&self, domain: &Domain) -> (Versions, Option<Vec<u8>>) {
        if let Some(state) = self.parts.frontier.state(domain) {
            return (
                state.versions.clone(),
                Some(state.without_robots().encode()),
            );
        }
        let stored = self.parts.store.domain(domain).ok().flatten();
        let versions = stored
            .as_ref()
            .map(|bytes| decode_state(domain, bytes).versions);
        (versions.unwrap_or_default(), stored)
    }

    /// Domains that went to other peers go with their done pages. The links of these are durable
    /// here, and this peer lives.
    pub(super) fn release_done(&mut self) {
        let mut pages = std::mem::take(&mut self.pages);
        let is_gone = |page: &PageId, _: Sent| {
            let is_in_memory = self.parts.frontier.is_resident(&page.domain)
                || self.parking.contains_key(&page.domain);
            self.is_foreign(&page.domain) && !is_in_memory
        };
        let gone = pages.take_done_at_rest(is_gone);
        self.pages = pages;
        self.tell_done(gone);
        self.save_soon();
    }

    /// A peer that takes over from one that stops must see from the versions of its replica what is
    /// done.
    pub(super) fn release_all_done(&mut self) {
        let all = self.pages.take_all_done();
        self.tell_done(all);
    }

    fn tell_done(&mut self, done: Vec<(PageId, Sent)>) {
        for (page, sent) in done {
            if self.is_known(&page.domain)
                && let Err(error) = self.tell_one_done(&page, sent)
            {
                self.note_trouble(&error);
            }
        }
    }

    fn tell_one_done(&mut self, page: &PageId, sent: Sent) -> Result<(), AdmitError> {
        let errand = self.begin_errand(page, sent)?;
        let known = match self.revisiting.take_visited(page) {
            Some(url) => Some(self.parts.store.page(&page.domain, url)?),
            None => None,
        };
        let change = self.change(&page.domain)?;
        change.visits.extend(known.map(|record| PageNote {
            place: u32::try_from(change.removes.len()).unwrap_or(u32::MAX),
            known: record.as_ref().map(known_pages::known),
        }));
        change.removes.push(page.slot);
        change.errands.extend(errand);
        Ok(())
    }

    /// The replicas drop the errands that are done.
    fn tell_delivered(&mut self) {
        for (domain, slots) in self.ledger.take_delivered(now()) {
            // The owner of the domain was told with everything else, and will tell the replicas.
            if !self.is_known(&domain) || self.is_foreign(&domain) {
                continue;
            }
            match self.change(&domain) {
                Ok(change) => change.delivered.extend(slots),
                Err(error) => self.note_trouble(&error),
            }
        }
    }

    /// A domain that was forgotten, since others have it, must not come back as an empty one.
    pub(super) fn is_known(&self, domain: &Domain) -> bool {
        self.parts.frontier.is_resident(domain)
            || matches!(self.parts.store.domain(domain), Ok(Some(_)))
    }

    /// The changes of a round are with the replicas, or will be announced once more.
    pub(super) fn end_round(&mut self, unheld: &[Domain]) {
        let known = unheld.iter().filter(|domain| self.is_known(domain));
        let known: HashSet<Domain> = known.cloned().collect();
        self.ledger
            .end_round(unheld, |domain| known.contains(domain));
        let is_quiet = self.ledger.is_empty() && self.pages.is_all_told();
        if !is_quiet || !self.unacknowledged.is_empty() {
            self.tell_soon();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::crawler::{
        finding::Finding,
        testing::{At, TestCrawler, applied, url},
    };
    use crate::swarm::replicas::message::DELTAS;
    use apoidea_crawl::Outcome;
    use apoidea_overlay::RequestError;

    #[tokio::test]
    async fn a_page_is_told_after_the_round_of_its_links_to_other_own_domains() {
        let mut crawler = TestCrawler::in_swarm();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let pending = crawler.fetching(&here, 2).await;
        crawler.save().await;
        crawler.told();
        crawler.processed(&pending, &[url(&there, 5)]).await;
        crawler.write().await;
        crawler.hand_in().await;
        let first = crawler.told();
        assert!(first.iter().any(|delta| delta.domain == there));
        assert!(first.iter().all(|delta| delta.removes.is_empty()));
        crawler.hand_in().await;
        let second = crawler.told();
        assert!(second.iter().any(|delta| delta.removes == [pending.slot]));
    }

    #[tokio::test]
    async fn a_page_is_not_told_while_no_replica_has_its_links() {
        let mut crawler = TestCrawler::in_swarm();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let pending = crawler.fetching(&here, 2).await;
        crawler.save().await;
        let unreachable = |_, _, _| Err(RequestError::Unreachable("gone".to_owned()));
        crawler.ring.answer_with(unreachable);
        crawler.processed(&pending, &[url(&there, 5)]).await;
        crawler.write().await;
        for _ in 0..4 {
            crawler.hand_in().await;
        }
        let told = crawler.told();
        assert!(told.iter().all(|delta| delta.removes.is_empty()));
        assert_eq!(crawler.stage(&pending), Some(At::Done));
        crawler.ring.answer_with(|_, _, body| Ok(applied(&body)));
        crawler.save().await;
        let told = crawler.told();
        assert!(told.iter().any(|delta| delta.removes == [pending.slot]));
        assert_eq!(crawler.stage(&pending), None);
    }

    #[tokio::test]
    async fn a_page_whose_links_were_all_known_is_told_too() {
        let mut crawler = TestCrawler::in_swarm();
        let (here, there) = (crawler.own(0), crawler.own(1));
        crawler.admit(&[url(&there, 5)]);
        let pending = crawler.fetching(&here, 1).await;
        crawler.save().await;
        crawler.told();
        crawler.processed(&pending, &[url(&there, 5)]).await;
        crawler.save().await;
        let told = crawler.told();
        assert!(told.iter().any(|delta| delta.removes == [pending.slot]));
        assert!(crawler.pages.is_all_told());
    }

    #[tokio::test]
    async fn links_within_a_domain_are_told_together_with_their_page() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.save().await;
        crawler.told();
        crawler.processed(&pending, &[url(&here, 5)]).await;
        crawler.write().await;
        crawler.hand_in().await;
        let [delta] = &crawler.told()[..] else {
            panic!("one change is told");
        };
        assert_eq!(delta.puts[0].url, url(&here, 5));
        assert_eq!(delta.removes, [pending.slot]);
    }

    #[tokio::test]
    async fn a_page_without_a_result_is_told_as_removed() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.save().await;
        crawler.told();
        crawler.fetched(&pending, Outcome::Refused(404)).await;
        crawler.save().await;
        let told = crawler.told();
        assert!(told.iter().any(|delta| delta.removes == [pending.slot]));
        assert!(told.iter().any(|delta| delta.state.is_some()));
    }

    #[tokio::test]
    async fn changes_that_reached_no_replica_are_announced() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        crawler.ring.answer_with(|_, _, _| Err(RequestError::Busy));
        crawler.admit(&[url(&here, 1)]);
        crawler.hand_in().await;
        assert_eq!(crawler.told()[0].puts.len(), 1);
        crawler.hand_in().await;
        let [announced] = &crawler.told()[..] else {
            panic!("one domain is announced");
        };
        assert_eq!(announced.step.base, announced.step.version);
        assert_eq!(announced.versions, crawler.state_of(&here).versions);
    }

    #[tokio::test]
    async fn a_round_begins_only_when_the_last_one_is_over() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        crawler.admit(&[url(&here, 1)]);
        assert!(crawler.begin_round().is_some());
        crawler.admit(&[url(&here, 2)]);
        assert!(crawler.begin_round().is_none());
        let unheld = Vec::new();
        crawler.tell(Finding::Replicated { unheld }).await;
        assert!(crawler.timers.save_at.is_some(), "the next one is near");
        assert!(crawler.begin_round().is_some());
    }

    #[tokio::test]
    async fn a_domain_that_was_forgotten_does_not_come_back() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.processed(&pending, &[]).await;
        crawler.write().await;
        crawler.pump();
        let mut commit = apoidea_store::Commit::new();
        commit.forget_domain(&here);
        crawler.store().apply(&commit).unwrap();
        assert_eq!(crawler.stage(&pending), Some(At::Done));
        crawler.save().await;
        assert_eq!(crawler.store().domain(&here).unwrap(), None);
    }

    #[tokio::test]
    async fn a_peer_that_is_alone_tells_nobody_and_keeps_no_page_waiting() {
        let mut crawler = TestCrawler::alone();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let pending = crawler.fetching(&here, 1).await;
        crawler.processed(&pending, &[url(&there, 5)]).await;
        crawler.save().await;
        assert!(crawler.pages.is_all_told());
        let requests = crawler.ring.requests.lock().unwrap();
        assert!(requests.iter().all(|(_, kind, _)| *kind != DELTAS));
    }
}
