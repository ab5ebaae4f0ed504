//! Taking in the replicas of other peers, each by the right of the peer that gives it.
//!
//! The replica of a peer that had the right to do the work takes the place of the one here, or is
//! merged with it. Of every other replica only the URLs count that wait in it, as links that its
//! sender brings: a URL that is falsely called unseen costs a fetch, and one that is falsely called
//! done would cost a page.

use super::{Crawler, admitter::AdmitError, orders::Adoption, ownership::link_of};
use crate::{
    clock::now,
    swarm::{
        replicas::{merge, replica::Replica},
        tenancy::{Claim, Weight},
    },
};
use apoidea_crawl::{Stance, Versions};
use apoidea_model::{CrawlId, Domain, Link, PeerId, Time};
use apoidea_store::Commit;
use std::collections::BTreeMap;

impl Crawler {
    /// Takes in a replica of another peer, now or when nothing of the domain is under way.
    pub(super) fn adopt(&mut self, domain: Domain, adoption: Adoption, now: Time) {
        let weight = self.parts.swarm.tenancy.weigh(adoption.from, domain.key());
        if weight == Weight::Vouched {
            return self.adopt_vouched(domain, adoption, now);
        }
        let Adoption {
            from,
            replica,
            reply,
        } = adoption;
        if self.parts.swarm.tenancy.is_owned(domain.key()) {
            if let Err(error) = self.take_links(from, &domain, *replica, now) {
                self.note_trouble(&error);
            }
        } else if weight == Weight::LinksOnly {
            self.parts.swarm.provenance.heard.note_later(domain, from);
        }
        let _ = reply.send(());
    }

    fn adopt_vouched(&mut self, domain: Domain, adoption: Adoption, now: Time) {
        if self.is_under_way(&domain) {
            self.parts.frontier.retire(&domain, now);
            self.adoptions.insert(domain, adoption);
            return;
        }
        let Adoption {
            from,
            replica,
            reply,
        } = adoption;
        if let Err(error) = self.adopt_now(from, &domain, *replica, now) {
            self.note_trouble(&error);
        }
        let _ = reply.send(());
    }

    /// Takes in the replica that waited for a domain to leave memory.
    pub(super) fn adopt_if_waiting(&mut self, domain: &Domain) {
        if self.is_under_way(domain) {
            return;
        }
        if let Some(adoption) = self.adoptions.remove(domain) {
            self.adopt(domain.clone(), adoption, now());
        }
    }

    fn adopt_now(
        &mut self,
        from: PeerId,
        domain: &Domain,
        replica: Replica,
        now: Time,
    ) -> Result<(), AdmitError> {
        let mine = self.parts.admitter.load_state(domain)?;
        let claim = self.parts.swarm.tenancy.claim(domain.key());
        let stance = match mine.versions.stance(&replica.versions) {
            // An owner's own knowledge is never replaced, whatever another peer's versions say.
            Stance::Replace if claim == Claim::Owned && mine.versions != Versions::default() => {
                Stance::Merge
            }
            // The owner has heard all that is here, and has taken what it wants of it.
            Stance::Merge | Stance::Skip
                if claim == Claim::Foreign && replica.heard.contain(&mine.versions) =>
            {
                Stance::Replace
            }
            stance => stance,
        };
        if matches!(stance, Stance::Same | Stance::Skip) {
            return Ok(());
        }
        let pages = replica.pages.clone();
        let theirs = match replica.check(domain, now) {
            Ok(theirs) => theirs,
            Err(error) => {
                tracing::warn!(%domain, ?from, %error, "a replica was refused");
                return Ok(());
            }
        };
        self.join_pages(domain, pages, now)?;
        let latest = theirs.state.versions.latest();
        if latest > self.ledger.tenure() && claim != Claim::Foreign {
            self.begin_tenure(latest, now)?;
        }
        let (store, mut commit) = (self.parts.store.clone(), Commit::new());
        let waited = self.waiting_at(domain, &mine);
        merge::take_waiting(&store, domain, &theirs.queue, &mut commit)?;
        let state = match stance {
            Stance::Merge => merge::merge(&store, domain, mine, theirs, &mut commit)?,
            _ => merge::replace(domain, theirs, &mut commit),
        };
        if claim == Claim::Owned {
            let waiting = self.waiting_at(domain, &state);
            self.parts.admitter.note_entered(waiting);
            self.parts.admitter.note_left(waited);
            self.start_crawling(domain, state, now, &mut commit);
        }
        store.apply(&commit)?;
        self.parts.admitter.forget_filter(domain);
        if stance == Stance::Merge {
            // No other peer may know all of it.
            self.ledger.note_merged(domain);
            self.save_soon();
        }
        if claim == Claim::Owned {
            self.take_up(store.errands_of(domain)?, now)?;
        }
        Ok(())
    }

