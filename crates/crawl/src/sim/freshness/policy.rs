//! The rules that are compared: when each of them comes back to a page.

use super::history::PageLife;
use crate::{Bounds, ChangeRate, RateCounts, Revisit, SiteChanges, revisit::due_after};
use apoidea_model::{ChangeHistory, PageChange, Time};
use std::time::Duration;

const DAY_SECONDS: f64 = 86_400.0;

/// A rule about coming back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// Every page equally often.
    Uniform,
    /// Nutch's adaptive schedule: 40 % later after a visit without news, 20 % sooner after one with.
    Nutch,
    /// StormCrawler's: half as late again, or half as late.
    StormCrawler,
    /// The rule of this program.
    Value,
    /// The same, with daily hints about some pages.
    Hinted {
        /// The share of the pages that hints speak of.
        share: f64,
        /// The share of their changes that the hints tell.
        recall: f64,
    },
    /// The best intervals for rates of change that are known beforehand.
    Known,
}

/// A rule at work, with what it has learned.
pub(super) struct Schedule {
    policy: Policy,
    rule: Revisit,
    site: SiteChanges,
    /// The stretch that keeps a rule with intervals of its own within its share.
    stretch: f64,
    mean_days: f64,
    pages: Vec<Learned>,
}

#[derive(Debug, Clone, Copy)]
struct Learned {
    history: ChangeHistory,
    /// The interval of rules that have one for each page, in days.
    interval: f64,
    hinted: bool,
}

impl Policy {
    /// The name in a table.
    pub fn name(&self) -> String {
        match self {
            Policy::Uniform => "uniform".to_owned(),
            Policy::Nutch => "Nutch".to_owned(),
            Policy::StormCrawler => "StormCrawler".to_owned(),
            Policy::Value => "ours".to_owned(),
            Policy::Hinted { share, .. } => format!("ours, hints for {:.0} %", share * 100.0),
            Policy::Known => "optimum".to_owned(),
        }
    }
}

impl Schedule {
    pub(super) fn new(policy: Policy, lives: &[PageLife], end: f64, mean_days: f64) -> Self {
        let known = match policy {
            Policy::Known => known_intervals(lives, end, mean_days),
            _ => vec![mean_days; lives.len()],
        };
        let learned = known
            .into_iter()
            .enumerate()
            .map(|(number, interval)| Learned {
                history: ChangeHistory::FIRST,
                interval,
                hinted: match policy {
                    Policy::Hinted { share, .. } => chance(number as u64) < share,
                    _ => false,
                },
            });
        Schedule {
            policy,
            rule: Revisit::new(Bounds::GLOBAL),
            site: SiteChanges::default(),
            stretch: 1.0,
            mean_days,
            pages: learned.collect(),
        }
    }

    /// The time at which a page is due that was visited at `last`, in days.
    pub(super) fn due(&self, page: usize, last: f64) -> f64 {
        let learned = &self.pages[page];
        let wait = match self.policy {
            Policy::Uniform => 0.0,
            Policy::Known => learned.interval,
            Policy::Nutch | Policy::StormCrawler => learned.interval * self.stretch,
            Policy::Value | Policy::Hinted { .. } => {
                let (rate, told) = (self.rate(learned), self.told(learned));
                self.rule.wait(rate, told, 1.0).as_secs_f64() / DAY_SECONDS
            }
        };
        last + wait
    }

    /// The least time between two visits, in days.
    pub(super) fn least(&self) -> f64 {
        match self.policy {
            Policy::Value | Policy::Hinted { .. } => 1.0,
            _ => 0.0,
        }
    }

    /// Whether pages may be visited before they are due, so that the whole budget is used.
    pub(super) fn pulls_ahead(&self) -> bool {
        self.policy != Policy::Known
    }

