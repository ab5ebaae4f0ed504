//! The crawler: one task that owns the frontier and all decisions, fed by findings, carried out by
//! many.
//!
//! It never waits for the network or the disk's platters. Fetches and look-ups run as tasks of
//! their own and report back as [`Finding`]s; what must become durable goes to the [`Writer`].
//! Reads and small writes of the store are calls into memory most of the time. The files below:
//! taking findings in, saving, telling the holders of copies, and what changes when the ring moves.

mod findings;
mod leasing;
mod ownership;
mod refusing;
mod rounds;
mod saving;

use crate::{
    admitter::{AdmitError, Admitter, Company, decode_state, encode_state, park},
    fetch::Connection,
    handle::{Command, PageFeed, SeedOutcome},
    helped::Helped,
    page::{PageSight, PageWork, now},
    process::ProcessedPage,
    processing::Processing,
    reporter::Reporter,
    resolver::ResolveError,
    robots_fetch::RobotsAnswer,
    status::{State, Status, Totals},
    steward::Steward,
    swarm::{
        change::Changes,
        lease::{LeaseResult, Leased},
        orders::Quiescing,
        tenancy::{Claim, Tenancy},
        value::Value,
        wire::LinksAnswer,
    },
    throttle::Throttle,
    writer::{Order, Writer},
};
use apoidea_crawl::{Action, Connection as KeepOrClose, Event, Frontier, Origin, Report, Tenure};
use apoidea_governor::Allowance;
use apoidea_model::{Domain, Link, PageUrl, PeerId, Pending, Slot, Target, Time};
use apoidea_overlay::Overlay;
use apoidea_store::{Commit, ReadError, Store};
use leasing::{Leases, Otherwise};
use rounds::{Delivered, Done, Rounds, Sent};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// Domains and bytes of seen-filters that stay in memory however short it is: a crawl needs a few
/// of each to go on.
const LEAST_RESIDENT: usize = 64;
const LEAST_SEEN_BYTES: usize = 1 << 20;
/// Findings taken in before the frontier is asked again.
const MAX_FINDINGS_AT_ONCE: usize = 256;
/// States of domains that changed are written after this, together.
const SAVE_AFTER: Duration = Duration::from_millis(200);
/// In a swarm, what is done is told so soon.
const TELL_AFTER: Duration = Duration::from_millis(50);
/// With nothing under way and nothing to do for this long, the crawl counts as done.
const DONE_AFTER: Duration = Duration::from_secs(60);
/// Marks a parked domain as being in memory: a start that finds one knows that the last run was cut
/// off.
const RESIDENT: Time = Time::NEVER;
const TOTALS_VALUE: &str = "totals";
const QUEUED_VALUE: &str = "queued";
/// Pages whose links wait for other owners; no fetch starts while there are more.
const MAX_OUTBOX: u64 = 100_000;

/// What the tasks report to the crawler.
#[derive(Debug)]
pub(crate) enum Finding {
    /// A domain's address, or why there is none.
    Resolved {
        domain: Domain,
        address: Result<IpAddr, ResolveError>,
    },
    /// What a site's robots.txt says.
    Robots {
        domain: Domain,
        origin: Origin,
        answer: RobotsAnswer,
    },
    /// A fetch is over.
    Fetched { report: Report, pending: Pending },
    /// A pause came before a page, or a robots.txt, was asked for.
    Held { domain: Domain, slot: Option<Slot> },
    /// The body of a page that waits for its verdict is on the disk.
    PutAside { domain: Domain, slot: Slot },
    /// A fetched page is processed.
    Processed {
        domain: Domain,
        slot: Slot,
        page: ProcessedPage,
        sight: PageSight,
    },
    /// Pages whose processing is on the disk.
    Durable {
        settled: Vec<(Domain, Slot)>,
        archive_bytes: u64,
    },
    /// Links of these outbox records are with their owners.
    Delivered(Vec<u64>),
    /// The changes of a round are with the holders of copies, but those of these domains with none.
    Replicated { unheld: Vec<Domain> },
    /// A neighbour had no time for a fetch.
    TurnedAway {
        helper: PeerId,
        domain: Domain,
        what: Leased,
        otherwise: Otherwise,
    },
    /// A neighbour has taken a fetch over, or may have.
    Lent(Leased),
    /// A neighbour knows what came of its fetch, or cannot be told.
    Returned,
    /// What a neighbour asked for.
    ForAnother {
        from: PeerId,
        result: LeaseResult,
        page: Option<(ProcessedPage, PageSight)>,
    },
    /// The disk cannot be written; the next [`Finding::Durable`] says that it can again.
    Trouble(String),
}

