//! The frontier against the whole good-citizen contract, in virtual time.

mod scenes;
mod world;

use apoidea_crawl::FrontierConfig;
use std::net::IpAddr;
use world::{DAY, HOUR, START, Weather, World};

const FAIR: Weather = Weather {
    bad_percent: 0,
    slowest_millis: 2000,
};
const STORMY: Weather = Weather {
    bad_percent: 40,
    slowest_millis: 20_000,
};

fn config(fetches: usize, resident: usize) -> FrontierConfig {
    FrontierConfig {
        fetches,
        resident,
        ..FrontierConfig::default()
    }
}

fn address(number: usize) -> IpAddr {
    let [_, b, c, d] = u32::try_from(number).expect("a small number").to_be_bytes();
    [93, b, c, d].into()
}

fn storm(seed: u64) -> World {
    println!("seed {seed}");
    let mut world = World::new(config(16, 64), seed, STORMY);
    let hosts: Vec<_> = (0..500)
        .map(|i| world.host(&format!("h{i}.example"), address(i % 50), 20))
        .collect();
    for round in 1..40 {
        hosts
            .iter()
            .skip(round % 7)
            .step_by(7)
            .for_each(|host| world.admit(host, 2));
        world.run_until(START + HOUR * round as u32);
    }
    world.run_until(START + 60 * DAY);
    world
}

#[test]
fn the_contract_holds_in_a_storm_and_everything_is_settled() {
    for seed in [1, 2, 3] {
        let world = storm(seed);
        assert_eq!(world.disk.waiting(), 0, "seed {seed}");
        assert_eq!(world.most_resident, 64, "the limit was put to the test");
        let judge = &world.judge;
        println!(
            "{} pages, {} retries, {} rests, {} throttled",
            judge.pages, judge.retries, judge.rests, judge.throttles
        );
        assert!(
            judge.rests > 20 && judge.throttles > 100 && judge.retries > 100,
            "it stormed"
        );
    }
}

#[test]
fn a_hundred_thousand_parked_hosts_fit_into_a_small_memory() {
    let mut world = World::new(config(1000, 1024), 1, FAIR);
    (0..100_000).for_each(|i| _ = world.host(&format!("h{i}.example"), address(i / 4), 1));
    world.run_until(START + 2 * DAY);
    assert_eq!(world.disk.waiting(), 0);
    assert_eq!(world.judge.settled.len(), 100_000);
    assert!(
        world.actions < 800_000,
        "{} actions: hosts come and go without need",
        world.actions
    );
}

#[test]
fn a_crowded_address_does_not_keep_others_waiting() {
    let mut world = World::new(config(32, 256), 1, FAIR);
    (0..10_000).for_each(|i| _ = world.host(&format!("crowd{i}.example"), address(0), 2));
    let alone: Vec<_> = (1..11)
        .map(|i| world.host(&format!("alone{i}.example"), address(i), 20))
        .collect();
    world.run_until(START + HOUR);
    for host in &alone {
        assert!(
            world.disk.queues[host].is_empty(),
            "{host} has waited for the crowd"
        );
    }
    let asked_before = world.actions;
    world.run_until(START + 3 * HOUR);
    let per_page = (world.actions - asked_before) as f64 / (2.0 * 1800.0);
    assert!(per_page < 6.0, "{per_page} actions for each request");
}

#[test]
fn a_busy_host_gives_way_to_those_who_wait() {
    let mut world = World::new(config(4, 4), 1, FAIR);
    let hosts: Vec<_> = (0..12)
        .map(|i| world.host(&format!("h{i}.example"), address(i), 1000))
        .collect();
    world.run_until(START + HOUR);
    let left: Vec<_> = hosts
        .iter()
        .map(|host| world.disk.queues[host].len())
        .collect();
    assert!(
        left.iter().all(|&left| left < 960),
        "everyone had a turn: {left:?}"
    );
}
