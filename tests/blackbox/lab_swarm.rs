//! A swarm at real distances: measured round trips of 20 to 400 ms, sites that take their time, and
//! peers that come, go, die, and do not hear each other for a while. The servers' log must show one
//! polite crawler all along.

use crate::{namespace, swarm_trial::Trial};
use apoidea_tests::lab::{self, Lab};
use apoidea_toyweb::{Builder, ToyWeb};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::{
    env,
    time::{Duration, Instant},
};

/// Chooses another course of events.
const SEED_VARIABLE: &str = "APOIDEA_LAB_SEED";
const SEED: u64 = 5;

/// A world to crawl and the peers that live in it.
struct Plan {
    /// Peers that may ever run.
    peers: usize,
    hosts: u32,
    pages: u32,
    /// Between two requests to one host.
    delay: Duration,
    /// The shortest and the longest time that sites take to answer.
    answers: [Duration; 2],
    /// Pages asked for again, of all requests.
    most_repeated: f64,
}

impl Plan {
    /// Takes less than a minute.
    fn brief(peers: usize) -> Self {
        Plan {
            hosts: 24,
            pages: 72,
            delay: Duration::from_secs(1),
            answers: [100, 400].map(Duration::from_millis),
            ..Plan::short(peers)
        }
    }

    /// Takes one or two minutes.
    fn short(peers: usize) -> Self {
        Plan {
            peers,
            hosts: 60,
            pages: 600,
            delay: Duration::from_millis(1500),
            answers: [100, 900].map(Duration::from_millis),
            most_repeated: 0.04,
        }
    }

    /// The pace of the Internet.
    fn long(peers: usize) -> Self {
        Plan {
            peers,
            hosts: 400,
            pages: 8000,
            delay: Duration::from_secs(5),
            answers: [100, 2000].map(Duration::from_millis),
            most_repeated: 0.01,
        }
    }

    fn web(&self, lab: &Lab) -> Builder {
        ToyWeb::builder(SEED)
            .hosts(self.hosts)
            .pages(self.pages)
            .mean_bytes(8000)
            .skew(0.2)
            .copies_percent(2.0)
            .answers_between(self.answers[0], self.answers[1])
            .listening_at(lab.sites(self.hosts as usize))
    }

    /// The web and the lab, without a peer.
    async fn prepare(&self) -> Trial {
        let lab = Lab::build(self.peers).measured(self.hosts as usize);
        let web = self.web(&lab);
        let settings = [("crawl.fetches", "16".to_owned())];
        Trial::prepare(web, self.delay, &settings).await.within(lab)
    }

    /// Judges the crawl by what the servers saw.
    async fn judge(&self, trial: &Trial, story: &[String]) {
        trial.finish().await;
        let log = trial.toy.web.log();
        let repeats: usize = trial.repeats(&log).iter().map(|(_, times)| times - 1).sum();
        let robots = log
            .visits
            .iter()
            .filter(|visit| &*visit.path == "/robots.txt");
        let (missed, breaches) = (trial.missed(&log), trial.breaches(&log));
        let (requests, late) = (log.visits.len(), trial.lab().lateness());
        println!(
            "{requests} requests, {} of them for robots.txt: {} breaches, {} pages missed, {repeats} repeated\n{late:?}\n{story:#?}\n{breaches:#?}",
            robots.count(),
            breaches.len(),
            missed.len(),
        );
        for visit in log.visits.iter().filter(|visit| {
            let host = format!("//{}:", visit.host);
            breaches.iter().any(|breach| breach.contains(&host))
        }) {
            let came = &log.connections[visit.connection];
            let (at, from) = (visit.received.as_secs_f64(), came.client.ip());
            println!("{at:8.3} s  {from}  {}{}", visit.host, visit.path);
        }
        if late.is_inconclusive() {
            eprintln!("INCONCLUSIVE: this machine is too busy for a lab: {late:?}");
            return;
        }
        assert_eq!(breaches, [""; 0], "{story:#?}");
        assert_eq!(missed, [], "{story:#?}");
        let share = repeats as f64 / requests as f64;
        assert!(share <= self.most_repeated, "{repeats} repeats\n{story:#?}");
    }
}

