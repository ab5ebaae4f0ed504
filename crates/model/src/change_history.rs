//! The changes that a page was seen to make: all that is kept of its visits, of a fixed size.

use crate::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The visits of a page in four numbers, enough to estimate its rate of change (Cho and
/// Garcia-Molina, 2003): visits, changes seen, and the time between the first and the last visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeHistory {
    /// Visits that told the page's content, the first included.
    pub visits: u32,
    /// Visits of which the content differed from that of the visit before.
    pub changes: u32,
    /// Seconds between the first and the last visit.
    pub observed_seconds: u32,
    /// Seconds between the first visit and the last change.
    pub changed_after_seconds: u32,
}

/// The content of a page at a visit, compared with the visit before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageChange {
    /// It differs.
    Changed,
    /// It is the same.
    Unchanged,
}

impl ChangeHistory {
    /// The history of a page that was visited once.
    pub const FIRST: ChangeHistory = ChangeHistory {
        visits: 1,
        changes: 0,
        observed_seconds: 0,
        changed_after_seconds: 0,
    };

    /// Takes in a visit at `now`, the last one having been at `last`.
    pub fn note(&mut self, change: PageChange, last: Time, now: Time) {
        let gap = u32::try_from(now.since(last).as_secs()).unwrap_or(u32::MAX);
        self.visits = self.visits.saturating_add(1);
        self.observed_seconds = self.observed_seconds.saturating_add(gap);
        if change == PageChange::Changed {
            self.changes = self.changes.saturating_add(1);
            self.changed_after_seconds = self.observed_seconds;
        }
    }

    /// The time for which the page has been observed.
    pub fn observed(&self) -> Duration {
        Duration::from_secs(self.observed_seconds.into())
    }

    /// Joins the histories of two replicas, whose visits are mostly the same ones: each number is
    /// the larger of the two, so the order of joining does not matter.
    pub fn join(&mut self, other: &ChangeHistory) {
        self.visits = self.visits.max(other.visits);
        self.changes = self.changes.max(other.changes);
        self.observed_seconds = self.observed_seconds.max(other.observed_seconds);
        self.changed_after_seconds = self.changed_after_seconds.max(other.changed_after_seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 3600;

    fn day(number: u64) -> Time {
        Time::from_millis(number * DAY * 1000)
    }

    #[test]
    fn a_history_counts_visits_changes_and_time() {
        let mut history = ChangeHistory::FIRST;
        history.note(PageChange::Unchanged, day(10), day(12));
        history.note(PageChange::Changed, day(12), day(15));
        history.note(PageChange::Unchanged, day(15), day(20));
        assert_eq!((history.visits, history.changes), (4, 1));
        assert_eq!(history.observed(), Duration::from_secs(10 * DAY));
        assert_eq!(u64::from(history.changed_after_seconds), 5 * DAY);
    }

    #[test]
    fn a_clock_that_goes_back_and_a_very_old_page_do_no_harm() {
        let mut history = ChangeHistory {
            visits: u32::MAX,
            ..ChangeHistory::FIRST
        };
        history.note(PageChange::Changed, day(10), day(9));
        assert_eq!(history.observed_seconds, 0);
        history.note(PageChange::Changed, Time::ZERO, Time::NEVER);
        history.note(PageChange::Changed, Time::ZERO, Time::NEVER);
        assert_eq!(history.observed_seconds, u32::MAX);
    }

    #[test]
    fn replicas_join_to_the_same_history_in_any_order() {
        let (mut a, mut b) = (ChangeHistory::FIRST, ChangeHistory::FIRST);
        a.note(PageChange::Changed, day(1), day(2));
        b.note(PageChange::Unchanged, day(1), day(5));
        let mut joined = a;
        joined.join(&b);
        b.join(&a);
        assert_eq!(joined, b);
        assert_eq!((joined.visits, joined.changes), (2, 1));
    }
}
