//! A web, a disk and a clock for the frontier, all of them made up, and a judge that knows the
//! good-citizen contract.
//!
//! The judge keeps its own account of what each host and address may be asked, written from the
//! contract rather than from the code, and stops the test at the first request that should not have
//! been made. The disk is as late as a real one: answers and commits take a while, so that readers
//! see what is about to change.

use apoidea_crawl::{
    Access, Action, DomainState, Effort, Event, Failure, FetchReport, Frontier, FrontierConfig,
    Origin, Outcome, Robots, Settlement,
};
use apoidea_model::{CrawlId, Domain, Link, PageId, PageUrl, Pending, Slot, Target, Time};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    net::IpAddr,
    time::Duration,
};

pub const SECOND: Duration = Duration::from_secs(1);
pub const HOUR: Duration = Duration::from_secs(3600);
pub const DAY: Duration = Duration::from_secs(24 * 3600);
/// The virtual clock begins here.
pub const START: Time = Time::from_millis(1_000_000_000);

/// How the web behaves.
#[derive(Clone, Copy)]
pub struct Weather {
    /// Of a hundred fetches so many fail in one way or another.
    pub bad_percent: u32,
    /// Longest fetch, in milliseconds.
    pub slowest_millis: u64,
}

pub struct World {
    pub frontier: Frontier,
    pub now: Time,
    pub judge: Judge,
    pub disk: Disk,
    rng: StdRng,
    weather: Weather,
    addresses: HashMap<Domain, IpAddr>,
    coming: BTreeMap<(Time, u64), Coming>,
    sequence: u64,
    resident_limit: usize,
    pub most_resident: usize,
    pub actions: u64,
}

/// What is on the peer's disk.
#[derive(Default)]
pub struct Disk {
    pub queues: HashMap<Domain, BTreeMap<Slot, Pending>>,
    pub states: HashMap<Domain, DomainState>,
    pub parked: BTreeSet<(Time, Domain)>,
    wakes: HashMap<Domain, Time>,
}

/// What will happen at some time.
enum Coming {
    Event(Event),
    Read {
        domain: Domain,
        after: Option<Slot>,
        limit: usize,
    },
    Fetched {
        domain: Domain,
        pending: Pending,
        outcome: Outcome,
        effort: Effort,
    },
    Commit(Commit),
}

/// What will be on disk at some time; in order, as one writer writes it.
enum Commit {
    Settled(Domain, Settlement),
    Disallowed(PageId),
    Parked(Domain, Box<DomainState>, Time),
    Admitted(Domain, Vec<Pending>),
}

impl World {
    pub fn new(config: FrontierConfig, seed: u64, weather: Weather) -> Self {
        World {
            resident_limit: config.resident,
            judge: Judge {
                fetches: config.fetches,
                ..Judge::default()
            },
            frontier: Frontier::new(config),
            now: START,
            disk: Disk::default(),
            rng: StdRng::seed_from_u64(seed),
            weather,
            addresses: HashMap::new(),
            coming: BTreeMap::new(),
            sequence: 0,
            most_resident: 0,
            actions: 0,
        }
    }

    /// A host with URLs waiting on disk.
    pub fn host(&mut self, name: &str, address: IpAddr, urls: usize) -> Domain {
        let domain: Domain = name.parse().expect("a host name");
        self.addresses.insert(domain.clone(), address);
        let pending: Vec<_> = (0..urls).map(|_| self.pending(&domain)).collect();
        let state = self.disk.states.entry(domain.clone()).or_default();
        state.admitted(&pending, 0, 0);
        let queue = self.disk.queues.entry(domain.clone()).or_default();
        queue.extend(pending.into_iter().map(|pending| (pending.slot, pending)));
        self.disk.park(&domain, START);
        domain
    }

