//! Single scenes, driven event by event: what the frontier does in this or that situation.

use apoidea_crawl::{
    Access, Action, DomainState, Effort, Event, Failure, FetchReport, Frontier, FrontierConfig,
    Outcome, PrivatePace, Robots, Settlement,
};
use apoidea_model::{CrawlId, Domain, Link, PageId, Pending, Slot, Target, Time};
use std::{net::IpAddr, time::Duration};

const NOW: Time = Time::from_millis(1_000_000_000);
const SECOND: Duration = Duration::from_secs(1);
const EFFORT: Effort = Effort {
    took: Duration::from_millis(100),
    bytes: 1000,
};

fn name(text: &str) -> Domain {
    text.parse().expect("a host name")
}

fn url(text: &str, rank: u16, sequence: u64) -> Pending {
    let link = Link {
        url: text.parse().expect("a URL"),
        depth: rank,
        target: Target::Page,
    };
    Pending::admitted(link, Slot { rank, sequence }, CrawlId::OPEN)
}

fn rules(file: &str) -> Access {
    Access::Rules(Robots::parse(file.as_bytes(), "Apoidea"))
}

/// A frontier with one host, `a.example`, whose queue on disk is a list.
struct Scene {
    frontier: Frontier,
    queue: Vec<Pending>,
    robots: Access,
    address: IpAddr,
}

impl Scene {
    fn new(queue: Vec<Pending>) -> Self {
        Self::with(FrontierConfig::default(), DomainState::default(), queue)
    }

    fn with(config: FrontierConfig, state: DomainState, queue: Vec<Pending>) -> Self {
        let mut frontier = Frontier::new(config);
        assert!(matches!(frontier.poll(NOW), Some(Action::Wake { .. })));
        let domains = vec![(name("a.example"), state)];
        frontier.handle(
            Event::Woke {
                domains,
                next: Time::NEVER,
            },
            NOW,
        );
        Scene {
            frontier,
            queue,
            robots: Access::Open,
            address: [93, 184, 216, 34].into(),
        }
    }

    /// The next action that is not merely asking for an address, for URLs, or for robots.txt: those
    /// are answered.
    fn next(&mut self, now: Time) -> Option<Action> {
        loop {
            let event = match self.frontier.poll(now)? {
                Action::Resolve(domain) => Event::Resolved {
                    domain,
                    address: Some(self.address),
                },
                Action::Refill {
                    domain,
                    after,
                    limit,
                } => {
                    let behind = self
                        .queue
                        .iter()
                        .filter(|pending| after.is_none_or(|after| pending.slot > after));
                    Event::Refilled {
                        domain,
                        urls: behind.take(limit).cloned().collect(),
                    }
                }
                Action::FetchRobots { domain, origin, .. } => {
                    let access = self.robots.clone();
                    Event::Robots {
                        domain,
                        origin,
                        access,
                        retry_after: None,
                        effort: EFFORT,
                    }
                }
                other => return Some(other),
            };
            self.frontier.handle(event, now);
        }
    }

    /// The path that is fetched at that time, if one is.
    fn fetched(&mut self, now: Time) -> Option<String> {
        match self.next(now)? {
            Action::Fetch { pending, .. } => Some(pending.url.path().to_owned()),
            other => panic!("{other:?} instead of a fetch"),
        }
    }

    fn settle(&mut self, slot: Slot, outcome: Outcome, now: Time) -> Option<Settlement> {
        let report = FetchReport {
            page: PageId::new(name("a.example"), slot),
            outcome,
            effort: EFFORT,
        };
        self.frontier.settle(report, now)
    }
}

#[test]
fn robots_txt_is_the_first_request_and_keeps_to_the_clock() {
    let mut scene = Scene::new(vec![url("https://a.example/1", 0, 1)]);
    assert_eq!(scene.fetched(NOW), None, "robots.txt was fetched just now");
    assert_eq!(scene.frontier.next_timeout(), NOW + 5 * SECOND);
    assert_eq!(scene.fetched(NOW + 5 * SECOND).unwrap(), "/1");
}

#[test]
fn a_forbidden_url_is_settled_without_a_fetch() {
    let mut scene = Scene::new(vec![
        url("https://a.example/x/1", 0, 1),
        url("https://a.example/2", 0, 2),
    ]);
    scene.robots = rules("User-agent: *\nDisallow: /x/");
    scene.next(NOW);
    let later = NOW + 5 * SECOND;
    assert!(
        matches!(scene.next(later), Some(Action::Disallowed { pending, .. }) if pending.slot.sequence == 1)
    );
    assert_eq!(scene.fetched(later).unwrap(), "/2");
    assert_eq!(
        scene
            .frontier
            .state(&name("a.example"))
            .unwrap()
            .counters
            .disallowed,
        1
    );
}

