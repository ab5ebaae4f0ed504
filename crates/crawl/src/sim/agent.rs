//! One simulated peer: the frontier, the loans, the queues that a real one has on disk, and the
//! links it has yet to send.

use crate::{
    Admission, BreadthFirst, DomainState, Event, Frontier, FrontierConfig, OneIn, Origin, Quotas,
    SeenFilter,
    lending::{Choice, FetchId, Lending, Load, Memory, Progress, Refused, Room},
};
use apoidea_model::{CrawlId, Domain, Link, PeerId, Pending, Slot, Time, UrlHash};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// URLs that are not sent again because they were lately.
const RECENT: usize = 4096;

/// One peer.
pub(super) struct Agent {
    pub frontier: Frontier,
    pub lending: Lending<Subject>,
    /// The peers that it may lend to.
    neighbours: Vec<PeerId>,
    /// Pages in processing at most.
    most_pages: usize,
    domains: HashMap<Domain, Known>,
    parked: BTreeSet<(Time, Domain)>,
    next_sequence: u64,
    queued: u64,
    /// Links for others, by owner.
    pub outbox: BTreeMap<usize, Vec<Link>>,
    recent: (HashSet<UrlHash>, VecDeque<UrlHash>),
    pub fetched: u64,
}

/// What is fetched.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    Page(Pending),
    Robots(Origin),
}

/// What is known of a domain besides what the frontier has in memory.
struct Known {
    state: DomainState,
    seen: SeenFilter,
    queue: BTreeMap<Slot, Pending>,
}

impl Agent {
    /// A peer with so many fetches at a time, which lends to its neighbours.
    pub(super) fn new(fetches: usize, neighbours: Vec<PeerId>) -> Self {
        let config = FrontierConfig {
            fetches,
            ..FrontierConfig::default()
        };
        Agent {
            frontier: Frontier::new(config),
            lending: Lending::new(fetches),
            neighbours,
            // As many as a real peer has in a swarm.
            most_pages: (4 * fetches).max(64),
            domains: HashMap::new(),
            parked: BTreeSet::new(),
            next_sequence: 0,
            queued: 0,
            outbox: BTreeMap::new(),
            recent: Default::default(),
            fetched: 0,
        }
    }

    /// Tells the frontier how much may be under way now.
    pub(super) fn limit_fetches(&mut self, now: Time) {
        let limit = self.lending.fetch_limit(&self.load(), now);
        self.frontier.set_fetches(limit);
    }

    /// Chooses the place of a fetch.
    pub(super) fn assign(&self, fetch: &FetchId, now: Time) -> Choice {
        self.lending.assign(fetch, Refused::No, &self.load(), now)
    }

    /// A helper had no time.
    pub(super) fn turned_away(
        &mut self,
        helper: PeerId,
        fetch: &FetchId,
        now: Time,
    ) -> Option<(Subject, Choice)> {
        let load = load(&self.frontier, &self.neighbours, self.most_pages);
        self.lending.on_turned_away(helper, fetch, &load, now)
    }

    /// Has it time for a fetch of another?
    pub(super) fn may_borrow(&self) -> bool {
        self.lending.may_borrow(&self.load())
    }

    /// Requests under way at this peer, for itself and for others.
    pub(super) fn fetching_here(&self) -> usize {
        self.lending.fetching_here(&self.load())
    }

    /// Can it start nothing until a helper has rested or a fetch has ended?
    pub(super) fn waits_for_helpers(&self, now: Time) -> bool {
        let limit = self.lending.fetch_limit(&self.load(), now);
        !self.neighbours.is_empty() && self.frontier.fetching() >= limit
    }

