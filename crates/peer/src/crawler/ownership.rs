//! Domains that come and go when the ring moves, and replicas of the domains of others.

use super::{
    Crawler,
    admitter::{AdmitError, park},
    parking::RESIDENT,
};
use crate::{
    clock::now,
    state_codec::decode_state,
    swarm::{
        replicas::{
            known_pages::{self, SentPage},
            merge,
            message::{Delta, DeltaAnswer},
        },
        tenancy::Claim,
    },
};
use apoidea_crawl::{DomainState, Event, Tenure, Versions};
use apoidea_model::{CrawlId, Domain, Link, LinkBatch, Pending, Time};
use apoidea_overlay::Arc as RingArc;
use apoidea_store::{Commit, ReadError, Store};
use std::collections::BTreeMap;

const TENURE_VALUE: &str = "tenure";
/// Domains read and written at a time.
const AT_ONCE: usize = 1000;

impl Crawler {
    /// Begins a tenure that is later than all before, and than `seen`.
    pub(super) fn begin_tenure(&mut self, seen: Tenure, now: Time) -> Result<(), AdmitError> {
        let tenure = self.ledger.begin_tenure(self.parts.swarm.me, seen, now);
        let mut commit = Commit::new();
        let bytes = postcard::to_stdvec(&tenure).expect("a number always serialises");
        commit.set_value(TENURE_VALUE, &bytes);
        Ok(self.parts.store.apply(&commit)?)
    }

    pub(super) fn take_delta(&mut self, delta: &Delta) -> DeltaAnswer {
        self.apply_delta(delta).unwrap_or_else(|error| {
            tracing::warn!(%error, "a change was not taken in");
            DeltaAnswer::Behind
        })
    }

    /// Takes in a change by a peer that takes itself for the owner.
    fn apply_delta(&mut self, delta: &Delta) -> Result<DeltaAnswer, AdmitError> {
        // An owner compares, and then merges what it lacks. Only a replica is changed by steps.
        if !self.is_foreign(&delta.domain) || self.is_under_way(&delta.domain) {
            return Ok(merge::compare(
                &self.versions(&delta.domain)?,
                &delta.versions,
            ));
        }
        self.step(delta)
    }

    fn step(&mut self, delta: &Delta) -> Result<DeltaAnswer, AdmitError> {
        let mut commit = Commit::new();
        let answer = merge::apply(&self.parts.store, delta, now(), &mut commit)?;
        self.parts.store.apply(&commit)?;
        if answer == DeltaAnswer::Applied {
            self.parts.admitter.forget_filter(&delta.domain);
        }
        Ok(answer)
    }

    /// Takes in changes that the last owner of their domains signed, while those are taken over. A
    /// settled owner's domains are not changed by steps.
    pub(super) fn take_rounds(&mut self, deltas: &[Delta]) -> Result<(), AdmitError> {
        for delta in deltas {
            let claim = self.parts.swarm.tenancy.claim(delta.domain.key());
            if claim == Claim::TakingOver && !self.is_under_way(&delta.domain) {
                self.step(delta)?;
            }
        }
        Ok(())
    }

    pub(super) fn versions(&self, domain: &Domain) -> Result<Versions, ReadError> {
        match self.parts.frontier.state(domain) {
            Some(state) => Ok(state.versions.clone()),
            None => merge::versions(&self.parts.store, domain),
        }
    }

    /// Takes in another peer's records of the pages of a domain.
    pub(super) fn join_pages(
        &mut self,
        domain: &Domain,
        pages: Vec<SentPage>,
        now: Time,
    ) -> Result<(), AdmitError> {
        let (store, mut commit) = (&self.parts.store, Commit::new());
        let known = pages.into_iter();
        for theirs in known.filter_map(|page| page.into_record(domain, now)) {
            known_pages::join(store, domain, theirs, &mut commit)?;
        }
        Ok(store.apply(&commit)?)
    }

    /// Puts a domain among those whose turn comes. The last owner may have asked a moment ago.
    pub(super) fn start_crawling(
        &mut self,
        domain: &Domain,
        mut state: DomainState,
        now: Time,
        commit: &mut Commit,
    ) {
        if state.counters.queued == 0 || state.stopped().is_some() {
            return;
        }
        state.interrupted(now);
        commit.put_domain(domain, state.encode());
        park(commit, domain, state.ready_at());
        self.parts.frontier.handle(
            Event::Parked {
                wake: state.ready_at(),
            },
            now,
        );
    }

