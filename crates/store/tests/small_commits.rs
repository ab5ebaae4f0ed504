//! Many small commits in a row, as links to many domains bring them, must not bring the database to
//! a standstill.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use apoidea_model::{CrawlId, Domain, Link, Pending, Slot, Target, Time, UrlHash};
use apoidea_store::{Commit, Store, StoreOptions};

/// A standstill came after some 40,000 to 90,000.
const COMMITS: u64 = 150_000;

#[test]
fn a_hundred_thousand_small_commits_go_through() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
    for n in 0..COMMITS {
        let domain: Domain = format!("h{n}.example").parse().unwrap();
        let link = Link {
            url: format!("http://{domain}/section/page.html")
                .parse()
                .unwrap(),
            depth: 0,
            target: Target::Page,
        };
        let slot = Slot {
            rank: 0,
            sequence: n,
        };
        let pending = Pending::admitted(link, slot, CrawlId::OPEN);
        let mut commit = Commit::new();
        commit.append_seen(&domain, &[UrlHash(n)]);
        commit.put_pending(&domain, &pending);
        commit.put_domain(&domain, vec![7; 60]);
        commit.park(&domain, Time::from_millis(n));
        store.apply(&commit).unwrap();
    }
    assert_eq!(store.domain_count().unwrap(), COMMITS);
}
