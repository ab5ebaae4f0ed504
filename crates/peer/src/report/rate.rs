//! How fast something happens, averaged over the last ten seconds.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

const WINDOW: Duration = Duration::from_secs(10);

/// A counter's samples over the window.
#[derive(Debug, Default)]
pub struct RecentRate(VecDeque<(Instant, u64)>);

impl RecentRate {
    /// Notes the counter's value and gives its growth per second.
    pub fn sample(&mut self, now: Instant, count: u64) -> f64 {
        self.0.push_back((now, count));
        while self.0.len() > 2 && now.duration_since(self.0[0].0) > WINDOW {
            self.0.pop_front();
        }
        let (since, before) = self.0[0];
        let seconds = now.duration_since(since).as_secs_f64();
        if seconds > 0.0 {
            count.saturating_sub(before) as f64 / seconds
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_the_last_ten_seconds() {
        let (mut rate, start) = (RecentRate::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(rate.sample(start, 0), 0.0);
        for second in 1..=20 {
            assert_eq!(rate.sample(at(second), 5 * second), 5.0);
        }
        for second in 21..=31 {
            rate.sample(at(second), 100);
        }
        assert_eq!(rate.sample(at(32), 100), 0.0);
    }
}
