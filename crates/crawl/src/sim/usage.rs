//! The use that a swarm makes of its slots, and the requests that its hosts get.

use super::{CrawlSimOptions, world::BEGIN};
use apoidea_model::Time;
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

/// All peers are looked at as often as this.
const EVERY: Duration = Duration::from_secs(1);

/// The use of slots so far, and the requests to hosts.
pub(super) struct Usage {
    /// Slots of each peer.
    fetches: usize,
    next: Time,
    samples: u64,
    /// Sums over all samples.
    waiting: u64,
    idle_slots: u64,
    /// Samples at which hosts waited, and the idle peers at those.
    crowded: u64,
    idle_peers: u64,
    /// Pages fetched by helpers.
    pub lent_pages: u64,
    /// Requests to a host at which another one was under way.
    pub overlaps: usize,
    /// Pages that two peers were at, at a time.
    pub doubles: usize,
    /// Peers that crashed.
    pub crashed: usize,
    /// Pages that their replicas may not have known to be done when their owner crashed.
    pub at_risk: usize,
    /// Messages with which a replica fetched domains as a whole.
    pub wholes: usize,
    busy: HashSet<usize>,
    last_asked: HashMap<usize, Time>,
    shortest_gap: Duration,
}

impl Usage {
    pub(super) fn new(options: &CrawlSimOptions) -> Self {
        Usage {
            fetches: options.fetches,
            next: BEGIN,
            samples: 0,
            waiting: 0,
            idle_slots: 0,
            crowded: 0,
            idle_peers: 0,
            lent_pages: 0,
            overlaps: 0,
            doubles: 0,
            crashed: 0,
            at_risk: 0,
            wholes: 0,
            busy: HashSet::new(),
            last_asked: HashMap::new(),
            shortest_gap: Duration::MAX,
        }
    }

    /// The time of the next sample, if it is before `until`: everything up to it has happened.
    pub(super) fn due(&mut self, until: Time) -> Option<Time> {
        let due = self.next;
        (due < until).then(|| {
            self.next = due + EVERY;
            due
        })
    }

    /// Takes no more samples.
    pub(super) fn stop(&mut self) {
        self.next = Time::NEVER;
    }

    /// Takes in the hosts that wait for a slot, and the requests of each peer.
    pub(super) fn sample(&mut self, waiting: usize, fetching: impl Iterator<Item = usize>) {
        let (mut free, mut idle) = (0, 0);
        for fetching in fetching {
            free += self.fetches.saturating_sub(fetching);
            idle += u64::from(fetching == 0);
        }
        self.samples += 1;
        self.waiting += waiting as u64;
        self.idle_slots += waiting.min(free) as u64;
        if waiting > 0 {
            self.crowded += 1;
            self.idle_peers += idle;
        }
    }

    /// A host is asked.
    pub(super) fn ask(&mut self, host: usize, now: Time) {
        self.overlaps += usize::from(!self.busy.insert(host));
        if let Some(last) = self.last_asked.insert(host, now) {
            self.shortest_gap = self.shortest_gap.min(now.since(last));
        }
    }

    /// A host has answered.
    pub(super) fn answer(&mut self, host: usize) {
        self.busy.remove(&host);
    }

    pub(super) fn waiting_hosts(&self) -> f64 {
        mean(self.waiting, self.samples)
    }

    pub(super) fn idle_slots(&self) -> f64 {
        mean(self.idle_slots, self.samples)
    }

    pub(super) fn idle_peers(&self) -> f64 {
        mean(self.idle_peers, self.crowded)
    }

    pub(super) fn shortest_gap_ms(&self) -> u64 {
        u64::try_from(self.shortest_gap.as_millis()).unwrap_or(u64::MAX)
    }
}

fn mean(sum: u64, count: u64) -> f64 {
    sum as f64 / count.max(1) as f64
}
