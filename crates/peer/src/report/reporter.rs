//! Puts the status together, once a second, in words for people and numbers for programs.

use crate::{
    network::{Network, NetworkState},
    report::{
        rate::RecentRate,
        status::{Attention, Door, Missing, State, Status, Totals, Usage},
        words,
    },
    volunteer::{
        line::{Line, LineTrouble},
        steward::Steward,
    },
};
use apoidea_fetch::cpu_time;
use apoidea_governor::{Allowance, Pace, Readings};
use apoidea_model::Time;
use apoidea_overlay::{EntryState, EntryStatus};
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
    line: Arc<Line>,
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
    pub known_pages: u64,
    pub current: Option<f64>,
    pub trouble: Option<&'a Attention>,
}

impl Reporter {
    /// A reporter and the status it publishes.
    pub(crate) fn new(
        started: Time,
        network: Arc<Network>,
        steward: Arc<Steward>,
        line: Arc<Line>,
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
            line,
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
        let (network, door) = (self.network.standing(), self.door());
        let status = Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: snapshot.state,
            reason: reason(&snapshot, &allowance, network, door.missing),
            started,
            at,
            usage: Usage {
                pages_per_second: self.pages.sample(now, snapshot.totals.pages),
                bytes_per_second: self.bytes.sample(now, snapshot.totals.bytes),
                // Thousandths of a second in each second.
                cpu_percent: self.cpu.sample(now, cpu_millis) / 10.0,
                archive_bytes: self.archive_bytes,
                memory_bytes: readings.memory_bytes.unwrap_or(0),
                resident_domains: snapshot.resident,
                known_pages: snapshot.known_pages,
                current_percent: snapshot.current.map(|share| 100.0 * share),
            },
            totals: snapshot.totals.clone(),
            queued: snapshot.queued,
            outbox: snapshot.outbox,
            domains: snapshot.domains,
            owned_domains: snapshot.owned,
            fetching: snapshot.fetching,
            lent: snapshot.lent,
            ready: snapshot.ready,
            processing: snapshot.processing,
            network,
            door,
            attention: snapshot.trouble.cloned(),
            allowance,
            readings,
        };
        self.status.send_replace(status);
    }

    fn door(&self) -> Door {
        let entry = self.network.entries();
        let is_alone = self.network.standing() == NetworkState::Alone;
        let was_tried =
            |entry: &&EntryStatus| matches!(entry.state, EntryState::Silent | EntryState::Closed);
        let ways = entry.iter().filter(was_tried).count() as u64;
        let missing = match self.line.trouble() {
            Some(LineTrouble::NoRoute) => Some(Missing::Internet),
            Some(LineTrouble::NoNameServer) => Some(Missing::NameServer),
            None if self.network.is_cut_off() => Some(Missing::Touch),
            // A peer that was told to be alone lacks nobody.
            None => (is_alone && ways > 0).then_some(Missing::Peers { ways }),
        };
        Door {
            missing,
            entry,
            rendezvous_bytes: self.network.rendezvous_bytes(),
        }
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
            fetching: 0,
            lent: 0,
            ready: 0,
            processing: 0,
            network: NetworkState::Joining,
            door: Door::default(),
            attention: None,
            allowance: Allowance::default(),
            readings: Readings::default(),
        }
    }
}

fn reason(
    snapshot: &Snapshot<'_>,
    allowance: &Allowance,
    network: NetworkState,
    missing: Option<Missing>,
) -> String {
    match (snapshot.state, missing) {
        (State::Paused, _) => allowance.sentence.clone(),
        (State::Stopping, _) => "Stopping".to_owned(),
        (_, Some(missing @ (Missing::Internet | Missing::NameServer | Missing::Touch))) => {
            words::missing(missing)
        }
        (State::Crawling, _) if allowance.pace == Pace::Gentle => allowance.sentence.clone(),
        (State::Crawling, Some(missing)) => words::missing(missing),
        (State::Crawling, None) => "Crawling".to_owned(),
        (State::Idle, _) if snapshot.queued > 0 => {
            format!(
                "Waiting: the {} URLs left belong to hosts that want to be left alone for now",
                snapshot.queued
            )
        }
        (State::Idle, _) if snapshot.domains == 0 => match network {
            NetworkState::Joining => "Looking for other peers".to_owned(),
            NetworkState::Member { .. } => {
                "Nothing to crawl yet: add a URL, or wait for the other peers".to_owned()
            }
            _ => "Nothing to crawl yet: add a URL to begin".to_owned(),
        },
        (State::Idle, _) => "Everything known is crawled".to_owned(),
    }
}
