//! Links that were looked at a moment ago, so that the same navigation bar is not looked at on every
//! page again.
//!
//! A bounded memory, shared by all who process pages. It forgets by overwriting, and forgetting
//! only costs a look at the seen-filter or a link sent once more; it never takes one link for
//! another (62 bits of a keyed hash, unknown to strangers). What was asked for again since it was
//! inserted is popular, and gets a second chance before it is overwritten: so the links that every
//! page has stay, and are not sent to their owners over and over.

use apoidea_model::PageUrl;
use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Places, a power of two: 512 KiB.
const PLACES: usize = 1 << 16;

/// Marks an occupied place.
const TAKEN: u64 = 1;
/// Marks a link that was asked for since it was inserted.
const POPULAR: u64 = 2;

/// Remembers links.
pub struct RecentLinks {
    places: Box<[AtomicU64]>,
    key: RandomState,
}

impl RecentLinks {
    /// Nothing remembered.
    pub fn new() -> Self {
        RecentLinks {
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            key: RandomState::new(),
        }
    }

    /// Was this link looked at lately?
    pub fn contains(&self, url: &PageUrl) -> bool {
        let (place, mark) = self.place(url);
        let known = self.places[place].load(Relaxed);
        if known & !POPULAR != mark {
            return false;
        }
        if known & POPULAR == 0 {
            self.places[place].store(mark | POPULAR, Relaxed);
        }
        true
    }

    /// Remembers a link that is in its domain's queue or was there, or that never will be.
    pub fn insert(&self, url: &PageUrl) {
        let (place, mark) = self.place(url);
        let known = self.places[place].load(Relaxed);
        let is_another = known & !POPULAR != mark;
        let is_popular = known & POPULAR != 0;
        self.places[place].store(
            if is_another && is_popular {
                known & !POPULAR
            } else {
                mark
            },
            Relaxed,
        );
    }

    fn place(&self, url: &PageUrl) -> (usize, u64) {
        let hash = self.key.hash_one(url.as_str());
        ((hash >> 32) as usize % PLACES, hash & !POPULAR | TAKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_inserted_is_remembered_and_nothing_else() {
        let recent = RecentLinks::new();
        let url = |i: u32| PageUrl::parse(&format!("http://a.test/{i}")).unwrap();
        (0..1000).for_each(|i| recent.insert(&url(i)));
        assert!((0..1000).filter(|&i| recent.contains(&url(i))).count() > 950);
        assert!((1000..50_000).all(|i| !recent.contains(&url(i))));
    }

    #[test]
    fn popular_links_outlast_a_flood_of_others() {
        let recent = RecentLinks::new();
        let url = |i: u32| PageUrl::parse(&format!("http://a.test/{i}")).unwrap();
        (0..100).for_each(|i| recent.insert(&url(i)));
        for i in 0..4 * PLACES as u32 {
            if i % 20_000 == 0 {
                (0..100).for_each(|popular| _ = recent.contains(&url(popular)));
            }
            recent.insert(&url(1000 + i));
        }
        let left = (0..100).filter(|&i| recent.contains(&url(i))).count();
        assert!(
            left > 40,
            "{left} of 100; without a second chance there would be two"
        );
    }
}
