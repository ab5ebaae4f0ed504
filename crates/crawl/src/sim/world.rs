//! All peers, the web, and what is on its way between them, in order of time.

use super::{
    Options, Report,
    agent::Agent,
    draw,
    web::{Place, Web},
};
use crate::{Access, Action, Effort, Event, Origin, Outcome, Report as FetchReport};
use apoidea_model::{Domain, Key, Link, LinkBatch, PageId, Pending, Time};
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
const SMALL: Duration = Duration::from_millis(50);
const BEGIN: Time = Time::from_millis(1_700_000_000_000);
const ROBOTS: Effort = Effort {
    took: SMALL,
    bytes: 100,
};

pub(super) struct World {
    web: Web,
    agents: Vec<Agent>,
    /// Places on the ring, in order, and whose they are.
    ring: Vec<(Key, usize)>,
    owners: HashMap<Domain, usize>,
    seed: u64,
    now: Time,
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
    last_asked: BTreeMap<usize, Time>,
    shortest_gap: Duration,
    sent: Sent,
}

#[derive(Default)]
struct Sent {
    urls: u64,
    batches: u64,
    bytes: u64,
}

/// Something that will happen.
enum News {
    /// A peer looks at its frontier.
    Look(usize),
    Resolved(usize, Domain, usize),
    Robots(usize, Domain, Origin),
    Fetched(usize, Domain, Pending, Duration),
    /// A peer sends what it has for another.
    Send(usize, usize),
    Arrived(usize, Vec<Link>),
}

impl World {
    pub(super) fn new(options: &Options) -> Self {
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
        let mut world = World {
            web,
            agents: (0..peers).map(|_| Agent::new()).collect(),
            ring,
            owners: HashMap::new(),
            seed: options.seed,
            now: BEGIN,
            end: BEGIN + options.duration,
            queue: BinaryHeap::new(),
            news: HashMap::new(),
            next: 0,
            looks: vec![Time::NEVER; peers],
            visits: HashMap::new(),
            arrivals: Vec::new(),
            last_asked: BTreeMap::new(),
            shortest_gap: Duration::MAX,
            sent: Sent::default(),
        };
        let seed = world.web.link((0, 0), 0);
        let first = world.owner(&seed.url.domain());
        world.admit(first, vec![seed]);
        world
    }

    pub(super) fn run(&mut self) {
        while let Some(Reverse((at, number))) = self.queue.pop() {
            if at > self.end {
                return;
            }
            self.now = at;
            if let Some(news) = self.news.remove(&number) {
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
                let address = Some(Web::address(host));
                self.agents[peer]
                    .frontier
                    .handle(Event::Resolved { domain, address }, now);
                self.look(peer);
            }
            News::Robots(peer, domain, origin) => {
                let (access, retry_after) = (Access::Open, None);
                let event = Event::Robots {
                    domain,
                    origin,
                    access,
                    retry_after,
                    effort: ROBOTS,
                };
                self.agents[peer].frontier.handle(event, now);
                self.look(peer);
            }
            News::Fetched(peer, domain, pending, took) => self.fetched(peer, domain, pending, took),
            News::Send(peer, to) => self.send(peer, to),
            News::Arrived(peer, links) => self.admit(peer, links),
        }
    }

