//! What this peer gave, hour by hour, for a month.
//!
//! Kept by the hour in UTC, so that whoever shows it can draw the days of its own time zone. The
//! history remembers up to which totals it has counted: pages of a run that was cut off are counted
//! by the next one.

use crate::lock::lock;
use crate::{clock::now, report::status::Status};
use apoidea_model::Time;
use apoidea_store::{Commit, Store};
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::watch;

/// Thirty days, and the hours of today in every time zone.
const MAX_HOURS: usize = 31 * 24;
/// How often it is written down.
const SAVE_EVERY: Duration = Duration::from_secs(30);
const HISTORY_VALUE: &str = "history";
const MILLIS_PER_HOUR: u64 = 3_600_000;

/// One hour's work. Hours without any are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct Hour {
    /// When the hour began.
    pub at: Time,
    /// Pages fetched in it.
    pub pages: u64,
    /// Bytes received in it.
    pub bytes: u64,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Months {
    hours: VecDeque<Hour>,
    /// Totals counted so far; unknown before the first look.
    counted: Option<(u64, u64)>,
}

impl Months {
    fn note(&mut self, now: Time, pages: u64, bytes: u64) {
        let (before_pages, before_bytes) = self.counted.unwrap_or_default();
        self.counted = Some((pages, bytes));
        let (pages, bytes) = (
            pages.saturating_sub(before_pages),
            bytes.saturating_sub(before_bytes),
        );
        if pages == 0 && bytes == 0 {
            return;
        }
        let at = Time::from_millis(now.as_millis() / MILLIS_PER_HOUR * MILLIS_PER_HOUR);
        match self.hours.back_mut() {
            // A clock that was set back adds to the last hour.
            Some(last) if last.at >= at => {
                last.pages += pages;
                last.bytes += bytes;
            }
            _ => self.hours.push_back(Hour { at, pages, bytes }),
        }
        let oldest = now - Duration::from_secs(3600 * MAX_HOURS as u64);
        while self.hours.len() > MAX_HOURS
            || self.hours.front().is_some_and(|hour| hour.at < oldest)
        {
            self.hours.pop_front();
        }
    }
}

/// The history of a running peer; clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    months: Arc<Mutex<Months>>,
}

impl History {
    /// What the last run left.
    pub(crate) fn open(store: &Store) -> Self {
        let stored = store
            .value(HISTORY_VALUE)
            .ok()
            .flatten()
            .unwrap_or_default();
        let months = serde_json::from_slice(&stored).unwrap_or_default();
        History {
            months: Arc::new(Mutex::new(months)),
        }
    }

    /// The hours with work, oldest first.
    pub(crate) fn hours(&self) -> Vec<Hour> {
        self.lock().hours.iter().copied().collect()
    }

    /// Counts along with the status until the peer ends, and writes it down now and then.
    pub(crate) async fn follow(self, mut statuses: watch::Receiver<Status>, store: Store) {
        let mut save = tokio::time::interval(SAVE_EVERY);
        loop {
            tokio::select! {
                changed = statuses.changed() => {
                    if changed.is_err() {
                        return self.save(&store);
                    }
                    let status = statuses.borrow_and_update();
                    self.lock().note(now(), status.totals.pages, status.totals.bytes);
                }
                _ = save.tick() => self.save(&store),
            }
        }
    }

    fn save(&self, store: &Store) {
        let months = self.lock().clone();
        let Ok(bytes) = serde_json::to_vec(&months) else {
            return;
        };
        let mut commit = Commit::new();
        commit.set_value(HISTORY_VALUE, &bytes);
        if let Err(error) = store.apply(&commit) {
            tracing::warn!(%error, "the history was not written down");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Months> {
        lock(&self.months)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const NOON: Time = Time::from_millis(1_800_000_000_000 / MILLIS_PER_HOUR * MILLIS_PER_HOUR);

    #[test]
    fn pages_are_counted_in_the_hour_they_came() {
        let mut months = Months::default();
        months.note(NOON, 10, 1000);
        months.note(NOON + HOUR / 2, 15, 1500);
        months.note(NOON + HOUR, 15, 1500);
        months.note(NOON + 2 * HOUR, 16, 1600);
        let expected = [
            Hour {
                at: NOON,
                pages: 15,
                bytes: 1500,
            },
            Hour {
                at: NOON + 2 * HOUR,
                pages: 1,
                bytes: 100,
            },
        ];
        assert_eq!(Vec::from(months.hours), expected);
    }

    #[test]
    fn what_a_run_that_was_cut_off_left_uncounted_is_counted_by_the_next() {
        let mut months = Months::default();
        months.note(NOON, 10, 1000);
        let stored = serde_json::to_vec(&months).unwrap();
        let mut next: Months = serde_json::from_slice(&stored).unwrap();
        next.note(NOON + HOUR, 30, 3000);
        assert_eq!(next.hours.iter().map(|hour| hour.pages).sum::<u64>(), 30);
    }

    #[test]
    fn a_month_is_kept_and_no_more() {
        let mut months = Months::default();
        for hour in 0..2000 {
            months.note(NOON + hour * HOUR, u64::from(hour) + 1, 0);
        }
        assert_eq!(months.hours.len(), MAX_HOURS);
        months.note(NOON + 5000 * HOUR, 9000, 0);
        assert_eq!(months.hours.len(), 1);
    }

    #[test]
    fn a_clock_set_back_loses_nothing() {
        let mut months = Months::default();
        months.note(NOON, 10, 0);
        months.note(NOON - 3 * HOUR, 20, 0);
        assert_eq!(
            Vec::from(months.hours),
            [Hour {
                at: NOON,
                pages: 20,
                bytes: 0
            }]
        );
    }
}
