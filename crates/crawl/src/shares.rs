//! Fair shares of the queue: how many new URLs each other peer may bring.
//!
//! A peer that floods its neighbours with links fills its own share and nobody else's. A share is
//! counted in URLs that were new and entered a queue, and it empties by half in a day, about as
//! URLs are fetched. Beyond it links are declined: they stay in the sender's outbox.

use apoidea_model::{PeerId, Time};
use std::{collections::HashMap, time::Duration};

/// The share of the queue that one sender may fill: a million new URLs a day by default, more than
/// an honest peer finds for any one owner.
pub const SHARE: f64 = 0.05;
/// In this time half of a filled share is free again.
pub const HALF_LIFE: Duration = Duration::from_secs(24 * 3600);
/// A domain that was not known before takes as much of a share as so many URLs: it has a state, a
/// seen log and a place on two more disks.
pub const DOMAIN_COST: u64 = 10;
/// Senders that are remembered; the one that brought least is forgotten first.
pub const MAX_SENDERS: usize = 4096;

/// The filled shares of other peers.
#[derive(Debug)]
pub struct Shares {
    /// URLs that one sender may bring.
    each: u64,
    senders: HashMap<PeerId, Filled>,
}

/// The part of a share that is filled.
#[derive(Debug, Clone, Copy)]
struct Filled {
    urls: f64,
    at: Time,
}

impl Shares {
    /// Shares of queues that hold so many URLs together. Nobody has brought anything yet.
    pub fn new(capacity: u64) -> Self {
        Self::of_each((capacity as f64 * SHARE) as u64)
    }

    /// Shares of so many things for each sender.
    pub fn of_each(each: u64) -> Self {
        Shares {
            each,
            senders: HashMap::new(),
        }
    }

    /// New URLs that a sender may still bring.
    pub fn room(&self, sender: PeerId, now: Time) -> u64 {
        let filled = self
            .senders
            .get(&sender)
            .map_or(0.0, |filled| filled.left(now));
        (self.each as f64 - filled).max(0.0) as u64
    }

    /// A sender has brought so many new URLs.
    pub fn fill(&mut self, sender: PeerId, urls: u64, now: Time) {
        if urls == 0 {
            return;
        }
        if self.senders.len() >= MAX_SENDERS && !self.senders.contains_key(&sender) {
            self.forget_least(now);
        }
        let filled = self
            .senders
            .entry(sender)
            .or_insert(Filled { urls: 0.0, at: now });
        *filled = Filled {
            urls: filled.left(now) + urls as f64,
            at: now,
        };
    }

    fn forget_least(&mut self, now: Time) {
        let left = |filled: &Filled| filled.left(now);
        let least = self
            .senders
            .iter()
            .min_by(|(_, one), (_, other)| left(one).total_cmp(&left(other)));
        if let Some(least) = least.map(|(sender, _)| *sender) {
            self.senders.remove(&least);
        }
    }
}

impl Filled {
    fn left(&self, now: Time) -> f64 {
        let half_lives = now.since(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        self.urls * (-half_lives).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;
    use proptest::prelude::*;

    fn peer(number: u32) -> PeerId {
        PeerId::at(Key::hash(number.to_be_bytes()))
    }

    #[test]
    fn a_flood_fills_the_flooders_own_share_only() {
        let (mut shares, now) = (Shares::new(1000), Time::ZERO);
        assert_eq!(shares.room(peer(1), now), 50);
        shares.fill(peer(1), 50, now);
        assert_eq!(shares.room(peer(1), now), 0);
        assert_eq!(shares.room(peer(2), now), 50);
    }

    #[test]
    fn half_of_a_share_is_free_again_after_a_day() {
        let mut shares = Shares::new(1000);
        shares.fill(peer(1), 40, Time::ZERO);
        assert_eq!(shares.room(peer(1), Time::ZERO + HALF_LIFE), 30);
    }

    #[test]
    fn the_sender_that_brought_least_is_forgotten_first() {
        let (mut shares, now) = (Shares::new(1_000_000), Time::ZERO);
        (0..MAX_SENDERS as u32).for_each(|number| shares.fill(peer(number), 10, now));
        shares.fill(peer(7), 90, now);
        shares.fill(peer(u32::MAX), 5, now);
        assert_eq!(shares.senders.len(), MAX_SENDERS);
        assert_eq!(shares.room(peer(7), now), 50_000 - 100);
        assert_eq!(shares.room(peer(u32::MAX), now), 50_000 - 5);
    }

    proptest! {
        /// However a sender brings its URLs, no more of them enter in a moment than its share.
        #[test]
        fn no_sender_takes_more_than_its_share_at_once(wishes in prop::collection::vec(0u64..5000, 1..50)) {
            let (mut shares, now) = (Shares::new(10_000), Time::ZERO);
            let mut entered = 0;
            for wish in wishes {
                let urls = wish.min(shares.room(peer(1), now));
                shares.fill(peer(1), urls, now);
                entered += urls;
            }
            prop_assert!(entered <= 500);
        }
    }
}
