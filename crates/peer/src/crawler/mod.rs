//! The crawler: one task that owns all decisions about the crawl and connects the values that make
//! them.
//!
//! | value | decides |
//! |---|---|
//! | [`Frontier`] | which URL may be fetched now |
//! | [`Lending`] | whether this peer or a helper fetches it |
//! | [`Pages`] | where each page is on its way from the fetch to the replicas |
//! | [`Ledger`] | what the replicas do not know yet |
//! | [`Admitter`] | which links enter the queues |
//!
//! The crawler never waits for the network or the disk's platters. Fetches and look-ups run as
//! tasks of their own and report back as [`Finding`]s; what must become durable goes to the
//! [`Writer`]. Reads and small writes of the store are calls into memory most of the time.

pub(crate) mod admitter;
mod adopting;
mod ages;
mod borrowing;
pub(crate) mod command;
mod delivering;
#[cfg(any(test, feature = "fuzzing"))]
#[allow(clippy::unwrap_used)]
pub(crate) mod door;
mod errands;
pub(crate) mod finding;
mod limits;
#[cfg(test)]
mod noise;
mod orders;
mod ownership;
mod parking;
mod pumping;
mod recovering;
mod refusing;
mod revisiting;
mod saving;
mod seen_cache;
mod site_census;
mod starting;
mod stopping;
mod taking;
mod telling;
#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(not(test), allow(dead_code))]
#[allow(clippy::unwrap_used)]
mod testing;
mod turns;
mod watching;
pub(crate) mod writer;

pub(crate) use limits::{Limits, UsualSizes};
pub(crate) use revisiting::RevisitSettings;

use crate::{
    clock::now,
    crawler::{
        admitter::{AdmitError, Admitter},
        command::Command,
        finding::Finding,
        limits::Allowed,
        orders::Adoption,
        revisiting::Revisiting,
        starting::Subject,
        writer::Writer,
    },
    page::{PageWork, process::ProcessedPage},
    report::{
        page_feed::PageFeed,
        reporter::{Reporter, Snapshot},
        status::{Attention, State, Status, Totals},
    },
    swarm::{
        addresses::clocks::AddressClocks,
        lending::borrowed::BorrowedDomains,
        links::message::LinksAnswer,
        orders::{Quiescing, SwarmOrder},
        replicas::{provenance::Provenance, puller::Puller},
        tenancy::Tenancy,
        watching::watchlist::Watchlist,
    },
};
use apoidea_crawl::{
    Action, Frontier, Ledger, Pages,
    lending::{Lending, Load, Memory, Progress, Room},
};
use apoidea_model::{Domain, PeerId, Time};
use apoidea_overlay::Overlay;
use apoidea_store::Store;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// With nothing under way and nothing to do for this long, the crawl counts as done.
const DONE_AFTER: Duration = Duration::from_secs(60);
/// Pages whose links wait for other owners; no fetch starts while there are more.
const MAX_OUTBOX: u64 = 100_000;

/// The parts of the crawler.
pub(crate) struct Parts {
    pub frontier: Frontier,
    pub admitter: Admitter,
    pub store: Store,
    pub writer: Writer,
    pub work: Arc<PageWork>,
    pub feed: PageFeed,
    pub inbox: Inbox,
    pub reporter: Reporter,
    pub limits: Limits,
    pub revisits: RevisitSettings,
    pub borrowed: BorrowedDomains,
    pub swarm: SwarmParts,
}

/// Everything that the crawler hears.
pub(crate) struct Inbox {
    pub findings: mpsc::UnboundedReceiver<Finding>,
    pub commands: mpsc::Receiver<Command>,
    pub orders: mpsc::Receiver<SwarmOrder>,
}

/// The crawler's connections with other peers.
pub(crate) struct SwarmParts {
    pub me: PeerId,
    pub overlay: Arc<dyn Overlay>,
    pub tenancy: Arc<Tenancy>,
    pub puller: Puller,
    /// Tells where replicas come from.
    pub provenance: Arc<Provenance>,
    /// Rung when links wait for other owners.
    pub courier: Arc<Notify>,
    /// Rung when a replica was not reached.
    pub sweep: Arc<Notify>,
    /// The clocks of addresses that this peer keeps for all.
    pub clocks: Arc<AddressClocks>,
    /// The volunteer's own watches.
    pub watchlist: Arc<Watchlist>,
    /// The crawler's own inbox, for the tasks that it starts.
    pub findings: mpsc::UnboundedSender<Finding>,
}

pub(crate) struct Crawler {
    parts: Parts,
    /// The stage of every page under way.
    pages: Pages<ProcessedPage>,
    /// Fetches at helpers, and fetches done for others.
    lending: Lending<Subject>,
    /// Changes that the replicas do not know yet.
    ledger: Ledger,
    /// Domains that left memory while pages of them were in processing: parked once those are
    /// durable.
    parking: HashMap<Domain, Time>,
    /// Resident domains whose state changed since it was written.
    dirty: HashSet<Domain>,
    timers: Timers,
    totals: Totals,
    allowed: Allowed,
    /// Look-ups of addresses under way.
    resolving: usize,
    disk: Disk,
    /// Links of others that are admitted, but not durable everywhere.
    unacknowledged: Vec<(oneshot::Sender<LinksAnswer>, LinksAnswer)>,
    /// Replicas that wait until nothing of their domain is under way.
    adoptions: HashMap<Domain, Adoption>,
    /// Somebody wants everything to be at rest.
    quiescing: Option<Quiescing>,
    outbox: Outbox,
    /// Domains that are this peer's.
    owned: u64,
    /// Visits after the first.
    revisiting: Revisiting,
}