    /// Domains of this arc are not this peer's any more, or have to be taken over again.
    pub(super) fn lose(&mut self, arc: RingArc, now: Time) -> Result<(), AdmitError> {
        let residents: Vec<Domain> = self
            .parts
            .frontier
            .residents()
            .map(|(domain, _)| domain.clone())
            .collect();
        for domain in residents {
            let is_owned = self.parts.swarm.tenancy.is_owned(domain.key());
            if arc.contains(domain.key()) && !is_owned {
                self.parts.frontier.retire(&domain, now);
            }
        }
        self.look_through(|crawler, domain, state, commit| {
            if arc.contains(domain.key())
                && crawler.is_foreign(domain)
                && !crawler.is_under_way(domain)
            {
                commit.unpark(domain);
            }
            Ok(crawler.waiting_at(domain, &state))
        })?;
        self.release_done();
        Ok(())
    }

    pub(super) fn is_foreign(&self, domain: &Domain) -> bool {
        self.parts.swarm.tenancy.claim(domain.key()) == Claim::Foreign
    }

    /// Is no domain of the arc, other than this peer's own, under way?
    pub(super) fn is_drained(&self, arc: RingArc) -> bool {
        let is_busy = |domain: &Domain| arc.contains(domain.key()) && self.is_foreign(domain);
        let residents = self.parts.frontier.residents().map(|(domain, _)| domain);
        !residents
            .chain(self.pages.domains())
            .chain(self.parking.keys())
            .any(is_busy)
    }

    /// Domains of this arc are this peer's to crawl.
    pub(super) fn activate(&mut self, arc: RingArc, now: Time) -> Result<(), AdmitError> {
        self.begin_tenure(Tenure::default(), now)?;
        let was_cut_off = self.parts.swarm.tenancy.is_cut_off();
        self.look_through(|crawler, domain, mut state, commit| {
            let is_ours =
                arc.contains(domain.key()) && crawler.parts.swarm.tenancy.is_owned(domain.key());
            if is_ours && let Some((due, _)) = crawler.parts.store.due_pages(domain, 1)?.first() {
                commit.set_next_due(domain, Some(*due));
            }
            let wake = crawler.parts.store.wake(domain)?;
            let is_ours = is_ours && !crawler.is_under_way(domain);
            if is_ours
                && was_cut_off
                && let Some(wake) = wake.filter(|wake| *wake != RESIDENT)
            {
                // It was this peer's all along, but another one may have asked a moment ago.
                state.interrupted(now);
                commit.put_domain(domain, state.encode());
                park(commit, domain, state.ready_at().max(wake));
            }
            if is_ours && wake.is_none() {
                // Of a replica the queue was only estimated.
                state.counters.queued = crawler.parts.store.queue_length(domain)?;
                commit.put_domain(domain, state.encode());
                let waiting = crawler.waiting_at(domain, &state);
                crawler.start_crawling(domain, state, now, commit);
                return Ok(waiting);
            }
            Ok(crawler.waiting_at(domain, &state))
        })?;
        self.take_up_errands(now)?;
        let swarm = &self.parts.swarm;
        let later = swarm.provenance.heard.take_later(arc).into_iter();
        later.for_each(|(domain, from)| swarm.puller.want(domain, from));
        self.parts.frontier.handle(Event::Parked { wake: now }, now);
        self.parts.swarm.courier.notify_one();
        Ok(())
    }

    /// Goes through all known domains, and adds up the URLs that wait at this peer's own: `each` says
    /// how many.
    fn look_through(
        &mut self,
        mut each: impl FnMut(&mut Self, &Domain, DomainState, &mut Commit) -> Result<u64, AdmitError>,
    ) -> Result<(), AdmitError> {
        let (mut queued, mut owned) = (0, 0);
        for batch in self.parts.store.domain_batches(AT_ONCE) {
            let mut commit = Commit::new();
            for (domain, bytes) in batch? {
                let state = match self.parts.frontier.state(&domain) {
                    Some(state) => state.clone(),
                    None => decode_state(&domain, &bytes),
                };
                let waiting = each(self, &domain, state, &mut commit)?;
                if !self.is_foreign(&domain) {
                    queued += waiting;
                    owned += 1;
                }
            }
            self.parts.store.apply(&commit)?;
        }
        self.parts.admitter.set_queued(queued);
        self.owned = owned;
        Ok(())
    }

    /// URLs that wait for their turn at a domain. A stopped one has none, once it has left memory.
    pub(super) fn waiting_at(&self, domain: &Domain, state: &DomainState) -> u64 {
        match state.stopped() {
            Some(_) if !self.parts.frontier.is_resident(domain) => 0,
            _ => state.counters.queued,
        }
    }

