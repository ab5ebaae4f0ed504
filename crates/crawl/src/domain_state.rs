//! What a peer knows of a domain besides its queue and its seen-filter: robots, politeness clock, back-off, counters.
//!
//! One value, stored and replicated with the domain, so that whoever crawls the domain next is exactly as polite as
//! who did before. It decides what every outcome means for the host; the frontier only asks it when.

use crate::{
    Origin,
    outcome::{Health, Outcome, Settlement},
    politeness::{self, Pace},
    robots::Access,
    robots_copy::{RobotsCopy, Standing},
};
use apoidea_model::{Pending, Time};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a peer knows of a domain besides its queue and its seen-filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DomainState {
    /// Raised with every change of owner; where two peers disagree, the higher one is right.
    pub epoch: u64,
    /// What was done so far.
    pub counters: Counters,
    robots: Vec<RobotsCopy>,
    next: Time,
    rests_until: Time,
    doubled_until: Time,
    doublings: u8,
    failures: u8,
    forbidden: u8,
    rests: u8,
    stopped: Option<Stop>,
}

/// Why a host is not asked any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stop {
    /// A run of 403s.
    Forbidden,
    /// It wants to see a human.
    Challenged,
    /// It did not answer for a week.
    Unreachable,
}

/// What was done at a domain so far.
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
}

/// How a request went, for the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// From sending the request to the last byte.
    pub took: Duration,
    /// Bytes that came.
    pub bytes: u64,
}

/// Most origins of one domain whose robots.txt is kept: http and https, and a few odd ports.
pub const ORIGINS_MAX: usize = 4;

impl DomainState {
    /// The earliest moment at which the host may be asked; never if it is stopped.
    pub fn ready_at(&self) -> Time {
        if self.stopped.is_some() { Time::NEVER } else { self.next.max(self.rests_until) }
    }

    /// Why the host is not asked any more, if it is not.
    pub fn stopped(&self) -> Option<Stop> {
        self.stopped
    }

    /// Until when the host rests, if that is after `now`.
    pub fn resting(&self, now: Time) -> Option<Time> {
        Some(self.rests_until).filter(|&until| until > now)
    }

    /// Failures in a row so far.
    pub fn failures(&self) -> u8 {
        self.failures
    }

    /// Lets a stopped host be asked again, as an operator may wish.
    pub fn resume(&mut self) {
        *self = DomainState { stopped: None, forbidden: 0, failures: 0, rests: 0, ..std::mem::take(self) };
    }

    /// What may be done at an origin of this domain.
    pub fn standing(&self, origin: Origin, now: Time) -> Standing<'_> {
        self.copy(origin).map_or(Standing::Ask, |copy| copy.standing(now))
    }

    /// Takes in what came of asking for a robots.txt. `retry_after` is what the header of that name asked for.
    pub fn robots_answered(
        &mut self,
        origin: Origin,
        access: Access,
        retry_after: Option<Duration>,
        effort: Effort,
        now: Time,
        pace: Pace,
    ) {
        let health = if access == Access::Closed { Health::Failed } else { Health::Answered };
        self.keep(origin).answered(access, retry_after, now, pace);
        self.count(health, effort);
        self.next = now + self.pause(effort.took, now, pace);
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
        self.next = now + self.pause(effort.took, now, pace);
        match outcome.health() {
            Health::Answered => self.well(),
            Health::Forbidden => self.forbidden(),
            Health::Failed => self.failed(now, pace),
        }
        match outcome {
            Outcome::Throttled { retry_after } => self.throttled(*retry_after, effort.took, now, pace),
            Outcome::Challenge => self.stopped = Some(Stop::Challenged),
            _ => {}
        }
        let settlement = outcome.settle(pending, self.next.max(self.rests_until), now, pace);
        self.count_settlement(&settlement);
        settlement
    }

    /// Takes in that the host's name did not resolve.
    pub fn unresolved(&mut self, now: Time) {
        self.counters.failed += 1;
        let doubled = politeness::RESOLVE_RETRY * (1 << self.failures.min(politeness::FAILURES_UNTIL_REST));
        self.next = now + doubled;
        self.failed(now, Pace::GLOBAL);
    }

    /// Takes in that a URL of the queue was not fetched because robots.txt says so.
    pub fn disallowed(&mut self) {
        self.counters.disallowed += 1;
        self.leave_queue(1);
    }

    /// Takes in that URLs were admitted, and others made room for them.
    pub fn admitted(&mut self, admitted: u64, evicted: u64, overflowed: u64) {
        self.counters.admitted += admitted;
        self.counters.queued += admitted;
        self.counters.overflowed += overflowed + evicted;
        self.leave_queue(evicted);
    }

    /// Brings times from a broken clock, or a stranger, back into what the contract allows.
    pub fn bound(&mut self, now: Time) {
        let longest = politeness::REST.max(politeness::BACK_OFF_MAX);
        self.next = self.next.min(now + longest);
        self.rests_until = self.rests_until.min(now + longest);
        self.doubled_until = self.doubled_until.min(now + politeness::DOUBLED_FOR);
        self.doublings = self.doublings.min(politeness::DOUBLINGS_MAX);
        self.robots.truncate(ORIGINS_MAX);
        self.robots.iter_mut().for_each(|copy| copy.bound(now));
    }

    /// Memory that the rules take beyond the value itself, in bytes: a stranger decides how many there are.
    pub fn memory_bytes(&self) -> usize {
        self.robots.iter().map(|copy| size_of::<RobotsCopy>() + copy.memory_bytes()).sum()
    }

    fn copy(&self, origin: Origin) -> Option<&RobotsCopy> {
        self.robots.iter().find(|copy| copy.origin == origin)
    }

    /// The copy for an origin, made if there is none; the one asked for longest ago makes room.
    fn keep(&mut self, origin: Origin) -> &mut RobotsCopy {
        let known = self.robots.iter().position(|copy| copy.origin == origin);
        let copy = known.map_or_else(|| RobotsCopy::unknown(origin), |at| self.robots.remove(at));
        self.robots.truncate(ORIGINS_MAX - 1);
        self.robots.insert(0, copy);
        &mut self.robots[0]
    }

    /// The pause after a request: what the pace and the host ask for, doubled while the host wants us slower.
    fn pause(&self, took: Duration, now: Time, pace: Pace) -> Duration {
        let crawl_delay = self.robots.iter().filter_map(RobotsCopy::crawl_delay).max();
        let doublings = if now < self.doubled_until { self.doublings } else { 0 };
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
        let before = if now < self.doubled_until { self.doublings } else { 0 };
        self.doublings = (before + 1).min(politeness::DOUBLINGS_MAX);
        self.doubled_until = now + pace.scale(politeness::DOUBLED_FOR);
        self.next = now + pace.back_off(retry_after).max(self.pause(took, now, pace));
    }

    fn count(&mut self, health: Health, effort: Effort) {
        self.counters.bytes += effort.bytes;
        match health {
            Health::Answered | Health::Forbidden => self.counters.fetched += 1,
            Health::Failed => self.counters.failed += 1,
        }
    }

    fn count_settlement(&mut self, settlement: &Settlement) {
        match settlement {
            Settlement::Done(_) => self.leave_queue(1),
            Settlement::Dropped(_) => {
                self.counters.dropped += 1;
                self.leave_queue(1);
            }
            Settlement::Retry(_) => {}
        }
    }

    fn leave_queue(&mut self, urls: u64) {
        self.counters.queued = self.counters.queued.saturating_sub(urls);
    }
}
