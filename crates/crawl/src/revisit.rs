//! When a page that was fetched is fetched again, and whether its content is news.
//!
//! A URL enters its queue for two reasons: a link that was never seen is admitted for its first
//! visit ([`crate::Admission`], which drops seen URLs for good), and the rule here asks for another
//! visit. Nothing else fetches a page twice on purpose.
//!
//! The value of a visit is the time for which the page becomes current by it. It grows with the
//! time since the last one. A page is due when it reaches the peer's threshold, which is the same
//! for all its pages, so that no visit is spent where another one is worth more (Cho and
//! Garcia-Molina 2003, Azar et al. 2018). A page that changes all the time is never worth a visit by
//! this rule, and one of a site that was quiet hardly ever; so none waits longer than three times
//! the mean.

use crate::ChangeRate;
use apoidea_model::{ContentHash, PageUrl, Time, Visit};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
/// The time between two visits before any was made, in days.
const FIRST_MEAN_DAYS: f64 = 30.0;
/// The value at which a page of an unknown site is due after [`FIRST_MEAN_DAYS`], in days.
const FIRST_THRESHOLD_DAYS: f64 = 4.0;
/// No page waits for longer than this many times the mean.
const LONGEST_OF_MEAN: f64 = 3.0;
/// The threshold stays within what means something: a minute and a thousand years.
const THRESHOLD_DAYS: (f64, f64) = (1.0 / 1440.0, 365_000.0);
/// Classes of rates of change, four to an octave.
const CLASSES: usize = 80;
/// The rate of the first class, in changes a day: one in 270 years.
const FIRST_CLASS: f64 = 1e-5;
/// Halvings in the search for the threshold.
const HALVINGS: usize = 40;

/// Bounds on the time between two visits of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// No page is fetched again sooner.
    pub least: Duration,
    /// Every page is fetched again by then.
    pub most: Duration,
}

/// The rule about visiting pages again, as it stands at one peer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Revisit {
    bounds: Bounds,
    /// The value of a visit that is worth it, in days.
    threshold: f64,
    /// The mean time between two visits of a page, in days.
    mean: f64,
}

/// How many pages change how often, roughly.
#[derive(Debug, Clone, PartialEq)]
pub struct RateCounts {
    /// Pages of whose changes nothing tells.
    untold: [u64; CLASSES],
    /// Pages of whose changes hints tell a share, and the sum of these shares.
    told: [(u64, f64); CLASSES],
}

impl Default for RateCounts {
    fn default() -> Self {
        RateCounts {
            untold: [0; CLASSES],
            told: [(0, 0.0); CLASSES],
        }
    }
}

impl RateCounts {
    /// Counts a page that changes so often, and of whose changes hints tell this share.
    pub fn add(&mut self, rate: ChangeRate, told: f64) {
        let class = 4.0 * (rate.in_a_day() / FIRST_CLASS).log2();
        // A rate of zero is of the first class.
        let class = class.clamp(0.0, (CLASSES - 1) as f64).round() as usize;
        match told > 0.0 {
            false => self.untold[class] += 1,
            true => {
                let (pages, shares) = &mut self.told[class];
                (*pages, *shares) = (*pages + 1, *shares + told.min(1.0));
            }
        }
    }

    /// All pages.
    pub fn pages(&self) -> u64 {
        let told = self.told.iter().map(|(pages, _)| pages);
        self.untold.iter().chain(told).sum()
    }

    /// The rate of each class, its pages, and the share of their changes that is told.
    fn rates(&self) -> impl Iterator<Item = (ChangeRate, f64, f64)> {
        let rate =
            |class: usize| ChangeRate::per_day(FIRST_CLASS * 2.0_f64.powf(class as f64 / 4.0));
        let untold = self.untold.iter().map(|pages| (*pages as f64, 0.0));
        let told = self.told.iter();
        let told = told.map(|(pages, shares)| (*pages as f64, shares / (*pages as f64).max(1.0)));
        let all = untold.enumerate().chain(told.enumerate());
        let filled = all.filter(|(_, (pages, _))| *pages > 0.0);
        filled.map(move |(class, (pages, told))| (rate(class), pages, told))
    }
}

/// The content of a page, compared with what is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Novelty<Original> {
    /// Nobody had it before: it is archived in full and its links are followed.
    New,
    /// Another page had it first: a revisit record names that page.
    Duplicate(Original),
    /// The page had it at its last visit: a revisit record names that visit.
    Unchanged,
}

impl Bounds {
    /// For pages on the Internet (good-citizen contract).
    pub const GLOBAL: Bounds = Bounds {
        least: DAY,
        most: Duration::from_secs(180 * 86_400),
    };

