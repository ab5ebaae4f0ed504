//! The turns of this peer at one address: alone, one in the address's delay; among others, as many
//! as the clock of the address grants.
//!
//! The first request needs no grant, so that an address with a single page costs no message. A
//! second one in a while does: until it is granted, and whenever the clock does not answer, the
//! address is asked slowly. A question ends the grant before it, so that an answer that is lost
//! makes this peer slower and never faster.

use crate::{Grant, Pace};
use apoidea_model::Time;
use std::time::Duration;

/// Without a grant, an address among several peers is asked once in so many of its delays: once a
/// minute on the Internet.
const SLOW: u32 = 30;
/// And with any answer at least once in so many: once in an hour. A clock that lies silences no
/// address.
const LEAST: u32 = 1800;
/// A clock that does not answer is asked again after so many delays.
const RETRY: u32 = 15;

/// The keeper of an address's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// This peer, for itself.
    #[default]
    Own,
    /// The owner of the address on the ring, for all peers.
    Ring,
}

/// The rules for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spacing {
    pub(super) pace: Pace,
    pub(super) clock: Clock,
}

/// The turns at one address.
#[derive(Debug, Default)]
pub(super) struct Turns {
    spacing: Spacing,
    /// The start of the last request; zero before the first.
    last: Time,
    share: Share,
}

/// The word of the ring's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Share {
    /// It was never asked.
    #[default]
    Unknown,
    /// It was asked.
    Asked,
    /// It did not answer, and is asked again then.
    Silent { retry: Time },
    /// One request in `interval`.
    Granted {
        interval: Duration,
        renew: Time,
        until: Time,
    },
    /// Nothing before then.
    Waiting { until: Time },
}

impl Turns {
    /// A request begins.
    pub(super) fn start(&mut self, spacing: Spacing, now: Time) {
        (self.spacing, self.last) = (spacing, now);
        if self.ends() <= now && self.share != Share::Asked {
            self.share = Share::Unknown;
        }
    }

    /// The time of the next request at the earliest.
    pub(super) fn next(&self) -> Time {
        if self.last == Time::ZERO {
            return Time::ZERO;
        }
        let delay = self.spacing.pace.per_address();
        let least = delay.saturating_mul(LEAST);
        let gap = match (self.spacing.clock, self.share) {
            (Clock::Own, _) => delay,
            (Clock::Ring, Share::Granted { interval, .. }) => interval.max(delay),
            // It is asked again before the address is.
            (Clock::Ring, Share::Waiting { .. }) => least,
            (Clock::Ring, _) => delay.saturating_mul(SLOW),
        };
        self.last + gap.min(least)
    }

    /// The same, if the clock then grants something to those who have to wait.
    pub(super) fn hoped(&self) -> Time {
        match self.share {
            Share::Waiting { until } => until.min(self.next()),
            _ => self.next(),
        }
    }

    /// The usual time between two requests, as far as known: a clock that was not heard yet is
    /// expected to grant everything.
    pub(super) fn usual_gap(&self, delay: Duration) -> Duration {
        match (self.spacing.clock, self.share) {
            (Clock::Ring, Share::Granted { interval, .. }) => interval.max(delay),
            _ => delay,
        }
    }

    /// The clock's word is worth nothing after this.
    pub(super) fn ends(&self) -> Time {
        match self.share {
            Share::Granted { until, .. } | Share::Waiting { until } => until,
            Share::Silent { retry } => retry,
            Share::Unknown | Share::Asked => Time::ZERO,
        }
    }

    /// Is the clock to be asked now?
    pub(super) fn is_due(&self, now: Time) -> bool {
        if self.spacing.clock == Clock::Own || self.last == Time::ZERO {
            return false;
        }
        match self.share {
            Share::Unknown => true,
            Share::Asked => false,
            Share::Silent { retry } => retry <= now,
            Share::Granted { renew, .. } => renew <= now,
            Share::Waiting { until } => until <= now,
        }
    }

    /// The wish to be put to the clock now, for so many waiting hosts: the fastest pace that they
    /// can use. Whatever was granted before ends with it.
    pub(super) fn wish(&mut self, hosts: usize, now: Time) -> Option<Duration> {
        if !self.is_due(now) || hosts == 0 {
            return None;
        }
        self.share = Share::Asked;
        let hosts = u32::try_from(hosts).unwrap_or(u32::MAX);
        let pace = self.spacing.pace;
        Some((pace.per_host() / hosts).max(pace.per_address()))
    }

