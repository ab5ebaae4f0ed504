//! All peers, the web, and what is on its way between them, in order of time.

use super::{
    CrawlSimOptions, CrawlSimReport,
    agent::{Agent, Subject},
    draw,
    loans::Job,
    replica::Replica,
    telling::{PROCESS, REPLICAS, Reached, Tell},
    turns::Grants,
    usage::Usage,
    web::{Place, Web},
};
use crate::{
    Access, Action, AddressWish, Company, Effort, Event, FetchReport, Outcome, lending::FetchId,
};
use apoidea_model::{Domain, Key, Link, PageId, PeerId, Pending, Time};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    time::Duration,
};

/// Links collect for so long before they are sent, as with real peers.
const COLLECT: Duration = Duration::from_millis(250);
/// One way between two peers: 10 to 150 ms.
const WAY_MS: (u64, u64) = (10, 140);
/// Asking for an address, and for a robots.txt.
pub(super) const SMALL: Duration = Duration::from_millis(50);
/// A peer that may not start anything looks again after this, as real peers do: a helper may have
/// rested meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
pub(super) const BEGIN: Time = Time::from_millis(1_700_000_000_000);
const ROBOTS: Effort = Effort {
    took: SMALL,
    bytes: 100,
};

pub(super) struct World {
    pub(super) web: Web,
    pub(super) agents: Vec<Agent>,
    pub(super) peers: HashMap<PeerId, usize>,
    pub(super) ids: Vec<PeerId>,
    /// Places on the ring, in order, and whose they are.
    pub(super) ring: Vec<(Key, usize)>,
    /// The peers that crashed.
    pub(super) dead: Vec<bool>,
    helpers: usize,
    /// Addresses that the hosts share.
    pub(super) addresses: Option<usize>,
    pub(super) owners: HashMap<Domain, usize>,
    /// Pages between their request and their disk, and whose they are.
    pub(super) under_way: HashMap<PageId, usize>,
    pub(super) seed: u64,
    pub(super) now: Time,
    end: Time,
    /// What will happen: its number breaks ties, so that a seed always tells the same story.
    queue: BinaryHeap<Reverse<(Time, u64)>>,
    news: HashMap<u64, News>,
    next: u64,
    /// The next look of each peer at its frontier, so that there is one at a time.
    looks: Vec<Time>,
    visits: HashMap<Place, u32>,
    /// When each page was first there.
    arrivals: Vec<Time>,
    pub(super) usage: Usage,
    sent: Sent,
}

#[derive(Default)]
struct Sent {
    urls: u64,
    batches: u64,
    bytes: u64,
}

/// Where links lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// To the domain of their page.
    Within,
    /// To other domains.
    Away,
}

/// Something that will happen.
pub(super) enum News {
    /// A peer looks at its frontier.
    Look(usize),
    Resolved(usize, Domain, usize),
    /// A helper is asked for a fetch.
    Asked(Job),
    Taken(Job),
    TurnedAway(Job),
    /// A host is asked.
    Request(Job),
    /// A host has answered.
    Answered(Job),
    /// A helper's result is at the owner.
    Result(Job),
    /// A helper knows that its result has arrived.
    Returned(usize),
    /// A page and its links are processed.
    Processed(usize, PageId, Vec<Link>),
    /// A page is on the disk.
    Durable(usize, PageId),
    /// A peer tells its replicas what changed.
    Round(usize),
    Told(Tell),
    /// A replica fetches these domains as a whole.
    Wanted(Tell, Vec<Domain>),
    Whole(Tell, Vec<(Domain, Replica)>),
    /// A replica has everything of a round.
    Held(usize, u64),
    /// No replica has answered for long.
    RoundOver(usize, u64),
    /// A peer sends what it has for another.
    Send(usize, usize),
    Arrived {
        to: usize,
        from: usize,
        batch: u64,
        links: Vec<Link>,
    },
    /// A batch is with its owner and the replicas.
    Acknowledged(usize, u64),
    /// A peer looks for addresses whose clocks it has to ask.
    Wish(usize),
    Wished(usize, Time, Vec<AddressWish>),
    Granted(usize, Time, Grants),
    /// The next peer crashes.
    Crash(u64),
    /// Others know that a peer is gone.
    Gone(usize),
}

