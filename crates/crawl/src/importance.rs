//! The importance of a page that waits, from the links to it: cash, as OPIC calls it (Abiteboul,
//! Preda and Cobena, 2003).
//!
//! A page that is fetched shares its cash among the pages that it links to, and one unit of its own
//! with it. So a page that many point to collects more than one that only its own site names. The
//! unit is a departure: without it the cash of the seeds is all there is, and most of it ends in
//! pages that were fetched already (`apoidea simulate --graph` compares the two).

/// An amount of cash, to a quarter of an octave: two bytes on the wire and in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cash(u16);

/// Steps in an octave.
const STEPS: f64 = 4.0;
/// The step of the amount 1. Smaller amounts are told down to 2^-64.
const ONE: f64 = 256.0;

impl Cash {
    /// The nearest amount that can be told. Nothing, and what is no number, is the least.
    pub fn of(amount: f64) -> Self {
        let step = (amount.max(0.0).log2() * STEPS + ONE).round();
        // From minus infinity up; the conversion keeps within the type.
        Cash(step as u16)
    }

    /// The amount.
    pub fn amount(self) -> f64 {
        ((f64::from(self.0) - ONE) / STEPS).exp2()
    }

    /// The share of each link of a page that has this cash and is fetched.
    pub fn shared(self, links: usize) -> Cash {
        Cash::of((1.0 + self.amount()) / links.max(1) as f64)
    }

    /// The place in a queue, the smallest first.
    pub fn rank(self) -> u16 {
        u16::MAX - self.0
    }

    /// Whether a page with this cash moves in its queue, where it stands with less. A queue on disk
    /// is rewritten for a doubled amount alone, which changes the order hardly at all.
    pub fn is_twice(self, ranked: Cash) -> bool {
        self.0 >= ranked.0.saturating_add(STEPS as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_told_to_a_quarter_of_an_octave() {
        for amount in [1e-9, 0.013, 1.0, 1.5, 1e12] {
            let told = Cash::of(amount).amount();
            assert!((told / amount).log2().abs() <= 0.126, "{amount} as {told}");
        }
        assert_eq!(Cash::of(1.0).amount(), 1.0);
        for least in [0.0, -1.0, f64::NAN, 1e-300] {
            assert_eq!(Cash::of(least), Cash::default());
        }
    }

    #[test]
    fn the_richer_page_comes_first_and_moves_when_it_has_twice_as_much() {
        let (poor, rich) = (Cash::of(1.0), Cash::of(2.0));
        assert!(rich.rank() < poor.rank());
        assert!(rich.is_twice(poor));
        assert!(!Cash::of(1.6).is_twice(poor));
        assert_eq!(Cash::of(3.0).shared(4), Cash::of(1.0));
        assert_eq!(Cash::of(0.0).shared(0), Cash::of(1.0));
    }
}
