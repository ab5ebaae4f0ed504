//! Memory near its limit: everything that can be smaller becomes smaller, step by step, before the
//! crawl has to pause.

/// Above this share of the limit, sizes shrink: early enough for what is under way to finish.
const SHRINK_AT: f64 = 0.80;
/// Below this share, they grow back.
const GROW_AT: f64 = 0.70;
/// By how much a look shrinks and grows them. Down fast, up slowly.
const SHRINK: f64 = 0.7;
const GROW: f64 = 1.02;
/// The least share of the usual sizes that is left.
const LEAST: f64 = 0.02;

/// The share of their usual sizes that caches, windows and concurrency may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Squeeze {
    share: f64,
}

impl Default for Squeeze {
    fn default() -> Self {
        Squeeze { share: 1.0 }
    }
}

impl Squeeze {
    /// The share after a look at the memory in use; about once a second.
    pub fn look(&mut self, used: Option<u64>, limit: Option<u64>) -> f64 {
        let Some(limit) = limit else {
            self.share = 1.0;
            return self.share;
        };
        let fullness = used.unwrap_or(0) as f64 / (limit as f64).max(1.0);
        if fullness > SHRINK_AT {
            self.share = (self.share * SHRINK).max(LEAST);
        } else if fullness < GROW_AT {
            self.share = (self.share * GROW).min(1.0);
        }
        self.share
    }

    /// A size under the present share, never nothing.
    pub fn of(self, usual: usize, least: usize) -> usize {
        ((usual as f64 * self.share) as usize).max(least.min(usual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_shrink_near_the_limit_and_grow_back_slowly() {
        let mut squeeze = Squeeze::default();
        let limit = Some(100);
        assert_eq!(squeeze.look(Some(75), limit), 1.0);
        let shrunk = (0..5)
            .map(|_| squeeze.look(Some(90), limit))
            .last()
            .unwrap();
        assert!(shrunk < 0.2, "{shrunk}");
        assert_eq!(
            squeeze.look(Some(75), limit),
            shrunk,
            "between both marks nothing changes"
        );
        assert!(
            (0..10)
                .map(|_| squeeze.look(Some(50), limit))
                .last()
                .unwrap()
                < 2.0 * shrunk
        );
        assert_eq!(
            (0..1000)
                .map(|_| squeeze.look(Some(50), limit))
                .last()
                .unwrap(),
            1.0
        );
    }

    #[test]
    fn something_is_always_left_and_without_a_limit_everything() {
        let mut squeeze = Squeeze::default();
        assert!(
            (0..1000)
                .map(|_| squeeze.look(Some(u64::MAX), Some(1)))
                .all(|share| share > 0.0)
        );
        assert_eq!(
            (squeeze.of(10, 1), squeeze.of(1000, 1), squeeze.of(4, 8)),
            (1, 20, 4)
        );
        assert_eq!(squeeze.look(Some(u64::MAX), None), 1.0);
    }
}
