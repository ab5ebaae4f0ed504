//! A crawl of a web with every quirk there is: all that must be fetched is, nothing else is, and
//! politely.

use crate::{
    archived::Archived, contract::Contract, patience, peer_process::PeerProcess, toy::Toy,
};
use apoidea_model::PageUrl;
use apoidea_peer::{DomainRow, DomainStatus};
use apoidea_toyweb::{AccessLog, Fate, ToyWeb, Visit};
use std::{collections::BTreeMap, time::Duration};

/// For the whole crawl, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
const CONTRACT: Contract = Contract {
    delay: Duration::from_millis(20),
    back_off: Duration::from_secs(1),
    crawl_delays: &[("robots-delay.test", Duration::from_secs(2))],
    retry_afters: &[
        ("busy-seconds.test", Duration::from_secs(2)),
        ("busy-date.test", Duration::from_secs(2)),
        ("busy-always.test", Duration::from_secs(120)),
        ("robots-429.test", Duration::from_secs(3600)),
    ],
    slow: &["slow-head.test", "slow-body.test"],
};
/// Hosts that keep a URL waiting, since they do not answer in time, want patience for long or
/// cannot be found.
const NEVER_DONE: [&str; 8] = [
    "slow-head",
    "slow-body",
    "robots-503",
    "robots-429",
    "robots-reset",
    "busy-always",
    "name-",
    "secure-",
];
/// Filters in every combination: some are followed, then no more.
const COMBINATIONS: (&str, usize) = ("trap-facets.test", 1200);
/// Hosts whose pages come broken, so that asking again is legitimate.
const BROKEN: [&str; 6] = [
    "slow-head",
    "slow-body",
    "body-reset",
    "body-short",
    "reset",
    "not-http",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_with_every_quirk_is_crawled_wholly_and_politely() {
    let plan = ToyWeb::builder(7)
        .everything()
        .hosts(300)
        .pages(30_000)
        .skew(0.5)
        .addresses(64);
    let toy = Toy::start(plan).await;
    let peer = toy.launch_with_seeds().start().await;
    wait_until_done(&peer).await;
    let status = peer.status().await;
    peer.stop().await;
    let log = toy.web.log();

    assert_eq!(CONTRACT.breaches(&log), [""; 0]);
    assert_eq!(forbidden(&toy.web, &log), [""; 0]);
    assert_eq!(missed(&toy.web, &log), []);
    assert_eq!(repeated(&log), [""; 0]);
    let combinations = log
        .visits
        .iter()
        .filter(|visit| &*visit.host == COMBINATIONS.0)
        .count();
    assert!(
        (100..COMBINATIONS.1).contains(&combinations),
        "{combinations}"
    );
    assert_eq!(toy.web.honeypot().intruders(), []);

    let archived = Archived::of(&toy.data());
    let not_kept: Vec<PageUrl> = toy
        .web
        .truth()
        .must_keep()
        .filter(|url| !archived.contains(url))
        .collect();
    assert_eq!(not_kept, []);
    let wishes = toy
        .web
        .truth()
        .special(Fate::Visit)
        .filter(|url| url.host() == "directives.test");
    assert_eq!(
        wishes
            .filter(|url| archived.contains(url))
            .collect::<Vec<_>>(),
        []
    );
    let copies = toy.web.truth().copies();
    for group in &copies {
        let originals = group
            .iter()
            .filter(|url| archived.responses.contains_key(*url))
            .count();
        assert_eq!(originals, 1, "one of {group:#?} is the original");
    }
    let duplicates: usize = copies.iter().map(|group| group.len() - 1).sum();
    assert!(
        duplicates > 100 && status.totals.duplicates >= duplicates as u64,
        "{duplicates} {status:?}"
    );
    archived.check_with_warcio();
}

/// Waits until URLs are left only at hosts that never end, one each, or that have had enough of us.
async fn wait_until_done(peer: &PeerProcess) {
    let is_expected = |row: &DomainRow| {
        let is_listed = NEVER_DONE
            .iter()
            .any(|name| row.domain.as_str().starts_with(name));
        matches!(row.state, DomainStatus::Stopped { .. }) || row.queued == 1 && is_listed
    };
    let mut left = Vec::new();
    let done = patience::look(PATIENCE, async || {
        let status = peer.status().await;
        left = peer.domains().await;
        left.retain(|row| row.queued > 0 && !is_expected(row));
        (left.is_empty() && status.totals.pages > 30_000).then_some(status.at)
    });
    let Some(at) = done.await else {
        panic!("not done in {PATIENCE:?}: {left:#?}\n{}", peer.words());
    };
    // What was fetched last is on the disk by then.
    peer.wait("the last pages are kept", PATIENCE, |status| {
        status.at.since(at) > Duration::from_secs(2)
    })
    .await;
}

fn page(visit: &Visit) -> Option<PageUrl> {
    PageUrl::parse(&visit.url())
        .ok()
        .filter(|url| url.as_str() == visit.url())
}

/// Requests that should never have been made, also those that are not spelled canonically.
fn forbidden(web: &ToyWeb, log: &AccessLog) -> Vec<String> {
    let is_wrong = |visit: &&Visit| page(visit).is_none_or(|url| web.truth().must_not_fetch(&url));
    log.visits.iter().filter(is_wrong).map(Visit::url).collect()
}

/// Pages that should have been requested.
fn missed(web: &ToyWeb, log: &AccessLog) -> Vec<PageUrl> {
    let requests = log.requests_per_url();
    let due = web
        .truth()
        .must_fetch()
        .chain(web.truth().special(Fate::Later));
    due.filter(|url| !requests.contains_key(url.as_str()))
        .collect()
}

/// Pages that were asked for again although they had answered.
fn repeated(log: &AccessLog) -> Vec<String> {
    let mut answers = BTreeMap::<String, Vec<&Visit>>::new();
    log.visits
        .iter()
        .for_each(|visit| answers.entry(visit.url()).or_default().push(visit));
    let is_broken = |visit: &Visit| {
        let failed = matches!(visit.status, 0 | 429 | 500..);
        failed
            || BROKEN
                .iter()
                .any(|name| visit.host.strip_suffix(".test") == Some(name))
    };
    // Other hosts' robots.txt lead here.
    let is_shared = |visit: &Visit| &*visit.host == "robots-elsewhere.test";
    let repeated = answers.into_iter().filter(|(_, visits)| {
        visits[..visits.len() - 1]
            .iter()
            .any(|visit| !is_broken(visit) && !is_shared(visit))
    });
    repeated
        .map(|(url, visits)| format!("{url}: {} times", visits.len()))
        .collect()
}
