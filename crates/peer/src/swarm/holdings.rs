//! How copies of domains change in the store: by deltas, by a newer copy, by one that knows other things.

use super::{change::Delta, value::Sound, wire::DeltaAnswer};
use crate::admitter::{decode_state, encode_state};
use apoidea_crawl::{DomainState, Stamp, Tenure};
use apoidea_model::{Domain, PageUrl, Pending, Time, UrlHash};
use apoidea_store::{Commit, ReadError, Store};
use std::collections::{HashMap, HashSet};

/// URLs read from a queue at a time.
const AT_ONCE: usize = 1000;

/// The stamp of the copy in the store; zero if there is none.
pub(crate) fn stamp(store: &Store, domain: &Domain) -> Result<Stamp, ReadError> {
    let stored = store.domain(domain)?;
    Ok(stored.map_or(Stamp::ZERO, |bytes| decode_state(domain, &bytes).stamp))
}

/// Takes in changes to a copy.
pub(crate) fn apply(store: &Store, delta: &Delta, commit: &mut Commit) -> Result<DeltaAnswer, ReadError> {
    let stored = store.domain(&delta.domain)?;
    let mut state = stored.map_or_else(DomainState::default, |bytes| decode_state(&delta.domain, &bytes));
    if state.stamp != delta.base {
        return Ok(match () {
            () if state.stamp >= delta.stamp && state.stamp.tenure == delta.stamp.tenure => {
                DeltaAnswer::Applied
            }
            () if state.stamp.tenure > delta.stamp.tenure => DeltaAnswer::Stale(state.stamp),
            () => DeltaAnswer::Behind,
        });
    }
    if delta.puts.iter().any(|pending| pending.url.host() != delta.domain.as_str()) {
        return Ok(DeltaAnswer::Behind);
    }
    let counters = state.counters;
    if let Some(news) = delta.state.as_ref().and_then(|bytes| postcard::from_bytes::<DomainState>(bytes).ok())
    {
        let reductions = std::mem::take(&mut state.reductions);
        state = news;
        (state.reductions, state.counters) = (reductions, counters);
    }
    let new = || delta.puts.iter().filter(|put| put.attempts == 0).map(|put| &put.url);
    state.admitted(new(), 0, 0);
    state.counters.queued = state.counters.queued.saturating_sub(delta.removes.len() as u64);
    state.stamp = delta.stamp;
    commit.append_seen(&delta.domain, &new().map(PageUrl::hash).collect::<Vec<_>>());
    delta.puts.iter().for_each(|put| commit.put_pending(&delta.domain, put));
    delta.removes.iter().for_each(|&slot| commit.remove_pending(&delta.domain, slot));
    commit.put_domain(&delta.domain, encode_state(&state));
    Ok(DeltaAnswer::Applied)
}

/// Puts a copy in place of what is known.
pub(crate) fn replace(domain: &Domain, mut theirs: Sound, now: Time, commit: &mut Commit) -> DomainState {
    theirs.state.bound(now);
    commit.forget_domain(domain);
    commit.append_seen(domain, &theirs.seen);
    theirs.queue.iter().for_each(|pending| commit.put_pending(domain, pending));
    commit.put_domain(domain, encode_state(&theirs.state));
    theirs.state
}

