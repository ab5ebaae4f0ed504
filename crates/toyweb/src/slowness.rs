//! The time that each host takes to begin an answer, as servers far away or overworked do.

use std::time::Duration;

/// The shortest and the longest of these times.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slowness {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
}

impl Slowness {
    /// The time of one host: always the same, and spread evenly over all hosts.
    pub(crate) fn of(&self, host: &str) -> Duration {
        let number = host.bytes().fold(7u64, |hash, byte| {
            (hash * 31 + u64::from(byte)) % 1_000_003 * 7919 % 1_000_003
        });
        let share = number as f64 / 1_000_003.0;
        self.least + self.most.saturating_sub(self.least).mul_f64(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_differ_and_each_stays_the_same() {
        let [least, most] = [100, 2000].map(Duration::from_millis);
        let slowness = Slowness { least, most };
        let times: Vec<Duration> = (0..300)
            .map(|n| slowness.of(&format!("quiet-river-{n}.test")))
            .collect();
        assert!(times.iter().all(|time| (least..most).contains(time)));
        assert_eq!(times[7], slowness.of("quiet-river-7.test"));
        let middle = (least + most) / 2;
        let slow = times.iter().filter(|time| **time > middle).count();
        assert!((100..200).contains(&slow), "{slow} of 300 are slow");
    }

    #[test]
    fn without_a_range_all_hosts_are_alike() {
        let wait = Duration::from_millis(600);
        let slowness = Slowness {
            least: wait,
            most: wait,
        };
        assert_eq!(slowness.of("a.test"), wait);
        assert_eq!(Slowness::default().of("a.test"), Duration::ZERO);
    }
}
