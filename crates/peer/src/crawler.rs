//! The crawler: one task that owns the frontier and all decisions, fed by findings, carried out by many.
//!
//! It never waits for the network or the disk's platters. Fetches and look-ups run as tasks of their own and report back
//! as [`Finding`]s; what must become durable goes to the [`Writer`]. Reads and small writes of the store are calls into
//! memory most of the time.

mod refusing;

use crate::{
    admitter::{AdmitError, Admitter, Desk, decode_state, encode_state, park},
    fetch::Connection,
    handle::{Command, PageFeed, SeedOutcome},
    judge,
    page::{self, PageSight, PageWork, now},
    process::ProcessedPage,
    processing::Processing,
    reporter::Reporter,
    resolver::ResolveError,
    robots_fetch::RobotsAnswer,
    status::{PageEvent, State, Status, Totals},
    writer::{Order, Writer},
};
use apoidea_crawl::{
    Action, Connection as KeepOrClose, Event, Frontier, Origin, Outcome, Report, Settlement,
};
use apoidea_model::{CrawlId, Domain, Link, LinkBatch, PageUrl, Pending, Slot, Target, Time};
use apoidea_store::{Commit, ReadError, Store};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// Pages fetched and not yet durable (Apoidea's Processing-Jobs); no fetch starts while there are more.
const MAX_PROCESSING: usize = 1024;
/// Findings taken in before the frontier is asked again.
const MAX_FINDINGS_AT_ONCE: usize = 256;
/// States of domains that changed are written after this, together.
const SAVE_AFTER: Duration = Duration::from_millis(200);
/// With nothing under way and nothing to do for this long, the crawl counts as done.
const DONE_AFTER: Duration = Duration::from_secs(60);
/// Marks a parked domain as being in memory: a start that finds one knows that the last run was cut off.
const RESIDENT: Time = Time::NEVER;
const TOTALS_VALUE: &str = "totals";
const QUEUED_VALUE: &str = "queued";
const PAUSED_VALUE: &str = "paused";

/// What the tasks report to the crawler.
#[derive(Debug)]
pub(crate) enum Finding {
    /// A domain's address, or why there is none.
    Resolved { domain: Domain, address: Result<IpAddr, ResolveError> },
    /// What a site's robots.txt says.
    Robots { domain: Domain, origin: Origin, answer: RobotsAnswer },
    /// A fetch is over.
    Fetched { report: Report, pending: Pending },
    /// A fetched page is processed.
    Processed { domain: Domain, slot: Slot, page: ProcessedPage, sight: PageSight },
    /// Pages whose processing is on the disk.
    Durable { settled: Vec<(Domain, Slot)>, archive_bytes: u64 },
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
    /// Fetches at the same time while not paused.
    pub fetches: usize,
}

pub(crate) struct Crawler {
    parts: Parts,
    processing: Processing,
    /// Domains that left memory while pages of them were in processing: parked once those are durable.
    parking: HashMap<Domain, Time>,
    /// Resident domains whose state changed since it was written.
    dirty: HashSet<Domain>,
    save_at: Option<Instant>,
    totals: Totals,
    paused: bool,
    /// Look-ups of addresses under way.
    resolving: usize,
    trouble: Option<String>,
    /// Pages that wait for the disk to recover; at most [`MAX_PROCESSING`].
    deferred: VecDeque<(Domain, Slot, ProcessedPage, PageSight)>,
    /// Actions that wait for the disk to recover; none is added while there is trouble.
    stuck: Vec<Action>,
}

