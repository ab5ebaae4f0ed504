//! One simulated peer: the frontier, the loans, the stages of its pages, the ledger of its replicas,
//! the queues that a real one has on disk, and the links it has yet to send.

use super::{outbox::Outbox, replica::Replica, telling::OpenRound};
use crate::{
    AddressClock, Admission, BreadthFirst, DomainState, Event, Frontier, FrontierConfig, Ledger,
    OneIn, Origin, Pages, Quotas, SeenFilter, Tenure,
    lending::{Choice, FetchId, Lending, Load, Memory, Progress, Refused, Room},
};
use apoidea_model::{CrawlId, Domain, Link, PageId, PeerId, Pending, Slot, Time};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One peer.
pub(super) struct Agent {
    /// Does it lie whenever it can?
    pub is_liar: bool,
    pub frontier: Frontier,
    pub lending: Lending<Subject>,
    /// Pages under way, each with its links once it is processed.
    pub pages: Pages<Vec<Link>>,
    pub ledger: Ledger,
    /// The round that the replicas have not acknowledged yet.
    pub round: Option<OpenRound>,
    /// The next round begins then.
    pub round_at: Time,
    /// Batches that were admitted and are not with the replicas yet: sender and number.
    pub unacknowledged: Vec<(usize, u64)>,
    /// The clocks of addresses that it keeps for all.
    pub clock: AddressClock,
    /// Does it look for wishes soon?
    pub wishes: bool,
    /// Domains of other owners.
    pub replicas: HashMap<Domain, Replica>,
    /// The peers that it may lend to.
    pub neighbours: Vec<PeerId>,
    /// Pages in processing at most.
    most_pages: usize,
    pub domains: BTreeMap<Domain, Known>,
    parked: BTreeSet<(Time, Domain)>,
    next_sequence: u64,
    pub outbox: Outbox,
    pub fetched: u64,
}

/// What is fetched.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    Page(Pending),
    Robots(Origin),
}

/// What is known of a domain besides what the frontier has in memory.
pub(super) struct Known {
    state: DomainState,
    seen: SeenFilter,
    /// What the replicas are to hold.
    pub replica: Replica,
}

impl Agent {
    /// A peer with so many fetches at a time.
    pub(super) fn new(me: PeerId, fetches: usize, now: Time) -> Self {
        let config = FrontierConfig {
            fetches,
            ..FrontierConfig::default()
        };
        Agent {
            is_liar: false,
            frontier: Frontier::new(config),
            lending: Lending::new(fetches),
            pages: Pages::default(),
            ledger: Ledger::new(Tenure::begin(me, now, Tenure::default())),
            round: None,
            round_at: Time::NEVER,
            unacknowledged: Vec::new(),
            clock: AddressClock::default(),
            wishes: false,
            replicas: HashMap::new(),
            neighbours: Vec::new(),
            most_pages: Pages::<Vec<Link>>::most_in_swarm(fetches),
            domains: BTreeMap::new(),
            parked: BTreeSet::new(),
            next_sequence: 0,
            outbox: Outbox::default(),
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
        let load = load(
            &self.frontier,
            &self.pages,
            &self.neighbours,
            self.most_pages,
        );
        self.lending.on_turned_away(helper, fetch, &load, now)
    }

    /// Ends the loans of helpers that tell nothing.
    pub(super) fn overdue(&mut self, now: Time) -> Vec<(FetchId, Subject)> {
        let load = load(
            &self.frontier,
            &self.pages,
            &self.neighbours,
            self.most_pages,
        );
        self.lending.overdue(&load, now)
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

    /// May anything start? With as many pages in processing as there may be, only helpers can fetch
    /// more.
    pub(super) fn may_go_on(&self, now: Time) -> bool {
        let load = self.load();
        !self.lending.is_full(&load) || self.lending.may_lend(&load, now)
    }

    fn load(&self) -> Load<'_> {
        load(
            &self.frontier,
            &self.pages,
            &self.neighbours,
            self.most_pages,
        )
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
            queued_total: 0,
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
        known.replica.put(&urls);
        self.change(domain, |change| change.puts.extend(urls.iter().cloned()));
        if self.frontier.is_resident(domain) {
            let event = Event::Admitted {
                domain: domain.clone(),
                urls,
                evicted: Vec::new(),
                overflowed: 0,
            };
            return self.frontier.handle(event, now);
        }
        let Some(known) = self.domains.get_mut(domain) else {
            return;
        };
        known.state.admitted(&urls, 0, 0);
        let wake = known.state.ready_at();
        self.parked.insert((wake, domain.clone()));
        self.frontier.handle(Event::Parked { wake }, now);
    }

    /// A domain of a peer that is gone is this peer's now.
    pub(super) fn take_over(&mut self, domain: &Domain, replica: Replica, now: Time) {
        self.next_sequence = self.next_sequence.max(replica.next_sequence);
        let mut state = DomainState::default();
        state.admitted(replica.queue.values(), 0, 0);
        state.interrupted(now);
        let wake = state.ready_at();
        if !replica.queue.is_empty() {
            self.parked.insert((wake, domain.clone()));
            self.frontier.handle(Event::Parked { wake }, now);
        }
        let (hashes, count) = (replica.seen.iter().copied(), replica.seen.len() as u64);
        let known = Known {
            state,
            seen: SeenFilter::build(OneIn::default(), count, hashes),
            replica,
        };
        self.domains.insert(domain.clone(), known);
        self.ledger.note_merged(domain);
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

    /// Answers the frontier's wish to read on in a queue, past the pages under way: these are still
    /// in it.
    pub(super) fn refill(&mut self, domain: Domain, after: Option<Slot>, limit: usize, now: Time) {
        let mut urls = Vec::new();
        if let Some(known) = self.domains.get(&domain) {
            let is_free = |slot| {
                let page = PageId::new(domain.clone(), slot);
                self.pages.stage(&page).is_none()
            };
            let behind = known.replica.queue.iter();
            let behind = behind.filter(|(slot, _)| after.is_none_or(|after| **slot > after));
            let free = behind.filter(|(slot, _)| is_free(**slot));
            urls.extend(free.take(limit).map(|(_, pending)| pending.clone()));
        }
        self.frontier.handle(Event::Refilled { domain, urls }, now);
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
        fetch: &FetchId,
        not_before: Time,
        now: Time,
    ) {
        if let FetchId::Page(page) = fetch {
            self.pages.end(page);
        }
        let Some(state) = self.frontier.release(&domain) else {
            return;
        };
        let wake = state.ready_at().max(not_before);
        self.park(domain, state, wake, now);
    }
}

impl Known {
    fn new() -> Self {
        let seen = SeenFilter::new(OneIn::default());
        Known {
            state: DomainState::default(),
            seen,
            replica: Replica::default(),
        }
    }
}

fn load<'a>(
    frontier: &Frontier,
    pages: &Pages<Vec<Link>>,
    neighbours: &'a [PeerId],
    most: usize,
) -> Load<'a> {
    let pages = pages.load();
    let memory = match pages.is_memory_full() {
        true => Memory::Full,
        false => Memory::Free,
    };
    Load {
        fetching: frontier.fetching(),
        room: Room {
            in_processing: pages.in_processing,
            most,
            memory,
        },
        neighbours,
        progress: Progress::Running,
    }
}
