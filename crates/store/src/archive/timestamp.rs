//! Moments as WARC files and their indexes spell them, in UTC.

use apoidea_model::Time;
use std::fmt;

const DAY_SECONDS: u64 = 86_400;

/// A moment split into the fields of a date; seconds are the finest unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamp {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

/// Reads a moment such as `2026-01-31T23:59:59Z` or `20260131235959`.
pub fn parse_time(text: &str) -> Option<Time> {
    Timestamp::parse(text).map(Time::from)
}

impl Timestamp {
    /// Fourteen digits, as in CDX indexes and file names.
    pub(crate) fn digits(self) -> String {
        let Timestamp {
            year,
            month,
            day,
            hour,
            minute,
            second,
        } = self;
        format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
    }

    /// Reads either spelling, with or without fractions of a second.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let whole = text.split('.').next()?;
        let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
        if digits.len() != 14 || whole.len() > "2026-01-01T00:00:00Z".len() {
            return None;
        }
        let field = |from: usize, to: usize| digits[from..to].parse().ok();
        let stamp = Timestamp {
            year: field(0, 4)?,
            month: field(4, 6)?,
            day: field(6, 8)?,
            hour: field(8, 10)?,
            minute: field(10, 12)?,
            second: field(12, 14)?,
        };
        (Timestamp::from(Time::from(stamp)) == stamp).then_some(stamp)
    }

    /// Days since the epoch; the algorithm is Howard Hinnant's `days_from_civil`, with years that
    /// begin in March.
    fn days(self) -> u64 {
        let year = if self.month <= 2 {
            self.year.saturating_sub(1)
        } else {
            self.year
        };
        let (era, year_of_era) = (year / 400, year % 400);
        let day_of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day.saturating_sub(1);
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        (era * 146_097 + day_of_era).saturating_sub(719_468)
    }
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Self {
        let seconds = time.as_millis() / 1000;
        let days = seconds / DAY_SECONDS + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        Timestamp {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            hour: seconds / 3600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
        }
    }
}

impl From<Timestamp> for Time {
    fn from(stamp: Timestamp) -> Self {
        let seconds =
            stamp.days() * DAY_SECONDS + stamp.hour * 3600 + stamp.minute * 60 + stamp.second;
        Time::from_millis(seconds * 1000)
    }
}

/// As in `WARC-Date`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timestamp {
            year,
            month,
            day,
            hour,
            minute,
            second,
        } = self;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_have_their_known_names() {
        for (seconds, name) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let time = Time::from_millis(seconds * 1000);
            let stamp = Timestamp::from(time);
            assert_eq!(stamp.to_string(), name);
            assert_eq!(Timestamp::parse(name), Some(stamp));
            assert_eq!(Timestamp::parse(&stamp.digits()), Some(stamp));
            assert_eq!(Time::from(stamp), time);
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for bad in [
            "",
            "2024",
            "2024-02-30T00:00:00Z",
            "20240101250000",
            "x2024010100000000",
            "é",
        ] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
        let fraction = Timestamp::parse("2024-02-29T23:59:59.123Z").unwrap();
        assert_eq!(fraction.to_string(), "2024-02-29T23:59:59Z");
    }
}