    fn pending(&mut self, domain: &Domain) -> Pending {
        self.sequence += 1;
        let folder = if self.rng.random_range(0..10) == 0 {
            "private"
        } else {
            "open"
        };
        let scheme = if self.rng.random_range(0..4) == 0 {
            "http"
        } else {
            "https"
        };
        let url = format!("{scheme}://{domain}/{folder}/{}", self.sequence);
        let rank = self.rng.random_range(0..4);
        let link = Link {
            url: PageUrl::parse(&url).expect("a URL"),
            depth: rank,
            target: Target::Page,
        };
        let slot = Slot {
            rank,
            sequence: self.sequence,
        };
        Pending::admitted(link, slot, CrawlId::OPEN)
    }

    /// New URLs are found for a host.
    pub fn admit(&mut self, domain: &Domain, urls: usize) {
        let pending = (0..urls).map(|_| self.pending(domain)).collect();
        self.commit(Commit::Admitted(domain.clone(), pending));
    }

    /// Lets time pass until then, or until nothing is left to do.
    pub fn run_until(&mut self, end: Time) {
        loop {
            while let Some(action) = self.frontier.poll(self.now) {
                self.act(action);
            }
            let residents = self.frontier.residents().len();
            self.most_resident = self.most_resident.max(residents);
            assert!(
                residents <= self.resident_limit,
                "{residents} domains in memory"
            );
            let coming = self
                .coming
                .keys()
                .next()
                .map_or(Time::NEVER, |(time, _)| *time);
            let next = coming.min(self.frontier.next_timeout());
            if next > end || next == Time::NEVER {
                self.now = self.now.max(end.min(next));
                return;
            }
            assert!(
                next > self.now || coming <= self.now,
                "poll left something to do undone"
            );
            self.now = self.now.max(next);
            while let Some(entry) = self
                .coming
                .first_entry()
                .filter(|entry| entry.key().0 <= self.now)
            {
                let coming = entry.remove();
                self.happen(coming);
            }
        }
    }

    fn act(&mut self, action: Action) {
        self.actions += 1;
        match action {
            Action::Wake { limit } => {
                let event = self.disk.wake(limit, self.now);
                self.frontier.handle(event, self.now);
            }
            Action::Resolve(domain) => {
                let address = Some(self.addresses[&domain]);
                self.later(50, Coming::Event(Event::Resolved { domain, address }));
            }
            Action::Refill {
                domain,
                after,
                limit,
            } => self.later(
                20,
                Coming::Read {
                    domain,
                    after,
                    limit,
                },
            ),
            Action::FetchRobots {
                domain,
                origin,
                url,
                address,
            } => {
                assert_eq!(url, origin.robots_url(&domain));
                self.judge.begins(&domain, address, self.now);
                self.fetch_robots(domain, origin);
            }
            Action::Fetch {
                domain,
                pending,
                address,
                ..
            } => {
                assert_eq!(address, self.addresses[&domain]);
                self.judge.begins(&domain, address, self.now);
                self.judge.page_begins(&domain, &pending, self.now);
                self.fetch(domain, pending);
            }
            Action::Disallowed { domain, pending } => {
                assert!(
                    pending.url.path().starts_with("/private/"),
                    "{}",
                    pending.url
                );
                self.judge.settled.insert(pending.slot.sequence);
                self.commit(Commit::Disallowed(PageId::new(domain, pending.slot)));
            }
            Action::Park {
                domain,
                state,
                wake,
            } => self.commit(Commit::Parked(domain, state, wake)),
        }
    }

    fn fetch_robots(&mut self, domain: Domain, origin: Origin) {
        let took = self.took();
        let is_bad = self.rng.random_range(0..100) < self.weather.bad_percent;
        let file = b"User-agent: *\nDisallow: /private/\n";
        let access = if is_bad {
            Access::Closed
        } else {
            Access::Rules(Robots::parse(file, "Apoidea"))
        };
        self.judge
            .robots_end(&domain, origin, &access, took, self.now + took);
        let effort = Effort { took, bytes: 34 };
        let event = Event::Robots {
            domain,
            origin,
            access,
            retry_after: None,
            effort,
        };
        self.later_exactly(took, Coming::Event(event));
    }