/// The crawler's own deadlines.
#[derive(Debug, Default)]
struct Timers {
    /// When changed states are written.
    save_at: Option<Instant>,
    /// When the throttle lets the next fetch start.
    resume_at: Option<Instant>,
}

/// Trouble with the disk, and what waits for its end.
#[derive(Debug, Default)]
struct Disk {
    trouble: Option<Attention>,
    /// None is added while there is trouble.
    stuck: Vec<Action>,
}

/// Links on their way to other owners.
#[derive(Debug, Default)]
struct Outbox {
    /// The number of the next record.
    next: u64,
    /// Records, at most a second old: this is looked at before each action, the database is not.
    count: u64,
}

impl Crawler {
    /// Crawls until told to stop; gives the last status.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Status {
        let mut every_second = interval(Duration::from_secs(1));
        every_second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.pump();
            self.come_to_rest();
            let wake = self.next_wake();
            let inbox = &mut self.parts.inbox;
            tokio::select! {
                Some(finding) = inbox.findings.recv() => self.take_all(finding).await,
                Some(command) = inbox.commands.recv() => self.obey(command).await,
                Some(order) = inbox.orders.recv() => self.obey_swarm(order).await,
                Ok(()) = self.parts.limits.allowance.changed() => {
                    self.take_allowance();
                    self.publish(self.state());
                }
                () = sleep_until(wake) => self.save_if_due().await,
                _ = every_second.tick() => {
                    self.give_up_overdue().await;
                    self.ask_for_turns();
                    self.tell_delivered_in_time();
                    self.enqueue_due();
                    self.take_allowance();
                    self.publish(self.state());
                }
                () = stop.cancelled() => break,
            }
        }
        self.shut_down().await
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Seed(urls, reply) => self.seed(urls, reply).await,
            Command::Refusal(change, reply) => self.change_refusals(change, reply).await,
        }
    }

    fn next_wake(&self) -> Instant {
        let frontier = self.parts.frontier.next_timeout();
        let wait = if let Some(resume_at) = self.timers.resume_at {
            resume_at.saturating_duration_since(Instant::now())
        } else if !self.may_go_on() || self.is_held() {
            Duration::from_secs(1)
        } else {
            frontier.since(now()).min(Duration::from_secs(60))
        };
        let wake = Instant::now() + wait;
        self.timers.save_at.map_or(wake, |save| save.min(wake))
    }

    /// Is there a pause, no line to fetch anything over, or nobody to be heard who may do the work?
    fn is_held(&self) -> bool {
        self.allowed.is_paused
            || self.parts.work.resolver.is_silent()
            || self.parts.swarm.tenancy.is_cut_off()
    }

    /// This peer's load at the moment of a choice of who fetches.
    fn with_load<T>(&self, choose: impl FnOnce(&Load<'_>) -> T) -> T {
        let pages = self.pages.load();
        let neighbours = self.parts.swarm.tenancy.neighbours();
        let is_still = self.allowed.is_paused || self.quiescing.is_some();
        choose(&Load {
            fetching: self.parts.frontier.fetching(),
            room: Room {
                in_processing: pages.in_processing,
                most: self.allowed.pages,
                memory: match pages.is_memory_full() {
                    true => Memory::Full,
                    false => Memory::Free,
                },
            },
            neighbours: &neighbours,
            progress: match is_still {
                true => Progress::Still,
                false => Progress::Running,
            },
        })
    }

    /// The store cannot be read or written: nothing starts until it can.
    fn note_trouble(&mut self, error: &AdmitError) {
        tracing::warn!(%error, "cannot read or write the store");
        self.disk.trouble = Some(Attention::Store {
            error: error.to_string(),
        });
        self.save_soon();
    }

    fn state(&self) -> State {
        let has_links = self.parts.store.outbox_count().is_ok_and(|count| count > 0);
        let fetching = self.parts.frontier.fetching() + self.lending.borrowed_count();
        let under_way = fetching + self.pages.load().in_processing + self.resolving;
        let is_near = self.parts.frontier.next_timeout() < now() + DONE_AFTER;
        match () {
            () if self.allowed.is_paused => State::Paused,
            () if has_links || under_way > 0 || is_near => State::Crawling,
            () => State::Idle,
        }
    }

    fn publish(&mut self, state: State) {
        self.outbox.count = self.parts.store.outbox_count().unwrap_or(self.outbox.count);
        let fetching = self.with_load(|load| self.lending.fetching_here(load));
        let processing = self.pages.load().in_processing + self.lending.borrowed_count();
        let snapshot = Snapshot {
            state,
            totals: &self.totals,
            queued: self.parts.admitter.queued(),
            outbox: self.outbox.count,
            domains: self.parts.store.domain_count().unwrap_or(0),
            owned: self.owned,
            resident: self.parts.frontier.residents().count() as u64,
            fetching: fetching as u64,
            lent: self.lending.lent_count() as u64,
            ready: self.parts.frontier.ready(now()) as u64,
            processing: processing as u64,
            known_pages: self.parts.store.page_count().unwrap_or(0),
            current: self.revisiting.current(),
            trouble: self.disk.trouble.as_ref(),
        };
        self.parts.reporter.publish(snapshot, now());
    }
}
