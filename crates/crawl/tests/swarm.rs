//! A thousand simulated peers that keep their pages' stages in the real `Pages` and tell their
//! replicas in the rounds of the real `Ledger`, with crashes and without.

use apoidea_crawl::sim::{CrawlSimOptions, CrawlSimReport, run};
use std::time::Duration;

fn crawl(crashes: usize, seed: u64) -> CrawlSimReport {
    let report = run(&CrawlSimOptions {
        peers: 1000,
        hosts: 5000,
        pages: 15_000,
        seed,
        fetches: 4,
        helpers: 0,
        crashes,
        addresses: None,
        duration: Duration::from_secs(24 * 3600),
    });
    println!("{report}");
    report
}

#[test]
fn a_thousand_peers_lose_no_page_and_are_never_two_at_one() {
    let report = crawl(0, 1);
    assert!(report.is_sound(), "{report}");
    assert_eq!((report.lost(), report.repeats, report.doubles), (0, 0, 0));
}

#[test]
fn a_thousand_peers_of_which_some_crash_lose_no_page() {
    let report = crawl(80, 2);
    assert!(report.is_sound(), "{report}");
    assert_eq!((report.lost(), report.doubles), (0, 0), "{report}");
    assert!(report.crashed > 50 && report.at_risk > 0, "{report}");
    assert!(report.shortest_gap_ms >= 5000, "{report}");
}