    /// The answer to a wish of the time `asked`; none came if there is none.
    pub(super) fn granted(&mut self, grant: Option<Grant>, asked: Time) {
        if self.share != Share::Asked {
            return;
        }
        let delay = self.spacing.pace.per_address();
        self.share = match grant {
            Some(Grant::Every { interval, term }) => Share::Granted {
                interval,
                renew: asked + term / 2,
                until: asked + term,
            },
            Some(Grant::Wait(wait)) => Share::Waiting {
                until: asked + wait,
            },
            None => Share::Silent {
                retry: asked + delay.saturating_mul(RETRY),
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_000_000);
    const DELAY: Duration = Duration::from_secs(2);
    const RING: Spacing = Spacing {
        pace: Pace::GLOBAL,
        clock: Clock::Ring,
    };

    fn started() -> Turns {
        let mut turns = Turns::default();
        turns.start(RING, NOW);
        turns
    }

    fn every(seconds: u64) -> Option<Grant> {
        Some(Grant::Every {
            interval: Duration::from_secs(seconds),
            term: Duration::from_secs(240),
        })
    }

    #[test]
    fn a_peer_with_its_own_clock_asks_nobody() {
        let mut turns = Turns::default();
        let clock = Clock::Own;
        turns.start(Spacing { clock, ..RING }, NOW);
        assert_eq!(turns.next(), NOW + DELAY);
        assert_eq!(turns.wish(9, NOW + DELAY), None);
    }

    #[test]
    fn the_first_request_is_free_and_the_next_is_slow_until_it_is_granted() {
        let mut turns = Turns::default();
        assert_eq!((turns.next(), turns.wish(1, NOW)), (Time::ZERO, None));
        turns.start(RING, NOW);
        assert_eq!(turns.next(), NOW + 30 * DELAY);
        assert_eq!(turns.wish(0, NOW), None, "nobody waits");
        assert_eq!(turns.wish(1, NOW), Some(Duration::from_secs(5)));
        assert_eq!(turns.wish(1, NOW), None, "it was asked");
        assert_eq!(turns.next(), NOW + 30 * DELAY);
        turns.granted(every(6), NOW);
        assert_eq!(turns.next(), NOW + 3 * DELAY);
    }

    #[test]
    fn many_hosts_want_all_that_the_address_may_give() {
        assert_eq!(started().wish(2, NOW), Some(Duration::from_millis(2500)));
        assert_eq!(started().wish(100, NOW), Some(DELAY));
    }

    #[test]
    fn a_clock_cannot_make_an_address_faster_than_its_delay() {
        let mut turns = started();
        turns.wish(1, NOW);
        turns.granted(every(0), NOW);
        assert_eq!(turns.next(), NOW + DELAY);
    }

    #[test]
    fn a_grant_is_renewed_in_the_middle_of_its_term_and_ends_with_the_question() {
        let mut turns = started();
        turns.wish(1, NOW);
        turns.granted(every(4), NOW);
        let (middle, end) = (
            NOW + Duration::from_secs(120),
            NOW + Duration::from_secs(240),
        );
        assert_eq!(turns.wish(1, middle - Duration::from_millis(1)), None);
        assert_eq!((turns.next(), turns.ends()), (NOW + 2 * DELAY, end));
        assert!(turns.wish(1, middle).is_some());
        assert_eq!(turns.next(), NOW + 30 * DELAY, "an answer may be lost");
        turns.granted(every(8), middle);
        assert_eq!(turns.next(), NOW + 4 * DELAY);
    }

    #[test]
    fn a_grant_that_was_not_renewed_is_worth_nothing() {
        let mut turns = started();
        turns.wish(1, NOW);
        turns.granted(every(4), NOW);
        let later = NOW + Duration::from_secs(240);
        turns.start(RING, later);
        assert_eq!(turns.next(), later + 30 * DELAY);
        assert!(turns.wish(1, later).is_some());
    }

    #[test]
    fn a_peer_that_has_to_wait_asks_nothing_and_then_again() {
        let mut turns = started();
        turns.wish(1, NOW);
        let wait = Duration::from_secs(100);
        turns.granted(Some(Grant::Wait(wait)), NOW);
        assert_eq!(turns.hoped(), NOW + wait);
        assert!(turns.next() > NOW + 10 * wait, "it is granted before");
        assert_eq!(turns.wish(1, NOW + wait / 2), None);
        assert!(turns.wish(1, NOW + wait).is_some());
    }

    #[test]
    fn a_clock_that_lies_silences_no_address() {
        let week = Duration::from_secs(7 * 24 * 3600);
        for grant in [Some(Grant::Wait(week)), every(week.as_secs())] {
            let mut turns = started();
            turns.wish(1, NOW);
            turns.granted(grant, NOW);
            assert_eq!(turns.next(), NOW + Duration::from_secs(3600));
        }
    }

    #[test]
    fn a_clock_that_does_not_answer_is_asked_again_and_the_address_slowly() {
        let mut turns = started();
        turns.wish(1, NOW);
        turns.granted(None, NOW);
        assert_eq!(turns.next(), NOW + 30 * DELAY);
        assert_eq!(turns.wish(1, NOW), None);
        assert!(turns.wish(1, NOW + 15 * DELAY).is_some());
    }

    #[test]
    fn an_answer_that_nobody_waits_for_changes_nothing() {
        let mut turns = started();
        turns.granted(every(2), NOW);
        assert_eq!(turns.next(), NOW + 30 * DELAY);
    }
}
