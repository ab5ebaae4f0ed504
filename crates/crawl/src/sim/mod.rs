//! A crawl of thousands of peers in one process, from a seed: the crawl's decisions are the real
//! ones, the network and the web are made up.
//!
//! Every simulated peer has a [`crate::Frontier`], admits with [`crate::Admission`], remembers with
//! [`crate::SeenFilter`] and lends with [`crate::lending::Lending`], at the pace that the contract
//! allows on the Internet. It keeps the stages of its pages in [`crate::Pages`] and tells its
//! replicas in the rounds of a [`crate::Ledger`]. A domain belongs to the peer that follows its key
//! on the ring, and the next two hold replicas; links travel to owners in batches, take their time
//! and are kept until they are acknowledged. Some peers may crash: the next one takes over from the
//! replicas. Some may lie. Disks are left to the black-box tests of real peers, the ring itself to
//! the simulator of the ring.

mod agent;
mod crashing;
pub mod freshness;
mod loans;
mod lying;
pub mod ordering;
mod outbox;
mod replica;
mod report;
mod telling;
mod turns;
mod usage;
mod web;
mod world;

pub use report::CrawlSimReport;

use std::time::Duration;

/// What is to be simulated.
#[derive(Debug, Clone)]
pub struct CrawlSimOptions {
    /// Peers on the ring.
    pub peers: usize,
    /// Hosts of the web, each a domain of its own.
    pub hosts: usize,
    /// Pages on all hosts together.
    pub pages: usize,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Fetches that each peer may have under way: its slots.
    pub fetches: usize,
    /// Ring successors that each peer may lend to; without any, no peer lends.
    pub helpers: usize,
    /// Peers that crash for good, two in each second. If there are any and no liars, one link alone
    /// leads to each page, so that none may be lost. A link that was found by a helper goes
    /// with that helper's disk, so a sound crawl with crashes has no helpers.
    pub crashes: usize,
    /// Addresses that the hosts share; without, each host has its own, and its owner alone asks it.
    pub addresses: Option<usize>,
    /// The share of the peers that lie. The peer that the crawl begins at does not.
    pub liars: f64,
    /// Simulated time at most.
    pub duration: Duration,
}

/// Lets the peers crawl until nothing is left or the time is over.
pub fn run(options: &CrawlSimOptions) -> CrawlSimReport {
    let mut world = world::World::new(options);
    world.run();
    world.report(options)
}

/// A number that looks random and always is the same for the same input (the finaliser of
/// SplitMix64).
fn draw(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crawl(peers: usize, seed: u64) -> CrawlSimReport {
        run(&CrawlSimOptions {
            peers,
            hosts: 60,
            pages: 900,
            seed,
            fetches: 32,
            helpers: 0,
            crashes: 0,
            addresses: None,
            liars: 0.0,
            duration: Duration::from_secs(24 * 3600),
        })
    }

    #[test]
    fn every_page_is_fetched_once_however_many_peers_there_are() {
        for (peers, seed) in [(1, 1), (2, 2), (16, 3), (200, 4)] {
            let report = crawl(peers, seed);
            assert_eq!(
                (report.pages, report.repeats),
                (900, 0),
                "{peers} peers, seed {seed}"
            );
        }
    }

    #[test]
    fn a_larger_web_is_crawled_to_its_ends() {
        let options = CrawlSimOptions {
            peers: 50,
            hosts: 2000,
            pages: 12_000,
            seed: 9,
            fetches: 32,
            helpers: 0,
            crashes: 0,
            addresses: None,
            liars: 0.0,
            duration: Duration::from_secs(24 * 3600),
        };
        let report = run(&options);
        assert!(report.is_sound(), "{report}");
    }

    #[test]
    fn a_seed_tells_the_same_story_again() {
        assert_eq!(crawl(16, 7), crawl(16, 7));
        assert_ne!(crawl(16, 7).seconds, crawl(16, 8).seconds);
    }

    #[test]
    fn links_for_others_are_few_and_travel_in_batches() {
        let report = crawl(16, 5);
        assert!(
            report.urls_per_page > 0.1 && report.urls_per_page < 3.0,
            "{report}"
        );
        assert!(report.batches_per_page < report.urls_per_page, "{report}");
        assert_eq!(
            crawl(1, 5).urls_per_page,
            0.0,
            "whoever is alone sends nothing"
        );
    }

    #[test]
    fn peers_with_one_slot_lend_and_lose_nothing() {
        let crawl = |helpers| {
            run(&CrawlSimOptions {
                peers: 20,
                hosts: 400,
                pages: 3000,
                seed: 11,
                fetches: 1,
                helpers,
                crashes: 0,
                addresses: None,
                liars: 0.0,
                duration: Duration::from_secs(24 * 3600),
            })
        };
        let (alone, helped) = (crawl(0), crawl(8));
        assert!(alone.is_sound() && helped.is_sound(), "{alone}\n{helped}");
        assert!(helped.shortest_gap_ms >= 5000, "{helped}");
        assert!(alone.lent == 0.0 && helped.lent > 0.1, "{alone}\n{helped}");
        assert!(helped.idle_slots < alone.idle_slots, "{alone}\n{helped}");
        assert_eq!(helped, crawl(8), "a seed tells the same story again");
    }

    #[test]
    fn many_peers_ask_one_address_no_faster_than_one() {
        let crawl = |peers| {
            run(&CrawlSimOptions {
                peers,
                hosts: 200,
                pages: 1500,
                seed: 3,
                fetches: 32,
                helpers: 0,
                crashes: 0,
                addresses: Some(1),
                liars: 0.0,
                duration: Duration::from_secs(24 * 3600),
            })
        };
        for peers in [1, 5, 16, 100] {
            let report = crawl(peers);
            println!("{report}");
            assert!(report.is_sound(), "{report}");
            assert!(report.address_load <= 1.2, "{report}");
            assert!(report.address_peak <= 1.2, "{report}");
            assert!(report.address_load > 0.6, "{report}");
        }
    }

    #[test]
    fn no_host_is_asked_sooner_than_the_contract_allows() {
        assert!(crawl(16, 6).shortest_gap_ms >= 5000);
    }
}