impl News {
    /// The peer that it happens to, if that must live.
    fn whose(&self) -> Option<usize> {
        match self {
            News::Look(peer)
            | News::Resolved(peer, ..)
            | News::Returned(peer)
            | News::Processed(peer, ..)
            | News::Durable(peer, _)
            | News::Round(peer)
            | News::Held(peer, _)
            | News::RoundOver(peer, _)
            | News::Send(peer, _)
            | News::Wish(peer)
            | News::Wished(peer, ..)
            | News::Granted(peer, ..)
            | News::Acknowledged(peer, _) => Some(*peer),
            News::Arrived { to, .. } => Some(*to),
            News::Asked(job) | News::Request(job) => Some(job.by),
            News::Taken(job) | News::TurnedAway(job) | News::Result(job) => Some(job.owner),
            News::Told(tell) | News::Whole(tell, _) => Some(tell.replica),
            News::Wanted(tell, _) => Some(tell.owner),
            News::Answered(_) | News::Crash(_) | News::Gone(_) => None,
        }
    }
}

impl World {
    pub(super) fn new(options: &CrawlSimOptions) -> Self {
        let web = Web::new(options);
        let peers = options.peers.max(1);
        let mut ring: Vec<(Key, usize)> = (0..peers)
            .map(|peer| {
                (
                    Key::hash(draw(options.seed, peer as u64).to_be_bytes()),
                    peer,
                )
            })
            .collect();
        ring.sort_unstable();
        let mut ids = vec![PeerId::at(Key::hash([])); peers];
        ring.iter()
            .for_each(|(key, peer)| ids[*peer] = PeerId::at(*key));
        let agents = ids.iter().map(|id| Agent::new(*id, options.fetches, BEGIN));
        let mut world = World {
            web,
            agents: agents.collect(),
            peers: (0..).zip(&ids).map(|(peer, id)| (*id, peer)).collect(),
            ids,
            ring,
            dead: vec![false; peers],
            helpers: options.helpers,
            addresses: options.addresses,
            owners: HashMap::new(),
            under_way: HashMap::new(),
            seed: options.seed,
            now: BEGIN,
            end: BEGIN + options.duration,
            queue: BinaryHeap::new(),
            news: HashMap::new(),
            next: 0,
            looks: vec![Time::NEVER; peers],
            visits: HashMap::new(),
            arrivals: Vec::new(),
            usage: Usage::new(options),
            sent: Sent::default(),
        };
        if options.addresses.is_some() && peers > 1 {
            let frontiers = world.agents.iter_mut().map(|agent| &mut agent.frontier);
            frontiers.for_each(|frontier| frontier.set_company(Company::Neighbours));
        }
        world.introduce();
        world.plan_crashes(options.crashes);
        let seed = world.web.link((0, 0), 0);
        let first = world.owner(&seed.url.domain());
        world.choose_liars(options.liars, first);
        world.admit(first, vec![seed]);
        world
    }

    pub(super) fn run(&mut self) {
        while let Some(Reverse((at, number))) = self.queue.pop() {
            if at > self.end {
                return;
            }
            self.measure(at);
            self.now = at;
            if let Some(news) = self.news.remove(&number)
                && !news.whose().is_some_and(|peer| self.dead[peer])
            {
                self.happen(news);
            }
        }
    }