/// What the crawler is made of.
pub(crate) struct Parts {
    pub frontier: Frontier,
    pub admitter: Admitter,
    pub store: Store,
    pub writer: Writer,
    pub work: Arc<PageWork>,
    pub pages: PageFeed,
    pub findings: mpsc::UnboundedReceiver<Finding>,
    pub commands: mpsc::Receiver<Command>,
    pub reporter: Reporter,
    /// Fetches at the same time, if the allowance is not less.
    pub fetches: usize,
    pub allowance: watch::Receiver<Allowance>,
    pub throttle: Arc<Throttle>,
    pub steward: Arc<Steward>,
    pub helped: Helped,
    /// Domains in memory, and bytes for seen-filters, while there is memory enough.
    pub usual_sizes: (usize, usize),
    pub swarm: SwarmParts,
}

/// What connects the crawler with other peers.
pub(crate) struct SwarmParts {
    pub me: PeerId,
    pub overlay: Arc<dyn Overlay>,
    pub tenancy: Arc<Tenancy>,
    pub puller: crate::swarm::puller::Puller,
    /// Rung when links wait for other owners.
    pub courier: Arc<Notify>,
    /// Rung when a holder of copies was not reached.
    pub sweep: Arc<Notify>,
    pub findings: mpsc::UnboundedSender<Finding>,
}

pub(crate) struct Crawler {
    parts: Parts,
    processing: Processing,
    /// Domains that left memory while pages of them were in processing: parked once those are
    /// durable.
    parking: HashMap<Domain, Time>,
    /// Resident domains whose state changed since it was written.
    dirty: HashSet<Domain>,
    save_at: Option<Instant>,
    totals: Totals,
    paused: bool,
    /// Pages in processing at most: fewer when memory is short.
    max_processing: usize,
    /// When the throttle lets the next fetch start.
    resume_at: Option<Instant>,
    /// Look-ups of addresses under way.
    resolving: usize,
    trouble: Option<String>,
    /// Pages that wait for the disk to recover; bounded by what may be in processing.
    deferred: VecDeque<(Domain, Slot, ProcessedPage, PageSight)>,
    /// Actions that wait for the disk to recover; none is added while there is trouble.
    stuck: Vec<Action>,
    /// What is left to neighbours, and done for them.
    leases: Leases,
    /// What the holders of copies do not know yet.
    changes: Changes,
    /// Pages that are done but not on the disk yet; bounded by what may be in processing.
    kept: HashMap<(Domain, Slot), Sent>,
    /// Pages that are done here; the holders of copies learn of it in the next rounds.
    done: VecDeque<Done>,
    /// Pages that they know are done, and whose links wait in the outbox record of this number; no
    /// more than records.
    errands: HashMap<u64, (Domain, Slot)>,
    /// Pages whose links are with their owners.
    delivered: Delivered,
    /// Rounds in which changes were sent to the holders of copies.
    rounds: Rounds,
    /// Links of others that are admitted, but not durable everywhere.
    unacknowledged: Vec<(oneshot::Sender<LinksAnswer>, LinksAnswer)>,
    /// Copies that wait until nothing of their domain is under way.
    adoptions: HashMap<Domain, (PeerId, Box<Value>, oneshot::Sender<()>)>,
    /// Somebody wants everything to be at rest.
    quiescing: Option<Quiescing>,
    next_outbox: u64,
    /// Records in the outbox, at most a second old: this is looked at before each action, the
    /// database is not.
    outbox: u64,
    owned: u64,
}

