//! Bytes sent and received in a calendar month, for the monthly quota. Kept on disk.

use crate::Moment;
use serde::{Deserialize, Serialize};

/// The bytes of one month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MonthlyUsage {
    year: u32,
    month: u32,
    bytes: u64,
}

impl MonthlyUsage {
    /// Counts bytes; a new month begins at nothing. A clock that is set back does not bring an old
    /// month back.
    pub fn add(&mut self, bytes: u64, now: Moment) {
        let (year, month) = now.month();
        if (year, month) > (self.year, self.month) {
            *self = MonthlyUsage {
                year,
                month,
                bytes: 0,
            };
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Bytes of this month so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Time;

    #[test]
    fn a_new_month_begins_at_nothing_and_an_old_one_does_not_come_back() {
        let now = Moment::new(Time::from_millis(1_794_821_400_000), 0);
        let mut usage = MonthlyUsage::default();
        usage.add(5, now);
        usage.add(7, now);
        assert_eq!(usage.bytes(), 12);
        let next = now.at(now.next_month());
        usage.add(1, next);
        assert_eq!(usage.bytes(), 1);
        usage.add(2, now);
        assert_eq!(usage.bytes(), 3);
        let stored = serde_json::to_string(&usage).unwrap();
        assert_eq!(
            serde_json::from_str::<MonthlyUsage>(&stored).unwrap(),
            usage
        );
    }
}