/// Runs a test of this file in a lab.
fn in_a_lab(test: &str) {
    if !namespace::allows(lab::PROBE) {
        eprintln!("note: no namespaces or no TUN devices here; distances are only simulated");
        return;
    }
    namespace::run(&format!("lab_swarm::{test}"), lab::PREPARE, &[]);
}

fn seed() -> u64 {
    let chosen = env::var(SEED_VARIABLE).ok();
    chosen.and_then(|seed| seed.parse().ok()).unwrap_or(SEED)
}

#[test]
fn a_swarm_far_apart_asks_no_host_too_soon() {
    in_a_lab("a_short_life");
}

#[test]
#[ignore = "takes one or two minutes"]
fn peers_that_find_each_other_late_ask_no_host_too_soon() {
    in_a_lab("strangers_meet");
}

#[test]
#[ignore = "takes one or two minutes"]
fn a_swarm_that_falls_apart_and_heals_asks_no_host_too_soon() {
    in_a_lab("a_swarm_falls_apart_and_heals");
}

#[test]
#[ignore = "takes one or two minutes"]
fn a_swarm_far_apart_survives_churn() {
    in_a_lab("a_short_churn");
}

#[test]
#[ignore = "takes about ten minutes"]
fn a_large_swarm_far_apart_survives_a_long_churn() {
    in_a_lab("a_long_churn");
}

