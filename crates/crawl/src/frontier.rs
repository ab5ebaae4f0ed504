//! The fetches that may start now, and otherwise the time to ask again (after BUbiNG's workbench).
//!
//! Two levels: addresses, each with its hosts, both ordered by the time they may next be asked, so
//! that ten thousand hosts on one address cost nothing. Only some domains are resident, each with a
//! window of its queue; all others are parked on disk. A state machine without clock or disk: the
//! driver feeds [`Event`]s and carries out [`Action`]s.

mod address;
mod config;
mod event;
mod host;
mod turns;
mod window;

pub use config::FrontierConfig;
pub use event::{Action, Connection, Event, FetchReport};
pub use turns::Clock;

use crate::{
    AddressWish, Company, DomainState, Effort, Grant, Origin, Pace, Settlement, SiteFreshness,
    Step, Tenure, Watches, robots::Access,
};
use address::Addresses;
use apoidea_model::{Domain, PageId, Pending, Slot, Time, is_global};
use host::{Activity, Choice, FAR, Host, Place, Plan, Pressure};
use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    time::Duration,
};
use turns::Spacing;

/// The domains in memory and what to do about them next.
#[derive(Debug)]
pub struct Frontier {
    config: FrontierConfig,
    hosts: HashMap<Domain, Host>,
    addresses: Addresses,
    /// At most a few for each resident domain.
    actions: VecDeque<Action>,
    /// Domains whose address is to be found as soon as anything may be sent; at most one entry for
    /// each resident one.
    nameless: VecDeque<Domain>,
    /// Domains on their way to disk, until when; each still takes in its news until it is its turn
    /// to go.
    leaving: VecDeque<(Domain, Time)>,
    /// Sum of the weights of the residents that stay.
    weight: usize,
    fetching: usize,
    /// Are there other peers that may ask the same addresses?
    company: Company,
    waking: Waking,
    /// The time at which the first parked domain wakes, as far as known.
    next_wake: Time,
}

/// Whether parked domains were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waking {
    No,
    Asked,
}

/// Most domains asked for at a time, so that their answer stays small.
const WAKE_MAX: usize = 256;
/// Parked domains are only asked for when this share of the places is free, so that not every one
/// costs a read.
const WAKE_SHARE: usize = 64;
/// A driver that had nothing although it should have had something is asked again after this.
const WAKE_AGAIN: Duration = Duration::from_secs(1);

impl Frontier {
    /// Nothing resident; asks for parked domains at once.
    pub fn new(config: FrontierConfig) -> Self {
        Frontier {
            config,
            hosts: HashMap::new(),
            addresses: Addresses::default(),
            actions: VecDeque::new(),
            nameless: VecDeque::new(),
            leaving: VecDeque::new(),
            weight: 0,
            fetching: 0,
            company: Company::None,
            waking: Waking::No,
            next_wake: Time::ZERO,
        }
    }

    /// Takes in an event.
    pub fn handle(&mut self, event: Event, now: Time) {
        match event {
            Event::Woke { domains, next } => self.woke(domains, next, now),
            Event::Parked { wake } => self.next_wake = self.next_wake.min(wake),
            Event::Resolved { domain, address } => self.resolved(&domain, address, now),
            Event::Refilled { domain, urls } => self.refilled(&domain, urls, now),
            Event::Admitted {
                domain,
                urls,
                evicted,
                overflowed,
            } => {
                self.admitted(&domain, urls, &evicted, overflowed, now);
            }
            Event::Robots {
                domain,
                origin,
                access,
                retry_after,
                effort,
            } => {
                self.robots(&domain, origin, access, retry_after, effort, now);
            }
        }
    }

    /// Takes in how a fetch went, and says what becomes of the URL. `None` if no such fetch is
    /// under way, as when the domain was released meanwhile.
    pub fn settle(&mut self, report: FetchReport, now: Time) -> Option<Settlement> {
        let PageId { domain, slot } = report.page;
        let host = self.hosts.get_mut(&domain)?;
        if !matches!(&host.activity, Activity::Fetching(pending) if pending.slot == slot) {
            return None;
        }
        let Activity::Fetching(pending) = std::mem::replace(&mut host.activity, Activity::Idle)
        else {
            return None;
        };
        let pace = host.pace();
        let settlement = host
            .state
            .settle(pending, &report.outcome, report.effort, now, pace);
        if let Settlement::Retry(pending) = &settlement {
            host.window.leave_behind(pending.not_before);
        }
        self.fetching -= 1;
        self.place(&domain, now);
        Some(settlement)
    }

