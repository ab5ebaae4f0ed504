//! The ways in which a replica changes in the store: by deltas, by a newer replica, by one that
//! contains other changes.

use crate::{
    state_codec::decode_state,
    swarm::replicas::{
        known_pages,
        message::{Delta, DeltaAnswer},
        replica::{Errands, Sound},
    },
};
use apoidea_crawl::{DomainState, PageLinks, PageNote, Stance, Versions};
use apoidea_model::{Domain, PageId, Pending, Time, UrlHash, Visit};
use apoidea_store::{Commit, ReadError, Store};
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

/// URLs read from a queue at a time.
const AT_ONCE: usize = 1000;

/// The versions of the replica in the store; none if there is no replica.
pub(crate) fn versions(store: &Store, domain: &Domain) -> Result<Versions, ReadError> {
    let stored = store.domain(domain)?;
    Ok(stored.map_or_else(Versions::default, |bytes| {
        decode_state(domain, &bytes).versions
    }))
}

/// The answer of a replica to the versions of another one.
pub(crate) fn compare(mine: &Versions, theirs: &Versions) -> DeltaAnswer {
    match mine.stance(theirs) {
        Stance::Same => DeltaAnswer::Applied,
        Stance::Skip => DeltaAnswer::Ahead,
        Stance::Replace => DeltaAnswer::Behind,
        Stance::Merge => DeltaAnswer::Apart,
    }
}

/// Takes in changes to a replica that lacks just these.
pub(crate) fn apply(
    store: &Store,
    delta: &Delta,
    now: Time,
    commit: &mut Commit,
) -> Result<DeltaAnswer, ReadError> {
    if delta.step.tenure.is_in_the_future(now) {
        return Ok(DeltaAnswer::Stranger);
    }
    let stored = store.domain(&delta.domain)?;
    let mut state = stored.map_or_else(DomainState::default, |bytes| {
        decode_state(&delta.domain, &bytes)
    });
    if !is_next(&state.versions, delta) {
        return Ok(compare(&state.versions, &delta.versions));
    }
    if delta
        .puts
        .iter()
        .any(|pending| pending.url.host() != delta.domain.as_str())
    {
        return Ok(DeltaAnswer::Behind);
    }
    let counters = state.counters;
    if let Some(news) = delta
        .state
        .as_ref()
        .and_then(|bytes| DomainState::decode(bytes).ok())
    {
        let news = news.into_advice(now);
        let reductions = std::mem::take(&mut state.reductions);
        state = news;
        (state.reductions, state.counters) = (reductions, counters);
    }
    // A retry was counted when it was first put; another visit of a page was never admitted again.
    let entering = || delta.puts.iter().filter(|put| put.attempts == 0);
    let new = entering().filter(|put| put.visit == Visit::First);
    let hashes: Vec<UrlHash> = new.map(|put| put.url.hash()).collect();
    state.admitted(entering(), 0, 0);
    // Only an estimate: a peer that begins to crawl the domain counts.
    state.counters.queued = state
        .counters
        .queued
        .saturating_sub(delta.removes.len() as u64);
    state.versions = delta.versions.clone();
    commit.append_seen(&delta.domain, &hashes);
    delta
        .puts
        .iter()
        .for_each(|put| commit.put_pending(&delta.domain, put));
    delta
        .removes
        .iter()
        .for_each(|&slot| commit.remove_pending(&delta.domain, slot));
    put_visits(store, delta, commit)?;
    put_errands(&delta.domain, &delta.errands, commit);
    delta
        .delivered
        .iter()
        .for_each(|&slot| commit.remove_errand(&PageId::new(delta.domain.clone(), slot)));
    commit.put_domain(&delta.domain, state.encode());
    Ok(DeltaAnswer::Applied)
}

/// Takes in the visits of pages that left the queue. The URL of each is known from there.
fn put_visits(store: &Store, delta: &Delta, commit: &mut Commit) -> Result<(), ReadError> {
    let domain = &delta.domain;
    take_waiting(store, domain, &delta.puts, commit)?;
    for PageNote { place, known } in &delta.visits {
        let Some(&slot) = delta.removes.get(*place as usize) else {
            continue;
        };
        let put = delta.puts.iter().find(|put| put.slot == slot).cloned();
        let left = match put {
            Some(put) => Some(put),
            None => store.pending_at(domain, slot)?,
        };
        match (left, known) {
            (Some(left), Some(known)) => {
                let (depth, target) = (left.depth, left.target);
                let theirs = known_pages::record(left.url, depth, target, known.clone());
                known_pages::join(store, domain, theirs, commit)?;
            }
            (Some(left), None) => commit.remove_page(domain, left.url.hash()),
            (None, _) => {}
        }
    }
    Ok(())
}