    /// Takes the URLs that wait in a replica, and the links of its errands, as links of the peer
    /// that gives it: as many as it may still bring.
    fn take_links(
        &mut self,
        from: PeerId,
        domain: &Domain,
        replica: Replica,
        now: Time,
    ) -> Result<(), AdmitError> {
        let versions = replica.versions.clone();
        let heard = self.parts.swarm.provenance.heard.of(domain, from);
        if self.versions(domain)?.contain(&versions) || heard.contain(&versions) {
            return Ok(());
        }
        let theirs = match replica.check(domain, now) {
            Ok(theirs) => theirs,
            Err(error) => {
                tracing::warn!(%domain, ?from, %error, "a replica was refused");
                return Ok(());
            }
        };
        if !self.is_known(domain) && !theirs.queue.is_empty() {
            // Its sender may have asked the host a moment ago.
            let mut state = self.parts.admitter.load_state(domain)?;
            state.interrupted(now);
            let mut commit = Commit::new();
            commit.put_domain(domain, state.encode());
            self.parts.store.apply(&commit)?;
        }
        let waiting = theirs.queue.into_iter();
        let waiting = waiting.map(|pending| (pending.crawl, link_of(pending)));
        let undelivered = theirs.errands.into_iter().flat_map(|errand| {
            let crawl = errand.crawl;
            errand.links.into_iter().map(move |link| (crawl, link))
        });
        let room = self.parts.admitter.room_for(from, now);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let mut links = waiting.chain(undelivered);
        let mut by_crawl: BTreeMap<CrawlId, Vec<Link>> = BTreeMap::new();
        for (crawl, link) in links.by_ref().take(room) {
            by_crawl.entry(crawl).or_default().push(link);
        }
        let before = self.totals.admitted;
        for (crawl, links) in by_crawl {
            self.deliver(crawl, links, None, now)?;
        }
        let entered = self.totals.admitted.saturating_sub(before);
        self.parts.admitter.note_brought(from, entered, now);
        if links.next().is_none() {
            let provenance = &self.parts.swarm.provenance;
            provenance.heard.note(domain, from, versions);
        }
        if self.is_known(domain) {
            // One more change: a peer that holds another replica than this sees that it differs,
            // and fetches this one in its place.
            self.change(domain)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        crawler::testing::{TestCrawler, delta, link, other, page, pending, tenure, url, versions},
        swarm::replicas::message::{Delta, DeltaAnswer},
    };
    use apoidea_crawl::{Outcome, PageLinks, Step, Tenure};
    use apoidea_store::Store;
    use proptest::prelude::*;

    /// The replica of a peer that has admitted these pages.
    fn replica(domain: &Domain, tenure: Tenure, pages: &[usize]) -> Replica {
        replica_after(domain, &delta(domain, tenure, 0, 1, pages))
    }

    /// The replica of a peer that has taken in one change.
    fn replica_after(domain: &Domain, delta: &Delta) -> Replica {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let mut commit = Commit::new();
        merge::apply(&store, delta, now(), &mut commit).unwrap();
        store.commit(&commit).unwrap();
        Replica::read(&store, domain).unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_replica_of_an_own_domain_is_adopted_and_crawled() {
        let mut crawler = TestCrawler::in_swarm();
        crawler.gained_from_other();
        let own = crawler.own(0);
        let replica = replica(&own, tenure(5), &[1, 2]);
        let mut adopted = crawler.adopt_replica(&own, replica).await;
        assert!(adopted.try_recv().is_ok());
        assert_eq!(crawler.waiting(&own), ["/1", "/2"]);
        assert_eq!(crawler.parts.admitter.queued(), 2);
        let wake = crawler.store().wake(&own).unwrap().expect("its turn comes");
        assert!(wake > now(), "its last owner may have asked a moment ago");
        assert!(crawler.ledger.tenure() > tenure(5));
    }

    #[tokio::test]
    async fn a_replica_waits_until_its_domain_has_left_memory() {
        let mut crawler = TestCrawler::in_swarm();
        crawler.gained_from_other();
        let own = crawler.own(0);
        let pending = crawler.fetching(&own, 1).await;
        let replica = replica(&own, tenure(5), &[7]);
        let mut adopted = crawler.adopt_replica(&own, replica).await;
        crawler.fetched(&pending, Outcome::Page).await;
        crawler.pump();
        assert!(adopted.try_recv().is_err(), "a page is in processing");
        assert_eq!(crawler.waiting(&own), ["/0"]);
        let processed = crate::crawler::testing::processed(&pending, &[]);
        let news = crate::page::news::PageNews::Processed(page(&pending), Box::new(processed));
        crawler.tell_page(news).await;
        crawler.write().await;
        assert!(adopted.try_recv().is_ok());
        assert_eq!(crawler.waiting(&own), ["/7"]);
        crawler.save().await;
        let told = crawler.told();
        assert!(told.iter().any(|delta| delta.domain == own));
    }

    #[tokio::test]
    async fn the_errands_of_an_adopted_replica_are_carried_out() {
        let mut crawler = TestCrawler::in_swarm();
        crawler.gained_from_other();
        let (own, foreign) = (crawler.own(0), crawler.foreign(0));
        let links = PageLinks {
            slot: pending(&own, 1, 1).slot,
            crawl: CrawlId::OPEN,
            links: vec![link(&url(&foreign, 6))],
        };
        let with_errand = Delta {
            errands: vec![links],
            ..delta(&own, tenure(5), 0, 1, &[2])
        };
        let replica = replica_after(&own, &with_errand);
        crawler.adopt_replica(&own, replica).await;
        assert_eq!(crawler.outgoing(), [format!("http://{foreign}/6")]);
        let record = crawler.outbox()[0].sequence;
        crawler.delivered(record).await;
        assert_eq!(crawler.errands(), []);
    }

    #[tokio::test]
    async fn an_older_replica_changes_nothing() {
        let mut crawler = TestCrawler::in_swarm();
        let (foreign, owner) = (crawler.foreign(0), tenure(5));
        crawler.delta(delta(&foreign, owner, 0, 2, &[1, 2])).await;
        let old = replica(&foreign, owner, &[9]);
        crawler.adopt_replica(&foreign, old).await;
        assert_eq!(crawler.waiting(&foreign), ["/1", "/2"]);
    }

    #[tokio::test]
    async fn a_merged_domain_is_announced_to_the_replicas() {
        let mut crawler = TestCrawler::in_swarm();
        crawler.gained_from_other();
        let (own, owner) = (crawler.own(0), tenure(5));
        crawler.admit(&[url(&own, 1)]);
        crawler.save().await;
        crawler.told();
        crawler
            .adopt_replica(&own, replica(&own, owner, &[2]))
            .await;
        assert_eq!(crawler.queue(&own).len(), 2);
        assert_eq!(crawler.parts.admitter.queued(), 2);
        crawler.save().await;
        let [announced] = &crawler.told()[..] else {
            panic!("one domain is announced");
        };
        assert_eq!((&announced.domain, announced.puts.len()), (&own, 0));
        let mine = crawler.state_of(&own).versions;
        assert!(mine == announced.versions && mine.contain(&versions(owner, 1)));
    }

    /// The replica of a peer that knows these pages, of which some are done.
    fn done_in(domain: &Domain, tenure: Tenure, pages: &[usize], done: &[usize]) -> Replica {
        let change = Delta {
            removes: done
                .iter()
                .map(|&number| pending(domain, number, number as u64).slot)
                .collect(),
            ..delta(domain, tenure, 0, 1, pages)
        };
        replica_after(domain, &change)
    }

    #[tokio::test]
    async fn a_settled_owner_takes_only_links_from_a_replica_that_nobody_vouches_for() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        crawler.admit(&[url(&own, 1), url(&own, 2)]);
        crawler.save().await;
        let theirs = done_in(&own, tenure(5), &[1, 2, 3, 4], &[1, 2, 3]);
        let told = theirs.versions.clone();
        crawler.adopt_replica(&own, theirs).await;
        assert_eq!(crawler.waiting(&own), ["/1", "/2", "/4"]);
        assert!(!crawler.state_of(&own).versions.contain(&told));
        assert_eq!(crawler.parts.swarm.provenance.heard.of(&own, other()), told);
        crawler.admit(&[url(&own, 3)]);
        assert_eq!(crawler.waiting(&own).len(), 4, "it is not taken for seen");
    }

    #[tokio::test]
    async fn a_domain_that_is_not_known_yet_cannot_be_called_done() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        let theirs = done_in(&own, tenure(5), &[1, 2], &[1, 2]);
        crawler.adopt_replica(&own, theirs).await;
        assert_eq!(crawler.store().domain(&own).unwrap(), None);
        crawler.admit(&[url(&own, 1), url(&own, 2)]);
        assert_eq!(crawler.waiting(&own), ["/1", "/2"]);
    }