    /// Sends the URLs that wait at a domain to its owner, as links, and drops the replica.
    pub(super) fn pass_on(
        &mut self,
        domain: &Domain,
        versions: &Versions,
        now: Time,
    ) -> Result<(), AdmitError> {
        if self.versions(domain)? != *versions || !self.is_foreign(domain) {
            return Ok(());
        }
        let mut by_crawl: BTreeMap<CrawlId, Vec<Link>> = BTreeMap::new();
        for pending in merge::queue(&self.parts.store, domain)? {
            let crawl = pending.crawl;
            by_crawl.entry(crawl).or_default().push(link_of(pending));
        }
        for (crawl, links) in by_crawl {
            for batch in links.chunks(LinkBatch::MAX_LINKS) {
                self.send_out(crawl, batch.to_vec(), now)?;
            }
        }
        self.forget(domain, versions)
    }

    /// Drops a replica that others have now.
    pub(super) fn forget(
        &mut self,
        domain: &Domain,
        versions: &Versions,
    ) -> Result<(), AdmitError> {
        let is_the_same = self.versions(domain)? == *versions;
        let is_told = !self.ledger.has(domain) && !self.pages.has_untold(domain);
        if is_the_same && is_told && self.is_foreign(domain) && !self.is_under_way(domain) {
            let mut commit = Commit::new();
            commit.forget_domain(domain);
            self.parts.store.apply(&commit)?;
            self.parts.admitter.forget_filter(domain);
        }
        Ok(())
    }
}

/// A waiting URL as another peer is told of it.
pub(super) fn link_of(pending: Pending) -> Link {
    Link {
        url: pending.url,
        depth: pending.depth,
        target: pending.target,
    }
}