/// Joins a copy with what is known: what either has done is done, what either wants and the other has not done waits.
pub(crate) fn merge(
    store: &Store,
    domain: &Domain,
    mine: DomainState,
    mut theirs: Sound,
    tenure: Tenure,
    now: Time,
    commit: &mut Commit,
) -> Result<DomainState, ReadError> {
    theirs.state.bound(now);
    let my_log = store.seen(domain).collect::<Result<HashSet<_>, _>>()?;
    let their_log: HashSet<UrlHash> = theirs.seen.iter().copied().collect();
    let my_queue: HashMap<UrlHash, Pending> =
        queue(store, domain)?.into_iter().map(|pending| (pending.url.hash(), pending)).collect();
    let their_queue: HashSet<UrlHash> = theirs.queue.iter().map(|pending| pending.url.hash()).collect();
    let mut queued = my_queue.len() as u64;
    for (hash, pending) in &my_queue {
        let is_done = !their_queue.contains(hash) && knows(&theirs.state, &their_log, *hash);
        if is_done {
            commit.remove_pending(domain, pending.slot);
            queued -= 1;
        }
    }
    for pending in &theirs.queue {
        if !knows(&mine, &my_log, pending.url.hash()) {
            commit.put_pending(domain, pending);
            queued += 1;
        }
    }
    let mut state = if theirs.state.stamp > mine.stamp { theirs.state.clone() } else { mine.clone() };
    state.reductions = mine.reductions.clone();
    if let Some(reductions) = mine.reductions.merged(&theirs.state.reductions) {
        state.reductions = reductions;
        commit.append_seen(domain, &theirs.seen);
    } else {
        let waiting: Vec<UrlHash> = their_queue.into_iter().collect();
        commit.append_seen(domain, &waiting);
    }
    state.counters.queued = queued;
    state.counters.admitted = (my_log.len() + theirs.seen.len()) as u64;
    state.stamp = mine.stamp.max(theirs.state.stamp).next(tenure);
    commit.put_domain(domain, encode_state(&state));
    Ok(state)
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
    use apoidea_model::{Key, PageUrl, PeerId, Slot, Target};

    const DOMAIN: &str = "a.test";

    fn domain() -> Domain {
        DOMAIN.parse().unwrap()
    }

    fn url(number: u64) -> PageUrl {
        PageUrl::parse(&format!("http://{DOMAIN}/{number}")).unwrap()
    }

    fn pending(number: u64) -> Pending {
        let slot = Slot { rank: 0, sequence: number };
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
        Tenure::begin(PeerId::at(Key::hash(peer)), Time::from_millis(millis), Tenure::default())
    }

    struct Holder {
        _folder: tempfile::TempDir,
        store: Store,
    }

    impl Holder {
        /// Knows some URLs, of which some wait.
        fn new(stamp: Stamp, seen: impl IntoIterator<Item = u64>, waiting: &[u64]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path(), Default::default()).unwrap();
            let hashes: Vec<UrlHash> = seen.into_iter().map(|i| url(i).hash()).collect();
            let mut state = DomainState::default();
            state.stamp = stamp;
            state.counters.admitted = hashes.len() as u64;
            state.counters.queued = waiting.len() as u64;
            let mut commit = Commit::new();
            if stamp != Stamp::ZERO {
                commit.put_domain(&domain(), encode_state(&state));
                commit.append_seen(&domain(), &hashes);
                waiting.iter().for_each(|&i| commit.put_pending(&domain(), &pending(i)));
                store.commit(&commit).unwrap();
            }
            Holder { _folder: folder, store }
        }

        fn waiting(&self) -> Vec<u64> {
            queue(&self.store, &domain()).unwrap().iter().map(|pending| pending.slot.sequence).collect()
        }

        fn value(&self) -> Sound {
            Value::read(&self.store, &domain()).unwrap().unwrap().check(&domain()).unwrap()
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

    fn delta(base: Stamp, stamp: Stamp, puts: &[u64], removes: &[u64]) -> Delta {
        let puts = puts.iter().map(|&i| pending(i)).collect();
        let removes = removes.iter().map(|&i| pending(i).slot).collect();
        Delta { domain: domain(), base, stamp, puts, removes, state: None }
    }

    #[test]
    fn deltas_apply_in_order_and_a_missing_one_is_noticed() {
        let holder = Holder::new(Stamp::ZERO, [], &[]);
        let first = Stamp::ZERO.next(tenure("owner", 5));
        let (second, third) =
            (first.next(tenure("owner", 5)), first.next(tenure("owner", 5)).next(tenure("owner", 5)));
        assert_eq!(holder.apply(&delta(Stamp::ZERO, first, &[1, 2, 3], &[])), DeltaAnswer::Applied);
        assert_eq!(holder.apply(&delta(Stamp::ZERO, first, &[1, 2, 3], &[])), DeltaAnswer::Applied);
        assert_eq!(holder.apply(&delta(second, third, &[9], &[])), DeltaAnswer::Behind);
        assert_eq!(holder.apply(&delta(first, second, &[4], &[1])), DeltaAnswer::Applied);
        assert_eq!(holder.waiting(), [2, 3, 4]);
        assert_eq!((holder.state().counters.queued, holder.state().counters.admitted), (3, 4));
        let earlier = Stamp::ZERO.next(tenure("other", 1));
        assert_eq!(holder.apply(&delta(earlier, earlier, &[], &[])), DeltaAnswer::Stale(second));
        assert!(holder.knows(1) && holder.knows(4) && !holder.knows(9));
    }

    #[test]
    fn a_newer_copy_takes_the_place_of_an_older_one() {
        let old = Holder::new(Stamp::ZERO.next(tenure("a", 1)), 0..10, &[8, 9]);
        let new = Holder::new(Stamp::ZERO.next(tenure("b", 2)), 0..20, &[15]);
        let mut commit = Commit::new();
        replace(&domain(), new.value(), Time::ZERO, &mut commit);
        old.store.commit(&commit).unwrap();
        assert_eq!(old.waiting(), [15]);
        assert_eq!(old.state().stamp, new.state().stamp);
        assert!((0..20).all(|i| old.knows(i)) && !old.knows(20));
    }

    #[test]
    fn a_merger_resurrects_nothing_and_loses_nothing() {
        // 0..5 are done at both; this one has done 5 and found 20; the other has done 6 and found 30.
        let mine = Holder::new(Stamp::ZERO.next(tenure("a", 1)), (0..10).chain([20]), &[6, 7, 8, 9, 20]);
        let theirs = Holder::new(Stamp::ZERO.next(tenure("b", 2)), (0..10).chain([30]), &[5, 7, 8, 9, 30]);
        let mut commit = Commit::new();
        let tenure = tenure("a", 3);
        merge(&mine.store, &domain(), mine.state(), theirs.value(), tenure, Time::ZERO, &mut commit).unwrap();
        mine.store.commit(&commit).unwrap();
        assert_eq!(mine.waiting(), [7, 8, 9, 20, 30]);
        assert_eq!(mine.state().counters.queued, 5);
        assert!((0..10).chain([20, 30]).all(|i| mine.knows(i)) && !mine.knows(31));
        assert!(mine.state().stamp > theirs.state().stamp);
    }
}
