//! Taking up where the last run ended, however it ended.

use super::{
    Crawler, Disk, Outbox, Parts, Timers,
    admitter::{AdmitError, park},
    limits::Allowed,
    ownership::last_tenure,
    parking::RESIDENT,
    revisiting::{RULE_VALUE, Revisiting},
    saving::{QUEUED_VALUE, TOTALS_VALUE},
};
use crate::{clock::now, state_codec::decode_state};
use apoidea_crawl::{Ledger, Pages, Tenure, lending::Lending};
use apoidea_store::{Commit, ReadError, Store};
use std::collections::{HashMap, HashSet};

impl Crawler {
    /// A crawler that goes on with what the store remembers.
    pub(crate) fn recover(mut parts: Parts) -> Result<Self, AdmitError> {
        let store = parts.store.clone();
        let totals = store
            .value(TOTALS_VALUE)?
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let tenure = Tenure::begin(parts.swarm.me, now(), last_tenure(&store)?);
        let queued = recover_domains(&mut parts, tenure)?;
        parts.admitter.set_queued(queued);
        let rule = store.value(RULE_VALUE)?;
        let revisiting = Revisiting::new(parts.revisits, rule, now());
        let outbox = Outbox {
            next: store.last_in_outbox()?.map_or(0, |last| last + 1),
            count: 0,
        };
        let mut crawler = Crawler {
            parts,
            pages: Pages::default(),
            lending: Lending::new(1),
            ledger: Ledger::new(tenure),
            parking: HashMap::new(),
            dirty: HashSet::new(),
            timers: Timers::default(),
            totals: totals.unwrap_or_default(),
            allowed: Allowed::default(),
            resolving: 0,
            disk: Disk::default(),
            unacknowledged: Vec::new(),
            adoptions: HashMap::new(),
            quiescing: None,
            outbox,
            owned: 0,
            revisiting,
        };
        crawler.recall_refusals()?;
        crawler.begin_tenure(Tenure::default(), now())?;
        crawler.take_allowance();
        Ok(crawler)
    }
}

/// Parks the domains that were in memory when the last run was cut off. Gives the URLs that wait.
fn recover_domains(parts: &mut Parts, tenure: Tenure) -> Result<u64, AdmitError> {
    let store = &parts.store;
    let cut_off = store.parked_from(RESIDENT)?;
    let stored = store
        .value(QUEUED_VALUE)?
        .and_then(|bytes| bytes.try_into().ok())
        .map(u64::from_be_bytes);
    let queued = match stored {
        Some(queued) if cut_off.is_empty() => queued,
        _ => count_queued(store)?,
    };
    let mut commit = Commit::new();
    for (_, domain) in cut_off {
        let mut state = parts.admitter.load_state(&domain)?;
        // A request may have been under way when the last run was cut off, and pages may have been
        // done that the replicas were not told of.
        state.interrupted(now());
        state.versions.advance(tenure);
        commit.put_domain(&domain, state.encode());
        park(&mut commit, &domain, state.ready_at());
    }
    store.commit(&commit)?;
    Ok(queued)
}

/// URLs waiting in all domains that are not stopped, counted one by one: the sum is not kept
/// exactly across a crash.
fn count_queued(store: &Store) -> Result<u64, ReadError> {
    let mut queued = 0;
    for entry in store.each_domain() {
        let (domain, bytes) = entry?;
        let state = decode_state(&domain, &bytes);
        if state.stopped().is_none() {
            queued += state.counters.queued;
        }
    }
    Ok(queued)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawler::testing::{TestCrawler, url};
    use apoidea_crawl::Outcome;

    #[tokio::test]
    async fn a_domain_that_was_in_memory_wakes_after_a_pause() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        crawler.fetching(&here, 2).await;
        crawler.save().await;
        let before = crawler.state_of(&here).versions;
        let crawler = crawler.crash();
        let wake = crawler.store().wake(&here).unwrap().unwrap();
        assert!(wake < RESIDENT, "its turn comes again");
        assert_eq!(wake, crawler.state_of(&here).ready_at());
        let after = crawler.state_of(&here).versions;
        let is_newer = after.contain(&before) && after != before;
        assert!(is_newer, "the replicas may know less");
    }

    #[tokio::test]
    async fn the_waiting_urls_are_counted_anew_after_a_crash() {
        let mut crawler = TestCrawler::alone();
        let (here, there) = (crawler.own(0), crawler.own(1));
        crawler.admit(&[url(&there, 1)]);
        crawler.save().await;
        let pending = crawler.fetching(&here, 3).await;
        crawler.fetched(&pending, Outcome::Refused(404)).await;
        assert_eq!(crawler.parts.admitter.queued(), 3);
        let mut commit = Commit::new();
        commit.put_domain(&here, crawler.state_of(&here).encode());
        crawler.store().apply(&commit).unwrap();
        let crawler = crawler.crash();
        assert_eq!(crawler.parts.admitter.queued(), 3, "not the one last saved");
    }

    #[tokio::test]
    async fn totals_go_on_after_a_restart() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 2).await;
        crawler.processed(&pending, &[]).await;
        crawler.save().await;
        let crawler = crawler.crash();
        assert_eq!((crawler.totals.pages, crawler.totals.admitted), (1, 2));
    }

    #[tokio::test]
    async fn a_new_outbox_record_overwrites_none_of_the_last_run() {
        let mut crawler = TestCrawler::in_swarm();
        let foreign = crawler.foreign(0);
        crawler.admit(&[url(&foreign, 1)]);
        crawler.admit(&[url(&foreign, 2)]);
        let mut crawler = crawler.crash();
        crawler.admit(&[url(&foreign, 3)]);
        let numbers: Vec<u64> = crawler.outbox().iter().map(|r| r.sequence).collect();
        assert_eq!(numbers, [0, 1, 2]);
    }

    #[tokio::test]
    async fn each_run_begins_a_later_tenure() {
        let crawler = TestCrawler::alone();
        let first = crawler.ledger.tenure();
        assert!(crawler.crash().ledger.tenure() > first);
    }
}
