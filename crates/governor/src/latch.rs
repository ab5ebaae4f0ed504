//! Against flapping: a value that has to fall well below the mark that it went above, and averages
//! instead of moments.

use apoidea_model::Time;
use std::time::Duration;

/// Closed when a value goes above a mark, open again when it falls below a share of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Latch {
    is_closed: bool,
}

impl Latch {
    /// Whether it is closed after this value. Without a mark it opens.
    pub(crate) fn look(&mut self, value: f64, mark: Option<f64>, release: f64) -> bool {
        self.is_closed = match mark {
            Some(mark) if self.is_closed => value >= mark * release,
            Some(mark) => value > mark,
            None => false,
        };
        self.is_closed
    }
}

/// An average that forgets what is older than about its length.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Average {
    value: f64,
    at: Option<Time>,
}

impl Average {
    /// The average after this value.
    pub(crate) fn take(&mut self, value: f64, now: Time, length: Duration) -> f64 {
        let weight = match self.at {
            Some(at) => 1.0 - (-now.since(at).as_secs_f64() / length.as_secs_f64()).exp(),
            None => 1.0,
        };
        self.value += (value - self.value) * weight;
        self.at = Some(now);
        self.value
    }
}
