//! Memory stays small whatever is queued and however long the crawl. Long measurements, run when
//! asked for: `cargo test --release --test blackbox memory -- --ignored --nocapture`.

use crate::{
    peer_process::{Launch, PeerProcess},
    toy::Toy,
};
use apoidea_peer::State;
use apoidea_toyweb::ToyWeb;
use reqwest::Method;
use std::{
    fs,
    time::{Duration, Instant},
};

const MIB: u64 = 1 << 20;
/// What a volunteer's computer can spare without noticing.
const LIMIT_MIB: u64 = 150;
const HOSTS: usize = 100_000;
const URLS_PER_HOST: usize = 50;
/// As many as fit into one request.
const AT_ONCE: usize = 10_000;
const PATIENCE: Duration = Duration::from_secs(1800);

/// Resident memory of a process, in MiB, now and at its peak.
fn resident_mib(peer: &PeerProcess) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{}/status", peer.id())).unwrap();
    let kib = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    (kib("VmRSS:") * 1024 / MIB, kib("VmHWM:") * 1024 / MIB)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes some minutes"]
async fn five_million_urls_waiting_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new(&folder.path().join("data"));
    let peer = launch.start().await;
    peer.request(Method::POST, "/api/pause")
        .send()
        .await
        .unwrap();
    let begun = Instant::now();
    let url = |n: usize| {
        format!(
            "http://h{}.example/section/page-{}.html",
            n % HOSTS,
            n / HOSTS
        )
    };
    for first in (0..HOSTS * URLS_PER_HOST).step_by(AT_ONCE) {
        let urls: Vec<String> = (first..first + AT_ONCE).map(url).collect();
        assert_eq!(peer.seed(&urls).await.accepted, AT_ONCE as u64);
        if first % 250_000 == 0 {
            println!(
                "{first} URLs, {:?}: {:?} MiB (now, peak)",
                begun.elapsed(),
                resident_mib(&peer)
            );
        }
    }
    let queued = (HOSTS * URLS_PER_HOST) as u64;
    peer.wait("all are queued", PATIENCE, |status| {
        status.queued == queued && status.domains == HOSTS as u64
    })
    .await;
    let (now, peak) = resident_mib(&peer);
    println!(
        "{queued} URLs of {HOSTS} hosts in {:?}: {now} MiB, peak {peak} MiB",
        begun.elapsed()
    );
    assert!(peak < LIMIT_MIB, "{peak} MiB");
    peer.stop().await;

    let begun = Instant::now();
    let peer = launch.start().await;
    let started = begun.elapsed();
    assert_eq!(
        peer.wait("it remembers", PATIENCE, |status| status.queued > 0)
            .await
            .queued,
        queued
    );
    let (now, peak) = resident_mib(&peer);
    println!("started again in {started:?}: {now} MiB, peak {peak} MiB");
    assert!(peak < LIMIT_MIB, "{peak} MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes some minutes"]
async fn a_long_crawl_does_not_grow() {
    let toy = Toy::start(
        ToyWeb::builder(12)
            .hosts(1000)
            .pages(100_000)
            .mean_bytes(15_000)
            .skew(0.3)
            .addresses(64),
    )
    .await;
    let peer = toy
        .launch_with_seeds()
        .set("crawl.private_delay_ms", 1)
        .start()
        .await;
    let begun = Instant::now();
    let mut samples = Vec::new();
    for tenth in 1..=10 {
        let pages = tenth * 10_000;
        peer.wait("it goes on", PATIENCE, |status| {
            status.totals.pages >= pages
        })
        .await;
        samples.push(resident_mib(&peer).0);
        println!(
            "{pages} pages, {:?}: {:?} MiB (now, peak)",
            begun.elapsed(),
            resident_mib(&peer)
        );
    }
    peer.wait("it is done", PATIENCE, |status| {
        status.state == State::Idle && status.queued == 0
    })
    .await;
    let (now, peak) = resident_mib(&peer);
    println!("done in {:?}: {now} MiB, peak {peak} MiB", begun.elapsed());
    assert!(peak < LIMIT_MIB, "{peak} MiB");
    let warm = samples[2];
    assert!(samples[9] <= warm + warm / 4, "it grows: {samples:?}");
}