    fn load(&self) -> Load<'_> {
        load(&self.frontier, &self.neighbours, self.most_pages)
    }

    /// Takes the links of one domain that is this peer's into its queue.
    pub(super) fn admit(&mut self, domain: &Domain, links: Vec<Link>, now: Time) {
        let known = self
            .domains
            .entry(domain.clone())
            .or_insert_with(Known::new);
        let counters = self
            .frontier
            .state(domain)
            .map_or(known.state.counters, |state| state.counters);
        let admission = Admission {
            domain,
            quotas: &Quotas::default(),
            order: &BreadthFirst,
            counters,
            queued_total: self.queued,
            worst: &[],
            check: &|_| Ok(()),
        };
        let decision = admission.decide(links, &mut known.seen);
        let mut urls = Vec::new();
        for admitted in decision.admitted {
            let slot = Slot {
                rank: admitted.rank,
                sequence: self.next_sequence,
            };
            self.next_sequence += 1;
            urls.push(Pending::admitted(admitted.link, slot, CrawlId::OPEN));
        }
        if urls.is_empty() {
            return;
        }
        self.queued += urls.len() as u64;
        known
            .queue
            .extend(urls.iter().map(|pending| (pending.slot, pending.clone())));
        if self.frontier.is_resident(domain) {
            let event = Event::Admitted {
                domain: domain.clone(),
                urls,
                evicted: Vec::new(),
                overflowed: 0,
            };
            return self.frontier.handle(event, now);
        }
        known.state.admitted(&urls, 0, 0);
        let wake = known.state.ready_at();
        self.parked.insert((wake, domain.clone()));
        self.frontier.handle(Event::Parked { wake }, now);
    }

    /// Answers the frontier's wish for domains whose time has come.
    pub(super) fn wake(&mut self, limit: usize, now: Time) {
        let mut domains = Vec::new();
        while domains.len() < limit
            && let Some((wake, _)) = self.parked.first()
            && *wake <= now
            && let Some((_, domain)) = self.parked.pop_first()
        {
            if let Some(known) = self
                .domains
                .get(&domain)
                .filter(|_| !self.frontier.is_resident(&domain))
            {
                domains.push((domain, known.state.clone()));
            }
        }
        let next = self.parked.first().map_or(Time::NEVER, |(wake, _)| *wake);
        self.frontier.handle(Event::Woke { domains, next }, now);
    }

    /// Answers the frontier's wish to read on in a queue. What is being fetched is not in it any
    /// more.
    pub(super) fn refill(&mut self, domain: Domain, after: Option<Slot>, limit: usize, now: Time) {
        let urls = self.domains.get(&domain).map_or_else(Vec::new, |known| {
            let behind = known
                .queue
                .iter()
                .filter(|(slot, _)| after.is_none_or(|after| **slot > after));
            behind
                .take(limit)
                .map(|(_, pending)| pending.clone())
                .collect()
        });
        self.frontier.handle(Event::Refilled { domain, urls }, now);
    }

    /// A URL is on its way.
    pub(super) fn take(&mut self, domain: &Domain, slot: Slot) {
        if let Some(known) = self.domains.get_mut(domain)
            && known.queue.remove(&slot).is_some()
        {
            self.queued -= 1;
        }
    }

    /// A domain leaves the frontier.
    pub(super) fn park(&mut self, domain: Domain, state: DomainState, wake: Time, now: Time) {
        if let Some(known) = self.domains.get_mut(&domain) {
            known.state = state;
            if wake < Time::NEVER {
                self.parked.insert((wake, domain));
                self.frontier.handle(Event::Parked { wake }, now);
            }
        }
    }

    /// A fetch finds no place: its domain leaves the frontier, and its turn comes again.
    pub(super) fn put_back(
        &mut self,
        domain: Domain,
        subject: Subject,
        not_before: Time,
        now: Time,
    ) {
        let Some(state) = self.frontier.release(&domain) else {
            return;
        };
        if let (Subject::Page(pending), Some(known)) = (subject, self.domains.get_mut(&domain)) {
            known.queue.insert(pending.slot, pending);
            self.queued += 1;
        }
        let wake = state.ready_at().max(not_before);
        self.park(domain, state, wake, now);
    }

    /// Keeps links for others, unless they were sent lately.
    pub(super) fn post(&mut self, owner: usize, link: Link) {
        let hash = link.url.hash();
        let (known, order) = &mut self.recent;
        if !known.insert(hash) {
            return;
        }
        order.push_back(hash);
        if order.len() > RECENT
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
        self.outbox.entry(owner).or_default().push(link);
    }
}

impl Known {
    fn new() -> Self {
        let seen = SeenFilter::new(OneIn::default());
        Known {
            state: DomainState::default(),
            seen,
            queue: BTreeMap::new(),
        }
    }
}

fn load<'a>(frontier: &Frontier, neighbours: &'a [PeerId], most: usize) -> Load<'a> {
    let fetching = frontier.fetching();
    let room = Room {
        // Nothing follows a fetch here.
        in_processing: fetching,
        most,
        memory: Memory::Free,
    };
    Load {
        fetching,
        room,
        neighbours,
        progress: Progress::Running,
    }
}