    #[tokio::test]
    async fn a_replica_that_was_heard_is_not_heard_again() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        crawler.admit(&[url(&own, 1)]);
        let theirs = done_in(&own, tenure(5), &[1, 2], &[1]);
        crawler.adopt_replica(&own, theirs.clone()).await;
        let heard = crawler.state_of(&own).versions;
        crawler.adopt_replica(&own, theirs).await;
        assert_eq!(crawler.state_of(&own).versions, heard);
    }

    #[tokio::test]
    async fn a_holder_takes_the_replica_of_an_owner_that_has_heard_its_own() {
        let mut crawler = TestCrawler::in_swarm();
        let foreign = crawler.foreign(0);
        let answer = crawler
            .delta(delta(&foreign, tenure(5), 0, 2, &[1, 2]))
            .await;
        assert_eq!(answer, DeltaAnswer::Applied);
        let mut theirs = replica(&foreign, tenure(3), &[7]);
        crawler.adopt_replica(&foreign, theirs.clone()).await;
        assert_eq!(crawler.waiting(&foreign).len(), 3, "both count");
        theirs.heard = crawler.state_of(&foreign).versions;
        crawler.adopt_replica(&foreign, theirs.clone()).await;
        assert_eq!(crawler.waiting(&foreign), ["/7"]);
        assert_eq!(crawler.state_of(&foreign).versions, theirs.versions);
    }

    #[tokio::test]
    async fn a_replica_of_a_domain_that_is_taken_over_is_read_later() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        let everything = TestCrawler::everything();
        let swarm = &crawler.parts.swarm;
        swarm
            .tenancy
            .begin_taking_over(everything, Some(crate::swarm::testing::peer(0x77)));
        crawler
            .adopt_replica(&own, replica(&own, tenure(5), &[1]))
            .await;
        assert_eq!(crawler.queue(&own), []);
        let heard = &crawler.parts.swarm.provenance.heard;
        assert_eq!(heard.take_later(everything), [(own, other())]);
    }

    /// Something that a hostile peer near a domain may send to its owner.
    #[derive(Debug, Clone)]
    enum Lie {
        /// A replica with pages of which some are done, and versions of its choice.
        Replica(Vec<usize>, Vec<usize>, u64, u32),
        /// A change that puts and removes.
        Change(Vec<usize>, Vec<usize>, u64, u32),
        /// A change that it says the last owner made.
        Round(Vec<usize>, u64),
    }

    fn lie() -> impl Strategy<Value = Lie> {
        let pages = || prop::collection::vec(0..12usize, 0..8);
        let (begun, steps) = (0..9u64, 1..5u32);
        prop_oneof![
            (pages(), pages(), begun.clone(), steps.clone())
                .prop_map(|(all, done, at, steps)| Lie::Replica(all, done, at, steps)),
            (pages(), pages(), begun.clone(), steps)
                .prop_map(|(puts, removes, at, step)| Lie::Change(puts, removes, at, step)),
            (pages(), begun).prop_map(|(removes, at)| Lie::Round(removes, at)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Whatever peers near a domain say, its settled owner drops no URL that waits, and takes
        /// none for seen that it never had.
        #[test]
        fn no_lie_makes_a_settled_owner_drop_a_url(lies in prop::collection::vec(lie(), 1..10)) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut crawler = TestCrawler::in_swarm();
                let own = crawler.own(0);
                let all: Vec<_> = (0..6).map(|number| url(&own, number)).collect();
                crawler.admit(&all);
                crawler.save().await;
                let slots: Vec<_> = crawler.queue(&own).iter().map(|one| one.slot).collect();
                for lie in lies {
                    let mine = crawler.state_of(&own).versions;
                    match lie {
                        Lie::Replica(pages, done, at, steps) => {
                            let mut theirs = done_in(&own, tenure(at), &pages, &done);
                            theirs.versions = mine.joined(&versions(tenure(at), steps));
                            theirs.heard = theirs.versions.clone();
                            crawler.adopt_replica(&own, theirs).await;
                        }
                        Lie::Change(puts, removes, at, step) => {
                            let step = Step { tenure: tenure(at), base: 0, version: step };
                            let change = Delta {
                                step,
                                versions: mine.after(step),
                                removes: removes.iter().filter_map(|&n| slots.get(n)).copied().collect(),
                                ..delta(&own, tenure(at), 0, 1, &puts)
                            };
                            crawler.delta(change).await;
                        }
                        Lie::Round(removes, at) => {
                            let step = Step { tenure: tenure(at), base: 0, version: 1 };
                            let change = Delta {
                                step,
                                versions: mine.after(step),
                                removes: removes.iter().filter_map(|&n| slots.get(n)).copied().collect(),
                                ..delta(&own, tenure(at), 0, 1, &[])
                            };
                            crawler.take_rounds(&[change]).unwrap();
                        }
                    }
                }
                let waiting = crawler.waiting(&own);
                let is_there = |number: &usize| waiting.contains(&format!("/{number}"));
                assert!((0..6).all(|number| is_there(&number)), "{waiting:?}");
                let late: Vec<_> = (6..12).map(|number| url(&own, number)).collect();
                crawler.admit(&late);
                let waiting = crawler.waiting(&own);
                let is_there = |number: &usize| waiting.contains(&format!("/{number}"));
                assert!((6..12).all(|number| is_there(&number)), "{waiting:?}");
            });
        }
    }
}
