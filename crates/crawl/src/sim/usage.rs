//! The use that a swarm makes of its slots, and the requests that its hosts get.

use super::{CrawlSimOptions, world::BEGIN};
use crate::politeness::ADDRESS_DELAY;
use apoidea_model::Time;
use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    time::Duration,
};

/// All peers are looked at as often as this.
const EVERY: Duration = Duration::from_secs(1);
/// Requests to an address in this time are counted together.
const PEAK: Duration = Duration::from_secs(300);

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
    /// Peers that lie.
    pub liars: usize,
    /// Pages whose content a liar called known.
    pub called_known: u64,
    /// Peers that crashed.
    pub crashed: usize,
    /// Pages that their replicas may not have known to be done when their owner crashed.
    pub at_risk: usize,
    /// Messages with which a replica fetched domains as a whole.
    pub wholes: usize,
    busy: HashSet<usize>,
    last_asked: HashMap<usize, Time>,
    addresses: HashMap<IpAddr, Asked>,
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
            liars: 0,
            called_known: 0,
            crashed: 0,
            at_risk: 0,
            wholes: 0,
            busy: HashSet::new(),
            last_asked: HashMap::new(),
            addresses: HashMap::new(),
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
    pub(super) fn ask(&mut self, host: usize, address: IpAddr, now: Time) {
        self.addresses.entry(address).or_default().note(now);
        self.overlaps += usize::from(!self.busy.insert(host));
        if let Some(last) = self.last_asked.insert(host, now) {
            self.shortest_gap = self.shortest_gap.min(now.since(last));
        }
    }

    /// A host has answered.
    pub(super) fn answer(&mut self, host: usize) {
        self.busy.remove(&host);
    }

    /// Requests to the busiest address, by those that one peer may send it.
    pub(super) fn address_load(&self) -> f64 {
        let loads = self.addresses.values().map(Asked::load);
        loads.fold(0.0, f64::max)
    }

    /// The same in the busiest minutes of any address, once it was asked for some.
    pub(super) fn address_peak(&self) -> f64 {
        let peaks = self.addresses.values().map(Asked::peak);
        peaks.fold(0.0, f64::max)
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

/// Requests to one address.
#[derive(Default)]
struct Asked {
    times: Vec<Time>,
}

impl Asked {
    fn note(&mut self, now: Time) {
        self.times.push(now);
    }

    /// Requests from the first to the last, by those that its delay allows.
    fn load(&self) -> f64 {
        let (Some(first), Some(last)) = (self.times.first(), self.times.last()) else {
            return 0.0;
        };
        self.times.len() as f64 / allowed(last.since(*first))
    }

    /// The same in the busiest [`PEAK`] after the first.
    fn peak(&self) -> f64 {
        let Some(first) = self.times.first() else {
            return 0.0;
        };
        let begun = self.times.partition_point(|time| *time < *first + PEAK);
        let later = &self.times[begun..];
        let busy = (0..later.len()).map(|from| {
            let end = later[from] + PEAK;
            later[from..].partition_point(|time| *time < end)
        });
        busy.max().unwrap_or(0) as f64 / allowed(PEAK)
    }
}

/// Requests that an address may get in this time.
fn allowed(time: Duration) -> f64 {
    1.0 + time.as_secs_f64() / ADDRESS_DELAY.as_secs_f64()
}

fn mean(sum: u64, count: u64) -> f64 {
    sum as f64 / count.max(1) as f64
}
