//! Random sequences of events, beside a model that knows where each fetch is.

use apoidea_crawl::lending::{
    Choice, FetchId, Lending, Load, MAX_ASKED, MAX_LOANS, Memory, OVERDUE, Progress, Refused, Room,
};
use apoidea_model::{Domain, Key, PageId, PeerId, Slot, Time};
use proptest::prelude::*;
use std::{collections::BTreeMap, time::Duration};

const HOSTS: usize = 200;
const HELPERS: usize = 4;

/// Something that happens to a peer. Numbers choose among the fetches or helpers that there are.
#[derive(Debug, Clone)]
enum Step {
    /// The frontier starts as many fetches as it may.
    Start {
        refused: Refused,
        what: What,
    },
    EndHere(usize),
    Taken(usize),
    TurnedAway(usize),
    Result(usize),
    /// A peer that is not the helper speaks of a loan.
    Stranger(usize),
    /// A helper speaks again of a loan that has ended.
    Echo(usize),
    Wait(u64),
    Shortage,
    Own(usize),
    Neighbours(usize),
    Memory(Memory),
    Progress(Progress),
    Borrow,
    RequestEnded,
    Returned,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Page,
    Robots,
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0..1000usize;
    let refused = prop_oneof![3 => Just(Refused::No), 1 => Just(Refused::ByVolunteer)];
    let what = prop_oneof![3 => Just(What::Page), 1 => Just(What::Robots)];
    let start = (refused, what).prop_map(|(refused, what)| Step::Start { refused, what });
    let memory = prop_oneof![Just(Memory::Free), Just(Memory::Full)];
    let progress = prop_oneof![Just(Progress::Running), Just(Progress::Still)];
    prop_oneof![
        12 => start,
        4 => any.clone().prop_map(Step::EndHere),
        8 => any.clone().prop_map(Step::Taken),
        6 => any.clone().prop_map(Step::TurnedAway),
        4 => any.clone().prop_map(Step::Result),
        1 => any.clone().prop_map(Step::Stranger),
        1 => any.prop_map(Step::Echo),
        4 => (0..3000u64).prop_map(Step::Wait),
        1 => (30_000..130_000u64).prop_map(Step::Wait),
        1 => Just(Step::Shortage),
        1 => (0..12usize).prop_map(Step::Own),
        2 => (0..=HELPERS).prop_map(Step::Neighbours),
        1 => memory.prop_map(Step::Memory),
        1 => progress.prop_map(Step::Progress),
        3 => Just(Step::Borrow),
        2 => Just(Step::RequestEnded),
        2 => Just(Step::Returned),
    ]
}

/// The place of a fetch that is under way.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Here,
    Asked { helper: PeerId, refused: Refused },
    Taken { helper: PeerId },
}

struct World {
    lending: Lending<u64>,
    own: usize,
    /// One fetch for each host at most.
    places: BTreeMap<usize, (FetchId, Place)>,
    /// The loan of each host.
    loans: BTreeMap<usize, u64>,
    /// How often each loan has ended.
    ended: BTreeMap<u64, u32>,
    past: Vec<(PeerId, FetchId)>,
    neighbours: Vec<PeerId>,
    memory: Memory,
    progress: Progress,
    requests: usize,
    borrowed: usize,
    now: Time,
}

fn peer(number: usize) -> PeerId {
    PeerId::at(Key::hash(number.to_be_bytes()))
}

fn domain(host: usize) -> Domain {
    format!("host{host}.example").parse().expect("a name")
}

fn fetch_of(host: usize, what: What, sequence: u64) -> FetchId {
    let domain = domain(host);
    match what {
        What::Robots => FetchId::Robots(domain),
        What::Page => FetchId::Page(PageId {
            domain,
            slot: Slot { rank: 0, sequence },
        }),
    }
}

impl World {
    fn new() -> Self {
        World {
            lending: Lending::new(4),
            own: 4,
            places: BTreeMap::new(),
            loans: BTreeMap::new(),
            ended: BTreeMap::new(),
            past: Vec::new(),
            neighbours: (0..HELPERS).map(peer).collect(),
            memory: Memory::Free,
            progress: Progress::Running,
            requests: 0,
            borrowed: 0,
            now: Time::from_millis(1_000_000),
        }
    }

