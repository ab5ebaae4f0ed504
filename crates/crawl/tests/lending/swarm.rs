//! A thousand peers with few slots each, with helpers and without.

use apoidea_crawl::sim::{CrawlSimOptions, CrawlSimReport, run};
use std::time::Duration;

fn crawl(helpers: usize) -> CrawlSimReport {
    let report = run(&CrawlSimOptions {
        peers: 1000,
        hosts: 10_000,
        pages: 30_000,
        seed: 1,
        fetches: 1,
        helpers,
        crashes: 0,
        addresses: None,
        liars: 0.0,
        duration: Duration::from_secs(24 * 3600),
    });
    println!("{report}");
    report
}

#[test]
fn a_thousand_peers_lend_and_leave_fewer_slots_idle() {
    let (alone, helped) = (crawl(0), crawl(8));
    for report in [&alone, &helped] {
        assert!(report.is_sound(), "{report}");
        assert!(report.shortest_gap_ms >= 5000, "{report}");
    }
    assert_eq!(alone.lent, 0.0);
    assert!(helped.lent > 0.0, "{helped}");
    assert!(helped.idle_slots < alone.idle_slots, "{alone}\n{helped}");
    assert!(
        helped.waiting_hosts < alone.waiting_hosts,
        "{alone}\n{helped}"
    );
    assert!(
        helped.pages_per_slot > alone.pages_per_slot,
        "{alone}\n{helped}"
    );
}
