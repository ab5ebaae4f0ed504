//! A moment as a volunteer's wall clock shows it: schedules, "until tomorrow" and monthly quotas
//! follow local time.
//!
//! The distance to UTC is passed in with the time, so that nothing here reads a clock or a table of
//! time zones. Moments in the future are told with today's distance; on the two days a year when it
//! changes they may be an hour off.

use apoidea_model::Time;
use std::time::Duration;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// The first of January 1970 was a Thursday; weeks begin on Monday.
const EPOCH_WEEKDAY: u64 = 3;
/// The widest distances to UTC in use are −12 and +14 hours.
const MAX_OFFSET_MINUTES: i32 = 14 * 60;

/// A time and how far local clocks are ahead of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time.
    pub time: Time,
    /// Minutes that local clocks are ahead of UTC; negative in the west.
    offset_minutes: i32,
}

impl Moment {
    /// A moment where local clocks are so many minutes ahead of UTC.
    pub fn new(time: Time, offset_minutes: i32) -> Self {
        let offset_minutes = offset_minutes.clamp(-MAX_OFFSET_MINUTES, MAX_OFFSET_MINUTES);
        Moment {
            time,
            offset_minutes,
        }
    }

    /// Another time in the same place.
    pub fn at(self, time: Time) -> Self {
        Moment { time, ..self }
    }

    /// Day of the week, Monday being 0.
    pub fn weekday(self) -> usize {
        ((self.local() / DAY + EPOCH_WEEKDAY) % 7) as usize
    }

    /// Hour of the day, 0 to 23.
    pub fn hour(self) -> usize {
        (self.local() % DAY / HOUR) as usize
    }

    /// Year and month, such as 2026 and 11.
    pub fn month(self) -> (u32, u32) {
        let (year, month, _) = civil(self.local() / DAY);
        (year, month)
    }

    /// When the next full hour begins.
    pub fn next_hour(self) -> Time {
        self.time + Duration::from_millis(HOUR - self.local() % HOUR)
    }

    /// When the next day has this hour.
    pub fn tomorrow_at(self, hour: u64) -> Time {
        self.time + Duration::from_millis(DAY - self.local() % DAY + hour * HOUR)
    }

    /// When the next month begins.
    pub fn next_month(self) -> Time {
        let mut day = self.local() / DAY;
        let month = civil(day).1;
        while civil(day).1 == month {
            day += 1;
        }
        self.time + Duration::from_millis(day * DAY - self.local())
    }

    /// How a volunteer would name `time` now: "18:00", "tomorrow 07:00", "Friday 07:00", "1
    /// December".
    pub fn name(self, time: Time) -> String {
        let then = self.at(time);
        let (minute, hour) = (then.local() % HOUR / MINUTE, then.hour());
        match (then.local() / DAY).saturating_sub(self.local() / DAY) {
            0 => format!("{hour:02}:{minute:02}"),
            1 => format!("tomorrow {hour:02}:{minute:02}"),
            2..=6 => format!("{} {hour:02}:{minute:02}", WEEKDAYS[then.weekday()]),
            _ => then.date(),
        }
    }

    fn date(self) -> String {
        let (_, month, day) = civil(self.local() / DAY);
        format!("{day} {}", MONTHS[month as usize - 1])
    }

    /// Milliseconds since the epoch as local clocks count them.
    fn local(self) -> u64 {
        self.time
            .as_millis()
            .min(END)
            .saturating_add_signed(i64::from(self.offset_minutes) * MINUTE as i64)
    }
}

/// A time beyond which dates are not told apart, so that no arithmetic overflows: the year 9999.
const END: u64 = 253_370_764_800_000;

const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Year, month and day of a day since the epoch (Hinnant, "chrono-compatible low-level date
/// algorithms").
fn civil(days: u64) -> (u32, u32, u32) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year as u32, month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Monday 16 November 2026, 09:30 UTC.
    const MORNING: Time = Time::from_millis(1_794_821_400_000);

    #[test]
    fn local_clocks_name_day_hour_and_month() {
        let utc = Moment::new(MORNING, 0);
        assert_eq!((utc.weekday(), utc.hour(), utc.month()), (0, 9, (2026, 11)));
        let kiritimati = Moment::new(MORNING + Duration::from_millis(8 * HOUR), 14 * 60);
        assert_eq!((kiritimati.weekday(), kiritimati.hour()), (1, 7));
        let denver = Moment::new(MORNING, -7 * 60);
        assert_eq!((denver.weekday(), denver.hour()), (0, 2));
    }

    #[test]
    fn the_next_hour_day_and_month_begin_on_time() {
        let now = Moment::new(MORNING, 60);
        assert_eq!(now.name(now.next_hour()), "11:00");
        assert_eq!(now.name(now.tomorrow_at(7)), "tomorrow 07:00");
        assert_eq!(now.name(now.next_month()), "1 December");
        assert_eq!(now.at(now.next_month()).month(), (2026, 12));
        assert_eq!(
            now.name(MORNING + Duration::from_millis(4 * DAY)),
            "Friday 10:30"
        );
    }

    #[test]
    fn leap_days_and_the_end_of_time_are_survived() {
        let leap = Moment::new(Time::from_millis(1_835_395_200_000), 0);
        assert_eq!(leap.date(), "29 February");
        let end = Moment::new(Time::NEVER, 840);
        assert!(!end.name(end.next_month()).is_empty());
        let begin = Moment::new(Time::ZERO, -720);
        assert_eq!((begin.weekday(), begin.hour()), (3, 0));
    }
}