    /// The next thing to do now; call again until there is none.
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        loop {
            let next = self
                .actions
                .pop_front()
                .or_else(|| self.leave())
                .or_else(|| self.wake(now));
            let next = next.or_else(|| self.resolve());
            if let Some(action) = next {
                return Some(action);
            }
            if self.fetching >= self.config.fetches {
                return None;
            }
            let (address, domain, ready) = self.addresses.pop_due(now)?;
            if let Some(action) = self.serve(address, domain, ready, now) {
                return Some(action);
            }
        }
    }

    /// The time at which [`Self::poll`] will have something to do if nothing happens before; never
    /// if it will not.
    pub fn next_timeout(&self) -> Time {
        let can_resolve = !self.is_paused() && !self.nameless.is_empty();
        if !self.actions.is_empty() || !self.leaving.is_empty() || can_resolve {
            return Time::ZERO;
        }
        let wake = if self.can_wake() {
            self.next_wake
        } else {
            Time::NEVER
        };
        let can_fetch = self.fetching < self.config.fetches;
        let fetch = if can_fetch {
            self.addresses.next_due()
        } else {
            Time::NEVER
        };
        wake.min(fetch)
    }

    /// Whether the domain is in memory, so that its news go to [`Self::handle`] instead of the
    /// parked ones on disk?
    pub fn is_resident(&self, domain: &Domain) -> bool {
        self.hosts.contains_key(domain)
    }

    /// The state of a resident domain.
    pub fn state(&self, domain: &Domain) -> Option<&DomainState> {
        self.hosts.get(domain).map(|host| &host.state)
    }

    /// What visits have taught about a resident domain.
    pub fn freshness_mut(&mut self, domain: &Domain) -> Option<&mut SiteFreshness> {
        self.hosts
            .get_mut(domain)
            .map(|host| &mut host.state.freshness)
    }

    /// The watches on a resident domain.
    pub fn watches_mut(&mut self, domain: &Domain) -> Option<&mut Watches> {
        let host = self.hosts.get_mut(domain);
        host.map(|host| &mut host.state.watches)
    }

    /// All resident domains, for saving them.
    pub fn residents(&self) -> impl ExactSizeIterator<Item = (&Domain, &DomainState)> {
        self.hosts
            .iter()
            .map(|(domain, host)| (domain, &host.state))
    }

    /// Takes a domain out, as when another peer became its owner. What comes of a fetch under way
    /// is ignored.
    pub fn release(&mut self, domain: &Domain) -> Option<DomainState> {
        let host = self.remove(domain)?;
        self.fetching -= usize::from(host.is_fetching());
        Some(host.state)
    }

    /// Sends a domain to disk as soon as nothing of it is under way, as when another peer is to be
    /// its owner.
    pub fn retire(&mut self, domain: &Domain, now: Time) {
        let Some(host) = self.hosts.get_mut(domain) else {
            return;
        };
        host.retire();
        self.place(domain, now);
    }

    /// Counts a change to a resident domain under a tenure.
    pub fn advance(&mut self, domain: &Domain, tenure: Tenure) -> Option<Step> {
        Some(self.hosts.get_mut(domain)?.state.versions.advance(tenure))
    }

    /// Pages and robots.txt being fetched.
    pub fn fetching(&self) -> usize {
        self.fetching
    }

    /// Hosts in memory whose turn has come, and that wait until a fetch may start.
    pub fn ready(&self, now: Time) -> usize {
        self.hosts
            .values()
            .filter(|host| host.is_ready(now))
            .count()
    }

    /// Changes how many fetches may be under way; those beyond finish. With none, no name is looked
    /// up either.
    pub fn set_fetches(&mut self, fetches: usize) {
        self.config.fetches = fetches;
    }

    /// Without company this peer keeps the clocks of all addresses itself; in company the ring's
    /// clocks are asked.
    pub fn set_company(&mut self, company: Company) {
        self.company = company;
    }

    /// The addresses whose clocks are to be asked now: those at which hosts wait for a turn that is
    /// not granted, or whose grant is to be renewed. Answer with [`Self::granted`].
    pub fn address_wishes(&mut self, now: Time) -> Vec<AddressWish> {
        match self.company {
            Company::None => Vec::new(),
            Company::Neighbours => self.addresses.wishes(now),
        }
    }

    /// The answer to a wish that was put at the time `asked`; without one the address is asked
    /// slowly.
    pub fn granted(&mut self, address: IpAddr, grant: Option<Grant>, asked: Time) {
        self.addresses.granted(address, grant, asked);
    }

    /// Changes how many domains may be in memory; those beyond are parked when it would be their
    /// turn.
    pub fn set_resident(&mut self, resident: usize) {
        self.config.resident = resident;
    }

    fn woke(&mut self, domains: Vec<(Domain, DomainState)>, next: Time, now: Time) {
        let next = if domains.is_empty() {
            next.max(now + WAKE_AGAIN)
        } else {
            next
        };
        self.waking = Waking::No;
        self.next_wake = self.next_wake.min(next);
        for (domain, state) in domains {
            if self.is_resident(&domain) {
                continue;
            }
            let host = Host::new(state, now);
            self.weight += host.weight;
            self.hosts.insert(domain.clone(), host);
            self.place(&domain, now);
        }
    }

    fn resolved(&mut self, domain: &Domain, address: Option<IpAddr>, now: Time) {
        let Some(host) = self.hosts.get_mut(domain) else {
            return;
        };
        if host.activity != Activity::Resolving {
            return;
        }
        host.activity = Activity::Idle;
        let pace = address.map_or_else(
            || Pace::of_name(domain.as_str(), &self.config.private),
            |address| Pace::of(address, &self.config.private),
        );
        host.place = address.map(|address| Place {
            address,
            pace,
            resolved: now,
        });
        if address.is_none() {
            host.state.unresolved(now, pace);
        }
        self.place(domain, now);
    }

    fn refilled(&mut self, domain: &Domain, urls: Vec<Pending>, now: Time) {
        let Some(host) = self.hosts.get_mut(domain) else {
            return;
        };
        host.window.refilled(urls, now);
        self.place(domain, now);
    }

    fn admitted(
        &mut self,
        domain: &Domain,
        urls: Vec<Pending>,
        evicted: &[Slot],
        overflowed: u64,
        now: Time,
    ) {
        let Some(host) = self.hosts.get_mut(domain) else {
            return;
        };
        if matches!(host.activity, Activity::Leaving(_)) && host.window.is_drained() {
            host.activity = Activity::Idle;
            self.weight += host.weight;
        }
        host.state.admitted(&urls, evicted.len() as u64, overflowed);
        host.window.evicted(evicted);
        host.window.admitted(urls, self.config.window, now);
        self.place(domain, now);
    }

    fn robots(
        &mut self,
        domain: &Domain,
        origin: Origin,
        access: Access,
        retry_after: Option<Duration>,
        effort: Effort,
        now: Time,
    ) {
        let Some(host) = self.hosts.get_mut(domain) else {
            return;
        };
        if host.activity != Activity::Robots(origin) {
            return;
        }
        host.activity = Activity::Idle;
        let pace = host.pace();
        host.state
            .robots_answered(origin, access, retry_after, effort, now, pace);
        self.weight -= host.weight;
        host.weigh();
        self.weight += host.weight;
        self.fetching -= 1;
        self.place(domain, now);
    }

    /// Puts a domain that is not busy where it belongs: to disk, to its address, or on the way
    /// there.
    fn place(&mut self, domain: &Domain, now: Time) {
        let pressure = self.pressure(now);
        let Some(host) = self.hosts.get_mut(domain) else {
            return;
        };
        if host.activity != Activity::Idle {
            return;
        }
        match host.plan(pressure, now) {
            Plan::Park(wake) => self.park(domain, wake),
            Plan::Resolve => {
                host.activity = Activity::Resolving;
                self.nameless.push_back(domain.clone());
            }
            Plan::Serve(place, ready) => self.line_up(domain, place, ready, now),
            Plan::Stay => {}
        }
    }

    /// Lets a domain wait at its address, unless there are too many before it.
    fn line_up(&mut self, domain: &Domain, place: Place, ready: Time, now: Time) {
        let Place { address, pace, .. } = place;
        let Some(host) = self.hosts.get_mut(domain) else {
            return;
        };
        let is_crowded = self.addresses.expected(address, now, pace.per_address()) > now + FAR;
        if is_crowded && !host.window.is_reading() {
            let wake =
                self.addresses
                    .promise(address, now, ready.max(now + FAR), pace.per_address());
            return self.park(domain, wake);
        }
        if let Some((after, limit)) = host.window.ask(self.config.window) {
            self.actions.push_back(Action::Refill {
                domain: domain.clone(),
                after,
                limit,
            });
        }
        if !host.window.is_empty() {
            host.activity = Activity::Waiting(ready);
            self.addresses.enqueue(address, domain.clone(), ready);
        }
    }

    /// Sends a domain to disk. It goes when the driver asks what to do, not before: the driver
    /// would take it for parked and write news of it where the state on its way would overwrite
    /// them.
    fn park(&mut self, domain: &Domain, wake: Time) {
        let Some(host) = self.hosts.get_mut(domain) else {
            return;
        };
        host.activity = Activity::Leaving(wake);
        self.weight -= host.weight;
        self.leaving.push_back((domain.clone(), wake));
    }

    /// The next domain that goes to disk.
    fn leave(&mut self) -> Option<Action> {
        while let Some((domain, wake)) = self.leaving.pop_front() {
            let is_leaving = |host: &Host| host.activity == Activity::Leaving(wake);
            if self.hosts.get(&domain).is_some_and(is_leaving) {
                let host = self.remove(&domain)?;
                self.next_wake = self.next_wake.min(wake);
                return Some(Action::Park {
                    domain,
                    state: Box::new(host.state),
                    wake,
                });
            }
        }
        None
    }

    /// The next domain whose address is to be found.
    fn resolve(&mut self) -> Option<Action> {
        if self.is_paused() {
            return None;
        }
        while let Some(domain) = self.nameless.pop_front() {
            if self
                .hosts
                .get(&domain)
                .is_some_and(|host| host.activity == Activity::Resolving)
            {
                return Some(Action::Resolve(domain));
            }
        }
        None
    }

    /// Whether nothing may be sent.
    fn is_paused(&self) -> bool {
        self.config.fetches == 0
    }

    fn remove(&mut self, domain: &Domain) -> Option<Host> {
        let host = self.hosts.remove(domain)?;
        let is_leaving = matches!(host.activity, Activity::Leaving(_));
        self.weight -= if is_leaving { 0 } else { host.weight };
        Some(host)
    }

    /// It is this domain's turn.
    fn serve(&mut self, address: IpAddr, domain: Domain, ready: Time, now: Time) -> Option<Action> {
        let host = self.hosts.get_mut(&domain)?;
        if host.activity != Activity::Waiting(ready) {
            return None;
        }
        host.activity = Activity::Idle;
        match host.choose(now) {
            Choice::Ask(origin) => {
                host.activity = Activity::Robots(origin);
                let pace = host.pace();
                self.begin(address, pace, now);
                let url = origin.robots_url(&domain);
                Some(Action::FetchRobots {
                    domain,
                    origin,
                    url,
                    address,
                })
            }
            Choice::Fetch(slot) => self.fetch(domain, slot, address, now),
            Choice::Disallow(slot) => {
                let pending = host.window.take(slot)?;
                host.state.disallowed();
                self.place(&domain, now);
                Some(Action::Disallowed { domain, pending })
            }
            Choice::Wait(until) => {
                host.block(until);
                self.place(&domain, now);
                None
            }
            Choice::Nothing => {
                self.place(&domain, now);
                None
            }
        }
    }

    fn fetch(&mut self, domain: Domain, slot: Slot, address: IpAddr, now: Time) -> Option<Action> {
        let host = self.hosts.get_mut(&domain)?;
        let pending = host.window.take(slot)?;
        host.activity = Activity::Fetching(pending.clone());
        let connection = if host.window.is_drained() {
            Connection::Close
        } else {
            Connection::KeepAlive
        };
        if let Some((after, limit)) = host.window.ask(self.config.window) {
            self.actions.push_back(Action::Refill {
                domain: domain.clone(),
                after,
                limit,
            });
        }
        let pace = host.pace();
        self.begin(address, pace, now);
        Some(Action::Fetch {
            domain,
            pending,
            address,
            connection,
        })
    }

    fn begin(&mut self, address: IpAddr, pace: Pace, now: Time) {
        self.fetching += 1;
        let clock = self.clock(address, pace);
        self.addresses.start(address, now, Spacing { pace, clock });
    }

    /// The keeper of an address's clock. An address without a delay needs none.
    fn clock(&self, address: IpAddr, pace: Pace) -> Clock {
        match self.company {
            Company::None => Clock::Own,
            Company::Neighbours if pace.per_address().is_zero() => Clock::Own,
            Company::Neighbours if is_global(address) => Clock::Ring,
            Company::Neighbours => self.config.private_clock,
        }
    }

    fn wake(&mut self, now: Time) -> Option<Action> {
        if self.next_wake > now || !self.can_wake() {
            return None;
        }
        self.waking = Waking::Asked;
        self.next_wake = Time::NEVER;
        Some(Action::Wake {
            limit: self.room().min(WAKE_MAX),
        })
    }

    fn can_wake(&self) -> bool {
        self.waking == Waking::No
            && self.room() > 0
            && self.room() * WAKE_SHARE >= self.config.resident
    }

    fn room(&self) -> usize {
        self.config.resident.saturating_sub(self.weight)
    }

    fn pressure(&self, now: Time) -> Pressure {
        if self.weight > self.config.resident {
            Pressure::Excess
        } else if self.next_wake <= now && !self.can_wake() {
            Pressure::Queue
        } else {
            Pressure::None
        }
    }
}
