//! The clock for the pure parts. It never runs backwards, and it goes on while the machine sleeps.
//!
//! Neither of the system's clocks does both: the wall clock can be set back, and the monotonic one
//! stands still during sleep on some systems.

use apoidea_model::Time;
use std::time::{Duration, Instant, SystemTime};

/// Least lead of the wall clock over the monotonic one that counts as sleep: more than a clock
/// service's steps, less than the time after which others give a connection up.
const SLEEP: Duration = Duration::from_secs(30);

/// Both clocks when they were last read, and the time made of them.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    time: Time,
    monotonic: Instant,
    wall: SystemTime,
}

impl Clock {
    /// Starts at the wall clock's time.
    pub fn start() -> Self {
        let wall = SystemTime::now();
        Clock {
            time: Time::from(wall),
            monotonic: Instant::now(),
            wall,
        }
    }

    /// The time now.
    pub fn now(&mut self) -> Time {
        self.advance(Instant::now(), SystemTime::now());
        self.time
    }

    /// The time since the last reading, sleep included.
    pub fn lap(&mut self) -> Duration {
        let before = self.time;
        self.now().since(before)
    }

    fn advance(&mut self, monotonic: Instant, wall: SystemTime) {
        let awake = monotonic.saturating_duration_since(self.monotonic);
        let passed = wall.duration_since(self.wall).unwrap_or_default();
        let step = if passed > awake + SLEEP {
            passed
        } else {
            awake
        };
        // Whole milliseconds only, so that frequent readings lose nothing.
        let step = Duration::from_millis(u64::try_from(step.as_millis()).unwrap_or(u64::MAX));
        self.time = self.time + step;
        self.monotonic += step.min(awake);
        self.wall = wall;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(monotonic_ms: u64, wall_ms: i64) -> Duration {
        let mut clock = Clock::start();
        let before = clock.time;
        let wall_step = Duration::from_millis(wall_ms.unsigned_abs());
        let wall = if wall_ms < 0 {
            clock.wall - wall_step
        } else {
            clock.wall + wall_step
        };
        clock.advance(clock.monotonic + Duration::from_millis(monotonic_ms), wall);
        clock.time.since(before)
    }

    #[test]
    fn sleep_counts_and_a_clock_set_back_does_not() {
        assert_eq!(after(5000, 5000), Duration::from_secs(5));
        assert_eq!(after(5000, -3_600_000), Duration::from_secs(5));
        assert_eq!(
            after(5000, 20_000),
            Duration::from_secs(5),
            "a clock service's step"
        );
        assert_eq!(after(5000, 3_600_000), Duration::from_secs(3600));
        assert_eq!(after(3_600_000, 3_600_000), Duration::from_secs(3600));
    }

    #[test]
    fn frequent_readings_lose_nothing() {
        let mut clock = Clock::start();
        let (before, start, wall) = (clock.time, clock.monotonic, clock.wall);
        for micros in (0..=1_000_000).step_by(300) {
            clock.advance(
                start + Duration::from_micros(micros),
                wall + Duration::from_micros(micros),
            );
        }
        assert!(
            clock.time.since(before) >= Duration::from_millis(998),
            "{:?}",
            clock.time.since(before)
        );
    }
}