    fn fetch(&mut self, domain: Domain, pending: Pending) {
        let (took, outcome) = (self.took(), self.outcome(&pending));
        self.judge
            .page_ends(&domain, &outcome, took, self.now + took);
        let effort = Effort { took, bytes: 1000 };
        self.later_exactly(
            took,
            Coming::Fetched {
                domain,
                pending,
                outcome,
                effort,
            },
        );
    }

    fn took(&mut self) -> Duration {
        Duration::from_millis(self.rng.random_range(10..=self.weather.slowest_millis))
    }

    fn outcome(&mut self, pending: &Pending) -> Outcome {
        if self.rng.random_range(0..100) >= self.weather.bad_percent {
            return if self.rng.random_range(0..10) == 0 {
                Outcome::Refused(404)
            } else {
                Outcome::Page
            };
        }
        match self.rng.random_range(0..12) {
            0 => Outcome::Throttled { retry_after: None },
            1 => Outcome::Throttled {
                retry_after: Some(self.rng.random_range(1..7200) * SECOND),
            },
            2 => Outcome::Refused(403),
            3 => Outcome::Redirect(pending.url.clone()),
            4 => Outcome::Failed(Failure::Dns),
            5 => Outcome::Failed(Failure::Connect),
            6 => Outcome::Failed(Failure::Tls),
            7 => Outcome::Failed(Failure::Timeout),
            8 => Outcome::Failed(Failure::Server),
            9 => Outcome::Failed(Failure::UnsupportedType),
            _ => Outcome::Failed(Failure::Read),
        }
    }

    fn happen(&mut self, coming: Coming) {
        match coming {
            Coming::Event(event) => self.frontier.handle(event, self.now),
            Coming::Read {
                domain,
                after,
                limit,
            } => {
                let urls = self.disk.read(&domain, after, limit);
                self.frontier
                    .handle(Event::Refilled { domain, urls }, self.now);
            }
            Coming::Fetched {
                domain,
                pending,
                outcome,
                effort,
            } => {
                let report = FetchReport {
                    page: PageId::new(domain.clone(), pending.slot),
                    outcome,
                    effort,
                };
                let settlement = self
                    .frontier
                    .settle(report, self.now)
                    .expect("this fetch was under way");
                self.judge.page_settled(&pending, &settlement, self.now);
                self.commit(Commit::Settled(domain, settlement));
            }
            Coming::Commit(commit) => self.committed(commit),
        }
    }

    /// What the writer wrote is on disk now, and the frontier is told.
    fn committed(&mut self, commit: Commit) {
        match commit {
            Commit::Settled(domain, Settlement::Retry(pending)) => self.disk.push(&domain, pending),
            Commit::Settled(domain, Settlement::Done(pending) | Settlement::Dropped(pending)) => {
                self.disk.remove(&domain, pending.slot);
            }
            Commit::Disallowed(page) => self.disk.remove(&page.domain, page.slot),
            Commit::Parked(domain, state, wake) => {
                self.disk.states.insert(domain.clone(), *state);
                self.disk.park(&domain, wake);
                self.frontier.handle(Event::Parked { wake }, self.now);
            }
            Commit::Admitted(domain, urls) => {
                urls.iter()
                    .for_each(|pending| self.disk.push(&domain, pending.clone()));
                if self.frontier.is_resident(&domain) {
                    let event = Event::Admitted {
                        domain,
                        urls,
                        evicted: Vec::new(),
                        overflowed: 0,
                    };
                    self.frontier.handle(event, self.now);
                } else {
                    let wake = self.disk.states[&domain].ready_at().max(self.now);
                    self.disk.park(&domain, wake);
                    self.frontier.handle(Event::Parked { wake }, self.now);
                }
            }
        }
    }

