//! All that is learned about one host by visiting its pages again: how often they change, whether
//! its validators and its hints can be trusted, and whether a visit is worth the trouble now.

use crate::SiteChanges;
use apoidea_model::{PageChange, Time, Validators};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One conditional request in so many goes without its conditions, to see whether they are answered
/// honestly.
const PROBE_EVERY: u32 = 50;
/// Pages that are looked at before the others of a host: if none has changed, the others wait.
const SAMPLE: usize = 5;
/// The share of the due pages of a large host that the sample is.
const SAMPLE_SHARE: usize = 20;
/// Hints that are followed before they have to prove themselves.
const TRIAL_HINTS: u32 = 8;
/// The share of the hints that have to be right.
const LEAST_PRECISION: f64 = 0.5;

/// What is learned about one host by visiting its pages again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SiteFreshness {
    /// The changes of its pages.
    pub changes: SiteChanges,
    /// Its hints.
    pub hints: HintRecord,
    /// Requests that could be made conditional.
    conditional: u32,
    /// Its validators are not believed until then.
    distrusted_until: Time,
    /// Visits in a row that found no change.
    quiet: u32,
}

/// How well a host's own lists tell which pages have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HintRecord {
    /// Pages that were visited since a list said that they have changed.
    pub told: u32,
    /// Of these, pages that had changed.
    pub right: u32,
    /// Changes that no list told.
    pub missed: u32,
}

impl SiteFreshness {
    /// The conditions for the next request: those of the last visit, or none.
    pub fn conditions(&mut self, known: &Validators, now: Time) -> Validators {
        if known.is_empty() || !self.believes_validators(now) {
            return Validators::default();
        }
        self.conditional = self.conditional.wrapping_add(1);
        if self.conditional.is_multiple_of(PROBE_EVERY) {
            return Validators::default();
        }
        known.clone()
    }

    /// Are its validators believed?
    pub fn believes_validators(&self, now: Time) -> bool {
        now >= self.distrusted_until
    }

    /// Its validators named a page unchanged that had changed.
    pub fn note_lie(&mut self, now: Time, distrust: Duration) {
        self.distrusted_until = self.distrusted_until.max(now + distrust);
    }

    /// Takes in a visit of a page, so long after the last one.
    pub fn note_visit(&mut self, change: PageChange, gap: Duration) {
        self.changes.note(change, gap);
        self.quiet = match change {
            PageChange::Changed => 0,
            PageChange::Unchanged => self.quiet.saturating_add(1),
        };
    }

    /// Has a sample of the pages shown that nothing is new? `due` is the number of pages that wait
    /// for a visit, as far as they were counted.
    pub fn is_quiet(&self, due: usize) -> bool {
        self.quiet as usize >= Self::sample(due)
    }

    /// The pages to look at before all others.
    pub fn sample(due: usize) -> usize {
        SAMPLE.max(due / SAMPLE_SHARE)
    }

    /// The others wait for a while; then another sample is taken.
    pub fn begin_sample(&mut self) {
        self.quiet = 0;
    }

    /// Joins what two replicas have learned.
    pub fn join(&mut self, other: &SiteFreshness) {
        self.changes.join(&other.changes);
        self.hints.join(&other.hints);
        self.conditional = self.conditional.max(other.conditional);
        self.distrusted_until = self.distrusted_until.max(other.distrusted_until);
    }

    /// Brings the times of a stranger back into bounds.
    pub fn bound(&mut self, now: Time, distrust: Duration) {
        self.distrusted_until = self.distrusted_until.min(now + distrust);
    }
}

impl HintRecord {
    /// A page was visited, and a list had said that it has changed, or not.
    pub fn note(&mut self, was_told: bool, change: PageChange) {
        let has_changed = change == PageChange::Changed;
        self.told = self.told.saturating_add(u32::from(was_told));
        self.right = self
            .right
            .saturating_add(u32::from(was_told && has_changed));
        self.missed = self
            .missed
            .saturating_add(u32::from(!was_told && has_changed));
    }

    /// The share of the hints that were right.
    pub fn precision(&self) -> f64 {
        f64::from(self.right) / f64::from(self.told.max(1))
    }

    /// Are the hints followed? A few are before they have to prove themselves.
    pub fn is_trusted(&self) -> bool {
        self.told < TRIAL_HINTS || self.precision() > LEAST_PRECISION
    }

    /// The share of the changes that the hints tell; zero unless they proved themselves.
    pub fn recall(&self) -> f64 {
        if self.told < TRIAL_HINTS || self.precision() <= LEAST_PRECISION {
            return 0.0;
        }
        let right = f64::from(self.right);
        // As if two more had been missed, so that none is believed to tell everything.
        right / (right + f64::from(self.missed) + 2.0)
    }

    fn join(&mut self, other: &HintRecord) {
        self.told = self.told.max(other.told);
        self.right = self.right.max(other.right);
        self.missed = self.missed.max(other.missed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_700_000_000_000);
    const DAY: Duration = Duration::from_secs(86_400);

    fn tag() -> Validators {
        Validators::read(Some(b"\"x\""), None)
    }

    #[test]
    fn one_conditional_request_in_fifty_goes_without_conditions() {
        let mut site = SiteFreshness::default();
        let plain = |site: &mut SiteFreshness| site.conditions(&tag(), NOW).is_empty();
        let asked: Vec<usize> = (1..=150).filter(|_| plain(&mut site)).collect();
        assert_eq!(asked.len(), 3);
        assert!(site.conditions(&Validators::default(), NOW).is_empty());
    }

    #[test]
    fn a_liar_is_not_believed_for_a_while() {
        let mut site = SiteFreshness::default();
        site.note_lie(NOW, 90 * DAY);
        assert!(site.conditions(&tag(), NOW + 89 * DAY).is_empty());
        assert!(!site.conditions(&tag(), NOW + 90 * DAY).is_empty());
        site.bound(NOW, DAY);
        assert!(site.believes_validators(NOW + DAY));
    }

    #[test]
    fn a_host_is_quiet_when_its_sample_has_not_changed() {
        let mut site = SiteFreshness::default();
        (0..4).for_each(|_| site.note_visit(PageChange::Unchanged, DAY));
        assert!(!site.is_quiet(9));
        site.note_visit(PageChange::Unchanged, DAY);
        assert!(site.is_quiet(9) && !site.is_quiet(1000));
        site.note_visit(PageChange::Changed, DAY);
        assert!(!site.is_quiet(9));
        assert_eq!(site.changes.changes, 1);
    }

    #[test]
    fn hints_have_to_be_right_more_often_than_not() {
        let mut hints = HintRecord::default();
        assert!(hints.is_trusted());
        (0..8).for_each(|_| hints.note(true, PageChange::Unchanged));
        assert!(!hints.is_trusted());
        assert_eq!(hints.recall(), 0.0);
        (0..40).for_each(|_| hints.note(true, PageChange::Changed));
        (0..10).for_each(|_| hints.note(false, PageChange::Changed));
        assert!(hints.is_trusted());
        assert!((0.7..0.8).contains(&hints.recall()), "{}", hints.recall());
    }
}