    fn happen(&mut self, news: News) {
        let now = self.now;
        match news {
            News::Look(peer) => {
                if self.looks[peer] == now {
                    self.looks[peer] = Time::NEVER;
                }
                self.look(peer);
            }
            News::Resolved(peer, domain, host) => {
                let address = Some(Web::address(host, self.addresses));
                self.agents[peer]
                    .frontier
                    .handle(Event::Resolved { domain, address }, now);
                self.look(peer);
            }
            News::Asked(job) => self.asked(job),
            News::Taken(job) => self.taken(&job),
            News::TurnedAway(job) => self.turned_away(job),
            News::Request(job) => self.request(job),
            News::Answered(job) => self.answered(job),
            News::Result(job) => self.result(job),
            News::Returned(peer) => self.agents[peer].lending.on_returned(),
            News::Send(peer, to) => self.send(peer, to),
            News::Arrived {
                to,
                from,
                batch,
                links,
            } => {
                if self.agents[to].is_liar {
                    return self.drop_links(from, batch);
                }
                self.agents[to].unacknowledged.push((from, batch));
                self.admit(to, links);
                self.tell_soon(to);
            }
            News::Processed(peer, page, links) => self.processed(peer, page, links),
            News::Durable(peer, page) => self.durable(peer, &page),
            News::Round(peer) => self.round(peer),
            News::Told(tell) => self.told(tell),
            News::Wanted(tell, domains) => self.wanted(tell, domains),
            News::Whole(tell, whole) => self.whole(&tell, whole),
            News::Held(peer, number) => self.end_round(peer, number, Reached::Replica),
            News::RoundOver(peer, number) => self.end_round(peer, number, Reached::Nobody),
            News::Acknowledged(peer, batch) => self.acknowledged(peer, batch),
            News::Wish(peer) => self.wish(peer),
            News::Wished(peer, asked, wishes) => self.wished(peer, asked, wishes),
            News::Granted(peer, asked, grants) => self.granted(peer, asked, grants),
            News::Crash(number) => self.crash(number),
            News::Gone(peer) => self.gone(peer),
        }
    }

    /// Carries out what a peer's frontier wants.
    pub(super) fn look(&mut self, peer: usize) {
        let now = self.now;
        self.end_overdue(peer);
        self.agents[peer].limit_fetches(now);
        while self.agents[peer].may_go_on(now)
            && let Some(action) = self.agents[peer].frontier.poll(now)
        {
            match action {
                Action::Wake { limit } => self.agents[peer].wake(limit, now),
                Action::Refill {
                    domain,
                    after,
                    limit,
                } => {
                    self.agents[peer].refill(domain, after, limit, now);
                }
                Action::Park {
                    domain,
                    state,
                    wake,
                } => self.agents[peer].park(domain, *state, wake, now),
                Action::Resolve(domain) => {
                    let host = self.host(&domain);
                    self.soon(SMALL, News::Resolved(peer, domain, host));
                }
                Action::FetchRobots { domain, origin, .. } => {
                    self.start(peer, FetchId::Robots(domain), Subject::Robots(origin));
                }
                Action::Fetch {
                    domain, pending, ..
                } => {
                    let fetch = FetchId::Page(PageId::new(domain, pending.slot));
                    self.start(peer, fetch, Subject::Page(pending));
                }
                Action::Disallowed { .. } => {}
            }
            self.agents[peer].limit_fetches(now);
        }
        let mut next = self.agents[peer]
            .frontier
            .next_timeout()
            .max(now + Duration::from_millis(1));
        self.wish_soon(peer);
        if self.agents[peer].waits_for_helpers(now) {
            next = next.min(now + LOOK_AGAIN);
        }
        if next < self.looks[peer] {
            self.looks[peer] = next;
            self.at(next, News::Look(peer));
        }
    }

    /// Takes in the result of a fetch: the frontier settles it, and the page is processed with the
    /// links that are left to this peer.
    pub(super) fn settle(
        &mut self,
        peer: usize,
        domain: Domain,
        subject: Subject,
        links: Vec<Link>,
    ) {
        let now = self.now;
        match subject {
            Subject::Robots(origin) => {
                let event = Event::Robots {
                    domain,
                    origin,
                    access: Access::Open,
                    retry_after: None,
                    effort: ROBOTS,
                };
                self.agents[peer].frontier.handle(event, now);
                self.look(peer);
            }
            Subject::Page(pending) => {
                let effort = Effort {
                    took: self.took(&pending),
                    bytes: 30_000,
                };
                let page = PageId::new(domain, pending.slot);
                let report = FetchReport {
                    page: page.clone(),
                    outcome: Outcome::Page,
                    effort,
                };
                self.agents[peer].frontier.settle(report, now);
                self.agents[peer].pages.answered(&page, effort.bytes);
                self.soon(PROCESS, News::Processed(peer, page, links));
                self.look(peer);
            }
        }
    }