#[test]
fn rules_and_clock_survive_a_stay_on_disk() {
    let mut scene = Scene::new(vec![
        url("https://a.example/x/1", 0, 1),
        url("https://a.example/2", 0, 2),
    ]);
    scene.robots = rules("User-agent: *\nDisallow: /x/");
    scene.next(NOW);
    let state = scene.frontier.release(&name("a.example")).unwrap();
    let state = postcard::from_bytes(&postcard::to_stdvec(&state).unwrap()).unwrap();
    let mut scene = Scene::with(FrontierConfig::default(), state, scene.queue);
    scene.robots = Access::Closed;
    assert_eq!(scene.next(NOW + SECOND), None);
    let later = NOW + 5 * SECOND;
    assert!(matches!(scene.next(later), Some(Action::Disallowed { .. })));
    assert_eq!(scene.fetched(later).unwrap(), "/2");
}

#[test]
fn a_domain_on_its_way_to_disk_still_takes_in_what_is_admitted() {
    let mut scene = Scene::new(vec![url("https://a.example/1", 0, 1)]);
    scene.next(NOW);
    let later = NOW + 5 * SECOND;
    assert_eq!(scene.fetched(later).unwrap(), "/1");
    scene.settle(
        Slot {
            rank: 0,
            sequence: 1,
        },
        Outcome::Page,
        later,
    );
    let newcomer = url("https://a.example/2", 1, 2);
    scene.queue = vec![newcomer.clone()];
    let (domain, urls) = (name("a.example"), vec![newcomer]);
    assert!(
        scene.frontier.is_resident(&domain),
        "nobody was told yet that it leaves"
    );
    let admitted = Event::Admitted {
        domain: domain.clone(),
        urls,
        evicted: Vec::new(),
        overflowed: 0,
    };
    scene.frontier.handle(admitted, later);
    assert_eq!(scene.fetched(later + 5 * SECOND).unwrap(), "/2");
    scene.settle(
        Slot {
            rank: 1,
            sequence: 2,
        },
        Outcome::Page,
        later + 5 * SECOND,
    );
    assert!(matches!(
        scene.next(later + 5 * SECOND),
        Some(Action::Park {
            wake: Time::NEVER,
            ..
        })
    ));
    assert!(!scene.frontier.is_resident(&domain));
}

#[test]
fn nothing_is_fetched_until_robots_txt_answers() {
    let mut scene = Scene::new(vec![url("https://a.example/1", 0, 1)]);
    scene.robots = Access::Closed;
    assert_eq!(scene.next(NOW), None);
    assert_eq!(scene.next(NOW + 5 * SECOND), None);
    let again = NOW + 300 * SECOND;
    assert_eq!(scene.frontier.next_timeout(), again);
    scene.robots = Access::Open;
    assert_eq!(
        scene.fetched(again),
        None,
        "robots.txt was fetched just now"
    );
    assert_eq!(scene.fetched(again + 5 * SECOND).unwrap(), "/1");
}

#[test]
fn a_host_whose_robots_txt_fails_again_and_again_waits_on_disk() {
    let mut scene = Scene::new(vec![url("https://a.example/1", 0, 1)]);
    scene.robots = Access::Closed;
    let first = NOW + 300 * SECOND;
    for now in [NOW, NOW + 5 * SECOND, first] {
        assert_eq!(scene.next(now), None);
    }
    let second = first + 600 * SECOND;
    assert!(
        matches!(scene.next(first + 5 * SECOND), Some(Action::Park { wake, .. }) if wake == second)
    );
}

#[test]
fn another_origin_does_not_wait_for_robots_txt_that_does_not_answer() {
    let mut scene = Scene::new(vec![
        url("https://a.example/1", 0, 1),
        url("http://a.example/2", 0, 2),
    ]);
    scene.robots = Access::Closed;
    assert_eq!(scene.next(NOW), None, "robots.txt over https");
    scene.robots = Access::Open;
    assert_eq!(scene.next(NOW + 5 * SECOND), None, "robots.txt over http");
    assert_eq!(scene.fetched(NOW + 10 * SECOND).unwrap(), "/2");
}

#[test]
fn a_more_important_newcomer_goes_first() {
    let mut scene = Scene::new(
        (1..30)
            .map(|i| url(&format!("https://a.example/{i}"), 5, i))
            .collect(),
    );
    scene.next(NOW);
    let urls = vec![url("https://a.example/new", 1, 100)];
    let event = Event::Admitted {
        domain: name("a.example"),
        urls,
        evicted: Vec::new(),
        overflowed: 0,
    };
    scene.frontier.handle(event, NOW);
    assert_eq!(scene.fetched(NOW + 5 * SECOND).unwrap(), "/new");
}

#[test]
fn a_drained_host_leaves_memory_until_its_retry() {
    let mut scene = Scene::new(vec![url("https://a.example/1", 0, 1)]);
    scene.next(NOW);
    let later = NOW + 5 * SECOND;
    scene.fetched(later);
    let settlement = scene.settle(
        scene.queue[0].slot,
        Outcome::Failed(Failure::Connect),
        later,
    );
    assert!(matches!(settlement, Some(Settlement::Retry(pending)) if pending.attempts == 1));
    let hour = Duration::from_secs(3600);
    assert!(matches!(scene.next(later), Some(Action::Park { wake, .. }) if wake == later + hour));
    assert!(!scene.frontier.is_resident(&name("a.example")));
}

