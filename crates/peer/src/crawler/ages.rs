//! How old the known pages are: how many are current, and how often they can be visited.
//!
//! A count goes round and round over the records on the disk, a few in each second. After each
//! round the visits of the next one are planned.

use super::{Crawler, admitter::AdmitError, revisiting::Revisiting};
use apoidea_crawl::{ChangeRate, RateCounts, SiteFreshness};
use apoidea_model::{Domain, Target, Time, UrlHash};
use apoidea_store::{Commit, PageRecord, PageStanding};

/// Pages whose age is looked at in one second, in turn.
const LOOKED_AT: usize = 64;
/// The days over which visits are counted, to plan as many.
const COUNTED_DAYS: u32 = 3;

/// Visits after the first that were made lately.
#[derive(Debug)]
pub(super) struct VisitsMade {
    in_a_day: Option<f64>,
    since: Time,
    count: f64,
}

/// How current the pages are: a count that goes round and round.
#[derive(Debug, Default)]
pub(super) struct AgeCount {
    after: Option<(Domain, UrlHash)>,
    pages: f64,
    /// Of the pages that this peer visits.
    rates: RateCounts,
    current: f64,
    /// The share of the last round.
    last: Option<f64>,
}

impl VisitsMade {
    pub(super) fn new(now: Time) -> Self {
        VisitsMade {
            in_a_day: None,
            since: now,
            count: 0.0,
        }
    }

    /// A visit was made.
    pub(super) fn note(&mut self) {
        self.count += 1.0;
    }
}

impl Revisiting {
    /// Plans as many visits as there were lately, for the pages that were counted.
    fn plan(&mut self, now: Time) {
        let day = self.days(1).as_secs_f64();
        let elapsed = now.since(self.made.since).as_secs_f64() / day;
        if elapsed <= 0.0 {
            return;
        }
        let lately = self.made.count / elapsed;
        let weight = 1.0 - (-elapsed / f64::from(COUNTED_DAYS)).exp();
        let usual = self.age.rates.pages() as f64 / (self.rule.mean().as_secs_f64() / day);
        let before = self.made.in_a_day.unwrap_or(usual);
        let in_a_day = before + weight * (lately - before);
        self.rule.plan(&self.age.rates, in_a_day);
        self.made = VisitsMade {
            in_a_day: Some(in_a_day),
            since: now,
            count: 0.0,
        };
    }

    /// The share of the known pages that are current, by what is known of them.
    pub(super) fn current(&self) -> Option<f64> {
        self.age.last
    }
}

impl Crawler {
    /// Looks at some more pages, to know how many are current. A page that was to wait longer by an
    /// older plan is due sooner by this one.
    pub(super) fn count_current(&mut self, now: Time) -> Result<(), AdmitError> {
        let after = self.revisiting.age.after.take();
        let after = after.as_ref().map(|(domain, url)| (domain, *url));
        let pages = self.parts.store.all_pages(after, LOOKED_AT)?;
        let is_last = pages.len() < LOOKED_AT;
        let mut site: Option<(Domain, SiteFreshness)> = None;
        let mut sooner = Commit::new();
        for (domain, record) in &pages {
            if site.as_ref().is_none_or(|(known, _)| known != domain) {
                site = Some((domain.clone(), self.freshness_of(domain)));
            }
            let Some((_, site)) = site.as_ref().filter(|_| record.target == Target::Page) else {
                continue;
            };
            let rate = ChangeRate::estimate(&record.history, site.changes.prior());
            let is_owned = !self.is_foreign(domain);
            if is_owned && let Some(due) = self.sooner(domain, record, site) {
                let moved = PageRecord {
                    due: Some(due.max(now)),
                    ..record.clone()
                };
                sooner.put_page(domain, &moved);
            }
            let age = &mut self.revisiting.age;
            age.pages += 1.0;
            if is_owned {
                age.rates.add(rate, site.hints.recall());
            }
            age.current += rate.still_current(now.since(record.visited));
        }
        if !sooner.is_empty() {
            self.parts.store.apply(&sooner)?;
        }
        let age = &mut self.revisiting.age;
        age.after = pages
            .last()
            .map(|(domain, page)| (domain.clone(), page.url.hash()));
        if is_last {
            age.last = (age.pages > 0.0).then(|| age.current / age.pages);
            self.revisiting.plan(now);
            self.revisiting.age = AgeCount {
                last: self.revisiting.age.last,
                ..AgeCount::default()
            };
        }
        Ok(())
    }

    /// The time of a page's next visit by the plan of now, if that is much sooner. Only a page that
    /// is in no queue is moved: nothing else changes its record meanwhile.
    fn sooner(&self, domain: &Domain, record: &PageRecord, site: &SiteFreshness) -> Option<Time> {
        let (planned, due) = (record.due?, self.revisiting.due(record, site));
        let is_much = planned.since(due) > due.since(record.visited) / 4;
        let is_movable = || self.is_in_order(domain, planned, record.url.hash());
        let is_there = record.standing == PageStanding::There;
        (is_there && is_much && is_movable()).then_some(due)
    }
}
