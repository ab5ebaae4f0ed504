//! What a simulated crawl came to, in the yardsticks of parallel crawlers.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a simulated crawl came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrawlSimReport {
    /// Peers on the ring.
    pub peers: usize,
    /// Pages of the web.
    pub expected: usize,
    /// Different pages fetched.
    pub pages: usize,
    /// Requests for pages beyond the first.
    pub repeats: usize,
    /// Simulated seconds until the last page.
    pub seconds: f64,
    /// Until nine of ten pages were fetched: afterwards few hosts are left, and politeness alone
    /// decides.
    pub seconds_for_most: f64,
    /// URLs sent to other peers for each page.
    pub urls_per_page: f64,
    /// Messages with links for each page.
    pub batches_per_page: f64,
    /// Bytes of those URLs for each page, before compression and without copies.
    pub bytes_per_page: f64,
    /// Hosts of the peer that has the most, for each host of the mean.
    pub most_hosts: f64,
    /// Pages of the peer that fetched the most, for each page of the mean.
    pub most_pages: f64,
    /// Peers that fetched nothing.
    pub idle: usize,
    /// The shortest time between two requests to one host, whoever sent them.
    pub shortest_gap_ms: u64,
    /// Requests to a host at which another one was under way.
    pub overlaps: usize,
    /// Pages that were under way at two peers at a time.
    pub doubles: usize,
    /// Requests to the busiest address, for each that one peer might have sent it.
    pub address_load: f64,
    /// The same in the busiest five minutes, after the first five.
    pub address_peak: f64,
    /// Peers that lied.
    pub liars: usize,
    /// Pages whose content a liar called known: each cost a question more, and was kept.
    pub called_known: u64,
    /// Peers that crashed for good.
    pub crashed: usize,
    /// Pages that no replica may have known to be done when their owner crashed: so many may be
    /// fetched again.
    pub at_risk: usize,
    /// Domains one of whose replicas lacked something in the end.
    pub astray: usize,
    /// Messages with which a replica fetched domains as a whole.
    pub wholes: usize,
    /// Fetches that each peer may have under way: its slots.
    pub fetches: usize,
    /// Ring successors that each peer may lend to.
    pub helpers: usize,
    /// Pages fetched by helpers, for each page.
    pub lent: f64,
    /// Hosts whose turn has come and that wait for a slot, in the mean until nine of ten pages were
    /// fetched.
    pub waiting_hosts: f64,
    /// Peers without any request while a host waited somewhere, in the mean of those moments.
    pub idle_peers: f64,
    /// Free slots for which a host waited somewhere, in the mean until nine of ten pages were
    /// fetched.
    pub idle_slots: f64,
    /// Pages for each slot and minute, until nine of ten were fetched.
    pub pages_per_slot: f64,
}

impl CrawlSimReport {
    /// Was every page fetched by one peer at a time and told to its replicas, and again only after
    /// a crash, with one request to a host at a time? Among liars a page in a hundred may be lost.
    pub fn is_sound(&self) -> bool {
        let most_lost = match self.liars {
            0 => 0,
            _ => self.expected / 100,
        };
        let is_complete = self.lost() <= most_lost && self.astray == 0;
        let is_single = self.doubles == 0 && self.overlaps == 0;
        is_complete && is_single && self.repeats <= self.at_risk
    }

    /// Pages that nobody fetched.
    pub fn lost(&self) -> usize {
        self.expected.saturating_sub(self.pages)
    }
}

impl fmt::Display for CrawlSimReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} peers fetched {} of {} pages, {} of them again",
            self.peers, self.pages, self.expected, self.repeats
        )?;
        writeln!(
            f,
            "  {} pages lost, {} fetched twice at a time; {} peers crashed with {} pages at risk; {} domains not with their replicas, {} messages of whole domains",
            self.lost(),
            self.doubles,
            self.crashed,
            self.at_risk,
            self.astray,
            self.wholes
        )?;
        if self.liars > 0 {
            writeln!(
                f,
                "  {} peers lied: {:.2} % of the pages lost, {} called known and kept",
                self.liars,
                100.0 * self.lost() as f64 / self.expected.max(1) as f64,
                self.called_known
            )?;
        }
        writeln!(
            f,
            "  the busiest address got {:.2} times the requests of one peer, {:.2} in its busiest five minutes",
            self.address_load, self.address_peak
        )?;
        let rate = 0.9 * self.pages as f64 / self.seconds_for_most.max(1e-9);
        writeln!(
            f,
            "  {rate:.1} pages/s until nine of ten were there ({:.0} s), the last after {:.0} s",
            self.seconds_for_most, self.seconds
        )?;
        writeln!(
            f,
            "  {:.2} URLs, {:.2} batches and {:.0} bytes of URLs sent for each page",
            self.urls_per_page, self.batches_per_page, self.bytes_per_page
        )?;
        writeln!(
            f,
            "  the fullest peer had {:.1} times the mean of hosts and {:.1} of pages; {} had nothing; shortest gap {} ms",
            self.most_hosts, self.most_pages, self.idle, self.shortest_gap_ms
        )?;
        write!(
            f,
            "  slots of each peer {}, helpers {}: {:.1} % of the pages lent, {:.1} pages per slot and minute; {:.1} hosts waited, with {:.1} free slots elsewhere and {:.1} idle peers",
            self.fetches,
            self.helpers,
            100.0 * self.lent,
            self.pages_per_slot,
            self.waiting_hosts,
            self.idle_slots,
            self.idle_peers
        )
    }
}
