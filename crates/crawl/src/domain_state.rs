//! A domain's state besides its queue and its seen-filter: robots, politeness clock, back-off,
//! counters.
//!
//! One value, stored and replicated with the domain, so that the next owner is exactly as polite as
//! the last one. It decides what every outcome means for the host; the frontier only asks it when.

use crate::{
    Origin, Reductions, SiteFreshness, Versions, Watches,
    known_robots::{KnownRobots, RobotsStanding},
    outcome::{Health, Outcome, Settlement},
    politeness::{self, Pace},
    robots::Access,
    traps,
};
use apoidea_model::{Pending, Time, Visit};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A domain's state besides its queue and its seen-filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DomainState {
    /// The changes that this replica contains.
    pub versions: Versions,
    /// The journeys that the seen log has made.
    pub reductions: Reductions,
    /// The work done so far.
    pub counters: Counters,
    /// What visits after the first have taught.
    pub freshness: SiteFreshness,
    /// The peers that want to be told of changes.
    pub watches: Watches,
    robots: Vec<KnownRobots>,
    last_asked: Time,
    next: Time,
    /// The pause after the last request; none before the first.
    last_pause: Option<Duration>,
    rests_until: Time,
    doubled_until: Time,
    doublings: u8,
    failures: u8,
    forbidden: u8,
    rests: u8,
    stopped: Option<Stop>,
}

/// The reason why a host is not asked any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stop {
    /// A run of 403s.
    Forbidden,
    /// It wants to see a human.
    Challenged,
    /// It did not answer for a week.
    Unreachable,
}

/// The work done at a domain so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// URLs waiting in the queue.
    pub queued: u64,
    /// URLs ever admitted to the queue.
    pub admitted: u64,
    /// Requests that got an answer, robots.txt included.
    pub fetched: u64,
    /// Bytes of those answers.
    pub bytes: u64,
    /// Requests without a usable answer.
    pub failed: u64,
    /// URLs not fetched because robots.txt says so.
    pub disallowed: u64,
    /// URLs dropped because trying again was useless.
    pub dropped: u64,
    /// URLs dropped because the queue was full.
    pub overflowed: u64,
    /// URLs admitted that combine many query parameters.
    pub combined: u64,
}

/// The cost of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// From sending the request to the last byte.
    pub took: Duration,
    /// Bytes that came.
    pub bytes: u64,
}

