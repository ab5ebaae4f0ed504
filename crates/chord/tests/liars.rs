//! Liars among the peers: look-ups, replicas and joins that they do not catch.

use apoidea_chord::{
    RingEvent, Settings,
    sim::{
        self, LiarKind, Network, RingSimOptions, RingSimReport, RoundTripMatrix, Scenario, World,
    },
};
use std::time::Duration;

fn figure(report: &RingSimReport, name: &str) -> f64 {
    let found = report.figures.iter().find(|figure| figure.name == name);
    found.unwrap_or_else(|| panic!("no {name}: {report}")).value
}

fn tenth(liar_kind: LiarKind) -> RingSimOptions {
    RingSimOptions {
        liars: 0.1,
        liar_kind,
        lookups: 2000,
        ..RingSimOptions::new(Scenario::Steady, 300, 3)
    }
}

#[test]
fn a_peer_that_claims_every_key_gets_none() {
    let report = sim::run(&tenth(LiarKind::Naive));
    assert!(report.violations.is_empty(), "{report}");
    assert!(figure(&report, "lookups hijacked, %") <= 0.5, "{report}");
    assert!(
        figure(&report, "with a cache, hijacked, %") <= 1.0,
        "{report}"
    );
}

/// One key in a hundred has two liars after its owner by chance; in a small ring it may be two.
#[test]
fn liars_that_name_only_each_other_catch_few_lookups_and_replicas() {
    let report = sim::run(&tenth(LiarKind::Cabal));
    assert!(report.violations.is_empty(), "{report}");
    for (name, most) in [
        ("lookups hijacked, %", 3.0),
        ("with a cache, hijacked, %", 3.0),
        ("keys with both replicas at liars, %", 3.0),
        ("helpers that are liars, %", 14.0),
    ] {
        assert!(figure(&report, name) <= most, "{name}: {report}");
    }
}

/// The true neighbours of a peer: the living before it and after it.
fn neighbours(world: &World, peer: u32) -> (u32, u32) {
    let key = world.contact(peer).key();
    let members = world.members();
    let after = members.range(key..).map(|(_, &other)| other);
    let after = after
        .chain(members.values().copied())
        .find(|&other| other != peer);
    let before = members.range(..key).rev().map(|(_, &other)| other);
    let mut before = before.chain(members.values().rev().copied());
    let found = before.find(|&other| other != peer);
    (found.expect("others"), after.expect("others"))
}

/// The number of newcomers, of 50, that have found their place. One of three entry points lies.
fn newcomers_placed(seed: u64) -> u32 {
    let network = Network::new(RoundTripMatrix::planetlab(), 0.0);
    let world = World::new(seed, Settings::default(), network);
    let mut world = world.with_liars(0.1, LiarKind::Cabal, seed);
    world.spawn_ring(200);
    let someone = |world: &mut World, is_liar: bool| loop {
        let peer = world.someone();
        if world.is_liar(peer) == is_liar {
            return world.contact(peer).clone();
        }
    };
    let mut placed = 0;
    for _ in 0..50 {
        let entries = [true, false, false].map(|is_liar| someone(&mut world, is_liar));
        let newcomer = world.spawn();
        world.tell(newcomer, RingEvent::Join(entries.to_vec()));
        world.run_for(Duration::from_secs(60));
        let (before, after) = neighbours(&world, newcomer);
        let ring = world.ring(newcomer).expect("alive");
        let is_right = |peer: u32, contact: Option<&apoidea_chord::Contact>| {
            contact.is_some_and(|contact| contact.id == world.contact(peer).id)
        };
        let is_placed =
            is_right(before, ring.predecessor()) && is_right(after, ring.successors().first());
        placed += u32::from(is_placed);
    }
    assert!(world.violations.is_empty(), "{:?}", world.violations);
    placed
}

/// In these worlds, some newcomer's true successor lies, and nobody has named its true predecessor
/// at first.
#[test]
fn a_newcomer_finds_its_place_though_one_of_its_three_entry_points_lies() {
    for seed in [3, 5] {
        assert_eq!(newcomers_placed(seed), 50, "seed {seed}");
    }
}