/// Is the delta all that a replica lacks?
fn is_next(mine: &Versions, delta: &Delta) -> bool {
    let step = delta.step;
    (step.base..step.version).contains(&mine.of(step.tenure)) && mine.after(step) == delta.versions
}

/// Pages that wait in a queue for another visit are not due besides.
pub(crate) fn take_waiting(
    store: &Store,
    domain: &Domain,
    queue: &[Pending],
    commit: &mut Commit,
) -> Result<(), ReadError> {
    for pending in queue.iter().filter(|pending| pending.visit != Visit::First) {
        let hash = pending.url.hash();
        if let Some(due) = store.page(domain, hash)?.and_then(|page| page.due) {
            commit.take_due(domain, due, hash);
        }
    }
    Ok(())
}

/// Puts a replica in place of the one here.
pub(crate) fn replace(domain: &Domain, theirs: Sound, commit: &mut Commit) -> DomainState {
    commit.replace_domain(domain);
    commit.append_seen(domain, &theirs.seen);
    theirs
        .queue
        .iter()
        .for_each(|pending| commit.put_pending(domain, pending));
    put_errands(domain, &theirs.errands, commit);
    commit.put_domain(domain, theirs.state.encode());
    theirs.state
}

/// Joins a replica with what is known. A first visit is done if either replica has seen the URL and
/// not queued it, and waits if either wants it and neither has done it. A later visit waits as long
/// as one of them wants it: a seen log tells of first visits only, and a page that is asked once
/// more whether it has changed costs little. Of two visits of one page the later one waits: the
/// other is done. The result is the same on both sides, in whatever order replicas are joined.
pub(crate) fn merge(
    store: &Store,
    domain: &Domain,
    mine: DomainState,
    theirs: Sound,
    commit: &mut Commit,
) -> Result<DomainState, ReadError> {
    let my_log = store.seen(domain).collect::<Result<HashSet<_>, _>>()?;
    let their_log: HashSet<UrlHash> = theirs.seen.iter().copied().collect();
    let by_hash = |queue: Vec<Pending>| -> HashMap<UrlHash, Pending> {
        queue
            .into_iter()
            .map(|pending| (pending.url.hash(), pending))
            .collect()
    };
    let (my_queue, their_queue) = (by_hash(queue(store, domain)?), by_hash(theirs.queue));
    let mut queued = 0;
    for (hash, pending) in &my_queue {
        let stays = match their_queue.get(hash) {
            Some(other) => comes_before(pending, other),
            None => waits_still(pending, || knows(&theirs.state, &their_log, *hash)),
        };
        if stays {
            queued += 1;
        } else {
            commit.remove_pending(domain, pending.slot);
        }
    }
    for (hash, pending) in &their_queue {
        let enters = match my_queue.get(hash) {
            Some(other) => !comes_before(other, pending),
            None => waits_still(pending, || knows(&mine, &my_log, *hash)),
        };
        if enters {
            queued += 1;
            commit.put_pending(domain, pending);
        }
    }
    put_errands(domain, &theirs.errands, commit);
    let mut state = mine.clone();
    state.heed(&theirs.state);
    if let Some(reductions) = mine.reductions.merged(&theirs.state.reductions) {
        state.reductions = reductions;
        commit.append_seen(domain, &theirs.seen);
    } else {
        commit.append_seen(domain, &their_queue.into_keys().collect::<Vec<_>>());
    }
    state.counters.queued = queued;
    state.counters.admitted = (my_log.len() + theirs.seen.len()) as u64;
    state.versions = mine.versions.joined(&theirs.state.versions);
    commit.put_domain(domain, state.encode());
    Ok(state)
}

/// Whether of two entries for one URL the first one is kept: that of the later visit, and otherwise
/// the one with the earlier place.
fn comes_before(one: &Pending, other: &Pending) -> bool {
    let order = |pending: &Pending| (Reverse(pending.visit.since()), pending.slot);
    order(one) <= order(other)
}

/// Whether a URL that the other replica has not queued still waits.
fn waits_still(pending: &Pending, is_seen: impl FnOnce() -> bool) -> bool {
    pending.visit != Visit::First || !is_seen()
}

fn put_errands(domain: &Domain, errands: &Errands, commit: &mut Commit) {
    for PageLinks { slot, crawl, links } in errands {
        commit.put_errand(&PageId::new(domain.clone(), *slot), *crawl, links);
    }
}

