//! The line between two places.

use std::time::Duration;

/// What happens to packets between two places, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Line {
    /// There and back.
    pub round_trip: Duration,
    /// The share of packets that is lost, 0 to 1.
    pub loss: f64,
    /// Whether nothing gets through.
    pub is_cut: bool,
}

impl Line {
    /// The time a packet is held, one way; none if it is lost. `chance` is a random number from 0
    /// to 1.
    pub(super) fn delay(&self, chance: f64) -> Option<Duration> {
        (!self.is_cut && chance >= self.loss).then_some(self.round_trip / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_take_half_the_round_trip_unless_they_are_lost() {
        let round_trip = Duration::from_millis(80);
        let mut line = Line {
            round_trip,
            loss: 0.25,
            is_cut: false,
        };
        assert_eq!(line.delay(0.25), Some(round_trip / 2));
        assert_eq!(line.delay(0.24), None);
        line.is_cut = true;
        assert_eq!(line.delay(0.9), None);
        assert_eq!(Line::default().delay(0.0), Some(Duration::ZERO));
    }
}
