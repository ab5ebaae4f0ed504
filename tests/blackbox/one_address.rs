//! Many names at one address: several peers together ask it no faster than one alone may.

use crate::{
    patience,
    swarm_trial::{Trial, view},
};
use apoidea_toyweb::{AccessLog, ToyWeb};
use std::{collections::BTreeSet, time::Duration};

/// Between two requests to the address.
const ADDRESS_DELAY: Duration = Duration::from_millis(200);
/// Between two requests to one host: any host alone could use all turns of the address.
const HOST_DELAY: Duration = Duration::from_millis(200);
const PEERS: usize = 5;
/// Requests in this time are counted together.
const WINDOW: Duration = Duration::from_secs(20);
/// The number of messages about turns at addresses.
const TURNS: u8 = 36;
/// Overlay bytes for a page that these messages may take.
const MOST_BYTES: f64 = 20.0;
/// Enough requests to see all peers take their turns, several terms long.
const ENOUGH: usize = 350;
const PATIENCE: Duration = Duration::from_secs(400);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_peers_ask_one_address_no_faster_than_one() {
    // 88 sites, each of which has one owner.
    let plan = ToyWeb::builder(5)
        .hosts(100)
        .pages(2000)
        .mean_bytes(2000)
        .skew(0.2)
        .addresses(1);
    let settings = [
        (
            "crawl.private_address_delay_ms",
            ADDRESS_DELAY.as_millis().to_string(),
        ),
        ("crawl.share_private_addresses", "true".to_owned()),
    ];
    let trial = Trial::start_with(plan, PEERS, HOST_DELAY, &settings).await;
    let asked = patience::look(PATIENCE, async || {
        let log = trial.toy.web.log();
        (log.visits.len() >= ENOUGH).then_some(log)
    });
    let log = asked.await.expect("the address is asked often");
    let statuses = trial.statuses().await;
    let pages: Vec<u64> = statuses.iter().map(|status| status.totals.pages).collect();
    let bytes = bytes_about_turns(&trial).await as f64 / pages.iter().sum::<u64>() as f64;
    let allowed = WINDOW.as_secs_f64() / ADDRESS_DELAY.as_secs_f64();
    let most = most_in_a_window(&log) as f64 / allowed;
    let mean = mean_rate(&log) * ADDRESS_DELAY.as_secs_f64();
    println!(
        "pages of each {pages:?}; {mean:.2} of the rate of one peer in the mean, {most:.2} in the \
         busiest {WINDOW:?}; {bytes:.1} bytes for each page"
    );
    let addresses: BTreeSet<_> = log.visits.iter().map(|visit| visit.server.ip()).collect();
    assert_eq!(addresses.len(), 1);
    assert!(most <= 1.2, "{most} times the rate of one peer");
    assert!(mean >= 0.5, "the address was hardly asked: {mean}");
    // Arcs are unequal: one or two peers may own none of the sites.
    assert!(pages.iter().filter(|pages| **pages > 0).count() >= PEERS - 2);
    assert!(bytes <= MOST_BYTES, "{bytes} bytes for each page");
    assert_eq!(trial.breaches(&log), [""; 0]);
}

/// Requests in the busiest window.
fn most_in_a_window(log: &AccessLog) -> usize {
    let times: Vec<Duration> = log.visits.iter().map(|visit| visit.received).collect();
    let busy = (0..times.len()).map(|first| {
        let end = times[first] + WINDOW;
        times[first..].partition_point(|time| *time < end)
    });
    busy.max().unwrap_or(0)
}

/// Requests in a second, from the first to the last.
fn mean_rate(log: &AccessLog) -> f64 {
    let (first, last) = (&log.visits[0], &log.visits[log.visits.len() - 1]);
    let seconds = (last.received - first.received).as_secs_f64();
    log.visits.len() as f64 / seconds
}

/// Bytes that the peers sent each other about turns.
async fn bytes_about_turns(trial: &Trial) -> u64 {
    let mut bytes = 0;
    for peer in trial.peers.values() {
        let traffic = view(peer).await.expect("it answers").traffic;
        bytes += traffic.kinds.get(&TURNS).map_or(0, |kind| kind.bytes_out);
    }
    bytes
}