impl Crawler {
    /// Takes up where the last run ended, however it ended.
    pub(crate) fn recover(parts: Parts) -> Result<Self, AdmitError> {
        let store = &parts.store;
        let totals = store
            .value(TOTALS_VALUE)?
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let tenure = Tenure::begin(parts.swarm.me, now(), ownership::last_tenure(store)?);
        let mut commit = Commit::new();
        let cut_off = store.parked_from(RESIDENT)?;
        let stored = store
            .value(QUEUED_VALUE)?
            .and_then(|bytes| bytes.try_into().ok())
            .map(u64::from_be_bytes);
        let queued = match stored {
            Some(queued) if cut_off.is_empty() => queued,
            _ => count_queued(store)?,
        };
        for (_, domain) in cut_off {
            let mut state = parts.admitter.load_state(&domain)?;
            // A request may have been under way when the last run was cut off, and pages may have
            // been done that the holders of copies were not told of.
            state.interrupted(now());
            state.versions.advance(tenure);
            commit.put_domain(&domain, encode_state(&state));
            park(&mut commit, &domain, state.ready_at());
        }
        store.commit(&commit)?;
        let next_outbox = store.last_in_outbox()?.map_or(0, |last| last + 1);
        let changes = Changes::under(tenure);
        let mut parts = parts;
        parts.admitter.queued = queued;
        let mut crawler = Crawler {
            parts,
            processing: Processing::default(),
            parking: HashMap::new(),
            dirty: HashSet::new(),
            save_at: None,
            totals: totals.unwrap_or_default(),
            paused: false,
            max_processing: Processing::MAX_PAGES,
            resume_at: None,
            resolving: 0,
            trouble: None,
            deferred: VecDeque::new(),
            stuck: Vec::new(),
            leases: Leases::default(),
            changes,
            kept: HashMap::new(),
            done: VecDeque::new(),
            errands: HashMap::new(),
            delivered: Delivered::default(),
            rounds: Rounds::default(),
            unacknowledged: Vec::new(),
            adoptions: HashMap::new(),
            quiescing: None,
            next_outbox,
            outbox: 0,
            owned: 0,
        };
        crawler.recall_refusals()?;
        crawler.begin_tenure(now())?;
        crawler.take_allowance();
        Ok(crawler)
    }

