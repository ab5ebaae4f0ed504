//! The time that a `Retry-After` header asks us to stay away (RFC 9110 §10.2.3).
//!
//! Only the site's wish is read here. That no host is asked again sooner than after five minutes,
//! whatever it says, is the [`crate::Pace`]'s doing, since networks listed as private may go
//! faster.

use apoidea_model::Time;
use std::time::Duration;

/// Longest wait that is honoured; a host that asks for more is asked again after a day.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads either form, seconds or a date, as a wait from `now`, at most [`MAX_RETRY_AFTER`]. A date
/// in the past is no wait; a value that is neither form is `None`.
pub fn retry_after(value: &str, now: Time) -> Option<Duration> {
    let value = value.trim();
    let is_seconds = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    let wait = if is_seconds {
        // More seconds than the number can hold are more than a day.
        value.parse().map_or(Duration::MAX, Duration::from_secs)
    } else {
        Time::from(httpdate::parse_http_date(value).ok()?).since(now)
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sunday, 6 November 1994, 08:49:37 GMT: the RFC's own example.
    const NOW: Time = Time::from_millis(784_111_777_000);

    fn seconds(value: &str) -> Option<u64> {
        retry_after(value, NOW).map(|wait| wait.as_secs())
    }

    #[test]
    fn both_forms_are_waits_from_now() {
        for (value, expected) in [
            ("120", 120),
            (" 0 ", 0),
            ("Sun, 06 Nov 1994 09:49:37 GMT", 3600),
            ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
            ("Sun Nov  6 08:49:47 1994", 10),
        ] {
            assert_eq!(seconds(value), Some(expected), "{value}");
        }
    }

    #[test]
    fn a_moment_that_has_passed_is_no_wait() {
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }

    #[test]
    fn nobody_is_waited_for_longer_than_a_day() {
        for value in [
            "86401",
            "99999999999999999999999999",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            assert_eq!(seconds(value), Some(86_400), "{value}");
        }
    }

    #[test]
    fn nonsense_is_nothing() {
        for value in [
            "",
            "soon",
            "-1",
            "+1",
            "1.5",
            "12s",
            "0x10",
            "Sun, 06 Nov 1994",
            "１２",
            "\0",
        ] {
            assert_eq!(seconds(value), None, "{value:?}");
        }
    }
}