#[test]
fn a_drained_host_without_retries_is_not_woken_again() {
    let mut scene = Scene::new(vec![url("https://a.example/1", 0, 1)]);
    scene.next(NOW);
    let later = NOW + 5 * SECOND;
    scene.fetched(later);
    scene.settle(scene.queue[0].slot, Outcome::Page, later);
    assert!(matches!(
        scene.next(later),
        Some(Action::Park {
            wake: Time::NEVER,
            ..
        })
    ));
    assert_eq!(scene.frontier.next_timeout(), Time::NEVER);
}

#[test]
fn without_allowance_nothing_is_fetched() {
    let mut scene = Scene::new(vec![url("https://a.example/1", 0, 1)]);
    scene.next(NOW);
    scene.frontier.set_fetches(0);
    let later = NOW + 5 * SECOND;
    assert_eq!(scene.next(later), None);
    assert_eq!(scene.frontier.next_timeout(), Time::NEVER);
    scene.frontier.set_fetches(1);
    assert_eq!(scene.fetched(later).unwrap(), "/1");
    assert_eq!(scene.frontier.fetching(), 1);
}

#[test]
fn without_allowance_no_name_is_looked_up() {
    let mut scene = Scene::new(vec![url("https://a.example/1", 0, 1)]);
    scene.frontier.set_fetches(0);
    assert_eq!(scene.frontier.poll(NOW), None);
    assert_eq!(scene.frontier.next_timeout(), Time::NEVER);
    scene.frontier.set_fetches(1);
    assert_eq!(scene.frontier.next_timeout(), Time::ZERO);
    assert_eq!(
        scene.frontier.poll(NOW),
        Some(Action::Resolve(name("a.example")))
    );
}

#[test]
fn what_follows_on_the_end_of_a_queue_is_not_read_again() {
    let mut scene = Scene::new(vec![url("https://a.example/1", 0, 1)]);
    scene.next(NOW);
    let later = NOW + 5 * SECOND;
    assert_eq!(scene.fetched(later).unwrap(), "/1");
    let urls = vec![url("https://a.example/2", 1, 2)];
    let admitted = Event::Admitted {
        domain: name("a.example"),
        urls,
        evicted: Vec::new(),
        overflowed: 0,
    };
    scene.frontier.handle(admitted, later);
    scene.settle(scene.queue[0].slot, Outcome::Page, later);
    assert_eq!(
        scene.frontier.poll(later),
        None,
        "nothing is asked of the disk"
    );
    assert_eq!(scene.fetched(later + 5 * SECOND).unwrap(), "/2");
}

#[test]
fn what_comes_of_a_released_domain_is_ignored() {
    let mut scene = Scene::new(vec![url("https://a.example/1", 0, 1)]);
    scene.next(NOW);
    let later = NOW + 5 * SECOND;
    scene.fetched(later);
    assert!(scene.frontier.release(&name("a.example")).is_some());
    assert_eq!(scene.frontier.fetching(), 0);
    assert_eq!(
        scene.settle(scene.queue[0].slot, Outcome::Page, later),
        None
    );
    assert_eq!(scene.next(later), None);
}

#[test]
fn a_private_network_may_be_asked_without_a_pause() {
    let networks = vec!["10.0.0.0/8".parse().unwrap()];
    let private = PrivatePace {
        networks,
        delay: Duration::ZERO,
        per_address: Duration::ZERO,
        back_off: Duration::ZERO,
    };
    let config = FrontierConfig {
        private,
        ..FrontierConfig::default()
    };
    let queue: Vec<_> = (1..100)
        .map(|i| url(&format!("http://a.example/{i}"), 0, i))
        .collect();
    let mut scene = Scene::with(config, DomainState::default(), queue.clone());
    scene.address = [10, 0, 0, 1].into();
    for pending in &queue {
        assert_eq!(scene.fetched(NOW).unwrap(), pending.url.path());
        scene.settle(pending.slot, Outcome::Page, NOW);
    }
    assert!(matches!(
        scene.next(NOW),
        Some(Action::Park {
            wake: Time::NEVER,
            ..
        })
    ));
}

#[test]
fn huge_rules_count_for_several_hosts_and_still_get_their_turn() {
    let config = FrontierConfig {
        resident: 16,
        ..FrontierConfig::default()
    };
    let mut scene = Scene::with(
        config,
        DomainState::default(),
        vec![url("https://a.example/1", 0, 1)],
    );
    let lines: String = (0..5000)
        .map(|i| format!("Disallow: /some-folder-{i}/\n"))
        .collect();
    scene.robots = rules(&format!("User-agent: *\n{lines}"));
    let Some(Action::Park {
        domain,
        state,
        wake,
    }) = scene.next(NOW)
    else {
        panic!("too large to stay")
    };
    assert_eq!(wake, NOW + 5 * SECOND);
    assert!(matches!(
        scene.frontier.poll(wake),
        Some(Action::Wake { .. })
    ));
    scene.frontier.handle(
        Event::Woke {
            domains: vec![(domain, *state)],
            next: Time::NEVER,
        },
        wake,
    );
    assert_eq!(scene.fetched(wake).unwrap(), "/1");
}
