//! The dates in sitemaps and feeds: W3C's profile of ISO 8601, and that of RFC 822.

use apoidea_model::Time;

/// Longest text that is a date.
pub(crate) const MAX_BYTES: usize = 64;
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAY_SECONDS: i64 = 86_400;

/// The moment that a text names; a day is taken from its beginning. `None` if it names none, or one
/// before 1970.
pub(crate) fn parse(text: &str) -> Option<Time> {
    let text = text.trim();
    let seconds = iso(text).or_else(|| mail(text))?;
    let millis = u64::try_from(seconds).ok()?.checked_mul(1000)?;
    Some(Time::from_millis(millis))
}

/// `2026-11-18`, `2026-11-18T08:30Z`, `2026-11-18T08:30:15.25+01:00`.
fn iso(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.splitn(3, '-');
    let year = number(parts.next()?, 4)?;
    let month = parts.next().map_or(Some(1), |month| number(month, 2))?;
    let day = parts.next().map_or(Some(1), |day| number(day, 2))?;
    let Some(time) = time else {
        return at(year, month, day, 0);
    };
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    at(
        year,
        month,
        day,
        clock_seconds(clock)? - zone_seconds(zone)?,
    )
}

/// `Tue, 18 Nov 2026 08:30:15 GMT`, `18 Nov 2026 08:30 +0100`.
fn mail(text: &str) -> Option<i64> {
    let text = text.split_once(',').map_or(text, |(_, rest)| rest);
    let mut words = text.split_ascii_whitespace();
    let day: i64 = words.next()?.parse().ok()?;
    let name = words.next()?.to_ascii_lowercase();
    let month = MONTHS.iter().position(|month| name.starts_with(month))?;
    let year = words.next()?;
    let year = match year.len() {
        2 => 2000 + number(year, 2)?,
        _ => number(year, 4)?,
    };
    let clock = clock_seconds(words.next()?)?;
    let zone = words.next().map_or(Some(0), zone_seconds)?;
    at(year, i64::try_from(month).ok()? + 1, day, clock - zone)
}

/// Seconds since 1970 (days from the civil calendar, after Howard Hinnant).
fn at(year: i64, month: i64, day: i64, seconds: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days * DAY_SECONDS + seconds)
}

fn clock_seconds(clock: &str) -> Option<i64> {
    let mut parts = clock.splitn(3, ':');
    let hour = number(parts.next()?, 2)?;
    let minute = number(parts.next()?, 2)?;
    let second = parts.next().unwrap_or("00");
    let second = number(second.split(['.', ',']).next()?, 2)?;
    (hour < 24 && minute < 60 && second < 61).then_some(hour * 3600 + minute * 60 + second)
}

fn zone_seconds(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.split_at_checked(1) {
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        // Names other than Greenwich's are ambiguous, and wrong by hours at most.
        _ => return Some(0),
    };
    let digits: String = rest.chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = digits.split_at_checked(2)?;
    Some(sign * (number(hours, 2)? * 3600 + number(minutes, 2)? * 60))
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        parse(text).map(|time| time.as_millis() / 1000)
    }

    #[test]
    fn dates_of_sitemaps_and_feeds_are_read() {
        for text in [
            "1994-11-06T08:49:37Z",
            "1994-11-06T09:49:37+01:00",
            "1994-11-06 08:49:37.5Z",
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "6 November 1994 03:49:37 -0500",
        ] {
            assert_eq!(seconds(text), Some(784_111_777), "{text}");
        }
        assert_eq!(seconds("1970-01-02"), Some(86_400));
        assert_eq!(seconds("2024-02"), Some(1_706_745_600));
        assert_eq!(seconds("2024-02-29T00:00Z"), Some(1_709_164_800));
    }

    #[test]
    fn other_texts_name_no_time() {
        for text in [
            "",
            "yesterday",
            "1969-12-31",
            "2024-13-01",
            "2024-1-1",
            "2024-01-01T25:00Z",
            "99 Foo 2024",
            "2024-01-01T+",
            "Sun,",
            "９",
            "2024-01-01T00:00+é1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