impl Crawler {
    /// Takes up where the last run ended, however it ended.
    pub(crate) fn recover(parts: Parts) -> Result<Self, AdmitError> {
        let store = &parts.store;
        let totals = store.value(TOTALS_VALUE)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let paused = store.value(PAUSED_VALUE)?.is_some();
        let mut commit = Commit::new();
        let cut_off = store.parked_from(RESIDENT)?;
        let stored =
            store.value(QUEUED_VALUE)?.and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let queued = match stored {
            Some(queued) if cut_off.is_empty() => queued,
            _ => count_queued(store)?,
        };
        for (_, domain) in cut_off {
            let mut state = parts.admitter.load_state(&domain)?;
            // A request may have been under way when the last run was cut off.
            state.interrupted(now());
            commit.put_domain(&domain, encode_state(&state));
            park(&mut commit, &domain, state.ready_at());
        }
        store.commit(&commit)?;
        let mut parts = parts;
        parts.admitter.queued = queued;
        let mut crawler = Crawler {
            parts,
            processing: Processing::default(),
            parking: HashMap::new(),
            dirty: HashSet::new(),
            save_at: None,
            totals: totals.unwrap_or_default(),
            paused,
            resolving: 0,
            trouble: None,
            deferred: VecDeque::new(),
            stuck: Vec::new(),
        };
        crawler.recall_refusals()?;
        crawler.set_fetches();
        Ok(crawler)
    }