/// The stored bytes are not a domain's state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored state is damaged: {0}")]
pub struct DamagedState(#[from] postcard::Error);

/// For so long the validators of a host that lied are not believed.
pub const LONGEST_DISTRUST: Duration = Duration::from_secs(90 * 24 * 3600);

/// Most origins of one domain whose robots.txt is kept: http and https, and a few odd ports.
pub const ORIGINS_MAX: usize = 4;

impl DomainState {
    /// The state as it is stored and sent.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("numbers, times and rules always serialise")
    }

    /// Reads a state that was stored or sent.
    pub fn decode(bytes: &[u8]) -> Result<Self, DamagedState> {
        Ok(postcard::from_bytes(bytes)?)
    }

    /// The earliest moment at which the host may be asked; never if it is stopped.
    pub fn ready_at(&self) -> Time {
        if self.stopped.is_some() {
            Time::NEVER
        } else {
            self.next.max(self.rests_until)
        }
    }

    /// The reason why the host is not asked any more, if it is not.
    pub fn stopped(&self) -> Option<Stop> {
        self.stopped
    }

    /// Until when the host rests, if that is after `now`.
    pub fn resting(&self, now: Time) -> Option<Time> {
        Some(self.rests_until).filter(|&until| until > now)
    }

    /// The time at which the host was asked last; zero if never.
    pub fn last_asked(&self) -> Time {
        self.last_asked
    }

    /// The pause after the last request, if there was one.
    pub fn last_pause(&self) -> Option<Duration> {
        self.last_pause
    }

    /// Failures in a row so far.
    pub fn failures(&self) -> u8 {
        self.failures
    }

    /// Lets a stopped host be asked again, as an operator may wish.
    pub fn resume(&mut self) {
        *self = DomainState {
            stopped: None,
            forbidden: 0,
            failures: 0,
            rests: 0,
            ..std::mem::take(self)
        };
    }

    /// Takes in that a request may have been sent whose end nobody saw, as when the program was cut
    /// off: the next one keeps its distance from that one too.
    pub fn interrupted(&mut self, now: Time) {
        self.next = self
            .next
            .max(now + self.last_pause.unwrap_or(politeness::HOST_DELAY));
    }

    /// The robots.txt of each origin, as far as it is known.
    pub fn standings(&self, now: Time) -> impl Iterator<Item = (Origin, RobotsStanding<'_>)> {
        self.robots
            .iter()
            .map(move |robots| (robots.origin, robots.standing(now)))
    }

    /// The robots.txt of one origin, as far as it is known.
    pub fn standing(&self, origin: Origin, now: Time) -> RobotsStanding<'_> {
        self.robots_of(origin)
            .map_or(RobotsStanding::Ask, |robots| robots.standing(now))
    }

    /// Takes in the answer to the question for a robots.txt. `retry_after` is what the header of
    /// that name asked for.
    pub fn robots_answered(
        &mut self,
        origin: Origin,
        access: Access,
        retry_after: Option<Duration>,
        effort: Effort,
        now: Time,
        pace: Pace,
    ) {
        let health = if access == Access::Closed {
            Health::Failed
        } else {
            Health::Answered
        };
        self.keep(origin).answered(access, retry_after, now, pace);
        self.count(health, effort);
        self.wait(effort.took, now, pace);
        match health {
            Health::Failed => self.failed(now, pace),
            Health::Answered | Health::Forbidden => self.answered(),
        }
    }

    /// Takes in the outcome of a fetch and says what becomes of the URL.
    pub fn settle(
        &mut self,
        pending: Pending,
        outcome: &Outcome,
        effort: Effort,
        now: Time,
        pace: Pace,
    ) -> Settlement {
        self.count(outcome.health(), effort);
        self.wait(effort.took, now, pace);
        match outcome.health() {
            Health::Answered => self.well(),
            Health::Forbidden => self.forbidden(),
            Health::Failed => self.failed(now, pace),
        }
        match outcome {
            Outcome::Throttled { retry_after } => {
                self.throttled(*retry_after, effort.took, now, pace)
            }
            Outcome::Challenge => self.stopped = Some(Stop::Challenged),
            _ => {}
        }
        let settlement = outcome.settle(pending, self.next.max(self.rests_until), now, pace);
        self.count_settlement(&settlement);
        settlement
    }

    /// Takes in that the host's name did not resolve.
    pub fn unresolved(&mut self, now: Time, pace: Pace) {
        add(&mut self.counters.failed, 1);
        let doubled =
            politeness::RESOLVE_RETRY * (1 << self.failures.min(politeness::FAILURES_UNTIL_REST));
        self.next = now + pace.scale(doubled);
        self.failed(now, pace);
    }

    /// Takes in that a URL of the queue was not fetched because robots.txt says so.
    pub fn disallowed(&mut self) {
        add(&mut self.counters.disallowed, 1);
        self.leave_queue(1);
    }

    /// Takes in that URLs entered the queue, and others made room for them. Only a first visit
    /// counts as admitted: a page that waits for another one was counted then.
    pub fn admitted<'a>(
        &mut self,
        urls: impl IntoIterator<Item = &'a Pending>,
        evicted: u64,
        overflowed: u64,
    ) {
        for Pending { url, visit, .. } in urls {
            add(&mut self.counters.queued, 1);
            if *visit == Visit::First {
                add(&mut self.counters.admitted, 1);
                let combined = u64::from(traps::is_combination(url));
                add(&mut self.counters.combined, combined);
            }
        }
        add(
            &mut self.counters.overflowed,
            overflowed.saturating_add(evicted),
        );
        self.leave_queue(evicted);
    }

    /// The state as other peers get it: each asks for robots.txt itself.
    pub fn without_robots(&self) -> Self {
        DomainState {
            robots: Vec::new(),
            ..self.clone()
        }
    }

    /// Another peer's word about the host. It is advice: robots.txt is asked for again, a stopped
    /// host rests and is then looked at again, and no pause is longer than the contract's longest.
    pub fn into_advice(mut self, now: Time) -> Self {
        self.robots.clear();
        if self.stopped.take().is_some() {
            self.rests_until = Time::NEVER;
            (self.failures, self.forbidden, self.rests) = (0, 0, 0);
        }
        self.bound(now);
        self.rests = self.rests.min(politeness::RESTS_UNTIL_STOP - 1);
        self.forbidden = self.forbidden.min(politeness::FORBIDDEN_UNTIL_STOP - 1);
        self.counters.combined = self.counters.combined.min(self.counters.admitted);
        self
    }

    /// Waits as long as another peer's advice asks for, if that is longer.
    pub fn heed(&mut self, advice: &DomainState) {
        self.last_asked = self.last_asked.max(advice.last_asked);
        self.next = self.next.max(advice.next);
        self.rests_until = self.rests_until.max(advice.rests_until);
        self.last_pause = self.last_pause.max(advice.last_pause);
        self.freshness.join(&advice.freshness);
        self.watches.join(&advice.watches);
    }

    /// Brings times from a broken clock, or a stranger, back into what the contract allows.
    pub fn bound(&mut self, now: Time) {
        let longest = politeness::REST.max(politeness::BACK_OFF_MAX);
        self.last_asked = self.last_asked.min(now);
        self.freshness.bound(now, LONGEST_DISTRUST);
        self.watches.bound(now);
        self.next = self.next.min(now + longest);
        self.last_pause = self.last_pause.map(|pause| pause.min(longest));
        self.rests_until = self.rests_until.min(now + longest);
        self.doubled_until = self.doubled_until.min(now + politeness::DOUBLED_FOR);
        self.doublings = self.doublings.min(politeness::DOUBLINGS_MAX);
        self.robots.truncate(ORIGINS_MAX);
        self.robots.iter_mut().for_each(|robots| robots.bound(now));
    }

    /// Memory that the rules take beyond the value itself, in bytes: a stranger decides how many
    /// there are.
    pub fn memory_bytes(&self) -> usize {
        self.robots
            .iter()
            .map(|robots| size_of::<KnownRobots>() + robots.memory_bytes())
            .sum()
    }

    fn robots_of(&self, origin: Origin) -> Option<&KnownRobots> {
        self.robots.iter().find(|robots| robots.origin == origin)
    }

    /// The robots.txt of an origin, unknown if it is new; the one asked for longest ago makes room.
    fn keep(&mut self, origin: Origin) -> &mut KnownRobots {
        let place = self.robots.iter().position(|known| known.origin == origin);
        let known = place.map_or_else(
            || KnownRobots::unknown(origin),
            |place| self.robots.remove(place),
        );
        self.robots.truncate(ORIGINS_MAX - 1);
        self.robots.insert(0, known);
        &mut self.robots[0]
    }

    fn wait(&mut self, took: Duration, now: Time, pace: Pace) {
        let pause = self.pause(took, now, pace);
        self.last_pause = Some(pause);
        self.last_asked = now;
        self.next = now + pause;
    }

    /// The pause after a request: what the pace and the host ask for, doubled while the host wants
    /// us slower.
    fn pause(&self, took: Duration, now: Time, pace: Pace) -> Duration {
        let crawl_delay = self
            .robots
            .iter()
            .filter_map(KnownRobots::crawl_delay)
            .max();
        let doublings = if now < self.doubled_until {
            self.doublings
        } else {
            0
        };
        pace.pause(took, crawl_delay) * (1 << doublings.min(politeness::DOUBLINGS_MAX))
    }

    fn answered(&mut self) {
        self.failures = 0;
        self.rests = 0;
    }

    fn well(&mut self) {
        self.answered();
        self.forbidden = 0;
    }

    fn forbidden(&mut self) {
        self.answered();
        self.forbidden = self.forbidden.saturating_add(1);
        if self.forbidden >= politeness::FORBIDDEN_UNTIL_STOP {
            self.stopped = Some(Stop::Forbidden);
        }
    }

    fn failed(&mut self, now: Time, pace: Pace) {
        self.failures = self.failures.saturating_add(1);
        if self.failures < politeness::FAILURES_UNTIL_REST {
            return;
        }
        self.failures = 0;
        self.rests = self.rests.saturating_add(1);
        self.rests_until = now + pace.scale(politeness::REST);
        if self.rests >= politeness::RESTS_UNTIL_STOP {
            self.stopped = Some(Stop::Unreachable);
        }
    }

    fn throttled(&mut self, retry_after: Option<Duration>, took: Duration, now: Time, pace: Pace) {
        let before = if now < self.doubled_until {
            self.doublings
        } else {
            0
        };
        self.doublings = (before + 1).min(politeness::DOUBLINGS_MAX);
        self.doubled_until = now + pace.scale(politeness::DOUBLED_FOR);
        self.next = now + pace.back_off(retry_after).max(self.pause(took, now, pace));
    }

    fn count(&mut self, health: Health, effort: Effort) {
        add(&mut self.counters.bytes, effort.bytes);
        match health {
            Health::Answered | Health::Forbidden => add(&mut self.counters.fetched, 1),
            Health::Failed => add(&mut self.counters.failed, 1),
        }
    }

    fn count_settlement(&mut self, settlement: &Settlement) {
        match settlement {
            Settlement::Done(_) => self.leave_queue(1),
            Settlement::Dropped(_) => {
                add(&mut self.counters.dropped, 1);
                self.leave_queue(1);
            }
            Settlement::Retry(_) => {}
        }
    }

    fn leave_queue(&mut self, urls: u64) {
        self.counters.queued = self.counters.queued.saturating_sub(urls);
    }
}

