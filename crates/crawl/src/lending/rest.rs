//! The time for which a helper that turned a fetch away is not asked again.

use apoidea_model::Time;
use std::time::Duration;

/// The first rest. Each rest after that is twice as long, until the helper returns a result: a
/// helper that was busy for a moment is soon asked again, and one that is busy for long is not
/// bothered.
const FIRST_REST: Duration = Duration::from_millis(100);
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_millis(1600);

/// The rest of one helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rest {
    since: Time,
    length: Duration,
}

impl Rest {
    /// The rest that begins now, after the one before.
    pub(super) fn after(before: Option<Rest>, now: Time) -> Self {
        let length = before.map_or(FIRST_REST, |rest| (2 * rest.length).min(LONGEST_REST));
        Rest { since: now, length }
    }

    /// Is the helper left alone? A clock that was set back ends the rest.
    pub(super) fn lasts(&self, now: Time) -> bool {
        lasts(self.since, self.length, now)
    }

    /// Is the rest so long over that it says nothing about the helper any more?
    pub(super) fn is_forgotten(&self, now: Time) -> bool {
        now.since(self.since) > self.length + LONGEST_REST
    }
}

/// Does a time of this length, begun `since`, last? Not where the clock was set back meanwhile.
pub(super) fn lasts(since: Time, length: Duration, now: Time) -> bool {
    since <= now && now.since(since) < length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rest_is_twice_as_long_up_to_the_longest() {
        let mut rests = vec![Rest::after(None, Time::ZERO)];
        for _ in 0..5 {
            let last = rests[rests.len() - 1];
            rests.push(Rest::after(Some(last), last.since + last.length));
        }
        let lengths: Vec<u128> = rests.iter().map(|rest| rest.length.as_millis()).collect();
        assert_eq!(lengths, [100, 200, 400, 800, 1600, 1600]);
    }

    #[test]
    fn a_rest_ends_in_time_and_is_forgotten_later() {
        let begin = Time::from_millis(5000);
        let rest = Rest::after(None, begin);
        let at = |millis| begin + Duration::from_millis(millis);
        assert!(rest.lasts(begin) && rest.lasts(at(99)) && !rest.lasts(at(100)));
        assert!(!rest.is_forgotten(at(1700)) && rest.is_forgotten(at(1701)));
    }

    #[test]
    fn a_clock_that_was_set_back_ends_a_rest() {
        let rest = Rest::after(None, Time::from_millis(5000));
        assert!(!rest.lasts(Time::from_millis(4000)));
    }
}
