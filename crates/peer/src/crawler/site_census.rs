//! The hosts of the sites that lately got new ones, counted from the store, so that no site has
//! more than it may.
//!
//! The store is the truth; the counts here save reading it for each new host. A count may lag
//! behind by a while: a host that has answered since makes room a little later.

use crate::state_codec::decode_state;
use apoidea_crawl::SiteHosts;
use apoidea_model::{Domain, Time};
use apoidea_store::{ReadError, Store};
use std::{collections::HashMap, time::Duration};

/// Sites whose counts are kept. Beyond that all are dropped and counted again when they are needed:
/// most sites have a few hosts, which takes microseconds.
const MAX_SITES: usize = 4096;
/// A full site is counted again after this: for the largest one it takes a tenth of a second.
const RECOUNT_AFTER: Duration = Duration::from_secs(600);

/// The counts.
#[derive(Default)]
pub(super) struct SiteCensus(HashMap<String, Count>);

struct Count {
    hosts: SiteHosts,
    taken: Time,
}

impl SiteCensus {
    /// May a host that was never heard of enter?
    pub(super) fn has_room(
        &mut self,
        store: &Store,
        host: &Domain,
        now: Time,
    ) -> Result<bool, ReadError> {
        let site = host.site();
        let is_stale = |count: &Count| {
            let is_old = now.since(count.taken) >= RECOUNT_AFTER;
            is_old && !count.hosts.has_room() && !count.hosts.is_at_its_end()
        };
        if self.0.get(site).is_none_or(is_stale) {
            let hosts = count(store, site)?;
            if self.0.len() >= MAX_SITES {
                self.0.clear();
            }
            self.0.insert(site.to_owned(), Count { hosts, taken: now });
        }
        Ok(self.0.get(site).is_none_or(|count| count.hosts.has_room()))
    }

    /// Such a host has entered.
    pub(super) fn note_new(&mut self, host: &Domain) {
        if let Some(count) = self.0.get_mut(host.site()) {
            count.hosts.silent += 1;
        }
    }
}

fn count(store: &Store, site: &str) -> Result<SiteHosts, ReadError> {
    let mut hosts = SiteHosts::default();
    let most = usize::try_from(SiteHosts::MAX).unwrap_or(usize::MAX);
    for host in store.hosts_of(site, most)? {
        if let Some(state) = store.domain(&host)? {
            hosts.count(&decode_state(&host, &state));
        }
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawler::testing::{TestCrawler, url};
    use apoidea_crawl::DropReason;
    use apoidea_model::PageUrl;

    const NOW: Time = Time::from_millis(1_000_000);

    fn host(site: &Domain, number: u64) -> Domain {
        format!("h{number}.{site}").parse().unwrap()
    }

    /// Links to so many hosts of a site.
    fn links(site: &Domain, count: u64) -> Vec<PageUrl> {
        (0..count).map(|i| url(&host(site, i), 0)).collect()
    }

    #[tokio::test]
    async fn links_to_made_up_hosts_of_one_site_come_to_an_end() {
        let mut crawler = TestCrawler::alone();
        let (here, there) = (crawler.own(0), crawler.own(1));
        crawler.admit(&links(&here, SiteHosts::SILENT_MAX + 5));
        assert_eq!(crawler.totals.dropped[&DropReason::CrowdedSite], 5);
        assert_eq!(crawler.owned, SiteHosts::SILENT_MAX);
        let known = host(&here, 0);
        crawler.admit(&[url(&known, 7), url(&there, 0)]);
        assert_eq!(crawler.waiting(&known), ["/0", "/7"], "it is no new host");
        assert_eq!(crawler.waiting(&there), ["/0"], "other sites have room");
    }

    #[tokio::test]
    async fn a_host_that_answers_makes_room_after_a_while() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        crawler.admit(&links(&here, SiteHosts::SILENT_MAX));
        let (mut census, store) = (SiteCensus::default(), crawler.store());
        let (known, next) = (host(&here, 0), host(&here, 5000));
        let mut has_room = |at| census.has_room(&store, &next, at).unwrap();
        assert!(!has_room(NOW));
        let mut state = crawler.state_of(&known);
        state.counters.fetched = 1;
        let mut commit = apoidea_store::Commit::new();
        commit.put_domain(&known, state.encode());
        store.apply(&commit).unwrap();
        assert!(!has_room(NOW + RECOUNT_AFTER / 2), "it is not counted yet");
        assert!(has_room(NOW + RECOUNT_AFTER));
        census.note_new(&next);
        census.note_new(&next);
        assert!(!census.has_room(&store, &next, NOW + RECOUNT_AFTER).unwrap());
    }

    #[tokio::test]
    async fn a_count_survives_a_restart_and_the_loss_of_its_place() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        crawler.admit(&links(&here, SiteHosts::SILENT_MAX));
        let mut crawler = crawler.crash();
        crawler.admit(&links(&here, SiteHosts::SILENT_MAX + 3));
        assert_eq!(crawler.totals.dropped[&DropReason::CrowdedSite], 3);
        let (mut census, store) = (SiteCensus::default(), crawler.store());
        for number in 0..=MAX_SITES as u64 {
            let other: Domain = format!("s{number}.test").parse().unwrap();
            assert!(census.has_room(&store, &other, NOW).unwrap());
        }
        assert!(census.0.len() <= MAX_SITES);
        assert!(!census.has_room(&store, &host(&here, 9999), NOW).unwrap());
    }
}
