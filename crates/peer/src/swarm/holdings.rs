//! How copies of domains change in the store: by deltas, by a newer copy, by one that knows other
//! things.

use super::{
    change::Delta,
    value::{Errands, Sound},
    wire::DeltaAnswer,
};
use crate::admitter::{decode_state, encode_state};
use apoidea_crawl::{DomainState, Stance, Versions};
use apoidea_model::{Domain, PageUrl, Pending, Time, UrlHash};
use apoidea_store::{Commit, ReadError, Store};
use std::collections::{HashMap, HashSet};

/// URLs read from a queue at a time.
const AT_ONCE: usize = 1000;

/// What the copy in the store contains; nothing if there is none.
pub(crate) fn versions(store: &Store, domain: &Domain) -> Result<Versions, ReadError> {
    let stored = store.domain(domain)?;
    Ok(stored.map_or_else(Versions::default, |bytes| {
        decode_state(domain, &bytes).versions
    }))
}

/// What the holder of a copy says to what another copy contains.
pub(crate) fn compare(mine: &Versions, theirs: &Versions) -> DeltaAnswer {
    match mine.stance(theirs) {
        Stance::Same => DeltaAnswer::Applied,
        Stance::Skip => DeltaAnswer::Ahead,
        Stance::Replace => DeltaAnswer::Behind,
        Stance::Merge => DeltaAnswer::Apart,
    }
}

/// Takes in changes to a copy that lacks just these.
pub(crate) fn apply(
    store: &Store,
    delta: &Delta,
    commit: &mut Commit,
) -> Result<DeltaAnswer, ReadError> {
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
        .and_then(|bytes| postcard::from_bytes::<DomainState>(bytes).ok())
    {
        let reductions = std::mem::take(&mut state.reductions);
        state = news;
        (state.reductions, state.counters) = (reductions, counters);
    }
    let new = || {
        delta
            .puts
            .iter()
            .filter(|put| put.attempts == 0)
            .map(|put| &put.url)
    };
    state.admitted(new(), 0, 0);
    // Only an estimate: whoever begins to crawl the domain counts.
    state.counters.queued = state
        .counters
        .queued
        .saturating_sub(delta.removes.len() as u64);
    state.versions = delta.versions.clone();
    commit.append_seen(&delta.domain, &new().map(PageUrl::hash).collect::<Vec<_>>());
    delta
        .puts
        .iter()
        .for_each(|put| commit.put_pending(&delta.domain, put));
    delta
        .removes
        .iter()
        .for_each(|&slot| commit.remove_pending(&delta.domain, slot));
    put_errands(&delta.domain, &delta.errands, commit);
    delta
        .delivered
        .iter()
        .for_each(|&slot| commit.remove_errand(&delta.domain, slot));
    commit.put_domain(&delta.domain, encode_state(&state));
    Ok(DeltaAnswer::Applied)
}

/// Is the delta all that a copy lacks?
fn is_next(mine: &Versions, delta: &Delta) -> bool {
    let step = delta.step;
    (step.base..step.version).contains(&mine.of(step.tenure)) && mine.after(step) == delta.versions
}

/// Puts a copy in place of what is known.
pub(crate) fn replace(
    domain: &Domain,
    mut theirs: Sound,
    now: Time,
    commit: &mut Commit,
) -> DomainState {
    theirs.state.bound(now);
    commit.forget_domain(domain);
    commit.append_seen(domain, &theirs.seen);
    theirs
        .queue
        .iter()
        .for_each(|pending| commit.put_pending(domain, pending));
    put_errands(domain, &theirs.errands, commit);
    commit.put_domain(domain, encode_state(&theirs.state));
    theirs.state
}