    /// Carries out what a peer's frontier wants.
    fn look(&mut self, peer: usize) {
        let now = self.now;
        while let Some(action) = self.agents[peer].frontier.poll(now) {
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
                    self.ask(&domain);
                    self.soon(SMALL, News::Robots(peer, domain, origin));
                }
                Action::Fetch {
                    domain, pending, ..
                } => self.fetch(peer, domain, pending),
                Action::Disallowed { .. } => {}
            }
        }
        let next = self.agents[peer]
            .frontier
            .next_timeout()
            .max(now + Duration::from_millis(1));
        if next < self.looks[peer] {
            self.looks[peer] = next;
            self.at(next, News::Look(peer));
        }
    }

    fn fetch(&mut self, peer: usize, domain: Domain, pending: Pending) {
        self.ask(&domain);
        self.agents[peer].take(&domain, pending.slot);
        let place = self.web.place(&pending.url).unwrap_or_default();
        let took = Duration::from_millis(self.web.millis(place));
        self.soon(took, News::Fetched(peer, domain, pending, took));
    }

    /// Notes a request to a host.
    fn ask(&mut self, domain: &Domain) {
        let host = self.host(domain);
        if let Some(last) = self.last_asked.insert(host, self.now) {
            self.shortest_gap = self.shortest_gap.min(self.now.since(last));
        }
    }

    fn fetched(&mut self, peer: usize, domain: Domain, pending: Pending, took: Duration) {
        let now = self.now;
        let effort = Effort {
            took,
            bytes: 30_000,
        };
        let report = FetchReport {
            page: PageId::new(domain.clone(), pending.slot),
            outcome: Outcome::Page,
            effort,
        };
        self.agents[peer].frontier.settle(report, now);
        self.agents[peer].fetched += 1;
        let Some(place) = self.web.place(&pending.url) else {
            return self.look(peer);
        };
        let times = self.visits.entry(place).or_default();
        *times += 1;
        if *times == 1 {
            self.arrivals.push(now);
        }
        let mut mine = Vec::new();
        for place in self.web.links(place) {
            let link = self.web.link(place, pending.depth.saturating_add(1));
            match self.owner(&link.url.domain()) {
                owner if owner == peer => mine.push(link),
                owner => self.post(peer, owner, link),
            }
        }
        self.admit(peer, mine);
    }

    fn post(&mut self, peer: usize, owner: usize, link: Link) {
        let before = self.agents[peer].outbox.get(&owner).map_or(0, Vec::len);
        self.agents[peer].post(owner, link);
        let is_first = before == 0 && self.agents[peer].outbox.contains_key(&owner);
        if is_first {
            self.soon(COLLECT, News::Send(peer, owner));
        }
    }

    fn send(&mut self, peer: usize, to: usize) {
        let links = self.agents[peer].outbox.remove(&to).unwrap_or_default();
        let (least, more) = WAY_MS;
        for batch in links.chunks(LinkBatch::MAX_LINKS) {
            self.sent.batches += 1;
            self.sent.urls += batch.len() as u64;
            self.sent.bytes += batch
                .iter()
                .map(|link| link.url.as_str().len() as u64 + 3)
                .sum::<u64>();
            let way = least + draw(self.seed ^ 5, self.next) % more;
            self.soon(
                Duration::from_millis(way),
                News::Arrived(to, batch.to_vec()),
            );
        }
    }

    fn admit(&mut self, peer: usize, links: Vec<Link>) {
        let mut by_domain: BTreeMap<Domain, Vec<Link>> = BTreeMap::new();
        links
            .into_iter()
            .for_each(|link| by_domain.entry(link.url.domain()).or_default().push(link));
        for (domain, links) in by_domain {
            self.agents[peer].admit(&domain, links, self.now);
        }
        self.look(peer);
    }

    /// The peer that follows the domain's key on the ring.
    fn owner(&mut self, domain: &Domain) -> usize {
        if let Some(&owner) = self.owners.get(domain) {
            return owner;
        }
        let key = domain.key();
        let at = self.ring.partition_point(|(place, _)| *place < key) % self.ring.len();
        let owner = self.ring[at].1;
        self.owners.insert(domain.clone(), owner);
        owner
    }

    fn host(&self, domain: &Domain) -> usize {
        let number = domain
            .as_str()
            .strip_prefix("host")
            .and_then(|rest| rest.strip_suffix(".example"));
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    fn soon(&mut self, wait: Duration, news: News) {
        self.at(self.now + wait, news);
    }

    fn at(&mut self, at: Time, news: News) {
        self.queue.push(Reverse((at, self.next)));
        self.news.insert(self.next, news);
        self.next += 1;
    }

    pub(super) fn report(&mut self, options: &Options) -> Report {
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
        Report {
            peers: options.peers,
            expected: self.web.pages(),
            pages,
            repeats: usize::try_from(requests)
                .unwrap_or(usize::MAX)
                .saturating_sub(pages),
            seconds: since(self.arrivals.last()),
            seconds_for_most: since(self.arrivals.get(pages * 9 / 10)),
            urls_per_page: per_page(self.sent.urls),
            batches_per_page: per_page(self.sent.batches),
            bytes_per_page: per_page(self.sent.bytes),
            most_hosts: most_by_mean(&hosts),
            most_pages: most_by_mean(&fetched),
            idle: fetched.iter().filter(|fetched| **fetched == 0).count(),
            shortest_gap_ms: u64::try_from(self.shortest_gap.as_millis()).unwrap_or(u64::MAX),
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
