//! Killing a peer at any moment loses no page, repeats hardly any, and makes it no less polite.

use crate::{archived::Archived, contract::Contract, toy::Toy};
use apoidea_model::{PageUrl, Time};
use apoidea_peer::State;
use apoidea_toyweb::{AccessLog, ToyWeb};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

const KILLS: usize = 25;
const SEED: u64 = 20_260_101;
const PATIENCE: Duration = Duration::from_secs(120);
/// A page that was answered so long before a kill is on the disk, even if that is busy.
const DURABLE_AFTER: Duration = Duration::from_secs(3);
/// A request that was sent just before a kill may reach a busy server so long after it.
const LATE: Duration = Duration::from_secs(1);
const CONTRACT: Contract = Contract {
    delay: Duration::from_millis(50),
    back_off: Duration::ZERO,
    crawl_delays: &[],
    retry_afters: &[],
    slow: &[],
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_is_killed_again_and_again_crawls_everything_once() {
    let plan = ToyWeb::builder(5)
        .hosts(60)
        .pages(9000)
        .mean_bytes(6000)
        .skew(0.3)
        .copies_percent(10.0);
    let toy = Toy::start(plan).await;
    let launch = toy
        .launch()
        .set("crawl.private_delay_ms", CONTRACT.delay.as_millis());
    let first = toy
        .launch_with_seeds()
        .set("crawl.private_delay_ms", CONTRACT.delay.as_millis());
    // The seeds are accepted once; nothing but the disk knows them afterwards.
    first.start().await.kill();
    let mut random = StdRng::seed_from_u64(SEED);
    let mut kills = Vec::new();
    for _ in 0..KILLS {
        let peer = launch.spawn();
        tokio::time::sleep(Duration::from_millis(random.random_range(50..1500))).await;
        kills.push(Time::from(SystemTime::now()));
        peer.kill();
    }
    let fetched_by_then = toy.web.log().requests_per_url().len();
    let peer = launch.start().await;
    let total = toy.web.truth().expected_total();
    let status = peer.wait("everything is crawled", PATIENCE, |status| {
        status.state == State::Idle && status.queued == 0
    });
    let status = status.await;
    peer.stop().await;

    let log = toy.web.log();
    let requests = log.requests_per_url();
    let missed: Vec<PageUrl> = toy
        .web
        .truth()
        .must_fetch()
        .filter(|url| !requests.contains_key(url.as_str()))
        .collect();
    assert_eq!(missed, [], "seed {SEED}");
    assert!(
        (fetched_by_then as u64) < total,
        "the kills came too late: {fetched_by_then} of {total}"
    );
    assert_eq!(unexplained(&log, &kills), [""; 0], "seed {SEED}");
    assert_eq!(CONTRACT.breaches(&log), [""; 0], "seed {SEED}");
    let repeats: usize = requests.values().map(|times| times - 1).sum();
    println!(
        "{KILLS} kills: {repeats} requests repeated, {} in all",
        log.visits.len()
    );
    // 32 fetches may be under way, and what a tenth of a second brings may not be on the disk.
    assert!(repeats <= KILLS * 64, "{repeats} repeats, seed {SEED}");
    check_archive(&toy);
    assert_eq!(status.queued, 0);
}

/// Pages that were asked for again although their first answer was on the disk before the next
/// kill.
fn unexplained(log: &AccessLog, kills: &[Time]) -> Vec<String> {
    let mut visits = BTreeMap::<String, Vec<Time>>::new();
    log.visits
        .iter()
        .for_each(|visit| visits.entry(visit.url()).or_default().push(visit.wall));
    let mut unexplained = Vec::new();
    for (url, times) in visits {
        for pair in times.windows(2) {
            let explains = |kill: &Time| {
                *kill + LATE >= pair[0] && *kill <= pair[1] && kill.since(pair[0]) <= DURABLE_AFTER
            };
            if !kills.iter().any(explains) {
                unexplained.push(format!("{url} at {:?} and {:?}", pair[0], pair[1]));
            }
        }
    }
    unexplained
}

/// Every page is there, once; of copies one is the original.
fn check_archive(toy: &Toy) {
    let archived = Archived::of(&toy.data());
    let times = |url: &PageUrl| {
        archived.responses.get(url).unwrap_or(&0) + archived.revisits.get(url).unwrap_or(&0)
    };
    let wrong: Vec<(PageUrl, usize)> = toy
        .web
        .truth()
        .must_keep()
        .map(|url| (url.clone(), times(&url)))
        .collect();
    let wrong: Vec<_> = wrong.into_iter().filter(|(_, times)| *times != 1).collect();
    assert_eq!(wrong, [], "seed {SEED}");
    for group in toy.web.truth().copies() {
        let originals = group
            .iter()
            .filter(|url| archived.responses.contains_key(*url))
            .count();
        assert!(originals >= 1, "{group:#?} has no original");
    }
    archived.check_with_warcio();
}