    pub(super) fn visited(&mut self, page: usize, change: PageChange, last: f64, now: f64) {
        let gap = Duration::from_secs_f64((now - last).max(0.0) * DAY_SECONDS);
        let (from, to) = (time(last), time(now));
        let learned = &mut self.pages[page];
        learned.history.note(change, from, to);
        self.site.note(change, gap);
        let factor = match (self.policy, change) {
            (Policy::Nutch, PageChange::Changed) => 0.8,
            (Policy::Nutch, PageChange::Unchanged) => 1.4,
            (Policy::StormCrawler, PageChange::Changed) => 0.5,
            (Policy::StormCrawler, PageChange::Unchanged) => 1.5,
            _ => 1.0,
        };
        // Within 100 times the mean, the span of Nutch's own bounds around its usual 30 days.
        let (least, most) = (0.01 * self.mean_days, 100.0 * self.mean_days);
        if self.policy != Policy::Known {
            learned.interval = (learned.interval * factor).clamp(least, most);
        }
    }

    /// Plans so many visits in a day for these pages. A rule with intervals of its own has them
    /// stretched.
    pub(super) fn plan(&mut self, known: &[usize], in_a_day: f64) {
        match self.policy {
            Policy::Value | Policy::Hinted { .. } => {
                let mut counts = RateCounts::default();
                for &page in known {
                    let learned = &self.pages[page];
                    counts.add(self.rate(learned), self.told(learned));
                }
                self.rule.plan(&counts, in_a_day);
            }
            Policy::Nutch | Policy::StormCrawler => {
                let visits: f64 = known
                    .iter()
                    .map(|&page| 1.0 / self.pages[page].interval)
                    .sum();
                self.stretch = visits / in_a_day;
            }
            Policy::Uniform | Policy::Known => {}
        }
    }

    fn rate(&self, learned: &Learned) -> ChangeRate {
        ChangeRate::estimate(&learned.history, self.site.prior())
    }

    /// Whether hints about a page are followed.
    pub(super) fn follows_hints(&self, page: usize) -> bool {
        let learned = &self.pages[page];
        learned.hinted && self.rule.is_worth_a_hint(self.rate(learned), 1.0)
    }

    /// Whether the daily hints tell of a change of a page, its `number`-th.
    pub(super) fn is_told(&self, page: usize, number: usize) -> bool {
        let learned = &self.pages[page];
        learned.hinted && chance((page as u64) << 20 | number as u64 | 1 << 63) < self.told(learned)
    }

    fn told(&self, learned: &Learned) -> f64 {
        match self.policy {
            Policy::Hinted { recall, .. } if learned.hinted => recall,
            _ => 0.0,
        }
    }
}

/// The intervals at which one more visit of any page is worth the same, for rates that are known.
fn known_intervals(lives: &[PageLife], end: f64, mean_days: f64) -> Vec<f64> {
    let rate = |life: &PageLife| {
        ChangeRate::per_day(life.changes.len() as f64 / (end - life.born).max(1.0))
    };
    let alive = |life: &PageLife| (end - life.born).max(0.0);
    let budget = lives.iter().map(alive).sum::<f64>() / mean_days;
    let intervals = |threshold: f64| {
        lives
            .iter()
            .map(move |life| due_after(rate(life), 0.0, threshold))
    };
    let visits = |threshold: f64| -> f64 {
        intervals(threshold)
            .zip(lives)
            .map(|(interval, life)| alive(life) / interval)
            .sum()
    };
    let (mut low, mut high) = (1e-6_f64, 1e6_f64);
    for _ in 0..80 {
        let middle = (low * high).sqrt();
        match visits(middle) > budget {
            true => low = middle,
            false => high = middle,
        }
    }
    intervals(high).collect()
}

/// A number from 0 to 1 that looks random.
fn chance(number: u64) -> f64 {
    super::super::draw(7, number) as f64 / u64::MAX as f64
}

fn time(days: f64) -> Time {
    Time::from_millis((days * DAY_SECONDS * 1000.0) as u64)
}
