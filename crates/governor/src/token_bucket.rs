//! A rate of bytes, kept by taking on credit and waiting until the debt is paid.
//!
//! How large an answer will be is not known when it is asked for, so a taker names what it expects
//! and settles the difference afterwards. What is saved up and what is then taken on credit are
//! together one burst, so that a rate of pieces that are large for it is as even as one of small
//! ones. A debt is never forgiven.

use std::time::Duration;

/// What may come at once, as time: so that a second holds at most 1.05 seconds' worth and what was
/// expected wrongly. Less would cost a part of the rate whenever the machine stands still for a
/// moment.
const BURST: f64 = 0.05;
/// What is saved up even for a piece that is larger than a burst, as time: a timer rings this late
/// without being asked to.
const LEAST_SAVED: f64 = 0.004;

/// Tokens that come at a rate. Times are since any fixed moment.
#[derive(Debug, Clone, Copy)]
pub struct TokenBucket {
    per_second: f64,
    tokens: f64,
    at: Duration,
}

impl TokenBucket {
    /// A bucket that is neither full nor in debt.
    pub fn new(per_second: u64, now: Duration) -> Self {
        TokenBucket {
            per_second: (per_second as f64).max(1.0),
            tokens: 0.0,
            at: now,
        }
    }

    /// Changes the rate from now on; a debt stays.
    pub fn set_rate(&mut self, per_second: u64, now: Duration) {
        self.advance(now);
        self.per_second = (per_second as f64).max(1.0);
    }

    /// Takes tokens if there is no debt; otherwise says how long to wait before asking again.
    pub fn take(&mut self, expected: u64, now: Duration) -> Result<(), Duration> {
        self.advance(now);
        if self.tokens >= 0.0 {
            let saved =
                (BURST * self.per_second - expected as f64).max(LEAST_SAVED * self.per_second);
            self.tokens = self.tokens.min(saved) - expected as f64;
            return Ok(());
        }
        Err(Duration::from_secs_f64(-self.tokens / self.per_second))
    }

    /// Settles what was expected against what came.
    pub fn correct(&mut self, expected: u64, actual: u64) {
        self.tokens += expected as f64 - actual as f64;
    }

    fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = (self.tokens + passed * self.per_second).min(self.per_second * BURST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of these sizes, each expected to be as large as `expected`; gives the seconds they
    /// took.
    fn seconds(bucket: &mut TokenBucket, sizes: &[u64], expected: u64) -> f64 {
        let mut now = Duration::ZERO;
        for size in sizes {
            while let Err(wait) = bucket.take(expected, now) {
                now += wait.max(Duration::from_micros(1));
            }
            bucket.correct(expected, *size);
        }
        now.as_secs_f64()
    }

    #[test]
    fn the_rate_holds_whatever_was_expected() {
        for expected in [0, 100, 10_000, 1_000_000] {
            let mut bucket = TokenBucket::new(64 << 10, Duration::ZERO);
            let sizes: Vec<u64> = (0..1000).map(|i| 1000 + i * 37 % 30_000).collect();
            let rate = sizes.iter().sum::<u64>() as f64 / seconds(&mut bucket, &sizes, expected);
            assert!((rate / 65536.0 - 1.0).abs() < 0.02, "{rate}");
        }
    }

    #[test]
    fn what_was_not_used_is_not_saved_up() {
        let mut bucket = TokenBucket::new(1000, Duration::ZERO);
        let later = Duration::from_secs(3600);
        let taken = (0..100)
            .take_while(|_| bucket.take(10, later).is_ok())
            .count();
        assert_eq!(taken, 5, "a twentieth of a second's worth");
    }

    /// Asks for pieces of this size for ten seconds, now and then later than it might; gives the
    /// most that came within any second, as a share of the rate.
    fn worst_second(size: u64, late: Duration) -> f64 {
        let (rate, mut now) = (60 << 10, Duration::ZERO);
        let mut bucket = TokenBucket::new(rate, now);
        let mut taken = Vec::new();
        while now < Duration::from_secs(10) {
            match bucket.take(size, now) {
                Ok(()) => taken.push(now),
                Err(wait) if taken.len() % 13 == 0 => now += wait + late,
                Err(wait) => now += wait.max(Duration::from_micros(1)),
            }
        }
        let within = |from: &Duration| {
            taken
                .iter()
                .filter(|at| (*from..*from + Duration::from_secs(1)).contains(at))
                .count()
        };
        taken.iter().map(within).max().unwrap_or(0) as f64 * size as f64 / rate as f64
    }

    #[test]
    fn pieces_that_are_large_for_the_rate_come_as_evenly_as_small_ones() {
        for (size, most) in [(200, 1.06), (1000, 1.06), (6300, 1.06)] {
            for late in [1, 5, 40] {
                let worst = worst_second(size, Duration::from_millis(late));
                assert!(worst <= most, "{size} bytes, {late} ms late: {worst}");
            }
        }
    }

    #[test]
    fn a_clock_that_stands_still_gives_nothing_and_a_new_rate_counts_at_once() {
        let mut bucket = TokenBucket::new(1000, Duration::from_secs(5));
        assert!(bucket.take(1000, Duration::from_secs(5)).is_ok());
        let wait = bucket.take(1, Duration::from_secs(5)).unwrap_err();
        assert_eq!(wait, Duration::from_secs(1));
        assert!(bucket.take(1, Duration::from_secs(4)).is_err());
        bucket.set_rate(10_000, Duration::from_secs(5));
        assert_eq!(
            bucket.take(1, Duration::from_secs(5)).unwrap_err(),
            Duration::from_millis(100)
        );
    }
}