/// Joins a copy with what is known: what either has done is done, what either wants and the other
/// has not done waits. Whoever joins the same copies comes to the same, in whatever order.
pub(crate) fn merge(
    store: &Store,
    domain: &Domain,
    mine: DomainState,
    mut theirs: Sound,
    now: Time,
    commit: &mut Commit,
) -> Result<DomainState, ReadError> {
    theirs.state.bound(now);
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
        let is_done = !their_queue.contains_key(hash) && knows(&theirs.state, &their_log, *hash);
        // Of two places for one URL the first one counts, here and there.
        let is_elsewhere = their_queue
            .get(hash)
            .is_some_and(|theirs| theirs.slot < pending.slot);
        if is_done || is_elsewhere {
            commit.remove_pending(domain, pending.slot);
        }
        queued += u64::from(!is_done);
    }
    for (hash, pending) in &their_queue {
        match my_queue.get(hash) {
            Some(mine) if mine.slot <= pending.slot => {}
            Some(_) => commit.put_pending(domain, pending),
            None if knows(&mine, &my_log, *hash) => {}
            None => {
                commit.put_pending(domain, pending);
                queued += 1;
            }
        }
    }
    put_errands(domain, &theirs.errands, commit);
    let is_later = theirs.state.versions.latest() > mine.versions.latest();
    let mut state = if is_later {
        theirs.state.clone()
    } else {
        mine.clone()
    };
    state.reductions = mine.reductions.clone();
    if let Some(reductions) = mine.reductions.merged(&theirs.state.reductions) {
        state.reductions = reductions;
        commit.append_seen(domain, &theirs.seen);
    } else {
        commit.append_seen(domain, &their_queue.into_keys().collect::<Vec<_>>());
    }
    state.counters.queued = queued;
    state.counters.admitted = (my_log.len() + theirs.seen.len()) as u64;
    state.versions = mine.versions.joined(&theirs.state.versions);
    commit.put_domain(domain, encode_state(&state));
    Ok(state)
}