    /// Commits happen at the next tenth of a second, in order.
    fn commit(&mut self, commit: Commit) {
        let tick = Time::from_millis((self.now.as_millis() / 100 + 1) * 100);
        self.sequence += 1;
        self.coming
            .insert((tick, self.sequence), Coming::Commit(commit));
    }

    fn later(&mut self, at_most_millis: u64, coming: Coming) {
        let wait = Duration::from_millis(self.rng.random_range(1..=at_most_millis));
        self.later_exactly(wait, coming);
    }

    fn later_exactly(&mut self, wait: Duration, coming: Coming) {
        self.sequence += 1;
        self.coming.insert((self.now + wait, self.sequence), coming);
    }
}

impl Disk {
    fn park(&mut self, domain: &Domain, wake: Time) {
        if let Some(old) = self.wakes.remove(domain) {
            self.parked.remove(&(old, domain.clone()));
        }
        if wake != Time::NEVER {
            self.wakes.insert(domain.clone(), wake);
            self.parked.insert((wake, domain.clone()));
        }
    }

    fn wake(&mut self, limit: usize, now: Time) -> Event {
        let due = self
            .parked
            .iter()
            .take(limit)
            .take_while(|(wake, _)| *wake <= now);
        let names: Vec<Domain> = due.map(|(_, domain)| domain.clone()).collect();
        names
            .iter()
            .for_each(|domain| self.park(domain, Time::NEVER));
        let domains = names.into_iter().map(|domain| {
            let state = self.states[&domain].clone();
            (domain, state)
        });
        let domains = domains.collect();
        Event::Woke {
            domains,
            next: self.parked.first().map_or(Time::NEVER, |(wake, _)| *wake),
        }
    }

    fn read(&self, domain: &Domain, after: Option<Slot>, limit: usize) -> Vec<Pending> {
        let queue = &self.queues[domain];
        let behind = queue
            .values()
            .filter(|pending| after.is_none_or(|after| pending.slot > after));
        behind.take(limit).cloned().collect()
    }

    fn push(&mut self, domain: &Domain, pending: Pending) {
        self.queues
            .entry(domain.clone())
            .or_default()
            .insert(pending.slot, pending);
    }

    fn remove(&mut self, domain: &Domain, slot: Slot) {
        self.queues
            .entry(domain.clone())
            .or_default()
            .remove(&slot)
            .expect("what is settled was in the queue");
    }

    /// URLs that wait, at hosts that are not stopped.
    pub fn waiting(&self) -> usize {
        let live = self
            .queues
            .iter()
            .filter(|(domain, _)| self.states[*domain].stopped().is_none());
        live.map(|(_, queue)| queue.len()).sum()
    }
}

/// Knows the contract and what was done, and nothing of the frontier.
#[derive(Default)]
pub struct Judge {
    pub fetches: usize,
    pub pages: u64,
    pub retries: u64,
    /// Sequences of URLs that are done, dropped or disallowed.
    pub settled: HashSet<u64>,
    pub rests: u64,
    pub throttles: u64,
    busy: HashSet<Domain>,
    hosts: HashMap<Domain, HostAccount>,
    asked: HashMap<IpAddr, Time>,
    not_before: HashMap<u64, Time>,
}

#[derive(Default)]
struct HostAccount {
    earliest: Time,
    busy_until: Time,
    failures: u32,
    forbidden: u32,
    slowed_until: Time,
    /// Fetched when, and whether it answered.
    robots: HashMap<Origin, (Time, bool)>,
}