#[test]
#[ignore = "takes some minutes"]
fn a_large_swarm_falls_apart_and_heals() {
    in_a_lab("a_large_swarm_falls_apart");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by a_swarm_far_apart_asks_no_host_too_soon"]
async fn a_short_life() {
    if namespace::is_prepared() {
        live(&Plan::brief(5)).await;
    }
}

/// The swarm falls in two and heals, one peer leaves, and another joins.
async fn live(plan: &Plan) {
    let mut trial = plan.prepare().await;
    for _ in 1..plan.peers {
        trial.join().await;
    }
    trial.wait_for_a_ring().await;
    trial.seed_last().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut story = vec![told(&trial, "the swarm falls apart")];
    trial.lab().divide(&[&[0, 1], &[2, 3]]);
    tokio::time::sleep(Duration::from_secs(8)).await;
    trial.lab().unite();
    story.push(told(&trial, "it is one again"));
    trial.leave(1).await;
    story.push(told(&trial, "one has left"));
    trial.join().await;
    plan.judge(&trial, &story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by peers_that_find_each_other_late_ask_no_host_too_soon"]
async fn strangers_meet() {
    if namespace::is_prepared() {
        // The work of a stranger counts as its word, so it may be done again.
        let plan = Plan {
            most_repeated: 0.5,
            ..Plan::short(4)
        };
        meet(&plan, 4).await;
    }
}

/// One peer crawls; the others are alone, each with nothing to do, until all hear each other.
async fn meet(plan: &Plan, peers: usize) {
    let mut trial = plan.prepare().await;
    trial.lab().divide(&[]);
    for _ in 0..peers {
        trial.join().await;
    }
    trial.seed_last().await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    trial.lab().unite();
    trial.wait_for_a_ring().await;
    plan.judge(&trial, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by a_swarm_that_falls_apart_and_heals_asks_no_host_too_soon"]
async fn a_swarm_falls_apart_and_heals() {
    if namespace::is_prepared() {
        let parts: [&[&[usize]]; 3] = [&[], &[&[0, 1], &[2, 3, 4]], &[&[0, 1, 2, 3]]];
        let groups = parts[seed() as usize % parts.len()];
        fall_apart(&Plan::short(5), groups, Duration::from_secs(14)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by a_large_swarm_falls_apart_and_heals"]
async fn a_large_swarm_falls_apart() {
    if namespace::is_prepared() {
        fall_apart(&Plan::long(8), &[], Duration::from_secs(30)).await;
    }
}

/// An event, at the time of the last request before it.
fn told(trial: &Trial, event: &str) -> String {
    let log = trial.toy.web.log();
    let last = log.visits.last().map(|visit| visit.received);
    format!("{:8.3} s  {event}", last.unwrap_or_default().as_secs_f64())
}

/// Only peers of one group hear each other for a while.
async fn fall_apart(plan: &Plan, groups: &[&[usize]], while_apart: Duration) {
    let mut trial = plan.prepare().await;
    for _ in 0..plan.peers {
        trial.join().await;
    }
    trial.wait_for_a_ring().await;
    trial.seed_last().await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let mut story = vec![told(&trial, "the swarm falls apart")];
    trial.lab().divide(groups);
    tokio::time::sleep(while_apart).await;
    trial.lab().unite();
    story.push(told(&trial, "it is one again"));
    plan.judge(&trial, &story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by a_swarm_far_apart_survives_churn"]
async fn a_short_churn() {
    if namespace::is_prepared() {
        churn(&Plan::short(9), 5, 6).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by a_large_swarm_far_apart_survives_a_long_churn"]
async fn a_long_churn() {
    if namespace::is_prepared() {
        churn(&Plan::long(48), 8, 40).await;
    }
}

/// Something happens every few seconds: a peer joins, comes back, leaves or dies, or the swarm
/// falls in two for a while. Never so much that all holders of a domain are gone before the ring
/// has mended.
async fn churn(plan: &Plan, peers: usize, events: usize) {
    let mut trial = plan.prepare().await;
    for _ in 0..peers {
        trial.join().await;
    }
    trial.wait_for_a_ring().await;
    trial.seed_last().await;
    let (begun, mut random) = (Instant::now(), StdRng::seed_from_u64(seed()));
    let (mut gone, mut story): (Vec<usize>, Vec<String>) = Default::default();
    let mut last_loss = None::<Instant>;
    for _ in 0..events {
        tokio::time::sleep(Duration::from_millis(random.random_range(2000..5000))).await;
        let mut running: Vec<usize> = trial.peers.keys().copied().collect();
        running.shuffle(&mut random);
        let (victim, is_many) = (running[0], running.len() >= peers - 1);
        let may_lose = last_loss.is_none_or(|last| last.elapsed() > Duration::from_secs(15));
        let now = begun.elapsed();
        match random.random_range(0..5) {
            0 if may_lose && is_many => {
                trial.kill(victim);
                last_loss = Some(Instant::now());
                gone.push(victim);
                story.push(format!("{now:?} {victim} is killed"));
            }
            1 if may_lose => {
                let half = random.random_range(1..=running.len() / 2);
                let apart = Duration::from_secs(random.random_range(4..25));
                let (some, others) = running.split_at(half);
                trial.lab().divide(&[some, others]);
                story.push(format!("{now:?} {some:?} are cut off for {apart:?}"));
                tokio::time::sleep(apart).await;
                trial.lab().unite();
                last_loss = Some(Instant::now());
            }
            2 if is_many => {
                trial.leave(victim).await;
                gone.push(victim);
                story.push(format!("{now:?} {victim} leaves"));
            }
            _ if !gone.is_empty() && random.random_bool(0.5) => {
                let back = gone.swap_remove(random.random_range(0..gone.len()));
                trial.run(back).await;
                story.push(format!("{now:?} {back} comes back"));
            }
            _ if trial.count() < plan.peers => {
                let number = trial.join().await;
                story.push(format!("{now:?} {number} joins"));
            }
            _ => {}
        }
    }
    plan.judge(&trial, &story).await;
}
