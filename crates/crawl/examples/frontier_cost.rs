//! What the frontier costs: time for each page and memory for each resident host.
//!
//! `cargo run --release -p apoidea-crawl --example frontier_cost [hosts] [pages]`

use apoidea_crawl::{
    Access, Action, DomainState, Effort, Event, FetchReport, Frontier, FrontierConfig, Outcome,
    Robots,
};
use apoidea_model::{CrawlId, Domain, Link, PageId, Pending, Slot, Target, Time};
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|text| text.parse::<usize>().expect("a number"));
    let hosts = arguments.next().unwrap_or(4096);
    let pages = arguments.next().unwrap_or(1_000_000);
    let before = resident_bytes();
    let mut driver = Driver::new(hosts);
    let begin = Instant::now();
    let (cost, count) = driver.run(pages);
    println!(
        "the frontier took {:.0} % of the time",
        100.0 * cost.as_secs_f64() / begin.elapsed().as_secs_f64()
    );
    println!(
        "{hosts} hosts, {count} pages: {:.2} µs a page in the frontier",
        cost.as_secs_f64() * 1e6 / count as f64
    );
    let residents = driver.frontier.residents().len();
    let memory = resident_bytes().saturating_sub(before);
    println!(
        "{residents} residents take {} bytes each",
        memory / residents.max(1)
    );
}

/// A disk that never runs dry and a web that always answers in 300 ms. Only the frontier's share of
/// the time is counted.
struct Driver {
    frontier: Frontier,
    hosts: usize,
    woken: usize,
    sequence: u64,
    robots: Access,
    under_way: std::collections::VecDeque<(Time, Domain, Slot)>,
}

const TOOK: Duration = Duration::from_millis(300);
const EFFORT: Effort = Effort {
    took: TOOK,
    bytes: 35_000,
};

impl Driver {
    fn new(hosts: usize) -> Self {
        let config = FrontierConfig {
            fetches: 1024,
            resident: hosts,
            ..FrontierConfig::default()
        };
        let file = b"User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: /search";
        Driver {
            frontier: Frontier::new(config),
            hosts,
            woken: 0,
            sequence: 0,
            robots: Access::Rules(Robots::parse(file, "Apoidea")),
            under_way: Default::default(),
        }
    }

    fn run(&mut self, pages: usize) -> (Duration, usize) {
        let mut now = Time::from_millis(1_000_000);
        let (mut cost, mut count) = (Duration::ZERO, 0);
        while count < pages {
            let mut actions = Vec::new();
            let begin = Instant::now();
            actions.extend(std::iter::from_fn(|| self.frontier.poll(now)));
            cost += begin.elapsed();
            let events: Vec<Event> = actions
                .into_iter()
                .filter_map(|action| self.act(action, now))
                .collect();
            let done = self
                .under_way
                .iter()
                .take_while(|(end, ..)| *end <= now)
                .count();
            let reports: Vec<FetchReport> = self.under_way.drain(..done).map(report).collect();
            count += reports.len();
            let begin = Instant::now();
            events
                .into_iter()
                .for_each(|event| self.frontier.handle(event, now));
            reports
                .into_iter()
                .for_each(|report| _ = self.frontier.settle(report, now));
            cost += begin.elapsed();
            let coming = self.under_way.front().map_or(Time::NEVER, |(end, ..)| *end);
            now = now.max(self.frontier.next_timeout().min(coming));
        }
        (cost, count)
    }

    fn act(&mut self, action: Action, now: Time) -> Option<Event> {
        match action {
            Action::Wake { limit } => {
                let to = (self.woken + limit).min(self.hosts);
                let domains = (self.woken..to)
                    .map(|i| (name(i), DomainState::default()))
                    .collect();
                self.woken = to;
                let next = if to < self.hosts {
                    Time::ZERO
                } else {
                    Time::NEVER
                };
                Some(Event::Woke { domains, next })
            }
            Action::Resolve(domain) => {
                let number = domain.key().as_bytes()[0];
                Some(Event::Resolved {
                    address: Some([93, 1, number, domain.key().as_bytes()[1]].into()),
                    domain,
                })
            }
            Action::Refill { domain, limit, .. } => {
                let urls = (0..limit).map(|_| self.pending(&domain)).collect();
                Some(Event::Refilled { domain, urls })
            }
            Action::FetchRobots { domain, origin, .. } => {
                let access = self.robots.clone();
                Some(Event::Robots {
                    domain,
                    origin,
                    access,
                    retry_after: None,
                    effort: EFFORT,
                })
            }
            Action::Fetch {
                domain, pending, ..
            } => {
                self.under_way.push_back((now + TOOK, domain, pending.slot));
                None
            }
            Action::Disallowed { .. } | Action::Park { .. } => None,
        }
    }

    fn pending(&mut self, domain: &Domain) -> Pending {
        self.sequence += 1;
        let url = format!(
            "https://{domain}/articles/2024/some-article-with-a-usual-title-{}",
            self.sequence
        );
        let link = Link {
            url: url.parse().expect("a URL"),
            depth: 0,
            target: Target::Page,
        };
        let slot = Slot {
            rank: 0,
            sequence: self.sequence,
        };
        Pending::admitted(link, slot, CrawlId::OPEN)
    }
}

fn report((_, domain, slot): (Time, Domain, Slot)) -> FetchReport {
    FetchReport {
        page: PageId::new(domain, slot),
        outcome: Outcome::Page,
        effort: EFFORT,
    }
}

fn name(number: usize) -> Domain {
    format!("www.some-site-{number}.example")
        .parse()
        .expect("a host name")
}

/// What the system says this process has in memory; 0 where it does not say.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}
