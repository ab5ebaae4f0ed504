//! A pause that the volunteer asked for, with its end. It is kept on disk, so that it survives a
//! restart.

use crate::Moment;
use apoidea_model::Time;
use serde::{Deserialize, Serialize};
use std::{str::FromStr, time::Duration};

/// "Until tomorrow" ends when most people's day begins.
const MORNING_HOUR: u64 = 7;
/// The longest that can be asked for. An end further away than this was written while the clock was
/// wrong.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// A pause that the volunteer asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Snooze {
    /// It ends by itself.
    Until(Time),
    /// It ends when the volunteer says so.
    UntilResumed,
}

/// How long a snooze is to last, as a volunteer says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SnoozeFor {
    /// So long: "15m", "1h", "90s", "2d".
    Lasting(Duration),
    /// "until tomorrow": seven in the morning.
    UntilTomorrow,
    /// "until resumed".
    UntilResumed,
}

/// A length that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no time to snooze: accepted are a number with s, m, h or d up to a week (such as 15m, 1h, 4h), \
     \"until tomorrow\" and \"until resumed\""
)]
pub struct InvalidSnooze(String);

impl Snooze {
    /// A snooze that begins now.
    pub fn begin(length: SnoozeFor, now: Moment) -> Self {
        match length {
            SnoozeFor::Lasting(duration) => Snooze::Until(now.time + duration),
            SnoozeFor::UntilTomorrow => Snooze::Until(now.tomorrow_at(MORNING_HOUR)),
            SnoozeFor::UntilResumed => Snooze::UntilResumed,
        }
    }

    /// Whether it is over. One that would last longer than any that can be asked for is: the clock
    /// was set back.
    pub fn is_over(self, now: Time) -> bool {
        match self {
            Snooze::Until(end) => end <= now || end.since(now) > LONGEST,
            Snooze::UntilResumed => false,
        }
    }
}

impl FromStr for SnoozeFor {
    type Err = InvalidSnooze;

    fn from_str(text: &str) -> Result<Self, InvalidSnooze> {
        let refused = || InvalidSnooze(text.chars().take(40).collect());
        match text
            .trim()
            .trim_start_matches("until ")
            .trim_start_matches("until-")
        {
            "tomorrow" => return Ok(SnoozeFor::UntilTomorrow),
            "resumed" | "i say" => return Ok(SnoozeFor::UntilResumed),
            _ => {}
        }
        let text = text.trim();
        let split = text
            .find(|c: char| !c.is_ascii_digit())
            .ok_or_else(refused)?;
        let (number, unit) = text.split_at(split);
        let unit = match unit.trim() {
            "s" | "sec" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            "d" => 24 * 3600,
            _ => return Err(refused()),
        };
        let seconds = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(unit));
        let duration = seconds.map(Duration::from_secs);
        duration
            .filter(|length| !length.is_zero() && *length <= LONGEST)
            .map(SnoozeFor::Lasting)
            .ok_or_else(refused)
    }
}

impl TryFrom<String> for SnoozeFor {
    type Error = InvalidSnooze;

    fn try_from(text: String) -> Result<Self, InvalidSnooze> {
        text.parse()
    }
}

impl From<SnoozeFor> for String {
    fn from(length: SnoozeFor) -> String {
        match length {
            SnoozeFor::Lasting(duration) => format!("{}s", duration.as_secs()),
            SnoozeFor::UntilTomorrow => "until tomorrow".to_owned(),
            SnoozeFor::UntilResumed => "until resumed".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Monday 16 November 2026, 09:30 UTC.
    const MORNING: Time = Time::from_millis(1_794_821_400_000);

    #[test]
    fn lengths_are_read_as_people_write_them() {
        for (text, minutes) in [
            ("15m", 15),
            ("15 min", 15),
            ("1h", 60),
            ("4h", 240),
            ("120s", 2),
            ("2d", 2880),
        ] {
            let expected = SnoozeFor::Lasting(Duration::from_secs(minutes * 60));
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert_eq!("until tomorrow".parse(), Ok(SnoozeFor::UntilTomorrow));
        assert_eq!("until-resumed".parse(), Ok(SnoozeFor::UntilResumed));
        for text in [
            "",
            "h",
            "1",
            "0m",
            "8d",
            "1 fortnight",
            "99999999999999999999h",
            "18446744073709551615d",
            "-1h",
        ] {
            let refused = text.parse::<SnoozeFor>().unwrap_err().to_string();
            assert!(refused.contains("1h"), "{refused}");
        }
    }

    #[test]
    fn a_snooze_ends_at_its_time_and_tomorrow_begins_at_seven() {
        let now = Moment::new(MORNING, 60);
        let snooze = Snooze::begin("1h".parse().unwrap(), now);
        assert!(!snooze.is_over(MORNING + Duration::from_secs(3599)));
        assert!(snooze.is_over(MORNING + Duration::from_secs(3600)));
        let Snooze::Until(end) = Snooze::begin(SnoozeFor::UntilTomorrow, now) else {
            panic!("it has an end")
        };
        assert_eq!(now.name(end), "tomorrow 07:00");
        assert!(!Snooze::UntilResumed.is_over(Time::NEVER));
    }

    #[test]
    fn a_snooze_from_a_clock_that_was_wrong_is_over() {
        assert!(Snooze::Until(MORNING + Duration::from_secs(400 * 24 * 3600)).is_over(MORNING));
    }
}