    /// Crawls until told to stop; gives the last status.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Status {
        let mut every_second = interval(Duration::from_secs(1));
        every_second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.pump();
            self.come_to_rest();
            let wake = self.next_wake();
            tokio::select! {
                Some(finding) = self.parts.findings.recv() => self.take_all(finding).await,
                Some(command) = self.parts.commands.recv() => self.obey(command).await,
                Ok(()) = self.parts.allowance.changed() => {
                    self.take_allowance();
                    self.publish(self.state());
                }
                () = sleep_until(wake) => self.save_if_due().await,
                _ = every_second.tick() => {
                    self.give_up_overdue();
                    self.note_in_time();
                    self.take_allowance();
                    self.publish(self.state());
                }
                () = stop.cancelled() => break,
            }
        }
        self.shut_down().await
    }

    /// Carries out what the frontier wants, as long as it is allowed, pages are not piling up and
    /// the disk works.
    fn pump(&mut self) {
        self.resume_at = None;
        while self.may_go_on() && self.may_start() {
            let now = now();
            let Some(action) = self.parts.frontier.poll(now) else {
                break;
            };
            self.attempt(action, now);
        }
    }

    /// With as many pages in processing as there may be, only neighbours can fetch more.
    fn may_go_on(&self) -> bool {
        !self.is_stuck() && (!self.is_full() || self.can_lease())
    }

    fn is_stuck(&self) -> bool {
        self.trouble.is_some() || self.outbox > MAX_OUTBOX
    }

    /// What neighbours fetch takes no room here.
    fn is_full(&self) -> bool {
        self.processing
            .is_full(self.max_processing + self.leases.lent_pages())
    }

    /// Paused, nothing starts: no look-up, no fetch; domains that go elsewhere go to the disk all
    /// the same. Otherwise the next thing starts when the last is paid for.
    fn may_start(&mut self) -> bool {
        if self.paused {
            return self.parts.frontier.next_timeout() == Time::ZERO;
        }
        let wait = self.parts.throttle.wait();
        self.resume_at = wait.map(|wait| Instant::now() + wait);
        if wait.is_some() {
            self.leases.is_short();
        }
        self.limit_fetches();
        wait.is_none()
    }

    /// Carries out an action, now or when the disk works again.
    fn attempt(&mut self, action: Action, now: Time) {
        if let Err(error) = self.carry_out(action.clone(), now) {
            self.is_in_trouble(&error);
            self.stuck.push(action);
        }
    }

    fn is_in_trouble(&mut self, error: &AdmitError) {
        tracing::warn!(%error, "cannot read or write the store");
        self.trouble = Some(format!("Cannot read or write what is remembered: {error}"));
        self.save_soon();
    }

    /// The disk works: takes up what was left lying.
    async fn recover_from_trouble(&mut self) {
        self.trouble = None;
        let now = now();
        for action in std::mem::take(&mut self.stuck) {
            self.attempt(action, now);
        }
        let ready: Vec<Domain> = self
            .parking
            .keys()
            .filter(|domain| !self.processing.has(domain))
            .cloned()
            .collect();
        ready.iter().for_each(|domain| self.park_if_settled(domain));
        self.take_deferred().await;
    }

    fn carry_out(&mut self, action: Action, now: Time) -> Result<(), AdmitError> {
        match action {
            Action::Wake { limit } => self.wake(limit, now)?,
            Action::Resolve(domain) => {
                let failures = self
                    .parts
                    .frontier
                    .state(&domain)
                    .map_or(0, |state| state.failures());
                self.resolving += 1;
                tokio::spawn(self.parts.work.clone().resolve(domain, failures));
            }
            Action::Refill {
                domain,
                after,
                limit,
            } => self.refill(domain, after, limit, now)?,
            Action::FetchRobots {
                domain,
                origin,
                url,
                address,
            } => {
                self.start_robots(domain, origin, url, address);
            }
            Action::Fetch {
                domain,
                pending,
                address,
                connection,
            } => {
                let connection = match connection {
                    KeepOrClose::KeepAlive => Connection::Keep,
                    KeepOrClose::Close => Connection::Close,
                };
                self.start_fetch(domain, pending, address, connection);
            }
            Action::Disallowed { domain, pending } => {
                self.totals.disallowed += 1;
                self.touch(&domain);
                self.leave_queue(&domain, pending.slot, Sent::default())?;
            }
            Action::Park {
                domain,
                mut state,
                wake,
            } => {
                self.dirty.remove(&domain);
                if wake == Time::NEVER {
                    // What is left of the queue waits no more.
                    let left = state.counters.queued;
                    self.parts.admitter.queued = self.parts.admitter.queued.saturating_sub(left);
                }
                if wake == Time::NEVER && state.stopped().is_none() {
                    // Its queue is empty. A count that says otherwise was cut off from its page by
                    // a crash.
                    state.counters.queued = 0;
                }
                let mut commit = Commit::new();
                commit.put_domain(&domain, encode_state(&state));
                if self.processing.has(&domain) {
                    self.parking.insert(domain, wake);
                    self.parts.store.apply(&commit)?;
                } else {
                    self.park_or_release(&mut commit, &domain, wake);
                    self.parts.store.apply(&commit)?;
                    self.left_memory(&domain);
                }
            }
        }
        Ok(())
    }

    /// Brings domains whose time has come into memory.
    fn wake(&mut self, limit: usize, now: Time) -> Result<(), AdmitError> {
        let mut parked = self.parts.store.parked(limit + 1)?;
        let due = parked
            .iter()
            .take(limit)
            .take_while(|(wake, _)| *wake <= now)
            .count();
        let next = parked.get(due).map_or(Time::NEVER, |(wake, _)| *wake);
        parked.truncate(due);
        let mut commit = Commit::new();
        let mut domains = Vec::with_capacity(due);
        for (_, domain) in parked {
            match self.parts.swarm.tenancy.claim(domain.key()) {
                Claim::Settled => {}
                Claim::Unsettled => continue,
                Claim::Foreign => {
                    commit.unpark(&domain);
                    continue;
                }
            }
            let stored = self.parts.store.domain(&domain)?;
            let mut state = stored
                .map(|bytes| decode_state(&domain, &bytes))
                .unwrap_or_default();
            state.bound(now);
            commit.park(&domain, RESIDENT);
            domains.push((domain, state));
        }
        self.parts.store.apply(&commit)?;
        self.parts
            .frontier
            .handle(Event::Woke { domains, next }, now);
        Ok(())
    }

    /// Reads on in a domain's queue, past what is in processing: that is still in the queue, but
    /// not to be fetched.
    fn refill(
        &mut self,
        domain: Domain,
        after: Option<Slot>,
        limit: usize,
        now: Time,
    ) -> Result<(), ReadError> {
        let in_processing = self.processing.of(&domain);
        let mut urls = self
            .parts
            .store
            .pending(&domain, after, limit + in_processing.len())?;
        urls.retain(|pending| !in_processing.contains(&pending.slot));
        urls.truncate(limit);
        self.parts
            .frontier
            .handle(Event::Refilled { domain, urls }, now);
        Ok(())
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Seed(urls, reply) => self.seed(urls, reply).await,
            Command::Refusal(change, reply) => self.change_refusals(change, reply).await,
            Command::Swarm(order) => self.obey_swarm(order),
        }
    }

    async fn seed(&mut self, urls: Vec<PageUrl>, reply: oneshot::Sender<SeedOutcome>) {
        let (mut links, mut refused) = (Vec::new(), Vec::new());
        for url in urls {
            match self.parts.admitter.check(&url, now()) {
                Ok(()) => links.push(link(&url, 0, Target::Page)),
                Err(why) => refused.push((url, why)),
            }
        }
        let accepted = links.len() as u64;
        if let Err(error) = self.deliver(links, None, now()) {
            self.is_in_trouble(&error);
            let _ = reply.send(Err(error.to_string()));
            return;
        }
        let durable = self.durable().await;
        tokio::spawn(async move {
            if durable.await.is_ok() {
                let _ = reply.send(Ok((accepted, refused)));
            }
        });
    }

    /// Resolves when everything up to now is on the disk.
    async fn durable(&mut self) -> oneshot::Receiver<()> {
        let (reply, durable) = oneshot::channel();
        let order = Order {
            reply: Some(reply),
            ..self.saving()
        };
        self.order(order).await;
        durable
    }

    fn take_allowance(&mut self) {
        let parts = &mut self.parts;
        let allowance = parts.allowance.borrow_and_update();
        self.paused = allowance.is_paused();
        let allowed = allowance
            .fetches
            .map_or(usize::MAX, |fetches| fetches as usize);
        drop(allowance);
        let squeeze = parts.steward.squeeze();
        let fetches = squeeze.of(parts.fetches.min(allowed), 1);
        self.leases.own = fetches;
        let is_alone = parts.swarm.tenancy.is_alone();
        parts.admitter.set_company(if is_alone {
            Company::None
        } else {
            Company::Neighbours
        });
        parts
            .frontier
            .set_resident(squeeze.of(parts.usual_sizes.0, LEAST_RESIDENT));
        parts
            .admitter
            .set_seen_budget(squeeze.of(parts.usual_sizes.1, LEAST_SEEN_BYTES));
        // Others repeat what was in processing when a peer crashed.
        let pages = match is_alone {
            true => Processing::MAX_PAGES.max(parts.fetches),
            false => Processing::pages_among_others(parts.fetches),
        };
        self.max_processing = squeeze.of(pages, fetches);
        self.limit_fetches();
    }

    fn next_wake(&self) -> Instant {
        let frontier = self.parts.frontier.next_timeout();
        let wait = if let Some(resume_at) = self.resume_at {
            resume_at.saturating_duration_since(Instant::now())
        } else if !self.may_go_on() || self.paused {
            Duration::from_secs(1)
        } else {
            frontier.since(now()).min(Duration::from_secs(60))
        };
        let wake = Instant::now() + wait;
        self.save_at.map_or(wake, |save| save.min(wake))
    }

    fn state(&self) -> State {
        let has_links = self.parts.store.outbox_count().is_ok_and(|count| count > 0);
        let under_way = self.parts.frontier.fetching() + self.leases.taken();
        let is_busy = has_links || under_way + self.processing.len() + self.resolving > 0;
        let is_near = self.parts.frontier.next_timeout() < now() + DONE_AFTER;
        match () {
            () if self.paused => State::Paused,
            () if is_busy || is_near => State::Crawling,
            () => State::Idle,
        }
    }

    fn publish(&mut self, state: State) {
        self.outbox = self.parts.store.outbox_count().unwrap_or(self.outbox);
        let snapshot = crate::reporter::Snapshot {
            state,
            totals: &self.totals,
            queued: self.parts.admitter.queued,
            outbox: self.outbox,
            domains: self.parts.store.domain_count().unwrap_or(0),
            owned: self.owned,
            resident: self.parts.frontier.residents().count() as u64,
            fetching: self.fetching_here() as u64,
            lent: self.leases.lent() as u64,
            ready: self.parts.frontier.ready(now()) as u64,
            processing: (self.processing.len() + self.leases.taken()) as u64,
            trouble: self.trouble.as_deref(),
        };
        self.parts.reporter.publish(snapshot, now());
    }
}

/// URLs waiting in all domains that are not stopped, counted one by one: the sum is not kept
/// exactly across a crash.
fn count_queued(store: &Store) -> Result<u64, ReadError> {
    const AT_ONCE: usize = 1000;
    let (mut queued, mut after) = (0, None);
    loop {
        let domains = store.domains("", after.as_ref(), AT_ONCE)?;
        let states = domains
            .iter()
            .map(|(domain, bytes)| decode_state(domain, bytes));
        let waiting = states
            .filter(|state| state.stopped().is_none())
            .map(|state| state.counters.queued);
        queued += waiting.sum::<u64>();
        match domains.last() {
            Some((last, _)) if domains.len() == AT_ONCE => after = Some(last.clone()),
            _ => return Ok(queued),
        }
    }
}

fn link(url: &PageUrl, depth: u16, target: Target) -> Link {
    Link {
        url: url.clone(),
        depth,
        target,
    }
}