    /// Crawls until told to stop; gives the last status.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Status {
        let mut every_second = interval(Duration::from_secs(1));
        every_second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.pump();
            let wake = self.next_wake();
            tokio::select! {
                Some(finding) = self.parts.findings.recv() => self.take_all(finding).await,
                Some(command) = self.parts.commands.recv() => self.obey(command).await,
                () = sleep_until(wake) => self.save_if_due().await,
                _ = every_second.tick() => self.publish(self.state()),
                () = stop.cancelled() => break,
            }
        }
        self.shut_down().await
    }

    /// Carries out what the frontier wants, as long as pages are not piling up and the disk works.
    fn pump(&mut self) {
        while self.trouble.is_none() && self.processing.len() < MAX_PROCESSING {
            let now = now();
            let Some(action) = self.parts.frontier.poll(now) else { break };
            self.attempt(action, now);
        }
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
        let ready: Vec<Domain> =
            self.parking.keys().filter(|domain| !self.processing.has(domain)).cloned().collect();
        ready.iter().for_each(|domain| self.park_if_settled(domain));
        self.take_deferred().await;
    }

    fn carry_out(&mut self, action: Action, now: Time) -> Result<(), AdmitError> {
        match action {
            Action::Wake { limit } => self.wake(limit, now)?,
            Action::Resolve(domain) => {
                let failures = self.parts.frontier.state(&domain).map_or(0, |state| state.failures());
                self.resolving += 1;
                tokio::spawn(self.parts.work.clone().resolve(domain, failures));
            }
            Action::Refill { domain, after, limit } => self.refill(domain, after, limit, now)?,
            Action::FetchRobots { domain, origin, url, address } => {
                tokio::spawn(self.parts.work.clone().fetch_robots(domain, origin, url, address));
            }
            Action::Fetch { domain, pending, address, connection } => {
                self.processing.begin(&domain, pending.slot);
                let connection = match connection {
                    KeepOrClose::KeepAlive => Connection::Keep,
                    KeepOrClose::Close => Connection::Close,
                };
                tokio::spawn(self.parts.work.clone().fetch_page(domain, pending, address, connection));
            }
            Action::Disallowed { domain, pending } => {
                self.totals.disallowed += 1;
                self.touch(&domain);
                self.leave_queue(&domain, pending.slot)?;
            }
            Action::Park { domain, mut state, wake } => {
                self.dirty.remove(&domain);
                if wake == Time::NEVER && state.stopped().is_none() {
                    // Its queue is empty. A count that says otherwise was cut off from its page by a crash.
                    let miscounted = std::mem::take(&mut state.counters.queued);
                    self.parts.admitter.queued = self.parts.admitter.queued.saturating_sub(miscounted);
                }
                let mut commit = Commit::new();
                commit.put_domain(&domain, encode_state(&state));
                if self.processing.has(&domain) {
                    self.parking.insert(domain, wake);
                } else {
                    park(&mut commit, &domain, wake);
                }
                self.parts.store.apply(&commit)?;
            }
        }
        Ok(())
    }

    /// Brings domains whose time has come into memory.
    fn wake(&mut self, limit: usize, now: Time) -> Result<(), AdmitError> {
        let mut parked = self.parts.store.parked(limit + 1)?;
        let due = parked.iter().take(limit).take_while(|(wake, _)| *wake <= now).count();
        let next = parked.get(due).map_or(Time::NEVER, |(wake, _)| *wake);
        parked.truncate(due);
        let mut commit = Commit::new();
        let mut domains = Vec::with_capacity(due);
        for (_, domain) in parked {
            let stored = self.parts.store.domain(&domain)?;
            let mut state = stored.map(|bytes| decode_state(&domain, &bytes)).unwrap_or_default();
            state.bound(now);
            commit.park(&domain, RESIDENT);
            domains.push((domain, state));
        }
        self.parts.store.apply(&commit)?;
        self.parts.frontier.handle(Event::Woke { domains, next }, now);
        Ok(())
    }

    /// Reads on in a domain's queue, past what is in processing: that is still in the queue, but not to be fetched.
    fn refill(
        &mut self,
        domain: Domain,
        after: Option<Slot>,
        limit: usize,
        now: Time,
    ) -> Result<(), ReadError> {
        let in_processing = self.processing.of(&domain);
        let mut urls = self.parts.store.pending(&domain, after, limit + in_processing.len())?;
        urls.retain(|pending| !in_processing.contains(&pending.slot));
        urls.truncate(limit);
        self.parts.frontier.handle(Event::Refilled { domain, urls }, now);
        Ok(())
    }

    async fn take_all(&mut self, first: Finding) {
        let mut next = Some(first);
        for _ in 0..MAX_FINDINGS_AT_ONCE {
            let Some(finding) = next else { break };
            self.take(finding).await;
            next = self.parts.findings.try_recv().ok();
        }
        if let Some(finding) = next {
            self.take(finding).await;
        }
    }

    async fn take(&mut self, finding: Finding) {
        let now = now();
        match finding {
            Finding::Resolved { domain, address } => {
                self.resolving -= 1;
                if let Err(error) = &address {
                    let failure = Outcome::Failed(page::resolve_failure(error));
                    Totals::count(&mut self.totals.failures, &judge::name(&failure), 1);
                }
                self.touch(&domain);
                self.parts.frontier.handle(Event::Resolved { domain, address: address.ok() }, now);
            }
            Finding::Robots { domain, origin, answer } => self.take_robots(domain, origin, answer, now),
            Finding::Fetched { report, pending } => self.take_fetched(report, pending, now),
            Finding::Durable { settled, archive_bytes } => {
                self.parts.reporter.archive_bytes = archive_bytes;
                settled.into_iter().for_each(|(domain, slot)| self.finish(&domain, slot));
                if self.trouble.is_some() {
                    self.recover_from_trouble().await;
                }
            }
            Finding::Trouble(trouble) => self.trouble = Some(trouble),
            Finding::Processed { domain, slot, page, sight } => {
                self.deferred.push_back((domain, slot, page, sight));
                self.take_deferred().await;
            }
        }
    }

    fn take_robots(&mut self, domain: Domain, origin: Origin, answer: RobotsAnswer, now: Time) {
        let RobotsAnswer { access, retry_after, effort } = answer;
        let sitemaps = access.sitemaps().iter().map(|url| link(url, 0, Target::Sitemap)).collect();
        self.touch(&domain);
        self.parts.frontier.handle(Event::Robots { domain, origin, access, retry_after, effort }, now);
        if let Err(error) = self.deliver(sitemaps, now) {
            self.is_in_trouble(&error);
        }
    }

    fn take_fetched(&mut self, report: Report, pending: Pending, now: Time) {
        let Report { domain, slot, outcome, effort } = report.clone();
        let name = judge::name(&outcome);
        if outcome != Outcome::Page {
            Totals::count(&mut self.totals.failures, &name, 1);
            self.show(&pending.url, name, effort, 0, now);
        }
        self.totals.bytes += effort.bytes;
        self.touch(&domain);
        let settlement = self.parts.frontier.settle(report, now);
        if outcome == Outcome::Page && settlement.is_some() {
            return;
        }
        if let Err(error) = self.conclude(&domain, slot, &outcome, pending, settlement, now) {
            self.is_in_trouble(&error);
        }
        self.finish(&domain, slot);
    }

    /// Settles a URL that brought no page. What fails here leaves it in its queue on disk, to be fetched again.
    fn conclude(
        &mut self,
        domain: &Domain,
        slot: Slot,
        outcome: &Outcome,
        pending: Pending,
        settlement: Option<Settlement>,
        now: Time,
    ) -> Result<(), AdmitError> {
        if let Outcome::Redirect(to) = outcome {
            // One link further, so that a chain without end ends at the greatest depth.
            self.deliver(vec![link(to, pending.depth + 1, pending.target)], now)?;
        }
        match settlement {
            Some(Settlement::Retry(pending)) => self.replace(domain, &pending),
            Some(Settlement::Done(_) | Settlement::Dropped(_)) => self.leave_queue(domain, slot),
            None => Ok(()),
        }
    }

    /// Pages are taken in once the disk works: their links must be in the queues before they leave their own.
    async fn take_deferred(&mut self) {
        while self.trouble.is_none()
            && let Some((domain, slot, page, sight)) = self.deferred.pop_front()
        {
            match self.deliver(page.links.clone(), now()) {
                Ok(()) => self.keep(domain, slot, page, sight).await,
                Err(error) => {
                    self.is_in_trouble(&error);
                    self.deferred.push_front((domain, slot, page, sight));
                }
            }
        }
    }

    async fn keep(&mut self, domain: Domain, slot: Slot, page: ProcessedPage, sight: PageSight) {
        let ProcessedPage { link_count, records, url, bytes, millis, .. } = page;
        let outcome = match sight {
            PageSight::New => "page",
            PageSight::Duplicate => "duplicate",
            PageSight::Sitemap => "sitemap",
        };
        self.totals.links += link_count;
        self.totals.pages += u64::from(sight != PageSight::Sitemap);
        self.totals.duplicates += u64::from(sight == PageSight::Duplicate);
        let event =
            PageEvent { at: now(), url, outcome: outcome.to_owned(), bytes, links: link_count, millis };
        self.parts.pages.publish(event);
        let mut commit = Commit::new();
        commit.remove_pending(&domain, slot);
        self.parts.admitter.queued = self.parts.admitter.queued.saturating_sub(1);
        self.save_soon();
        self.order(Order { commit, records, settled: Some((domain, slot)), reply: None }).await;
    }

    /// Sends links to the peers that own their domains, in batches. In a ring of one that is this peer, and the batch
    /// only skips the network.
    fn deliver(&mut self, links: Vec<Link>, now: Time) -> Result<(), AdmitError> {
        let mut links = links.into_iter().map(without_session).peekable();
        while links.peek().is_some() {
            let batch = links.by_ref().take(LinkBatch::MAX_LINKS).collect();
            self.admit(LinkBatch { crawl: CrawlId::OPEN, links: batch }, now)?;
        }
        Ok(())
    }

    fn admit(&mut self, batch: LinkBatch, now: Time) -> Result<(), AdmitError> {
        let mut desk = Desk {
            frontier: &mut self.parts.frontier,
            parking: &mut self.parking,
            totals: &mut self.totals,
            recent: self.parts.work.processor.recent(),
            touched: &mut self.dirty,
        };
        let admitted = self.parts.admitter.admit(batch, &mut desk, now);
        self.save_soon();
        admitted
    }

    fn leave_queue(&mut self, domain: &Domain, slot: Slot) -> Result<(), AdmitError> {
        let mut commit = Commit::new();
        commit.remove_pending(domain, slot);
        self.parts.admitter.queued = self.parts.admitter.queued.saturating_sub(1);
        self.save_soon();
        Ok(self.parts.store.apply(&commit)?)
    }

    fn replace(&mut self, domain: &Domain, pending: &Pending) -> Result<(), AdmitError> {
        let mut commit = Commit::new();
        commit.put_pending(domain, pending);
        self.save_soon();
        Ok(self.parts.store.apply(&commit)?)
    }

    /// A page is out of processing; its domain may be waiting for that to be parked.
    fn finish(&mut self, domain: &Domain, slot: Slot) {
        self.processing.end(domain, slot);
        if !self.processing.has(domain) {
            self.park_if_settled(domain);
        }
    }

    fn park_if_settled(&mut self, domain: &Domain) {
        let Some(wake) = self.parking.remove(domain) else { return };
        let mut commit = Commit::new();
        park(&mut commit, domain, wake);
        match self.parts.store.apply(&commit) {
            Ok(()) => self.parts.frontier.handle(Event::Parked { wake }, now()),
            Err(error) => {
                self.parking.insert(domain.clone(), wake);
                self.is_in_trouble(&error.into());
            }
        }
    }

    fn touch(&mut self, domain: &Domain) {
        self.dirty.insert(domain.clone());
        self.save_soon();
    }

    fn save_soon(&mut self) {
        self.save_at.get_or_insert_with(|| Instant::now() + SAVE_AFTER);
    }

    async fn save_if_due(&mut self) {
        if self.save_at.is_some_and(|at| at <= Instant::now()) {
            let order = self.saving();
            self.order(order).await;
        }
    }

    /// States that changed and totals. Making them durable makes everything applied before durable too. The states are
    /// applied at once: left to the writing thread, they could overwrite what is written of a domain meanwhile.
    fn saving(&mut self) -> Order {
        self.save_at = None;
        let dirty = std::mem::take(&mut self.dirty);
        let mut states = Commit::new();
        for domain in &dirty {
            if let Some(state) = self.parts.frontier.state(domain) {
                states.put_domain(domain, encode_state(state));
            }
        }
        if let Err(error) = self.parts.store.apply(&states) {
            self.dirty.extend(dirty);
            self.is_in_trouble(&error.into());
        }
        let mut commit = Commit::new();
        commit.set_value(QUEUED_VALUE, &self.parts.admitter.queued.to_be_bytes());
        match serde_json::to_vec(&self.totals) {
            Ok(totals) => commit.set_value(TOTALS_VALUE, &totals),
            Err(error) => tracing::error!(%error, "the totals are not representable"),
        }
        Order { commit, ..Order::default() }
    }

    async fn order(&mut self, order: Order) {
        if !self.parts.writer.send(order).await {
            self.trouble = Some("The writing thread has ended; restart the peer".to_owned());
        }
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Seed(urls, reply) => self.seed(urls, reply).await,
            Command::Pause(reply) => self.set_paused(true, reply).await,
            Command::Refusal(change, reply) => self.change_refusals(change, reply).await,
            Command::Resume(reply) => self.set_paused(false, reply).await,
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
        if let Err(error) = self.deliver(links, now()) {
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
        let order = Order { reply: Some(reply), ..self.saving() };
        self.order(order).await;
        durable
    }

    async fn set_paused(&mut self, paused: bool, reply: oneshot::Sender<()>) {
        self.paused = paused;
        self.set_fetches();
        let mut commit = Commit::new();
        if paused {
            commit.set_value(PAUSED_VALUE, b"1")
        } else {
            commit.remove_value(PAUSED_VALUE)
        }
        self.order(Order { commit, ..Order::default() }).await;
        self.publish(self.state());
        let _ = reply.send(());
    }

    fn set_fetches(&mut self) {
        let fetches = if self.paused { 0 } else { self.parts.fetches };
        self.parts.frontier.set_fetches(fetches);
    }

    fn next_wake(&self) -> Instant {
        let frontier = self.parts.frontier.next_timeout();
        let is_held_up = self.trouble.is_some() || self.processing.len() >= MAX_PROCESSING;
        let wait = if is_held_up {
            Duration::from_secs(1)
        } else {
            frontier.since(now()).min(Duration::from_secs(60))
        };
        let wake = Instant::now() + wait;
        self.save_at.map_or(wake, |save| save.min(wake))
    }

    fn state(&self) -> State {
        let is_busy = self.parts.frontier.fetching() + self.processing.len() + self.resolving > 0;
        let is_near = self.parts.frontier.next_timeout() < now() + DONE_AFTER;
        match () {
            () if self.paused => State::Paused,
            () if is_busy || is_near => State::Crawling,
            () => State::Idle,
        }
    }

    fn publish(&mut self, state: State) {
        let snapshot = crate::reporter::Snapshot {
            state,
            totals: &self.totals,
            queued: self.parts.admitter.queued,
            outbox: self.parts.store.outbox_count().unwrap_or(0),
            domains: self.parts.store.domain_count().unwrap_or(0),
            resident: self.parts.frontier.residents().count() as u64,
            fetching: self.parts.frontier.fetching() as u64,
            processing: self.processing.len() as u64,
            trouble: self.trouble.as_deref(),
        };
        self.parts.reporter.publish(snapshot, now());
    }

    fn show(&mut self, url: &PageUrl, outcome: String, effort: apoidea_crawl::Effort, links: u64, now: Time) {
        let millis = u64::try_from(effort.took.as_millis()).unwrap_or(u64::MAX);
        self.parts.pages.publish(PageEvent {
            at: now,
            url: url.clone(),
            outcome,
            bytes: effort.bytes,
            links,
            millis,
        });
    }

    /// Starts nothing more, parks what is in memory, and makes everything durable. Pages still being fetched stay in
    /// their queues.
    async fn shut_down(mut self) -> Status {
        self.publish(State::Stopping);
        let mut commit = Commit::new();
        let residents: Vec<Domain> =
            self.parts.frontier.residents().map(|(domain, _)| domain.clone()).collect();
        for domain in residents {
            if let Some(mut state) = self.parts.frontier.release(&domain) {
                state.interrupted(now());
                commit.put_domain(&domain, encode_state(&state));
                let has_work = state.counters.queued > 0;
                park(&mut commit, &domain, if has_work { state.ready_at() } else { Time::NEVER });
            }
        }
        for (domain, wake) in self.parking.drain() {
            park(&mut commit, &domain, wake);
        }
        self.dirty.clear();
        let mut last = self.saving();
        last.commit.absorb(commit);
        let (reply, durable) = oneshot::channel();
        last.reply = Some(reply);
        self.order(last).await;
        let _ = durable.await;
        self.publish(State::Stopping);
        self.parts.reporter.last()
    }
}

/// URLs waiting in all domains, counted one by one: the sum is not kept exactly across a crash.
fn count_queued(store: &Store) -> Result<u64, ReadError> {
    const AT_ONCE: usize = 1000;
    let (mut queued, mut after) = (0, None);
    loop {
        let domains = store.domains("", after.as_ref(), AT_ONCE)?;
        queued +=
            domains.iter().map(|(domain, bytes)| decode_state(domain, bytes).counters.queued).sum::<u64>();
        match domains.last() {
            Some((last, _)) if domains.len() == AT_ONCE => after = Some(last.clone()),
            _ => return Ok(queued),
        }
    }
}

/// A page has one address, whatever session a site hands out with it.
fn without_session(mut link: Link) -> Link {
    if let Some(url) = apoidea_crawl::without_session(&link.url) {
        link.url = url;
    }
    link
}

fn link(url: &PageUrl, depth: u16, target: Target) -> Link {
    Link { url: url.clone(), depth, target }
}
