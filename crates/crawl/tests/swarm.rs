//! A thousand simulated peers that keep their pages' stages in the real `Pages` and tell their
//! replicas in the rounds of the real `Ledger`, with crashes, with liars, and without.

use apoidea_crawl::sim::{CrawlSimOptions, CrawlSimReport, run};
use std::time::Duration;

fn crawl(crashes: usize, liars: f64, seed: u64) -> CrawlSimReport {
    let report = run(&CrawlSimOptions {
        peers: 1000,
        hosts: 5000,
        pages: 15_000,
        seed,
        fetches: 4,
        helpers: 0,
        crashes,
        addresses: None,
        liars,
        duration: Duration::from_secs(24 * 3600),
    });
    println!("{report}");
    report
}

#[test]
fn a_thousand_peers_lose_no_page_and_are_never_two_at_one() {
    let report = crawl(0, 0.0, 1);
    assert!(report.is_sound(), "{report}");
    assert_eq!((report.lost(), report.repeats, report.doubles), (0, 0, 0));
}

#[test]
fn a_thousand_peers_of_which_some_crash_lose_no_page() {
    let report = crawl(80, 0.0, 2);
    assert!(report.is_sound(), "{report}");
    assert_eq!((report.lost(), report.doubles), (0, 0), "{report}");
    assert!(report.crashed > 50 && report.at_risk > 0, "{report}");
    assert!(report.shortest_gap_ms >= 5000, "{report}");
}

/// Nobody compares yet: the pages of the domains that liars own are lost, and hardly any others.
#[test]
fn a_tenth_of_liars_loses_no_more_than_it_owns() {
    for (crashes, seed) in [(0, 3), (40, 4)] {
        let report = crawl(crashes, 0.1, seed);
        assert_eq!(report.liars, 100);
        let share = report.lost() as f64 / report.expected as f64;
        assert!(share < 0.16, "{report}");
        assert_eq!((report.doubles, report.overlaps), (0, 0), "{report}");
        assert!(report.shortest_gap_ms >= 5000, "{report}");
    }
}

/// Prints what is lost among more and fewer liars.
#[test]
#[ignore = "minutes"]
fn pages_lost_among_liars() {
    for (peers, hosts) in [(1000, 5000), (10_000, 20_000)] {
        for liars in [0.05, 0.1, 0.2] {
            let report = run(&CrawlSimOptions {
                peers,
                hosts,
                pages: 3 * hosts,
                seed: 5,
                fetches: 4,
                helpers: 0,
                crashes: 0,
                addresses: None,
                liars,
                duration: Duration::from_secs(24 * 3600),
            });
            println!("{report}");
        }
    }
}