    /// The days of a time that is measured in this scale: where the longest time between two visits
    /// is shorter than half a year, everything is.
    fn day(&self) -> f64 {
        let most = self.most.min(Bounds::GLOBAL.most);
        (most.as_secs_f64() / 180.0).max(1e-6)
    }
}

impl Revisit {
    /// The rule of a peer that has made no visits yet.
    pub fn new(bounds: Bounds) -> Self {
        Revisit {
            bounds,
            threshold: FIRST_THRESHOLD_DAYS,
            mean: FIRST_MEAN_DAYS,
        }
    }

    /// The wait between two visits of a page that changes so often, and of whose changes hints tell
    /// a share. `weight` is its importance, 1 for an ordinary page.
    pub fn wait(&self, rate: ChangeRate, told: f64, weight: f64) -> Duration {
        let longest = LONGEST_OF_MEAN * self.mean;
        let threshold = self.threshold / weight.max(1e-6);
        let days = due_after(rate, told, threshold).min(longest);
        let wait = Duration::from_secs_f64((days * self.bounds.day()).min(1e9));
        wait.clamp(self.bounds.least, self.bounds.most)
    }

    /// Is a visit of a page worth it that has certainly changed? Not if it would be old again soon:
    /// pages that change all the time, and say so, would take the visits of all others.
    pub fn is_worth_a_hint(&self, rate: ChangeRate, weight: f64) -> bool {
        is_worth(rate, self.threshold / weight.max(1e-6))
    }

    /// Sets the threshold so that these pages have so many visits in a day. A search, not a
    /// feedback: a visit shows its effect only when its page is due again.
    pub fn plan(&mut self, pages: &RateCounts, visits_in_a_day: f64) {
        let count = pages.pages() as f64;
        if count == 0.0 || visits_in_a_day <= 0.0 {
            return;
        }
        let day = self.bounds.day();
        let least = self.bounds.least.as_secs_f64() / day;
        let most = self.bounds.most.as_secs_f64() / day;
        self.mean = (count / visits_in_a_day).clamp(least, most);
        let longest = (LONGEST_OF_MEAN * self.mean).min(most);
        let visits = |threshold: f64| -> f64 {
            let each = |(rate, pages, told): (ChangeRate, f64, f64)| {
                let wait = due_after(rate, told, threshold).min(longest).max(least);
                let told = match is_worth(rate, threshold) {
                    true => told * rate.in_a_day(),
                    false => 0.0,
                };
                pages / until_told(told, wait).max(least)
            };
            pages.rates().map(each).sum()
        };
        let (mut low, mut high) = THRESHOLD_DAYS;
        for _ in 0..HALVINGS {
            let middle = (low * high).sqrt();
            match visits(middle) > visits_in_a_day {
                true => low = middle,
                false => high = middle,
            }
        }
        self.threshold = high;
    }

    /// The earliest time for another visit of a page that was fetched at `last`, whatever there is
    /// to hope for.
    pub fn not_before(&self, last: Time) -> Time {
        last + self.bounds.least
    }

    /// The threshold, in days of currency that a visit has to gain.
    pub fn threshold_days(&self) -> f64 {
        self.threshold
    }

    /// The mean time between two visits of a page.
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.mean * self.bounds.day())
    }

    /// The bounds between two visits.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The rule as the last run left it.
    pub fn restored(bounds: Bounds, threshold_days: f64, mean: Duration) -> Self {
        let (least, most) = THRESHOLD_DAYS;
        let mut rule = Revisit::new(bounds);
        if threshold_days.is_finite() && mean > Duration::ZERO {
            rule.threshold = threshold_days.clamp(least, most);
            rule.mean = mean.as_secs_f64() / bounds.day();
        }
        rule
    }
}

/// Is the time for which a page is current after a visit, at most, worth the threshold?
fn is_worth(rate: ChangeRate, threshold: f64) -> bool {
    rate.in_a_day() * threshold < 1.0
}

/// The days after which a visit is worth the threshold, unless a hint has brought one before:
/// `F − e^(−uτ)·L` has reached it. `F` is the mean time for which the page is current after a
/// visit, `L` the mean time until the next one, `u` the rate of the changes that nothing tells.
/// Without hints that is `(1 − e^(−λτ)(1+λτ))/λ`. Infinite if it never is.
pub(crate) fn due_after(rate: ChangeRate, told: f64, threshold: f64) -> f64 {
    if rate.in_a_day() <= 0.0 || !is_worth(rate, threshold) {
        return f64::INFINITY;
    }
    let untold = rate.untold(told).in_a_day();
    let told = rate.in_a_day() - untold;
    if untold <= 0.0 {
        return f64::INFINITY;
    }
    // For small times the value is uτ²/2, and never more: the search begins below the answer.
    let mut days = (2.0 * threshold / untold).sqrt();
    for _ in 0..60 {
        let is_current = (-untold * days).exp();
        let until_told = until_told(told, days);
        let value = until_told_or_changed(rate, days) - is_current * until_told;
        let step = (threshold - value) / (untold * is_current * until_told).max(1e-12);
        // Far out the value hardly grows, and a step would lead into nothing.
        let step = step.clamp(-0.5 * days, 2.0 * days);
        days += step;
        if step.abs() < 1e-9 * days {
            break;
        }
    }
    days
}