/// The tenure of the last run.
pub(super) fn last_tenure(store: &Store) -> Result<Tenure, ReadError> {
    let stored = store.value(TENURE_VALUE)?;
    Ok(stored
        .and_then(|bytes| postcard::from_bytes(&bytes).ok())
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        crawler::testing::{At, TestCrawler, delta, pending, tenure, url, versions},
        swarm::orders::SwarmOrder,
    };
    use apoidea_crawl::Outcome;
    use tokio::sync::oneshot;

    async fn activate(crawler: &mut TestCrawler) {
        let (reply, done) = oneshot::channel();
        let order = SwarmOrder::Activate(TestCrawler::everything(), reply);
        crawler.order_swarm(order).await;
        done.await.unwrap();
    }

    async fn is_drained(crawler: &mut TestCrawler) -> bool {
        let (reply, answer) = oneshot::channel();
        let order = SwarmOrder::Drained(TestCrawler::everything(), reply);
        crawler.order_swarm(order).await;
        answer.await.unwrap()
    }

    #[tokio::test]
    async fn a_replica_takes_a_change_that_it_lacks_and_notices_all_others() {
        let mut crawler = TestCrawler::in_swarm();
        let (foreign, owner) = (crawler.foreign(0), tenure(5));
        let answer = crawler.delta(delta(&foreign, owner, 0, 1, &[1, 2])).await;
        assert_eq!(answer, DeltaAnswer::Applied);
        assert_eq!(crawler.waiting(&foreign), ["/1", "/2"]);
        let later = crawler.delta(delta(&foreign, owner, 2, 3, &[9])).await;
        assert_eq!(later, DeltaAnswer::Behind);
        let next = crawler.delta(delta(&foreign, owner, 1, 2, &[3])).await;
        assert_eq!(next, DeltaAnswer::Applied);
        let old = crawler.delta(delta(&foreign, owner, 0, 1, &[7])).await;
        assert_eq!(old, DeltaAnswer::Ahead);
        let another = crawler.delta(delta(&foreign, tenure(4), 0, 1, &[8])).await;
        assert_eq!(another, DeltaAnswer::Apart);
        assert_eq!(crawler.waiting(&foreign), ["/1", "/2", "/3"]);
        assert_eq!(crawler.store().wake(&foreign).unwrap(), None);
    }

    #[tokio::test]
    async fn a_change_to_an_own_domain_is_only_compared() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        let unknown = crawler.delta(delta(&own, tenure(5), 0, 1, &[1])).await;
        assert_eq!(
            (unknown, crawler.queue(&own)),
            (DeltaAnswer::Behind, vec![])
        );
        crawler.admit(&[url(&own, 2)]);
        let apart = crawler.delta(delta(&own, tenure(5), 0, 1, &[1])).await;
        assert_eq!(apart, DeltaAnswer::Apart);
        assert_eq!(crawler.waiting(&own), ["/2"]);
    }

    #[tokio::test]
    async fn a_lost_domain_ends_its_page_and_goes() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        let pending = crawler.fetching(&own, 3).await;
        crawler.save().await;
        crawler.told();
        crawler.lose_everything();
        crawler
            .order_swarm(SwarmOrder::Lose(TestCrawler::everything()))
            .await;
        assert!(!is_drained(&mut crawler).await);
        assert_eq!(crawler.parts.admitter.queued(), 0);
        crawler.processed(&pending, &[url(&own, 9)]).await;
        crawler.pump();
        assert!(!is_drained(&mut crawler).await, "a page is being written");
        crawler.write().await;
        crawler.pump();
        assert!(is_drained(&mut crawler).await);
        assert_eq!(crawler.parts.frontier.fetching(), 0);
        assert_eq!(crawler.store().wake(&own).unwrap(), None);
        assert_eq!(crawler.waiting(&own), ["/1", "/2"]);
        assert_eq!(crawler.outgoing(), [format!("http://{own}/9")]);
        crawler.save().await;
        let told = crawler.told();
        assert!(told.iter().any(|delta| delta.removes == [pending.slot]));
    }

    #[tokio::test]
    async fn a_lost_domain_goes_with_its_done_pages_though_their_round_is_not_held() {
        let mut crawler = TestCrawler::in_swarm();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let busy = |_, _, _| Err(apoidea_overlay::RequestError::Busy);
        crawler.ring.answer_with(busy);
        let pending = crawler.fetching(&here, 1).await;
        crawler.processed(&pending, &[url(&there, 5)]).await;
        crawler.pump();
        crawler.write().await;
        crawler.hand_in().await;
        assert_eq!(crawler.stage(&pending), Some(At::Done));
        let before = crawler.state_of(&here).versions;
        crawler.lose_everything();
        crawler
            .order_swarm(SwarmOrder::Lose(TestCrawler::everything()))
            .await;
        assert_eq!(crawler.stage(&pending), None);
        let after = crawler.state_of(&here).versions;
        assert!(
            after.contain(&before) && after != before,
            "the owner sees it"
        );
    }

    #[tokio::test]
    async fn a_gained_domain_is_crawled_and_counted_by_its_queue() {
        let mut crawler = TestCrawler::in_swarm();
        let (foreign, owner) = (crawler.foreign(0), tenure(5));
        crawler
            .delta(delta(&foreign, owner, 0, 1, &[1, 2, 3]))
            .await;
        let removed = Delta {
            removes: vec![pending(&foreign, 1, 1).slot, pending(&foreign, 8, 8).slot],
            ..delta(&foreign, owner, 1, 2, &[])
        };
        crawler.delta(removed).await;
        assert_eq!(crawler.state_of(&foreign).counters.queued, 1, "an estimate");
        let before = crawler.ledger.tenure();
        crawler.gain_everything();
        activate(&mut crawler).await;
        assert_eq!(crawler.state_of(&foreign).counters.queued, 2);
        assert_eq!((crawler.parts.admitter.queued(), crawler.owned), (2, 1));
        assert!(crawler.store().wake(&foreign).unwrap().is_some());
        assert!(crawler.ledger.tenure() > before);
    }

    #[tokio::test]
    async fn a_stopped_domain_does_not_count_as_waiting() {
        let mut crawler = TestCrawler::in_swarm();
        let (own, another) = (crawler.own(0), crawler.own(1));
        let pending = crawler.fetching(&own, 3).await;
        crawler.admit(&[url(&another, 1)]);
        crawler.fetched(&pending, Outcome::Challenge).await;
        crawler.pump();
        crawler.save().await;
        assert!(crawler.state_of(&own).stopped().is_some());
        assert_eq!(crawler.queue(&own).len(), 2);
        assert_eq!(crawler.parts.admitter.queued(), 1);
        activate(&mut crawler).await;
        assert_eq!(crawler.parts.admitter.queued(), 1);
        assert_eq!(crawler.store().wake(&own).unwrap(), None);
    }

    #[tokio::test]
    async fn only_a_replica_that_others_have_just_like_this_is_forgotten() {
        let mut crawler = TestCrawler::in_swarm();
        let (own, foreign, owner) = (crawler.own(0), crawler.foreign(0), tenure(5));
        crawler.admit(&[url(&own, 1)]);
        crawler.delta(delta(&foreign, owner, 0, 2, &[1, 2])).await;
        crawler.save().await;
        let mine = crawler.state_of(&own).versions;
        for (domain, versions) in [(&own, mine), (&foreign, versions(owner, 1))] {
            let forget = SwarmOrder::Forget(domain.clone(), versions);
            crawler.order_swarm(forget).await;
            assert!(crawler.store().domain(domain).unwrap().is_some());
        }
        let forget = SwarmOrder::Forget(foreign.clone(), versions(owner, 2));
        crawler.order_swarm(forget).await;
        assert_eq!(crawler.store().domain(&foreign).unwrap(), None);
        assert_eq!(crawler.queue(&foreign), []);
    }
}
