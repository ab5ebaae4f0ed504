//! How often a page changes, estimated from the few visits that it had.
//!
//! A page that was seen twice says little, so the estimate begins with that of its site (a prior of
//! three changes) and moves to the page's own. A visit finds at most one change, however many there
//! were since the last; the rate is corrected for those that stayed hidden (Cho and Garcia-Molina,
//! 2003).

use apoidea_model::{ChangeHistory, PageChange};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Changes that the prior counts as.
const PRIOR_CHANGES: f64 = 3.0;
/// A site of which nothing is known yet has seen one change in so many days.
const UNKNOWN_SITE_DAYS: f64 = 90.0;
/// Of more visits that found a change than this share, the rate cannot be told any more.
const MOST_SHARE: f64 = 0.95;
const DAY_SECONDS: f64 = 86_400.0;

/// Changes in a day.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct ChangeRate(f64);

/// The changes of all pages of a site together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SiteChanges {
    /// Visits that found a change.
    pub changes: u64,
    /// Hours between two visits, of all pages together.
    pub observed_hours: u64,
}

impl SiteChanges {
    /// Takes in one more visit of one page, so long after the last one.
    pub fn note(&mut self, change: PageChange, gap: Duration) {
        let hours = gap.as_secs().saturating_add(1800) / 3600;
        self.observed_hours = self.observed_hours.saturating_add(hours);
        if change == PageChange::Changed {
            self.changes = self.changes.saturating_add(1);
        }
    }

    /// Joins the sums of two replicas, whose visits are mostly the same ones.
    pub fn join(&mut self, other: &SiteChanges) {
        self.changes = self.changes.max(other.changes);
        self.observed_hours = self.observed_hours.max(other.observed_hours);
    }

    /// The rate of a page of this site of which nothing else is known.
    pub fn prior(&self) -> ChangeRate {
        let days = self.observed_hours as f64 / 24.0;
        ChangeRate((self.changes as f64 + 1.0) / (days + UNKNOWN_SITE_DAYS))
    }
}

impl ChangeRate {
    /// A rate that is known.
    pub fn per_day(changes: f64) -> Self {
        ChangeRate(changes.max(0.0))
    }

    /// The rate of a page with this history on a site with this prior.
    pub fn estimate(history: &ChangeHistory, prior: ChangeRate) -> Self {
        let days = f64::from(history.observed_seconds) / DAY_SECONDS;
        let seen = f64::from(history.changes);
        let rate = (seen + PRIOR_CHANGES) / (days + PRIOR_CHANGES / prior.0.max(f64::MIN_POSITIVE));
        let gaps = f64::from(history.visits.saturating_sub(1));
        ChangeRate(rate * hidden(seen / gaps.max(1.0)))
    }

    /// Changes in a day.
    pub fn in_a_day(self) -> f64 {
        self.0
    }

    /// The rate of the changes that nothing else tells of, where this share is told.
    pub fn untold(self, told: f64) -> Self {
        ChangeRate(self.0 * (1.0 - told.clamp(0.0, 1.0)))
    }

    /// The probability that a page has not changed for so long.
    pub fn still_current(self, since: Duration) -> f64 {
        (-self.0 * since.as_secs_f64() / DAY_SECONDS).exp()
    }
}

/// The changes for each change that was seen, when this share of the visits saw one.
fn hidden(share: f64) -> f64 {
    let share = share.clamp(0.0, MOST_SHARE);
    if share < 1e-6 {
        return 1.0;
    }
    -(1.0 - share).ln() / share
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u32 = 86_400;

    fn history(visits: u32, changes: u32, days: u32) -> ChangeHistory {
        ChangeHistory {
            visits,
            changes,
            observed_seconds: days * DAY,
            changed_after_seconds: 0,
        }
    }

    #[test]
    fn a_new_page_is_like_its_site_and_an_old_one_like_itself() {
        let site = SiteChanges {
            changes: 99,
            observed_hours: 24 * 910,
        };
        let prior = site.prior();
        assert!((prior.in_a_day() - 0.1).abs() < 1e-9);
        let new = ChangeRate::estimate(&ChangeHistory::FIRST, prior);
        assert!((new.in_a_day() - 0.1).abs() < 1e-9);
        let still = ChangeRate::estimate(&history(100, 0, 1000), prior);
        assert!(still.in_a_day() < 0.004, "{still:?}");
        let lively = ChangeRate::estimate(&history(101, 50, 100), prior);
        let own = 0.5 * hidden(0.5);
        assert!((lively.in_a_day() - own).abs() < 0.25 * own, "{lively:?}");
    }

    #[test]
    fn a_page_that_always_changed_has_a_rate_beyond_its_visits() {
        let prior = SiteChanges::default().prior();
        let always = ChangeRate::estimate(&history(101, 100, 1000), prior);
        assert!(always.in_a_day() > 0.25, "{always:?}");
        assert!(always.in_a_day().is_finite());
    }

    #[test]
    fn numbers_of_a_stranger_do_no_harm() {
        let most = ChangeHistory {
            visits: 0,
            changes: u32::MAX,
            observed_seconds: 0,
            changed_after_seconds: u32::MAX,
        };
        let mut site = SiteChanges {
            changes: u64::MAX,
            observed_hours: u64::MAX,
        };
        site.note(PageChange::Changed, Duration::MAX);
        for prior in [site.prior(), ChangeRate::per_day(-1.0)] {
            let rate = ChangeRate::estimate(&most, prior).in_a_day();
            assert!(rate.is_finite() && rate >= 0.0, "{rate}");
        }
    }

    #[test]
    fn a_page_is_less_likely_current_the_longer_ago_it_was_seen() {
        let rate = ChangeRate::per_day(0.1);
        assert_eq!(rate.still_current(Duration::ZERO), 1.0);
        let later = rate.still_current(Duration::from_secs(10 * u64::from(DAY)));
        assert!((later - (-1.0_f64).exp()).abs() < 1e-9);
        assert!(rate.untold(0.9).still_current(Duration::from_secs(864_000)) > 0.9);
    }
}
