//! Links that were settled a moment ago, so that the same navigation bar is not looked at on every page again.
//!
//! A bounded memory, shared by all who process pages. It forgets by overwriting, and forgetting only costs a look at
//! the seen-filter; it never takes one link for another (64 bits of a keyed hash, unknown to strangers).

use apoidea_model::PageUrl;
use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Places, a power of two: 512 KiB.
const PLACES: usize = 1 << 16;

/// Remembers links.
pub struct RecentLinks {
    places: Box<[AtomicU64]>,
    key: RandomState,
}

impl RecentLinks {
    /// Nothing remembered.
    pub fn new() -> Self {
        RecentLinks { places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(), key: RandomState::new() }
    }

    /// Was this link settled lately?
    pub fn contains(&self, url: &PageUrl) -> bool {
        let (place, mark) = self.place(url);
        self.places[place].load(Relaxed) == mark
    }

    /// Remembers a link that is in its domain's queue or was there, or that never will be.
    pub fn insert(&self, url: &PageUrl) {
        let (place, mark) = self.place(url);
        self.places[place].store(mark, Relaxed);
    }

    /// Never zero, which marks an empty place.
    fn place(&self, url: &PageUrl) -> (usize, u64) {
        let hash = self.key.hash_one(url.as_str());
        (hash as usize % PLACES, hash | 1)
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
}