    /// Notes that a page has arrived.
    pub(super) fn note_page(&mut self, pending: &Pending) {
        if let Some(place) = self.web.place(&pending.url) {
            let times = self.visits.entry(place).or_default();
            *times += 1;
            if *times == 1 {
                self.arrivals.push(self.now);
            }
        }
    }

    /// Puts links for other owners into a record of the outbox; those of this peer come back.
    pub(super) fn spread(&mut self, peer: usize, record: u64, links: Vec<Link>) -> Vec<Link> {
        let mut mine = Vec::new();
        for link in links {
            match self.owner(&link.url.domain()) {
                owner if owner == peer => mine.push(link),
                owner => self.post(peer, record, owner, link),
            }
        }
        mine
    }

    /// The links of a page within its domain, or to others.
    pub(super) fn links(&self, pending: &Pending, side: Side) -> Vec<Link> {
        let Some(place) = self.web.place(&pending.url) else {
            return Vec::new();
        };
        let is_wanted = |(host, _): &Place| (*host == place.0) == (side == Side::Within);
        let places = self.web.links(place).into_iter().filter(is_wanted);
        let depth = pending.depth.saturating_add(1);
        places.map(|place| self.web.link(place, depth)).collect()
    }

    pub(super) fn took(&self, pending: &Pending) -> Duration {
        let place = self.web.place(&pending.url).unwrap_or_default();
        Duration::from_millis(self.web.millis(place))
    }

    /// Looks at all peers once for each second that has passed, until most pages are there.
    fn measure(&mut self, until: Time) {
        while let Some(now) = self.usage.due(until) {
            let are_most_there = self.arrivals.len() * 10 >= self.web.pages() * 9;
            if are_most_there {
                return self.usage.stop();
            }
            let ready = |peer: usize| self.agents[peer].frontier.ready(now);
            let waiting = self.living().map(ready).sum();
            let living = (0..self.agents.len()).filter(|peer| !self.dead[*peer]);
            let fetching = living.map(|peer| self.agents[peer].fetching_here());
            self.usage.sample(waiting, fetching);
        }
    }

    fn post(&mut self, peer: usize, record: u64, owner: usize, link: Link) {
        if self.agents[peer].outbox.post(record, owner, link) {
            self.send_soon(peer, owner);
        }
    }

    pub(super) fn send_soon(&mut self, peer: usize, owner: usize) {
        self.soon(COLLECT, News::Send(peer, owner));
    }

    fn send(&mut self, from: usize, to: usize) {
        for (batch, links) in self.agents[from].outbox.send(to) {
            self.sent.batches += 1;
            self.sent.urls += links.len() as u64;
            let bytes = links.iter().map(|link| link.url.as_str().len() as u64 + 3);
            self.sent.bytes += bytes.sum::<u64>();
            let arrived = News::Arrived {
                to,
                from,
                batch,
                links,
            };
            self.soon(self.way(), arrived);
        }
    }

    /// How long the next message takes.
    pub(super) fn way(&self) -> Duration {
        let (least, more) = WAY_MS;
        Duration::from_millis(least + draw(self.seed ^ 5, self.next) % more)
    }

    pub(super) fn admit(&mut self, peer: usize, links: Vec<Link>) {
        let mut by_domain: BTreeMap<Domain, Vec<Link>> = BTreeMap::new();
        links
            .into_iter()
            .for_each(|link| by_domain.entry(link.url.domain()).or_default().push(link));
        for (domain, links) in by_domain {
            self.agents[peer].admit(&domain, links, self.now);
        }
        if !self.agents[peer].ledger.is_empty() {
            self.tell_soon(peer);
        }
        self.look(peer);
    }

    /// The peers that live.
    pub(super) fn living(&self) -> impl Iterator<Item = usize> {
        (0..self.agents.len()).filter(|peer| !self.dead[*peer])
    }

    /// Tells every peer on the ring who its helpers are.
    pub(super) fn introduce(&mut self) {
        let places = self.ring.len();
        for at in 0..places {
            let after = (at + 1..at + places).take(self.helpers);
            let helpers = after.map(|next| PeerId::at(self.ring[next % places].0));
            self.agents[self.ring[at].1].neighbours = helpers.collect();
        }
    }