    /// Calls with the load as it is.
    fn with<T>(&mut self, call: impl FnOnce(&mut Lending<u64>, &Load, Time) -> T) -> T {
        let load = Load {
            fetching: self.places.len(),
            room: Room {
                in_processing: 0,
                most: 64,
                memory: self.memory,
            },
            neighbours: &self.neighbours,
            progress: self.progress,
        };
        call(&mut self.lending, &load, self.now)
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Start { refused, what } => self.start(refused, what),
            Step::EndHere(nth) => {
                let here = self.nth(nth, |place| place == Place::Here);
                here.map(|(host, _, _)| self.places.remove(&host));
            }
            Step::Taken(nth) => self.taken(nth),
            Step::TurnedAway(nth) => self.turned_away(nth),
            Step::Result(nth) => {
                if let Some((host, fetch, place)) = self.nth(nth, |place| place != Place::Here) {
                    let subject = self.lending.on_result(helper(place), &fetch);
                    self.end_loan(host, subject);
                    self.places.remove(&host);
                }
            }
            Step::Stranger(nth) => self.stranger(nth),
            Step::Echo(nth) => self.echo(nth),
            Step::Wait(millis) => {
                self.now = self.now + Duration::from_millis(millis);
                self.give_up();
            }
            Step::Shortage => self.lending.note_shortage(self.now),
            Step::Own(own) => {
                self.own = own;
                self.lending.set_own(own);
            }
            Step::Neighbours(count) => self.neighbours = (0..count).map(peer).collect(),
            Step::Memory(memory) => self.memory = memory,
            Step::Progress(progress) => self.progress = progress,
            Step::Borrow => self.borrow(),
            Step::RequestEnded if self.requests > 0 => {
                self.requests -= 1;
                self.lending.on_request_ended();
            }
            // A result is told after its request.
            Step::Returned if self.borrowed > self.requests => {
                self.borrowed -= 1;
                self.lending.on_returned();
            }
            Step::RequestEnded | Step::Returned => {}
        }
    }

    /// The nth fetch in such a place.
    fn nth(&self, nth: usize, is: impl Fn(Place) -> bool) -> Option<(usize, FetchId, Place)> {
        let fits: Vec<_> = self
            .places
            .iter()
            .filter(|(_, (_, place))| is(*place))
            .collect();
        let (host, (fetch, place)) = fits.get(nth % fits.len().max(1))?;
        Some((**host, fetch.clone(), *place))
    }

    /// As the frontier does: idle hosts, as long as the limit allows.
    fn start(&mut self, refused: Refused, what: What) {
        for host in 0..HOSTS {
            let limit = self.with(|lending, load, now| lending.fetch_limit(load, now));
            if self.places.len() >= limit {
                return;
            }
            if self.places.contains_key(&host) {
                continue;
            }
            let fetch = fetch_of(host, what, self.ended.len() as u64);
            self.places.insert(host, (fetch.clone(), Place::Here));
            let choice = self.with(|lending, load, now| lending.assign(&fetch, refused, load, now));
            if choice == Choice::Here {
                let here = self.with(|lending, load, _| lending.fetching_here(load));
                assert!(
                    here <= self.own.max(1 + self.requests),
                    "{here} fetches here"
                );
            }
            assert_ne!(choice, Choice::Back);
            self.carry_out(host, choice, refused);
        }
    }

    fn carry_out(&mut self, host: usize, choice: Choice, refused: Refused) {
        let (fetch, place) = self.places.get_mut(&host).expect("under way");
        match choice {
            Choice::Here => {
                assert_eq!(refused, Refused::No, "a refused domain is not fetched here");
                *place = Place::Here;
            }
            Choice::Lend(helper) => {
                assert!(self.neighbours.contains(&helper));
                *place = Place::Asked { helper, refused };
                let number = self.ended.len() as u64;
                self.ended.insert(number, 0);
                self.loans.insert(host, number);
                let former = self
                    .lending
                    .lend(fetch.clone(), helper, refused, number, self.now);
                assert_eq!(former, None, "a fetch at two places");
            }
            Choice::Later(_) | Choice::Back => {
                self.places.remove(&host);
            }
        }
    }

    fn taken(&mut self, nth: usize) {
        let asked = self.nth(nth, |place| matches!(place, Place::Asked { .. }));
        if let Some((host, fetch, place)) = asked {
            let helper = helper(place);
            self.lending.on_taken(helper, &fetch);
            self.places.insert(host, (fetch, Place::Taken { helper }));
        }
    }

    fn turned_away(&mut self, nth: usize) {
        let asked = self.nth(nth, |place| matches!(place, Place::Asked { .. }));
        let Some((host, fetch, Place::Asked { helper, refused })) = asked else {
            return;
        };
        let again =
            self.with(|lending, load, now| lending.on_turned_away(helper, &fetch, load, now));
        let (subject, choice) = again.expect("the loan was there");
        assert_ne!(choice, Choice::Lend(helper), "it rests");
        self.end_loan(host, Some(subject));
        self.carry_out(host, choice, refused);
    }

    fn stranger(&mut self, nth: usize) {
        let stranger = peer(99);
        if let Some((_, fetch, _)) = self.nth(nth, |_| true) {
            self.lending.on_taken(stranger, &fetch);
            assert_eq!(self.lending.on_result(stranger, &fetch), None);
            let away =
                self.with(|lending, load, now| lending.on_turned_away(stranger, &fetch, load, now));
            assert_eq!(away, None);
        }
    }

    fn echo(&mut self, nth: usize) {
        let Some((helper, fetch)) = self.past.get(nth % self.past.len().max(1)).cloned() else {
            return;
        };
        // The fetch may be at the same helper again: then this is no echo.
        let is_there = |(other, place): &(FetchId, Place)| {
            *other == fetch && *place != Place::Here && self::helper(*place) == helper
        };
        if !self.places.values().any(is_there) {
            self.lending.on_taken(helper, &fetch);
            assert_eq!(self.lending.on_result(helper, &fetch), None);
            let away =
                self.with(|lending, load, now| lending.on_turned_away(helper, &fetch, load, now));
            assert_eq!(away, None);
        }
    }

    fn give_up(&mut self) {
        for (fetch, subject) in self.with(|lending, load, now| lending.overdue(load, now)) {
            let host = *self
                .loans
                .iter()
                .find(|(_, loan)| **loan == subject)
                .expect("a loan that has not ended")
                .0;
            assert_eq!(self.places[&host].0, fetch);
            self.end_loan(host, Some(subject));
            self.places.remove(&host);
        }
    }

    fn borrow(&mut self) {
        if self.with(|lending, load, _| lending.may_borrow(load)) {
            self.lending.on_borrowed();
            self.requests += 1;
            self.borrowed += 1;
            assert_eq!(self.progress, Progress::Running);
            let here = self.with(|lending, load, _| lending.fetching_here(load));
            assert!(here <= self.own, "{here} fetches of {}", self.own);
        }
    }

    /// A loan ended with what was kept with it.
    fn end_loan(&mut self, host: usize, subject: Option<u64>) {
        let number = self.loans.remove(&host).expect("one loan for a host");
        assert_eq!(subject, Some(number));
        *self.ended.entry(number).or_default() += 1;
        let (fetch, place) = &self.places[&host];
        self.past.push((helper(*place), fetch.clone()));
    }

    fn check(&mut self) {
        let lent = |is: &dyn Fn(&FetchId, Place) -> bool| {
            let places = self.places.values();
            places.filter(|(fetch, place)| is(fetch, *place)).count()
        };
        let count = lent(&|_, place| place != Place::Here);
        let pages = lent(&|fetch, place| fetch.is_page() && place != Place::Here);
        let asked = lent(&|_, place| {
            matches!(
                place,
                Place::Asked {
                    refused: Refused::No,
                    ..
                }
            )
        });
        assert_eq!(self.lending.lent_count(), count);
        assert_eq!(self.lending.lent_pages(), pages);
        assert_eq!(self.lending.borrowed_count(), self.borrowed);
        assert!(count <= MAX_LOANS, "{count} loans");
        assert!(asked <= MAX_ASKED, "{asked} asked");
        let here = self.places.len() - count + self.requests;
        assert_eq!(
            self.with(|lending, load, _| lending.fetching_here(load)),
            here
        );
        let limit = self.with(|lending, load, now| lending.fetch_limit(load, now));
        assert_eq!(limit == 0, self.progress == Progress::Still);
        assert!(limit <= self.own.max(1) + count + 1);
    }
}

fn helper(place: Place) -> PeerId {
    match place {
        Place::Asked { helper, .. } | Place::Taken { helper } => helper,
        Place::Here => panic!("no helper has it"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_fetch_is_at_one_place_and_every_loan_ends_once(
        steps in prop::collection::vec(step(), 1..400)
    ) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
            world.check();
        }
        world.now = world.now + OVERDUE + Duration::from_millis(1);
        world.give_up();
        world.check();
        prop_assert!(world.loans.is_empty());
        prop_assert!(world.ended.values().all(|times| *times == 1), "{:?}", world.ended);
    }
}