impl Judge {
    fn begins(&mut self, domain: &Domain, address: IpAddr, now: Time) {
        let account = self.hosts.entry(domain.clone()).or_default();
        assert!(
            account.busy_until <= now,
            "{domain}: two requests at a time"
        );
        assert!(
            account.earliest <= now,
            "{domain}: asked {:?} too early",
            account.earliest.since(now)
        );
        assert!(
            account.forbidden < 10,
            "{domain}: asked after a run of 403s"
        );
        if let Some(last) = self.asked.insert(address, now) {
            assert!(
                now.since(last) >= 2 * SECOND,
                "{address}: asked again after {:?}",
                now.since(last)
            );
        }
        self.busy.retain(|other| self.hosts[other].busy_until > now);
        self.busy.insert(domain.clone());
        assert!(
            self.busy.len() <= self.fetches,
            "{} requests at a time",
            self.busy.len()
        );
    }

    fn page_begins(&mut self, domain: &Domain, pending: &Pending, now: Time) {
        assert!(
            !pending.url.path().starts_with("/private/"),
            "{}: robots.txt says no",
            pending.url
        );
        let robots = self.hosts[domain].robots.get(&Origin::of(&pending.url));
        let (fetched, answered) = robots.expect("robots.txt comes first");
        assert!(answered, "{}: robots.txt did not answer", pending.url);
        assert!(
            now.since(*fetched) <= DAY,
            "{}: robots.txt is too old",
            pending.url
        );
        assert!(
            !self.settled.contains(&pending.slot.sequence),
            "{}: fetched again",
            pending.url
        );
        let not_before = self
            .not_before
            .get(&pending.slot.sequence)
            .copied()
            .unwrap_or_default();
        assert!(not_before <= now, "{}: tried again too early", pending.url);
        self.pages += 1;
    }

    fn robots_end(
        &mut self,
        domain: &Domain,
        origin: Origin,
        access: &Access,
        took: Duration,
        end: Time,
    ) {
        let account = self.hosts.get_mut(domain).expect("it began");
        let answered = *access != Access::Closed;
        account.robots.insert(origin, (end, answered));
        self.rests += u64::from(account.ends(answered, took, end));
    }

    fn page_ends(&mut self, domain: &Domain, outcome: &Outcome, took: Duration, end: Time) {
        let account = self.hosts.get_mut(domain).expect("it began");
        let answered = match outcome {
            Outcome::Throttled { .. } => false,
            Outcome::Failed(failure) => {
                matches!(
                    failure,
                    Failure::UnsupportedType | Failure::TooManyRedirects
                )
            }
            _ => true,
        };
        self.rests += u64::from(account.ends(answered, took, end));
        match outcome {
            Outcome::Refused(403) => account.forbidden += 1,
            Outcome::Throttled { retry_after } => {
                self.throttles += 1;
                account.slowed_until = end + DAY;
                let wait = retry_after.unwrap_or_default().max(300 * SECOND);
                account.earliest = account.earliest.max(end + wait);
            }
            _ if answered => account.forbidden = 0,
            _ => {}
        }
    }

    fn page_settled(&mut self, pending: &Pending, settlement: &Settlement, now: Time) {
        match settlement {
            Settlement::Retry(again) => {
                assert_eq!(again.attempts, pending.attempts + 1);
                assert!(again.not_before >= now + 60 * SECOND);
                self.not_before
                    .insert(pending.slot.sequence, again.not_before);
                self.retries += 1;
            }
            Settlement::Done(_) | Settlement::Dropped(_) => {
                self.settled.insert(pending.slot.sequence);
            }
        }
    }
}

impl HostAccount {
    /// Whether the host has to rest.
    fn ends(&mut self, answered: bool, took: Duration, end: Time) -> bool {
        let pause = (5 * took).clamp(5 * SECOND, 60 * SECOND);
        let slowed = end < self.slowed_until;
        self.earliest = end + if slowed { 2 * pause } else { pause };
        self.busy_until = end;
        self.failures = if answered { 0 } else { self.failures + 1 };
        if self.failures < 5 {
            return false;
        }
        self.failures = 0;
        self.earliest = end + DAY;
        true
    }
}
