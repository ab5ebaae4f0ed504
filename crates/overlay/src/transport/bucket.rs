//! A token bucket: so much at once, so much per second.

use super::Rate;
use std::time::{Duration, Instant};

/// Longest pause that a bucket asks for, however deep its debt.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The state of one bucket; its rate is passed in, so that it is stored once for many buckets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    /// A full bucket.
    pub fn full(rate: Rate, now: Instant) -> Self {
        Bucket {
            tokens: rate.burst,
            filled: now,
        }
    }

    /// Takes one token, or says how long to wait for it.
    pub fn take(&mut self, rate: Rate, now: Instant) -> Result<(), Duration> {
        self.fill(rate, now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let seconds = (1.0 - self.tokens) / rate.per_second;
        Err(Duration::try_from_secs_f64(seconds)
            .unwrap_or(MAX_PAUSE)
            .min(MAX_PAUSE))
    }

    /// Takes tokens for something that has happened already; the bucket may go into debt, at most
    /// by one burst.
    pub fn charge(&mut self, rate: Rate, tokens: f64, now: Instant) {
        self.fill(rate, now);
        self.tokens = (self.tokens - tokens).max(-rate.burst);
    }

    /// Whether the bucket is full: it is as good as a new one and can be forgotten.
    pub fn is_full(&self, rate: Rate, now: Instant) -> bool {
        self.tokens_at(rate, now) >= rate.burst
    }

    fn fill(&mut self, rate: Rate, now: Instant) {
        self.tokens = self.tokens_at(rate, now);
        self.filled = now;
    }

    fn tokens_at(&self, rate: Rate, now: Instant) -> f64 {
        let seconds = now.saturating_duration_since(self.filled).as_secs_f64();
        (self.tokens + seconds * rate.per_second).min(rate.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_second: 10.0,
        burst: 3.0,
    };

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let start = Instant::now();
        let mut bucket = Bucket::full(RATE, start);
        assert!((0..3).all(|_| bucket.take(RATE, start).is_ok()));
        let wait = bucket.take(RATE, start).unwrap_err();
        assert!(
            wait > Duration::from_millis(99) && wait < Duration::from_millis(101),
            "{wait:?}"
        );
        assert!(
            bucket
                .take(RATE, start + Duration::from_millis(101))
                .is_ok()
        );
        assert!(
            bucket
                .take(RATE, start + Duration::from_millis(102))
                .is_err()
        );
    }

    #[test]
    fn a_debt_is_paid_before_the_next_token() {
        let start = Instant::now();
        let mut bucket = Bucket::full(RATE, start);
        bucket.charge(RATE, 1000.0, start);
        let wait = bucket.take(RATE, start).unwrap_err();
        assert!(
            wait < Duration::from_millis(450),
            "the debt is bounded by one burst: {wait:?}"
        );
        assert!(
            bucket
                .take(RATE, start + wait + Duration::from_millis(1))
                .is_ok()
        );
    }

    #[test]
    fn it_never_holds_more_than_a_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::full(RATE, start);
        let later = start + Duration::from_secs(3600);
        assert!(bucket.is_full(RATE, later));
        assert_eq!(
            (0..100)
                .filter(|_| bucket.take(RATE, later).is_ok())
                .count(),
            3
        );
    }

    #[test]
    fn a_clock_that_stands_still_or_a_rate_of_nothing_does_no_harm() {
        let start = Instant::now();
        let none = Rate {
            per_second: 0.0,
            burst: 0.0,
        };
        let mut bucket = Bucket::full(none, start);
        assert_eq!(bucket.take(none, start), Err(MAX_PAUSE));
    }
}
