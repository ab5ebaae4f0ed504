//! The week as a volunteer plans it: seven days of twenty-four hours, each off, gentle or full.

use crate::{Moment, Pace};
use apoidea_model::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Hours looked ahead for the end of a pause: a week and one.
const HOURS_AHEAD: usize = 7 * 24 + 1;

/// What may run in each hour of a week.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ts_rs::TS)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// 24 letters, one an hour from midnight: `f` full, `g` gentle, `-` off.
    pub monday: Day,
    /// As Monday.
    pub tuesday: Day,
    /// As Monday.
    pub wednesday: Day,
    /// As Monday.
    pub thursday: Day,
    /// As Monday.
    pub friday: Day,
    /// As Monday.
    pub saturday: Day,
    /// As Monday.
    pub sunday: Day,
}

/// The hours of one day, written as 24 letters.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(try_from = "String", into = "String")]
#[ts(as = "String")]
pub struct Day([Hours; 24]);

/// What may run in an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hours {
    /// Nothing.
    Off,
    /// The gentle profile at most.
    Gentle,
    /// The full profile.
    Full,
}

/// A day that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a day: accepted are 24 letters, one for each hour, f (full), g (gentle) or - (off)"
)]
pub struct InvalidDay(String);

impl Schedule {
    /// Every hour of the week the same.
    pub fn always(hours: Hours) -> Self {
        Schedule::of([Day([hours; 24]); 7])
    }

    /// These days, Monday first.
    pub fn of(
        [
            monday,
            tuesday,
            wednesday,
            thursday,
            friday,
            saturday,
            sunday,
        ]: [Day; 7],
    ) -> Self {
        Schedule {
            monday,
            tuesday,
            wednesday,
            thursday,
            friday,
            saturday,
            sunday,
        }
    }

    /// The days, Monday first.
    pub fn days(&self) -> [&Day; 7] {
        let Schedule {
            monday,
            tuesday,
            wednesday,
            thursday,
            friday,
            saturday,
            sunday,
        } = self;
        [
            monday, tuesday, wednesday, thursday, friday, saturday, sunday,
        ]
    }

    /// What may run now.
    pub fn at(&self, now: Moment) -> Hours {
        self.days()[now.weekday()].0[now.hour()]
    }

    /// When the next hour begins that allows more than now; never, if none in the whole week does.
    pub fn changes(&self, now: Moment) -> Option<Time> {
        let present = self.at(now);
        let mut moment = now;
        for _ in 0..HOURS_AHEAD {
            moment = moment.at(moment.next_hour());
            if self.at(moment) > present {
                return Some(moment.time);
            }
        }
        None
    }
}

impl Hours {
    /// The pace that the hour allows.
    pub fn pace(self) -> Pace {
        match self {
            Hours::Off => Pace::Paused,
            Hours::Gentle => Pace::Gentle,
            Hours::Full => Pace::Full,
        }
    }

    fn letter(self) -> char {
        match self {
            Hours::Off => '-',
            Hours::Gentle => 'g',
            Hours::Full => 'f',
        }
    }
}

impl Default for Day {
    fn default() -> Self {
        Day([Hours::Full; 24])
    }
}

impl fmt::Debug for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from(*self))
    }
}

impl From<Day> for String {
    fn from(day: Day) -> String {
        day.0.iter().map(|hours| hours.letter()).collect()
    }
}

impl TryFrom<String> for Day {
    type Error = InvalidDay;

    fn try_from(text: String) -> Result<Self, InvalidDay> {
        let hours = text.chars().map(|letter| match letter {
            '-' => Some(Hours::Off),
            'g' => Some(Hours::Gentle),
            'f' => Some(Hours::Full),
            _ => None,
        });
        let hours: Option<Vec<Hours>> = hours.take(25).collect();
        let hours: Option<[Hours; 24]> = hours.and_then(|hours| hours.try_into().ok());
        hours
            .map(Day)
            .ok_or_else(|| InvalidDay(text.chars().take(40).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Monday 16 November 2026, 09:30 UTC.
    const MORNING: Time = Time::from_millis(1_794_821_400_000);

    fn day(text: &str) -> Day {
        text.to_owned().try_into().unwrap()
    }

    #[test]
    fn an_hour_is_looked_up_in_local_time() {
        let mut schedule = Schedule::always(Hours::Full);
        schedule.monday = day("ffffffff-g-fffffffffffff");
        assert_eq!(schedule.at(Moment::new(MORNING, 0)), Hours::Gentle);
        assert_eq!(schedule.at(Moment::new(MORNING, 60)), Hours::Off);
        assert_eq!(schedule.at(Moment::new(MORNING, -60)), Hours::Off);
        assert_eq!(schedule.at(Moment::new(MORNING, 180)), Hours::Full);
    }

    #[test]
    fn the_end_of_a_pause_is_the_next_hour_that_allows_more() {
        let mut schedule = Schedule::always(Hours::Off);
        let now = Moment::new(MORNING, 0);
        assert_eq!(schedule.changes(now), None);
        schedule.monday = day("------------------gggfff");
        let evening = MORNING + Duration::from_secs(8 * 3600 + 1800);
        assert_eq!(schedule.changes(now), Some(evening));
        assert_eq!(
            schedule.changes(now.at(evening)),
            Some(evening + Duration::from_secs(3 * 3600))
        );
        schedule.monday = day("f-----------------------");
        assert_eq!(
            now.name(schedule.changes(now).unwrap()),
            "23 November",
            "a week ahead"
        );
    }

    #[test]
    fn a_day_that_is_not_24_known_letters_is_refused_with_what_is_accepted() {
        for text in [
            "",
            "fff",
            "fffffffffffffffffffffffff",
            "ffffffffffffxfffffffffff",
        ] {
            let refused = Day::try_from(text.to_owned()).unwrap_err().to_string();
            assert!(refused.contains("24 letters"), "{refused}");
        }
        assert_eq!(
            String::from(day("ffffgggg----ffffgggg----")),
            "ffffgggg----ffffgggg----"
        );
    }
}
