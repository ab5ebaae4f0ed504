//! Deterministic draws: every host, page and link is a function of the seed and its own numbers, so
//! nothing is stored.
//!
//! SplitMix64 (Steele, Lea & Flood 2014) is written out here because the web of a seed must stay
//! the same in every version of every library; a general generator makes no such promise.

/// A stream of draws that belongs to one thing, such as the links of page 7 of host 3.
pub(crate) struct Draw(u64);

/// What the draws decide; the same numbers give unrelated streams for different uses.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    HostName,
    HostHabits,
    Path,
    Links,
    Spelling,
    Text,
    Copy,
    Prose,
}

impl Draw {
    /// The stream that the seed gives to `a` and `b` for one use.
    pub(crate) fn new(seed: u64, purpose: Use, a: u64, b: u64) -> Self {
        let mut draw = Draw(seed ^ (purpose as u64 + 1).wrapping_mul(0xA076_1D64_78BD_642F));
        draw.0 = draw.next() ^ a.wrapping_mul(0xE703_7ED1_A0B4_28DB);
        draw.0 = draw.next() ^ b.wrapping_mul(0x8EBC_6AF0_9C88_C6E3);
        draw
    }

    /// 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// A number from 0 to 1, 1 excluded.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Does something happen that happens in `percent` of all cases?
    pub(crate) fn happens(&mut self, percent: f64) -> bool {
        self.unit() * 100.0 < percent
    }

    /// A number below `n` with small numbers drawn far more often, as popular pages are linked.
    pub(crate) fn skewed(&mut self, n: u64) -> u64 {
        let u = self.unit();
        ((u * u * u) * n as f64) as u64
    }

    /// One of several; the list is never empty.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len() as u64) as usize]
    }

    /// A log-normal draw with the given mean; `sigma` is the spread of its logarithm.
    pub(crate) fn log_normal(&mut self, mean: f64, sigma: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let z = radius * (std::f64::consts::TAU * self.unit()).cos();
        mean * (sigma * z - sigma * sigma / 2.0).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_numbers_give_the_same_stream_and_others_another() {
        let stream = |a, b| Draw::new(1, Use::Path, a, b).next();
        assert_eq!(stream(2, 3), stream(2, 3));
        assert_ne!(stream(2, 3), stream(3, 2));
        assert_ne!(stream(2, 3), Draw::new(1, Use::Links, 2, 3).next());
    }

    #[test]
    fn log_normal_draws_have_the_mean_they_are_asked_for() {
        let mut draw = Draw::new(1, Use::Text, 0, 0);
        let mean = (0..20_000)
            .map(|_| draw.log_normal(30_000.0, 0.8))
            .sum::<f64>()
            / 20_000.0;
        assert!((28_000.0..32_000.0).contains(&mean), "{mean}");
    }

    #[test]
    fn skewed_draws_prefer_small_numbers() {
        let mut draw = Draw::new(1, Use::Text, 0, 0);
        let low = (0..1000).filter(|_| draw.skewed(1000) < 125).count();
        assert!((400..600).contains(&low), "{low}");
    }
}
