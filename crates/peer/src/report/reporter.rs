//! Puts the status together, once a second, in words for people and numbers for programs.

use crate::{
    network::{Network, NetworkState},
    report::{
        rate::RecentRate,
        status::{Attention, State, Status, Totals, Usage},
    },
    volunteer::steward::Steward,
};
use apoidea_fetch::cpu_time;
use apoidea_governor::{Allowance, Pace, Readings};
use apoidea_model::Time;
use std::{sync::Arc, time::Instant};
use tokio::sync::watch;

/// Publishes the status.
pub(crate) struct Reporter {
    status: watch::Sender<Status>,
    pages: RecentRate,
    bytes: RecentRate,
    cpu: RecentRate,
    network: Arc<Network>,
    steward: Arc<Steward>,
    /// Bytes in the archive, as last heard.
    pub archive_bytes: u64,
}

/// What the crawler knows at one moment.
pub(crate) struct Snapshot<'a> {
    pub state: State,
    pub totals: &'a Totals,
    pub queued: u64,
    pub outbox: u64,
    pub domains: u64,
    pub owned: u64,
    pub resident: u64,
    pub fetching: u64,
    pub lent: u64,
    pub ready: u64,
    pub processing: u64,
    pub trouble: Option<&'a Attention>,
}

impl Reporter {
    /// A reporter and the status it publishes.
    pub(crate) fn new(
        started: Time,
        network: Arc<Network>,
        steward: Arc<Steward>,
    ) -> (Self, watch::Receiver<Status>) {
        let allowance = steward.watch().borrow().clone();
        let (status, watch) = watch::channel(Status {
            allowance,
            ..Status::starting(started)
        });
        let reporter = Reporter {
            status,
            pages: RecentRate::default(),
            bytes: RecentRate::default(),
            cpu: RecentRate::default(),
            network,
            steward,
            archive_bytes: 0,
        };
        (reporter, watch)
    }

    pub(crate) fn publish(&mut self, snapshot: Snapshot<'_>, at: Time) {
        let now = Instant::now();
        let readings = self.steward.readings();
        let cpu_millis = cpu_time().as_millis() as u64;
        let allowance = self.steward.watch().borrow().clone();
        let started = self.status.borrow().started;
        let status = Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: snapshot.state,
            reason: reason(&snapshot, &allowance),
            started,
            at,
            usage: Usage {
                pages_per_second: self.pages.sample(now, snapshot.totals.pages),
                bytes_per_second: self.bytes.sample(now, snapshot.totals.bytes),
                // Thousandths of a second in each second.
                cpu_percent: self.cpu.sample(now, cpu_millis) / 10.0,
                archive_bytes: self.archive_bytes,
                memory_bytes: readings.memory_bytes.unwrap_or(0),
            },
            totals: snapshot.totals.clone(),
            queued: snapshot.queued,
            outbox: snapshot.outbox,
            domains: snapshot.domains,
            owned_domains: snapshot.owned,
            resident_domains: snapshot.resident,
            fetching: snapshot.fetching,
            lent: snapshot.lent,
            ready: snapshot.ready,
            processing: snapshot.processing,
            network: self.network.standing(),
            attention: snapshot.trouble.cloned(),
            allowance,
            readings,
        };
        self.status.send_replace(status);
    }

    /// The status as last published.
    pub(crate) fn last(&self) -> Status {
        self.status.borrow().clone()
    }
}

impl Status {
    pub(crate) fn starting(started: Time) -> Self {
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: State::Crawling,
            reason: "Starting".to_owned(),
            started,
            at: started,
            totals: Totals::default(),
            usage: Usage::default(),
            queued: 0,
            outbox: 0,
            domains: 0,
            owned_domains: 0,
            resident_domains: 0,
            fetching: 0,
            lent: 0,
            ready: 0,
            processing: 0,
            network: NetworkState::Joining,
            attention: None,
            allowance: Allowance::default(),
            readings: Readings::default(),
        }
    }
}

fn reason(snapshot: &Snapshot<'_>, allowance: &Allowance) -> String {
    match snapshot.state {
        State::Paused => allowance.sentence.clone(),
        State::Crawling if allowance.pace == Pace::Gentle => allowance.sentence.clone(),
        State::Crawling => "Crawling".to_owned(),
        State::Stopping => "Stopping".to_owned(),
        State::Idle if snapshot.queued > 0 => {
            format!(
                "Waiting: the {} URLs left belong to hosts that want to be left alone for now",
                snapshot.queued
            )
        }
        State::Idle if snapshot.domains == 0 => {
            "Nothing to crawl yet: add a URL to begin".to_owned()
        }
        State::Idle => "Everything known is crawled".to_owned(),
    }
}
