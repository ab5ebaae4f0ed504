//! The simulator's own scenarios, with few peers: every target met, no invariant broken, the same
//! every time.

use apoidea_chord::sim::{self, RingSimOptions, Scenario};
use std::time::Duration;

fn options(scenario: Scenario, peers: usize, seed: u64) -> RingSimOptions {
    let lookups = if scenario == Scenario::Dead {
        300
    } else {
        4000
    };
    RingSimOptions {
        lookups,
        duration: Duration::from_secs(600),
        ..RingSimOptions::new(scenario, peers, seed)
    }
}

#[test]
fn every_scenario_meets_its_targets() {
    for scenario in Scenario::ALL {
        let report = sim::run(&options(scenario, 500, 2));
        assert!(report.is_sound(), "{report}");
    }
}

#[test]
fn a_lossy_network_costs_time_but_breaks_nothing() {
    for scenario in [Scenario::Crash, Scenario::Growth] {
        let report = sim::run(&RingSimOptions {
            loss: 0.01,
            ..options(scenario, 200, 2)
        });
        assert!(report.violations.is_empty(), "{report}");
        let orphans = report
            .figures
            .iter()
            .find(|figure| figure.name == "orphans");
        assert_eq!(orphans.map(|figure| figure.value), Some(0.0), "{report}");
    }
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_one_does_not() {
    let run = |seed| sim::run(&options(Scenario::Churn, 150, seed)).to_string();
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