fn put_errands(domain: &Domain, errands: &Errands, commit: &mut Commit) {
    errands
        .iter()
        .for_each(|(slot, links)| commit.put_errand(domain, *slot, links));
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
    use crate::swarm::value::Value;
    use apoidea_crawl::{Step, Tenure};
    use apoidea_model::{Key, Link, PageUrl, PeerId, Slot, Target};

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
        Pending {
            slot,
            url: url(number),
            depth: 0,
            target: Target::Page,
            attempts: 0,
            not_before: Time::ZERO,
        }
    }

    fn tenure(peer: &str, millis: u64) -> Tenure {
        Tenure::begin(
            PeerId::at(Key::hash(peer)),
            Time::from_millis(millis),
            Tenure::default(),
        )
    }

    struct Holder {
        _folder: tempfile::TempDir,
        store: Store,
    }

    impl Holder {
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
                commit.put_domain(&domain(), encode_state(&state));
                commit.append_seen(&domain(), &hashes);
                waiting
                    .iter()
                    .for_each(|&i| commit.put_pending(&domain(), &pending(i)));
                store.commit(&commit).unwrap();
            }
            Holder {
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

        fn value(&self) -> Sound {
            Value::read(&self.store, &domain())
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
            let answer = apply(&self.store, delta, &mut commit).unwrap();
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
        let holder = Holder::new(Versions::default(), [], &[]);
        assert_eq!(
            holder.apply(&delta(0, 1, &[1, 2, 3], &[])),
            DeltaAnswer::Applied
        );
        assert_eq!(
            holder.apply(&delta(0, 1, &[1, 2, 3], &[])),
            DeltaAnswer::Applied
        );
        assert_eq!(holder.apply(&delta(2, 3, &[9], &[])), DeltaAnswer::Behind);
        assert_eq!(holder.apply(&delta(1, 2, &[4], &[1])), DeltaAnswer::Applied);
        assert_eq!(holder.waiting(), [2, 3, 4]);
        assert_eq!(
            (
                holder.state().counters.queued,
                holder.state().counters.admitted
            ),
            (3, 4)
        );
        assert_eq!(holder.apply(&delta(0, 1, &[7], &[])), DeltaAnswer::Ahead);
        let other = Delta {
            versions: versions_of(&[("other", 7, 1)]),
            ..delta(0, 1, &[7], &[])
        };
        assert_eq!(holder.apply(&other), DeltaAnswer::Apart);
        assert!(holder.knows(1) && holder.knows(4) && !holder.knows(9) && !holder.knows(7));
    }

    #[test]
    fn links_of_a_page_that_is_done_stay_with_its_domain_until_they_are_delivered() {
        let link = Link {
            url: url(99),
            depth: 1,
            target: Target::Page,
        };
        let errand = (pending(1).slot, vec![link]);
        let holder = Holder::new(Versions::default(), [], &[]);
        holder.apply(&Delta {
            errands: vec![errand.clone()],
            ..delta(0, 1, &[1, 2], &[1])
        });
        assert_eq!(
            (holder.waiting(), holder.value().errands),
            (vec![2], vec![errand.clone()])
        );
        let next = Holder::new(Versions::default(), [], &[]);
        let mut commit = Commit::new();
        replace(&domain(), holder.value(), Time::ZERO, &mut commit);
        next.store.commit(&commit).unwrap();
        assert_eq!(next.value().errands, [errand]);
        next.apply(&Delta {
            delivered: vec![pending(1).slot],
            ..delta(1, 2, &[], &[])
        });
        assert_eq!(next.value().errands, []);
    }

    #[test]
    fn a_newer_copy_takes_the_place_of_an_older_one() {
        let old = Holder::new(versions_of(&[("a", 1, 1)]), 0..10, &[8, 9]);
        let new = Holder::new(versions_of(&[("a", 1, 1), ("b", 2, 1)]), 0..20, &[15]);
        let mut commit = Commit::new();
        replace(&domain(), new.value(), Time::ZERO, &mut commit);
        old.store.commit(&commit).unwrap();
        assert_eq!(old.waiting(), [15]);
        assert_eq!(old.state().versions, new.state().versions);
        assert!((0..20).all(|i| old.knows(i)) && !old.knows(20));
    }

    /// What a holder has after it joined its copy with another.
    fn joined(into: &Holder, theirs: Sound) -> DomainState {
        let mut commit = Commit::new();
        let state = merge(
            &into.store,
            &domain(),
            into.state(),
            theirs,
            Time::ZERO,
            &mut commit,
        )
        .unwrap();
        into.store.commit(&commit).unwrap();
        state
    }

    #[test]
    fn a_merger_resurrects_nothing_loses_nothing_and_is_the_same_on_both_sides() {
        // 0..5 are done at both; this one has done 5 and found 20; the other has done 6 and found
        // 30.
        let mine = Holder::new(
            versions_of(&[("a", 1, 1)]),
            (0..10).chain([20]),
            &[6, 7, 8, 9, 20],
        );
        let theirs = Holder::new(
            versions_of(&[("b", 2, 1)]),
            (0..10).chain([30]),
            &[5, 7, 8, 9, 30],
        );
        let (of_mine, of_theirs) = (mine.value(), theirs.value());
        let here = joined(&mine, of_theirs);
        let there = joined(&theirs, of_mine);
        for (holder, state) in [(&mine, here), (&theirs, there)] {
            assert_eq!(holder.waiting(), [7, 8, 9, 20, 30]);
            assert_eq!(state.counters.queued, 5);
            assert_eq!(state.versions, versions_of(&[("a", 1, 1), ("b", 2, 1)]));
            assert!((0..10).chain([20, 30]).all(|i| holder.knows(i)) && !holder.knows(40));
        }
    }

    #[test]
    fn of_two_places_for_one_url_both_sides_keep_the_first() {
        let mine = Holder::new(versions_of(&[("a", 1, 1)]), 0..2, &[0, 1]);
        let theirs = Holder::new(versions_of(&[("b", 2, 1)]), 0..2, &[0]);
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
        let (of_mine, of_theirs) = (mine.value(), theirs.value());
        assert_eq!(joined(&mine, of_theirs).counters.queued, 2);
        assert_eq!(joined(&theirs, of_mine).counters.queued, 2);
        assert_eq!((mine.waiting(), theirs.waiting()), (vec![0, 1], vec![0, 1]));
    }
}
