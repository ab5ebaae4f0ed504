//! What the crawler may use now.

use super::Crawler;
use crate::{clock::now, page::process::ProcessedPage, volunteer::steward::Steward};
use apoidea_crawl::{Company, Pages};
use apoidea_fetch::Throttle;
use apoidea_governor::Allowance;
use std::sync::Arc;
use tokio::sync::watch;

/// Domains and bytes of seen-filters that stay in memory however short it is: a crawl needs a few
/// of each to go on.
const LEAST_RESIDENT: usize = 64;
const LEAST_SEEN_BYTES: usize = 1 << 20;

/// The sources of the crawler's limits.
pub(crate) struct Limits {
    /// Fetches at the same time, if the allowance is not less.
    pub fetches: usize,
    pub allowance: watch::Receiver<Allowance>,
    pub throttle: Arc<Throttle>,
    pub steward: Arc<Steward>,
    pub usual: UsualSizes,
}

/// Sizes in memory, while there is memory enough.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsualSizes {
    /// Domains in memory.
    pub resident: usize,
    /// Bytes of seen-filters.
    pub seen_bytes: usize,
}

/// The limits in force.
#[derive(Debug)]
pub(super) struct Allowed {
    pub is_paused: bool,
    /// Pages in processing at most: fewer when memory is short.
    pub pages: usize,
}

impl Default for Allowed {
    fn default() -> Self {
        Allowed {
            is_paused: false,
            pages: Pages::<ProcessedPage>::MAX,
        }
    }
}

impl Crawler {
    pub(super) fn take_allowance(&mut self) {
        let parts = &mut self.parts;
        let allowance = parts.limits.allowance.borrow_and_update();
        self.allowed.is_paused = allowance.is_paused();
        let allowed = allowance
            .fetches
            .map_or(usize::MAX, |fetches| fetches as usize);
        drop(allowance);
        let squeeze = parts.limits.steward.squeeze();
        let UsualSizes {
            resident,
            seen_bytes,
        } = parts.limits.usual;
        let fetches = squeeze.of(parts.limits.fetches.min(allowed), 1);
        self.lending.set_own(fetches);
        let is_alone = parts.swarm.tenancy.is_alone();
        let company = match is_alone {
            true => Company::None,
            false => Company::Neighbours,
        };
        parts.admitter.set_company(company);
        parts.frontier.set_company(company);
        parts
            .frontier
            .set_resident(squeeze.of(resident, LEAST_RESIDENT));
        parts
            .admitter
            .set_seen_budget(squeeze.of(seen_bytes, LEAST_SEEN_BYTES));
        // Others repeat what was in processing when a peer crashed.
        let pages = match is_alone {
            true => Pages::<ProcessedPage>::MAX.max(parts.limits.fetches),
            false => Pages::<ProcessedPage>::most_in_swarm(parts.limits.fetches),
        };
        self.allowed.pages = squeeze.of(pages, fetches);
        self.limit_fetches();
    }

    /// Tells the frontier how many fetches may be under way, lent ones included.
    pub(super) fn limit_fetches(&mut self) {
        let fetches = self.with_load(|load| self.lending.fetch_limit(load, now()));
        self.parts.frontier.set_fetches(fetches);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawler::testing::{TestCrawler, url};
    use apoidea_governor::SnoozeFor;

    #[tokio::test]
    async fn a_paused_crawler_starts_nothing() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        crawler.admit(&[url(&here, 0)]);
        let steward = crawler.parts.limits.steward.clone();
        steward.snooze(Some(SnoozeFor::UntilResumed)).await.unwrap();
        crawler.take_allowance();
        crawler.pump();
        assert_eq!(crawler.resolving, 0, "no name is looked up");
        steward.snooze(None).await.unwrap();
        crawler.take_allowance();
        crawler.pump();
        assert_eq!(crawler.resolving, 1);
    }

    #[tokio::test]
    async fn in_a_swarm_fewer_pages_are_in_processing() {
        let alone = TestCrawler::alone();
        let swarm = TestCrawler::in_swarm();
        let fetches = alone.parts.limits.fetches;
        assert_eq!(alone.allowed.pages, Pages::<ProcessedPage>::MAX);
        let most = Pages::<ProcessedPage>::most_in_swarm(fetches);
        assert_eq!(swarm.allowed.pages, most);
    }

    #[tokio::test]
    async fn no_more_fetches_start_than_the_settings_say() {
        let mut crawler = TestCrawler::alone_with(&["crawl.fetches=2"]);
        let domains: Vec<_> = (0..4).map(|number| crawler.own(number)).collect();
        let urls: Vec<_> = domains.iter().map(|domain| url(domain, 0)).collect();
        crawler.admit(&urls);
        for domain in &domains[..2] {
            crawler.begin(domain).await;
        }
        assert_eq!(crawler.parts.frontier.fetching(), 2);
        crawler.pump();
        assert_eq!(crawler.parts.frontier.fetching(), 2);
    }
}