/// The mean time to the next visit, in days: one after so many, or sooner when a change is told.
fn until_told(told_in_a_day: f64, days: f64) -> f64 {
    let hints = told_in_a_day * days;
    match hints > 1e-6 {
        // Exact for small numbers as well.
        true if days.is_finite() => -(-hints).exp_m1() / told_in_a_day,
        true => 1.0 / told_in_a_day,
        false => days,
    }
}

/// The mean time for which a page is current within so many days after a visit.
fn until_told_or_changed(rate: ChangeRate, days: f64) -> f64 {
    -(-rate.in_a_day() * days).exp_m1() / rate.in_a_day()
}

impl<Original> Novelty<Original> {
    /// Compares the content that a visit brought with the last visit and with the page that had
    /// this content first, if one had.
    ///
    /// A page that had its content first itself is new unless the last visit brought the same: its
    /// first fetch may have been lost in a crash before it was archived.
    pub fn of(
        page: &PageUrl,
        visit: &Visit,
        content: &ContentHash,
        first: Option<(&PageUrl, Original)>,
    ) -> Self {
        if visit
            .previous()
            .is_some_and(|last| last.content.is_of(content))
        {
            return Novelty::Unchanged;
        }
        match first {
            Some((owner, original)) if owner != page => Novelty::Duplicate(original),
            _ => Novelty::New,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::{ContentMark, PreviousVisit, Validators};

    fn url(text: &str) -> PageUrl {
        PageUrl::parse(text).unwrap()
    }

    fn again(content: &[u8]) -> Visit {
        Visit::again(PreviousVisit {
            since: Time::from_millis(1),
            captured: None,
            validators: Validators::default(),
            content: ContentMark::of(&ContentHash::of_body(content)),
        })
    }

    fn days(wait: Duration) -> f64 {
        wait.as_secs_f64() / 86_400.0
    }

    fn value(rate: f64, days: f64) -> f64 {
        (1.0 - (-rate * days).exp() * (1.0 + rate * days)) / rate
    }

    #[test]
    fn a_page_whose_changes_are_told_waits_longer_but_not_for_ever() {
        let rate = ChangeRate::per_day(0.1);
        let waits = [0.0, 0.3, 0.6, 0.9].map(|told| due_after(rate, told, 1.0));
        assert!(waits.is_sorted(), "{waits:?}");
        assert!(waits.iter().all(|days| days.is_finite()), "{waits:?}");
        assert_eq!(due_after(rate, 1.0, 1.0), f64::INFINITY, "hints tell all");
    }

    #[test]
    fn a_page_is_due_when_a_visit_is_worth_the_threshold() {
        for rate in [0.001, 0.01, 0.1, 0.24] {
            for threshold in [0.1, 1.0, 4.0] {
                let after = due_after(ChangeRate::per_day(rate), 0.0, threshold);
                assert!(
                    (value(rate, after) - threshold).abs() < 1e-6,
                    "{rate} {threshold}"
                );
            }
        }
        let due_after = |rate| due_after(ChangeRate::per_day(rate), 0.0, 4.0);
        assert_eq!(due_after(0.25), f64::INFINITY, "it would be old at once");
        assert_eq!(due_after(0.0), f64::INFINITY);
    }

    #[test]
    fn no_page_is_visited_sooner_than_in_a_day_or_later_than_in_half_a_year() {
        let mut rule = Revisit::new(Bounds::GLOBAL);
        assert!((days(rule.wait(ChangeRate::per_day(1.0 / 90.0), 0.0, 1.0)) - 30.0).abs() < 1.0);
        assert_eq!(
            days(rule.wait(ChangeRate::per_day(5.0), 0.0, 1.0)),
            90.0,
            "three times the mean"
        );
        assert_eq!(days(rule.wait(ChangeRate::per_day(0.0), 0.0, 1.0)), 90.0);
        rule.mean = 1000.0;
        assert_eq!(days(rule.wait(ChangeRate::per_day(0.0), 0.0, 1.0)), 180.0);
        rule.threshold = THRESHOLD_DAYS.0;
        assert_eq!(days(rule.wait(ChangeRate::per_day(0.2), 0.0, 1.0)), 1.0);
    }

    #[test]
    fn an_important_page_is_visited_sooner() {
        let rule = Revisit::new(Bounds::GLOBAL);
        let rate = ChangeRate::per_day(0.02);
        assert!(rule.wait(rate, 0.0, 2.0) < rule.wait(rate, 0.0, 1.0));
    }

    #[test]
    fn a_plan_spends_the_visits_that_there_are() {
        let rates = [0.0, 0.001, 0.004, 0.01, 0.03, 0.1, 0.5, 3.0].map(ChangeRate::per_day);
        let mut pages = RateCounts::default();
        (0..800).for_each(|page| pages.add(rates[page % rates.len()], 0.0));
        assert_eq!(pages.pages(), 800);
        for in_a_day in [20.0, 80.0, 160.0] {
            let mut rule = Revisit::new(Bounds::GLOBAL);
            rule.plan(&pages, in_a_day);
            let visits = |rate: &ChangeRate| 100.0 / days(rule.wait(*rate, 0.0, 1.0));
            let all: f64 = rates.iter().map(visits).sum();
            assert!(
                (0.8..1.2).contains(&(all / in_a_day)),
                "{all} of {in_a_day}"
            );
            assert_eq!(days(rule.mean()), 800.0 / in_a_day);
        }
        let mut rule = Revisit::new(Bounds::GLOBAL);
        rule.plan(&pages, 1e9);
        assert_eq!(
            days(rule.wait(rates[5], 0.0, 1.0)),
            1.0,
            "there is time for everything"
        );
        let before = rule;
        rule.plan(&RateCounts::default(), 5.0);
        rule.plan(&pages, 0.0);
        assert_eq!(rule, before, "nothing to plan");
    }

    #[test]
    fn quick_pages_that_tell_of_every_change_do_not_take_the_visits_of_all_others() {
        let (quick, slow) = (ChangeRate::per_day(0.5), ChangeRate::per_day(0.005));
        let mut pages = RateCounts::default();
        (0..500).for_each(|_| pages.add(quick, 0.9));
        (0..500).for_each(|_| pages.add(slow, 0.0));
        let mut rule = Revisit::new(Bounds::GLOBAL);
        rule.plan(&pages, 1000.0 / 30.0);
        assert!(!rule.is_worth_a_hint(quick, 1.0) && rule.is_worth_a_hint(slow, 1.0));
        // At the threshold that leaves the hints out a slow page is due after 31 days, not 90.
        assert!(days(rule.wait(slow, 0.0, 1.0)) < 35.0, "{rule:?}");
        assert!(days(rule.wait(quick, 0.9, 1.0)) > 80.0, "{rule:?}");
        rule.plan(&pages, 1000.0);
        assert!(rule.is_worth_a_hint(quick, 1.0), "there is time for both");
    }

    #[test]
    fn a_rule_in_small_is_the_rule_in_large() {
        let small = Bounds {
            least: Duration::from_millis(500),
            most: Duration::from_secs(90),
        };
        let rate = ChangeRate::per_day(1.0 / 90.0);
        let large = days(Revisit::new(Bounds::GLOBAL).wait(rate, 0.0, 1.0));
        let wait = Revisit::new(small).wait(rate, 0.0, 1.0).as_secs_f64();
        assert!((wait * 2.0 - large).abs() < 1e-3, "{wait} {large}");
    }

    #[test]
    fn content_is_new_a_duplicate_or_unchanged() {
        let (here, there) = (url("http://a.example/"), url("http://b.example/"));
        let content = ContentHash::of_body(b"x");
        let novelty = |visit: &Visit, first| Novelty::of(&here, visit, &content, first);
        assert_eq!(novelty(&Visit::First, None), Novelty::New);
        assert_eq!(novelty(&again(b"y"), None), Novelty::New);
        let duplicate = Novelty::Duplicate(7);
        assert_eq!(novelty(&Visit::First, Some((&there, 7))), duplicate);
        assert_eq!(novelty(&again(b"y"), Some((&there, 7))), duplicate);
        assert_eq!(novelty(&again(b"x"), Some((&there, 7))), Novelty::Unchanged);
        assert_eq!(novelty(&again(b"x"), Some((&here, 7))), Novelty::Unchanged);
    }

    #[test]
    fn a_page_fetched_again_after_a_crash_is_not_its_own_duplicate() {
        let here = url("http://a.example/");
        let content = ContentHash::of_body(b"x");
        let first = Some((&here, ()));
        assert_eq!(
            Novelty::of(&here, &Visit::First, &content, first),
            Novelty::New
        );
    }
}
