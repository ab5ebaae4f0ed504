//! The volunteer's bandwidth: how many bytes per second the crawler's requests may use, each way.
//!
//! The ring's own messages are exempt. They are few, and a peer that answers them late is taken for
//! dead.

use super::{Rate, bucket::Bucket};
use crate::lock::lock;
use std::{num::NonZeroU64, sync::Mutex, time::Instant};
use tokio::time;

/// The bandwidth of the crawler's requests and answers; none is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bandwidth {
    /// Bytes per second received.
    pub down: Option<NonZeroU64>,
    /// Bytes per second sent.
    pub up: Option<NonZeroU64>,
}

/// The direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Down,
    Up,
}

/// Both ways' buckets.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    down: Mutex<Option<(Rate, Bucket)>>,
    up: Mutex<Option<(Rate, Bucket)>>,
}

impl Throttle {
    /// Sets the limits from now on.
    pub fn set(&self, bandwidth: Bandwidth) {
        *lock(&self.down) = bandwidth.down.map(bucket);
        *lock(&self.up) = bandwidth.up.map(bucket);
    }

    /// Waits until earlier bytes are paid for, then takes these on credit: a frame may be larger
    /// than the bucket.
    pub async fn spend(&self, way: Way, bytes: usize) {
        while let Err(wait) = self.try_spend(way, bytes) {
            time::sleep(wait).await;
        }
    }

    fn try_spend(&self, way: Way, bytes: usize) -> Result<(), time::Duration> {
        let mut bucket = match way {
            Way::Down => lock(&self.down),
            Way::Up => lock(&self.up),
        };
        let Some((rate, bucket)) = bucket.as_mut() else {
            return Ok(());
        };
        let now = Instant::now();
        bucket.take(*rate, now)?;
        bucket.charge(*rate, bytes as f64, now);
        Ok(())
    }
}

/// A second's worth, or one frame where that is more, since a debt is forgiven beyond one burst.
fn bucket(per_second: NonZeroU64) -> (Rate, Bucket) {
    let per_second = per_second.get() as f64;
    let rate = Rate {
        per_second,
        burst: per_second.max(super::MAX_BODY_BYTES as f64),
    };
    (rate, Bucket::full(rate, Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_limit_nothing_waits_and_with_one_the_rate_holds() {
        let throttle = Throttle::default();
        assert!((0..1000).all(|_| throttle.try_spend(Way::Up, 1 << 20).is_ok()));
        throttle.set(Bandwidth {
            up: NonZeroU64::new(1 << 20),
            down: None,
        });
        let frames = (0..100)
            .take_while(|_| throttle.try_spend(Way::Up, 1 << 16).is_ok())
            .count();
        assert!(
            (16..=18).contains(&frames),
            "a second's worth at once: {frames}"
        );
        assert!(throttle.try_spend(Way::Down, 1 << 16).is_ok());
        let wait = throttle.try_spend(Way::Up, 1).unwrap_err();
        assert!(wait < time::Duration::from_millis(100), "{wait:?}");
        throttle.set(Bandwidth::default());
        assert!(throttle.try_spend(Way::Up, 1).is_ok());
    }
}