/// Counts, also from where a stranger left off.
fn add(counter: &mut u64, more: u64) {
    *counter = counter.saturating_add(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, Robots};
    use apoidea_model::{
        ContentHash, ContentMark, CrawlId, Link, PreviousVisit, Slot, Target, Validators,
    };

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_secs(3600);
    const DAY: Duration = Duration::from_secs(24 * 3600);
    const NOW: Time = Time::from_millis(1_700_000_000_000);
    const QUICK: Effort = Effort {
        took: Duration::from_millis(200),
        bytes: 35_000,
    };
    const FAILED: Outcome = Outcome::Failed(Failure::Connect);

    fn pending(attempts: u8) -> Pending {
        let link = Link {
            url: "https://a.example/".parse().unwrap(),
            depth: 1,
            target: Target::Page,
        };
        let slot = Slot {
            rank: 1,
            sequence: 1,
        };
        Pending {
            attempts,
            ..Pending::admitted(link, slot, CrawlId::OPEN)
        }
    }

    fn settle(state: &mut DomainState, outcome: &Outcome, now: Time) -> Settlement {
        state.settle(pending(0), outcome, QUICK, now, Pace::GLOBAL)
    }

    fn robots(state: &mut DomainState, access: Access, retry_after: Option<Duration>, now: Time) {
        state.robots_answered(
            Origin::Https(443),
            access,
            retry_after,
            QUICK,
            now,
            Pace::GLOBAL,
        );
    }

    fn rules(file: &str) -> Access {
        Access::Rules(Robots::parse(file.as_bytes(), "Apoidea"))
    }

    /// After how long the URL is tried again, for each number of attempts before.
    fn retries(outcome: Outcome) -> Vec<Duration> {
        let retry = |attempts| match DomainState::default().settle(
            pending(attempts),
            &outcome,
            QUICK,
            NOW,
            Pace::GLOBAL,
        ) {
            Settlement::Retry(again) => Some(again.not_before.since(NOW)),
            Settlement::Dropped(_) => None,
            Settlement::Done(_) => panic!("a failure is not done"),
        };
        (0..).map_while(retry).collect()
    }

    #[test]
    fn retries_follow_the_contract() {
        for failure in [Failure::Dns, Failure::Connect] {
            assert_eq!(retries(Outcome::Failed(failure)), [HOUR, 2 * HOUR]);
        }
        for failure in [Failure::Read, Failure::Timeout, Failure::Server] {
            assert_eq!(
                retries(Outcome::Failed(failure)),
                [MINUTE, 2 * MINUTE, 4 * MINUTE]
            );
        }
        for failure in [
            Failure::Tls,
            Failure::TooManyRedirects,
            Failure::PrivateAddress,
            Failure::UnsupportedType,
        ] {
            assert_eq!(retries(Outcome::Failed(failure)), []);
        }
        assert_eq!(
            retries(Outcome::Throttled {
                retry_after: Some(HOUR)
            }),
            [HOUR; 8]
        );
    }

    #[test]
    fn answers_of_any_kind_are_done() {
        for outcome in [
            Outcome::Page,
            Outcome::NotModified,
            Outcome::Refused(404),
            Outcome::Refused(403),
        ] {
            assert_eq!(
                settle(&mut DomainState::default(), &outcome, NOW),
                Settlement::Done(pending(0))
            );
        }
    }

    #[test]
    fn a_throttled_host_waits_and_stays_slower_for_a_day() {
        let mut state = DomainState::default();
        settle(
            &mut state,
            &Outcome::Throttled {
                retry_after: Some(SECOND),
            },
            NOW,
        );
        assert_eq!(state.ready_at(), NOW + 5 * MINUTE);
        for (later, pause) in [(5 * MINUTE, 10), (23 * HOUR, 10), (24 * HOUR, 5)] {
            settle(&mut state, &Outcome::Page, NOW + later);
            assert_eq!(state.ready_at(), NOW + later + pause * SECOND, "{later:?}");
        }
        let mut state = DomainState::default();
        settle(
            &mut state,
            &Outcome::Throttled {
                retry_after: Some(2 * HOUR),
            },
            NOW,
        );
        assert_eq!(state.ready_at(), NOW + 2 * HOUR);
    }

    #[test]
    fn five_failures_in_a_row_make_a_host_rest_and_a_week_of_them_stops_it() {
        let mut state = DomainState::default();
        (0..4).for_each(|_| _ = settle(&mut state, &FAILED, NOW));
        settle(&mut state, &Outcome::Page, NOW);
        (0..4).for_each(|_| _ = settle(&mut state, &FAILED, NOW));
        assert_eq!(state.resting(NOW), None, "not in a row");
        settle(&mut state, &FAILED, NOW);
        assert_eq!(
            (state.resting(NOW), state.ready_at()),
            (Some(NOW + DAY), NOW + DAY)
        );
        (0..29).for_each(|_| _ = settle(&mut state, &FAILED, NOW));
        assert_eq!(state.stopped(), None);
        settle(&mut state, &FAILED, NOW);
        assert_eq!(
            (state.stopped(), state.ready_at()),
            (Some(Stop::Unreachable), Time::NEVER)
        );
    }

    #[test]
    fn a_run_of_403s_or_a_challenge_stops_a_host_until_it_is_resumed() {
        let mut state = DomainState::default();
        (0..9).for_each(|_| _ = settle(&mut state, &Outcome::Refused(403), NOW));
        settle(&mut state, &Outcome::Refused(404), NOW);
        (0..9).for_each(|_| _ = settle(&mut state, &Outcome::Refused(403), NOW));
        assert_eq!(state.stopped(), None, "not in a row");
        settle(&mut state, &Outcome::Refused(403), NOW);
        assert_eq!(state.stopped(), Some(Stop::Forbidden));
        state.resume();
        assert_eq!(state.ready_at(), NOW + 5 * SECOND);
        settle(&mut state, &Outcome::Challenge, NOW);
        assert_eq!(state.stopped(), Some(Stop::Challenged));
    }

    #[test]
    fn a_name_that_does_not_resolve_is_tried_ever_later() {
        let mut state = DomainState::default();
        let waits: Vec<_> = (0..4)
            .map(|_| {
                state.unresolved(NOW, Pace::GLOBAL);
                state.ready_at().since(NOW) / 3600
            })
            .collect();
        assert_eq!(waits, [SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND]);
        state.unresolved(NOW, Pace::GLOBAL);
        assert_eq!(state.resting(NOW), Some(NOW + DAY));
    }

    #[test]
    fn robots_rules_count_for_a_day_and_their_delay_is_kept() {
        let mut state = DomainState::default();
        assert_eq!(state.standing(Origin::Https(443), NOW), RobotsStanding::Ask);
        let access = rules("User-agent: *\nCrawl-delay: 30\nDisallow: /x");
        robots(&mut state, access.clone(), None, NOW);
        assert_eq!(
            state.standing(Origin::Https(443), NOW + DAY - SECOND),
            RobotsStanding::Known(&access)
        );
        assert_eq!(
            state.standing(Origin::Https(443), NOW + DAY),
            RobotsStanding::Ask
        );
        assert_eq!(
            state.standing(Origin::Http(80), NOW),
            RobotsStanding::Ask,
            "another origin, other rules"
        );
        settle(&mut state, &Outcome::Page, NOW);
        assert_eq!(state.ready_at(), NOW + 30 * SECOND);
    }

    #[test]
    fn robots_that_do_not_answer_close_the_origin_and_are_asked_ever_later() {
        let mut state = DomainState::default();
        let mut now = NOW;
        for minutes in [5, 10, 20, 40] {
            robots(&mut state, Access::Closed, None, now);
            let again = now + minutes * MINUTE;
            assert_eq!(
                state.standing(Origin::Https(443), now),
                RobotsStanding::Wait(again)
            );
            assert_eq!(
                state.standing(Origin::Https(443), again),
                RobotsStanding::Ask
            );
            now = again;
        }
        robots(&mut state, Access::Closed, None, now);
        assert_eq!(
            state.resting(now),
            Some(now + DAY),
            "that was the fifth failure in a row"
        );
        robots(&mut state, Access::Open, None, now + DAY);
        robots(&mut state, Access::Closed, Some(HOUR), now + 2 * DAY);
        let again = now + 2 * DAY + HOUR;
        assert_eq!(
            state.standing(Origin::Https(443), now + 2 * DAY),
            RobotsStanding::Wait(again)
        );
    }

    #[test]
    fn origins_are_bounded() {
        let mut state = DomainState::default();
        for port in 1..100 {
            state.robots_answered(
                Origin::Http(port),
                Access::Open,
                None,
                QUICK,
                NOW,
                Pace::GLOBAL,
            );
        }
        let known =
            (1..100).filter(|&port| state.standing(Origin::Http(port), NOW) != RobotsStanding::Ask);
        assert_eq!(known.collect::<Vec<_>>(), [96, 97, 98, 99]);
    }

    #[test]
    fn an_ordinary_domain_takes_less_than_200_bytes_and_survives_storage() {
        let mut state = DomainState::default();
        state.versions.advance(crate::Tenure::default());
        let file = "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nCrawl-delay: 10\n\
                    Sitemap: https://www.a.example/sitemap.xml";
        robots(&mut state, rules(file), None, NOW);
        state.admitted(std::iter::repeat_n(&pending(0), 100_000), 10, 1000);
        settle(&mut state, &Outcome::Throttled { retry_after: None }, NOW);
        (0..1000).for_each(|_| _ = settle(&mut state, &Outcome::Page, NOW + DAY));
        let bytes = state.encode();
        assert!(bytes.len() < 200, "{} bytes", bytes.len());
        assert_eq!(DomainState::decode(&bytes), Ok(state));
        assert!(DomainState::decode(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn a_page_that_waits_for_another_visit_is_not_admitted_again() {
        let mut state = DomainState::default();
        let again = Pending {
            visit: Visit::again(PreviousVisit {
                since: NOW,
                captured: None,
                validators: Validators::default(),
                content: ContentMark::of(&ContentHash::of_body(b"x")),
            }),
            ..pending(0)
        };
        state.admitted([&pending(0), &again], 0, 0);
        assert_eq!((state.counters.queued, state.counters.admitted), (2, 1));
    }

    #[test]
    fn a_state_from_a_broken_clock_is_brought_back_into_bounds() {
        let mut state = DomainState::default();
        let future = NOW + 1000 * DAY;
        robots(&mut state, Access::Open, None, future);
        settle(
            &mut state,
            &Outcome::Throttled {
                retry_after: Some(DAY),
            },
            future,
        );
        state.bound(NOW);
        assert_eq!(state.ready_at(), NOW + DAY);
        assert_eq!(
            state.standing(Origin::Https(443), NOW + DAY),
            RobotsStanding::Ask
        );
    }
}
