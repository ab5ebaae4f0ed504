//! The time that peers stay: the two distributions that are usually fitted to measurements of
//! peer-to-peer networks.

use rand::{Rng, RngExt};
use std::time::Duration;

/// A distribution of session lengths.
#[derive(Debug, Clone, Copy)]
pub struct Sessions {
    scale_s: f64,
    shape: f64,
    goodbye: f64,
}

/// Half of IPFS peers leave within one to two hours.
const MEDIAN_S: f64 = 3600.0;

impl Sessions {
    /// Without memory, an hour in the median; everyone crashes.
    pub fn exponential_hour() -> Self {
        Self::with_median(1.0, 0.0)
    }

    /// Many short and some very long sessions, an hour in the median: shape ½, as Stutzbach and
    /// Rejaie (IMC 2006) find between 0.34 and 0.59. Every other peer says goodbye.
    pub fn weibull_hour() -> Self {
        Self::with_median(0.5, 0.5)
    }

    fn with_median(shape: f64, goodbye: f64) -> Self {
        Sessions {
            scale_s: MEDIAN_S / std::f64::consts::LN_2.powf(1.0 / shape),
            shape,
            goodbye,
        }
    }

    /// The length of a session that begins now.
    pub fn whole(&self, rng: &mut impl Rng) -> Duration {
        let uniform: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
        Duration::from_secs_f64(self.scale_s * (-uniform.ln()).powf(1.0 / self.shape))
    }

    /// The rest of a session that is met under way. Long sessions are met more often, and any part
    /// of them alike: the length so met is `scale · G^(1/shape)` with G from a gamma distribution
    /// of 1 + 1/shape, a sum of exponentials.
    pub fn remaining(&self, rng: &mut impl Rng) -> Duration {
        let terms = 1 + (1.0 / self.shape).round() as u32;
        let gamma: f64 = (0..terms)
            .map(|_| -rng.random_range(f64::MIN_POSITIVE..1.0).ln())
            .sum();
        let met = self.scale_s * gamma.powf(1.0 / self.shape);
        Duration::from_secs_f64(met * rng.random_range(0.0..1.0))
    }

    /// Whether this session ends with a goodbye.
    pub fn says_goodbye(&self, rng: &mut impl Rng) -> bool {
        rng.random_bool(self.goodbye)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

    #[test]
    fn half_of_the_sessions_are_longer_than_an_hour() {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(3);
        for sessions in [Sessions::exponential_hour(), Sessions::weibull_hour()] {
            let long = (0..10_000)
                .filter(|_| sessions.whole(rng).as_secs_f64() > MEDIAN_S)
                .count();
            assert!((4800..5200).contains(&long), "{long}");
        }
    }

    #[test]
    fn the_rest_of_a_session_without_memory_is_a_whole_session() {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(4);
        let sessions = Sessions::exponential_hour();
        let long = (0..10_000)
            .filter(|_| sessions.remaining(rng).as_secs_f64() > MEDIAN_S)
            .count();
        assert!((4800..5200).contains(&long), "{long}");
    }
}