fn knows(state: &DomainState, log: &HashSet<UrlHash>, hash: UrlHash) -> bool {
    state.reductions.forms(hash).any(|form| log.contains(&form))
}

/// All URLs of a domain's queue.
pub(crate) fn queue(store: &Store, domain: &Domain) -> Result<Vec<Pending>, ReadError> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let some = store.pending(domain, after, AT_ONCE)?;
        let is_last = some.len() < AT_ONCE;
        after = some.last().map(|pending| pending.slot);
        all.extend(some);
        if is_last {
            return Ok(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::replicas::replica::Replica;
    use apoidea_crawl::{Step, Tenure};
    use apoidea_model::{
        ContentHash, ContentMark, CrawlId, Key, Link, PageUrl, PeerId, PreviousVisit, Slot, Target,
        Validators,
    };

    const DOMAIN: &str = "a.test";

    fn domain() -> Domain {
        DOMAIN.parse().unwrap()
    }

    fn url(number: u64) -> PageUrl {
        PageUrl::parse(&format!("http://{DOMAIN}/{number}")).unwrap()
    }

    fn pending(number: u64) -> Pending {
        let slot = Slot {
            rank: 0,
            sequence: number,
        };
        let link = Link {
            url: url(number),
            depth: 0,
            target: Target::Page,
        };
        Pending::admitted(link, slot, CrawlId::OPEN)
    }

    /// The same page waiting for another visit, the last one having been at this time.
    fn again(number: u64, since: u64, sequence: u64) -> Pending {
        let slot = Slot { rank: 0, sequence };
        Pending {
            slot,
            visit: Visit::again(PreviousVisit {
                since: Time::from_millis(since),
                captured: None,
                validators: Validators::default(),
                content: ContentMark::of(&ContentHash::of_body(b"x")),
            }),
            ..pending(number)
        }
    }

    fn tenure(peer: &str, millis: u64) -> Tenure {
        Tenure::begin(
            PeerId::at(Key::hash(peer)),
            Time::from_millis(millis),
            Tenure::default(),
        )
    }

    struct Holding {
        _folder: tempfile::TempDir,
        store: Store,
    }

    impl Holding {
        /// Knows some URLs, of which some wait.
        fn new(versions: Versions, seen: impl IntoIterator<Item = u64>, waiting: &[u64]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path(), Default::default()).unwrap();
            let hashes: Vec<UrlHash> = seen.into_iter().map(|i| url(i).hash()).collect();
            let mut state = DomainState::default();
            state.versions = versions.clone();
            state.counters.admitted = hashes.len() as u64;
            state.counters.queued = waiting.len() as u64;
            let mut commit = Commit::new();
            if versions != Versions::default() {
                commit.put_domain(&domain(), state.encode());
                commit.append_seen(&domain(), &hashes);
                waiting
                    .iter()
                    .for_each(|&i| commit.put_pending(&domain(), &pending(i)));
                store.commit(&commit).unwrap();
            }
            Holding {
                _folder: folder,
                store,
            }
        }

        fn waiting(&self) -> Vec<u64> {
            queue(&self.store, &domain())
                .unwrap()
                .iter()
                .map(|pending| pending.slot.sequence)
                .collect()
        }

        fn replica(&self) -> Sound {
            Replica::read(&self.store, &domain())
                .unwrap()
                .unwrap()
                .check(&domain(), Time::from_millis(9))
                .unwrap()
        }

        fn state(&self) -> DomainState {
            decode_state(&domain(), &self.store.domain(&domain()).unwrap().unwrap())
        }

        fn knows(&self, number: u64) -> bool {
            let log: HashSet<UrlHash> = self.store.seen(&domain()).map(Result::unwrap).collect();
            knows(&self.state(), &log, url(number).hash())
        }

        fn apply(&self, delta: &Delta) -> DeltaAnswer {
            let mut commit = Commit::new();
            let answer = apply(&self.store, delta, Time::from_millis(9), &mut commit).unwrap();
            self.store.commit(&commit).unwrap();
            answer
        }
    }

    fn versions_of(counts: &[(&str, u64, u32)]) -> Versions {
        let mut versions = Versions::default();
        for &(peer, millis, count) in counts {
            (0..count).for_each(|_| _ = versions.advance(tenure(peer, millis)));
        }
        versions
    }

    /// The changes of the owner from one version to another.
    fn delta(base: u32, version: u32, puts: &[u64], removes: &[u64]) -> Delta {
        let versions = versions_of(&[("owner", 5, version)]);
        Delta {
            step: Step {
                tenure: tenure("owner", 5),
                base,
                version,
            },
            puts: puts.iter().map(|&i| pending(i)).collect(),
            removes: removes.iter().map(|&i| pending(i).slot).collect(),
            ..Delta::announcement(domain(), versions)
        }
    }

    #[test]
    fn deltas_apply_in_order_and_a_missing_one_is_noticed() {
        let holding = Holding::new(Versions::default(), [], &[]);
        assert_eq!(
            holding.apply(&delta(0, 1, &[1, 2, 3], &[])),
            DeltaAnswer::Applied
        );
        assert_eq!(
            holding.apply(&delta(0, 1, &[1, 2, 3], &[])),
            DeltaAnswer::Applied
        );
        assert_eq!(holding.apply(&delta(2, 3, &[9], &[])), DeltaAnswer::Behind);
        assert_eq!(
            holding.apply(&delta(1, 2, &[4], &[1])),
            DeltaAnswer::Applied
        );
        assert_eq!(holding.waiting(), [2, 3, 4]);
        assert_eq!(
            (
                holding.state().counters.queued,
                holding.state().counters.admitted
            ),
            (3, 4)
        );
        assert_eq!(holding.apply(&delta(0, 1, &[7], &[])), DeltaAnswer::Ahead);
        let other = Delta {
            versions: versions_of(&[("other", 7, 1)]),
            ..delta(0, 1, &[7], &[])
        };
        assert_eq!(holding.apply(&other), DeltaAnswer::Apart);
        assert!(holding.knows(1) && holding.knows(4) && !holding.knows(9) && !holding.knows(7));
    }

    #[test]
    fn a_change_under_a_tenure_of_the_year_two_million_is_refused() {
        let holding = Holding::new(Versions::default(), [], &[]);
        let mut versions = Versions::default();
        let step = versions.advance(tenure("owner", 63_000_000_000_000_000));
        let change = Delta {
            step,
            versions,
            ..delta(0, 1, &[1], &[])
        };
        assert_eq!(holding.apply(&change), DeltaAnswer::Stranger);
        assert!(holding.waiting().is_empty());
        assert_eq!(holding.apply(&delta(0, 1, &[1], &[])), DeltaAnswer::Applied);
    }

    #[test]
    fn links_of_a_page_that_is_done_stay_with_its_domain_until_they_are_delivered() {
        let link = Link {
            url: url(99),
            depth: 1,
            target: Target::Page,
        };
        let errand = PageLinks {
            slot: pending(1).slot,
            crawl: CrawlId(7),
            links: vec![link],
        };
        let holding = Holding::new(Versions::default(), [], &[]);
        holding.apply(&Delta {
            errands: vec![errand.clone()],
            ..delta(0, 1, &[1, 2], &[1])
        });
        assert_eq!(
            (holding.waiting(), holding.replica().errands),
            (vec![2], vec![errand.clone()])
        );
        let next = Holding::new(Versions::default(), [], &[]);
        let mut commit = Commit::new();
        replace(&domain(), holding.replica(), &mut commit);
        next.store.commit(&commit).unwrap();
        assert_eq!(next.replica().errands, [errand]);
        next.apply(&Delta {
            delivered: vec![pending(1).slot],
            ..delta(1, 2, &[], &[])
        });
        assert_eq!(next.replica().errands, []);
    }

    #[test]
    fn a_newer_replica_takes_the_place_of_an_older_one() {
        let old = Holding::new(versions_of(&[("a", 1, 1)]), 0..10, &[8, 9]);
        let new = Holding::new(versions_of(&[("a", 1, 1), ("b", 2, 1)]), 0..20, &[15]);
        let mut commit = Commit::new();
        replace(&domain(), new.replica(), &mut commit);
        old.store.commit(&commit).unwrap();
        assert_eq!(old.waiting(), [15]);
        assert_eq!(old.state().versions, new.state().versions);
        assert!((0..20).all(|i| old.knows(i)) && !old.knows(20));
    }

    /// The state of a peer after it merged its replica with another.
    fn joined(into: &Holding, theirs: Sound) -> DomainState {
        let mut commit = Commit::new();
        let state = merge(&into.store, &domain(), into.state(), theirs, &mut commit).unwrap();
        into.store.commit(&commit).unwrap();
        state
    }

    #[test]
    fn a_merger_resurrects_nothing_loses_nothing_and_is_the_same_on_both_sides() {
        // 0..5 are done at both; this one has done 5 and found 20; the other has done 6 and found
        // 30.
        let mine = Holding::new(
            versions_of(&[("a", 1, 1)]),
            (0..10).chain([20]),
            &[6, 7, 8, 9, 20],
        );
        let theirs = Holding::new(
            versions_of(&[("b", 2, 1)]),
            (0..10).chain([30]),
            &[5, 7, 8, 9, 30],
        );
        let (of_mine, of_theirs) = (mine.replica(), theirs.replica());
        let here = joined(&mine, of_theirs);
        let there = joined(&theirs, of_mine);
        for (holding, state) in [(&mine, here), (&theirs, there)] {
            assert_eq!(holding.waiting(), [7, 8, 9, 20, 30]);
            assert_eq!(state.counters.queued, 5);
            assert_eq!(state.versions, versions_of(&[("a", 1, 1), ("b", 2, 1)]));
            assert!((0..10).chain([20, 30]).all(|i| holding.knows(i)) && !holding.knows(40));
        }
    }

    #[test]
    fn of_two_places_for_one_url_both_sides_keep_the_first() {
        let mine = Holding::new(versions_of(&[("a", 1, 1)]), 0..2, &[0, 1]);
        let theirs = Holding::new(versions_of(&[("b", 2, 1)]), 0..2, &[0]);
        let elsewhere = Pending {
            slot: Slot {
                rank: 0,
                sequence: 70,
            },
            ..pending(1)
        };
        let mut commit = Commit::new();
        commit.put_pending(&domain(), &elsewhere);
        theirs.store.commit(&commit).unwrap();
        let (of_mine, of_theirs) = (mine.replica(), theirs.replica());
        assert_eq!(joined(&mine, of_theirs).counters.queued, 2);
        assert_eq!(joined(&theirs, of_mine).counters.queued, 2);
        assert_eq!((mine.waiting(), theirs.waiting()), (vec![0, 1], vec![0, 1]));
    }

    impl Holding {
        fn put(&self, pending: &Pending) {
            let mut commit = Commit::new();
            commit.put_pending(&domain(), pending);
            self.store.commit(&commit).unwrap();
        }

        fn visits(&self) -> Vec<(u64, u64)> {
            let queue = queue(&self.store, &domain()).unwrap();
            let visit =
                |pending: &Pending| (pending.slot.sequence, pending.visit.since().as_millis());
            queue.iter().map(visit).collect()
        }
    }

    #[test]
    fn a_merger_deletes_no_waiting_revisit() {
        let mine = Holding::new(versions_of(&[("a", 1, 1)]), 0..10, &[]);
        mine.put(&again(3, 50, 70));
        let theirs = Holding::new(versions_of(&[("b", 2, 1)]), 0..10, &[]);
        let (of_mine, of_theirs) = (mine.replica(), theirs.replica());
        assert_eq!(joined(&mine, of_theirs).counters.queued, 1);
        assert_eq!(joined(&theirs, of_mine).counters.queued, 1);
        assert_eq!(
            (mine.visits(), theirs.visits()),
            (vec![(70, 50)], vec![(70, 50)])
        );
    }

    #[test]
    fn of_two_visits_of_one_page_both_sides_keep_the_later() {
        let mine = Holding::new(versions_of(&[("a", 1, 1)]), 0..10, &[4]);
        mine.put(&again(3, 90, 70));
        let theirs = Holding::new(versions_of(&[("b", 2, 1)]), 0..10, &[]);
        theirs.put(&again(3, 50, 60));
        theirs.put(&again(4, 50, 61));
        let (of_mine, of_theirs) = (mine.replica(), theirs.replica());
        assert_eq!(joined(&mine, of_theirs).counters.queued, 2);
        assert_eq!(joined(&theirs, of_mine).counters.queued, 2);
        let later = vec![(61, 50), (70, 90)];
        assert_eq!((mine.visits(), theirs.visits()), (later.clone(), later));
    }

    #[test]
    fn a_revisit_that_is_put_is_neither_admitted_nor_logged_again() {
        let holding = Holding::new(Versions::default(), [], &[]);
        holding.apply(&delta(0, 1, &[1, 2], &[]));
        holding.apply(&delta(1, 2, &[], &[1]));
        let put = Delta {
            puts: vec![again(1, 50, 70)],
            ..delta(2, 3, &[], &[])
        };
        assert_eq!(holding.apply(&put), DeltaAnswer::Applied);
        let counters = holding.state().counters;
        assert_eq!((counters.queued, counters.admitted), (2, 2));
        assert_eq!(holding.store.seen(&domain()).count(), 2);
        assert_eq!(holding.visits(), [(2, 0), (70, 50)]);
    }
}