    /// The peers that hold replicas of what a peer owns.
    pub(super) fn successors(&self, peer: usize) -> Vec<usize> {
        let (places, key) = (self.ring.len(), self.ids[peer].key());
        let at = self.ring.partition_point(|(place, _)| *place < key);
        let after = (at + 1..at + places).take(REPLICAS);
        after.map(|next| self.ring[next % places].1).collect()
    }

    /// The peer that follows the domain's key on the ring.
    pub(super) fn owner(&mut self, domain: &Domain) -> usize {
        if let Some(&owner) = self.owners.get(domain) {
            return owner;
        }
        let owner = self.owner_of(domain.key());
        self.owners.insert(domain.clone(), owner);
        owner
    }

    /// The peer that follows a key on the ring.
    pub(super) fn owner_of(&self, key: Key) -> usize {
        let at = self.ring.partition_point(|(place, _)| *place < key) % self.ring.len();
        self.ring[at].1
    }

    pub(super) fn host(&self, domain: &Domain) -> usize {
        let number = domain
            .as_str()
            .strip_prefix("host")
            .and_then(|rest| rest.strip_suffix(".example"));
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    pub(super) fn soon(&mut self, wait: Duration, news: News) {
        self.at(self.now + wait, news);
    }

    pub(super) fn at(&mut self, at: Time, news: News) {
        self.queue.push(Reverse((at, self.next)));
        self.news.insert(self.next, news);
        self.next += 1;
    }

    pub(super) fn report(&mut self, options: &CrawlSimOptions) -> CrawlSimReport {
        let pages = self.arrivals.len();
        let since = |at: Option<&Time>| at.map_or(0.0, |at| at.since(BEGIN).as_secs_f64());
        let mut hosts = vec![0u64; self.agents.len()];
        for host in 0..self.web.hosts() {
            let domain = self.web.domain(host).clone();
            hosts[self.owner(&domain)] += 1;
        }
        let fetched: Vec<u64> = self.agents.iter().map(|agent| agent.fetched).collect();
        let requests: u64 = fetched.iter().sum();
        let per_page = |count: u64| count as f64 / pages.max(1) as f64;
        let seconds_for_most = since(self.arrivals.get(pages * 9 / 10));
        let slots = self.agents.len() * options.fetches;
        let slot_minutes = slots as f64 * seconds_for_most / 60.0;
        CrawlSimReport {
            peers: options.peers,
            expected: self.web.pages(),
            pages,
            repeats: usize::try_from(requests)
                .unwrap_or(usize::MAX)
                .saturating_sub(pages),
            seconds: since(self.arrivals.last()),
            seconds_for_most,
            urls_per_page: per_page(self.sent.urls),
            batches_per_page: per_page(self.sent.batches),
            bytes_per_page: per_page(self.sent.bytes),
            most_hosts: most_by_mean(&hosts),
            most_pages: most_by_mean(&fetched),
            idle: fetched.iter().filter(|fetched| **fetched == 0).count(),
            shortest_gap_ms: self.usage.shortest_gap_ms(),
            overlaps: self.usage.overlaps,
            doubles: self.usage.doubles,
            address_load: self.usage.address_load(),
            address_peak: self.usage.address_peak(),
            liars: self.usage.liars,
            called_known: self.usage.called_known,
            crashed: self.usage.crashed,
            at_risk: self.usage.at_risk,
            astray: self.astray(),
            wholes: self.usage.wholes,
            fetches: options.fetches,
            helpers: options.helpers,
            lent: per_page(self.usage.lent_pages),
            waiting_hosts: self.usage.waiting_hosts(),
            idle_peers: self.usage.idle_peers(),
            idle_slots: self.usage.idle_slots(),
            pages_per_slot: 0.9 * pages as f64 / slot_minutes.max(1e-9),
        }
    }
}

fn most_by_mean(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64;
    counts
        .iter()
        .max()
        .map_or(0.0, |most| *most as f64 / mean.max(1e-9))
}
