//! Arcs of other owners, remembered from lookups, so that a warm lookup needs no hop.
//!
//! An arc begins where other peers end, never where its owner alone says so. A wrong entry costs
//! one redirected request: owners check every key, and a redirect or a failure removes the entry.

use crate::{Contact, arc::Arc, settings::Settings};
use apoidea_model::{Key, PeerId, Time};
use std::{collections::BTreeMap, time::Duration};

/// Known arcs by their ends.
#[derive(Debug, Clone)]
pub(crate) struct ArcCache {
    by_end: BTreeMap<Key, Known>,
    most: usize,
    keep: Duration,
    evict_after: Key,
}

#[derive(Debug, Clone)]
struct Known {
    from: Key,
    /// The owner and then the peers after it.
    owners: Vec<Contact>,
    until: Time,
}

impl ArcCache {
    pub fn new(settings: &Settings) -> Self {
        let (most, keep) = (settings.cached_arcs, settings.cached_for);
        ArcCache {
            by_end: BTreeMap::new(),
            most,
            keep,
            evict_after: Key::from_bytes([0; 32]),
        }
    }

    pub fn len(&self) -> usize {
        self.by_end.len()
    }

    /// Remembers that the first of `owners` owns everything after `from`.
    pub fn learn(&mut self, from: Key, owners: Vec<Contact>, now: Time) {
        let Some(owner) = owners.first() else { return };
        if self.most == 0 {
            return;
        }
        let end = owner.key();
        if self.by_end.len() >= self.most && !self.by_end.contains_key(&end) {
            self.evict();
        }
        self.by_end.insert(
            end,
            Known {
                from,
                owners,
                until: now + self.keep,
            },
        );
    }

    /// The owner of a key and the peers after it, as far as they are known.
    pub fn owners(&self, key: Key, now: Time) -> Option<&[Contact]> {
        self.known(key, now).map(|known| known.owners.as_slice())
    }

    /// The owner of a key, and the start of its arc.
    pub fn owner(&self, key: Key, now: Time) -> Option<(Key, &Contact)> {
        let known = self.known(key, now)?;
        Some((known.from, known.owners.first()?))
    }

    fn known(&self, key: Key, now: Time) -> Option<&Known> {
        let (end, known) = self
            .by_end
            .range(key..)
            .next()
            .or_else(|| self.by_end.first_key_value())?;
        let arc = Arc {
            from: known.from,
            to: *end,
        };
        (now < known.until && arc.contains(key)).then_some(known)
    }

    /// Forgets the arc of a peer, and every entry that names it as a replica.
    pub fn forget(&mut self, peer: PeerId) {
        let is_named = |known: &Known| known.owners.iter().any(|owner| owner.id == peer);
        self.by_end.retain(|_, known| !is_named(known));
    }

    /// Makes room, each time a little further around the ring.
    fn evict(&mut self) {
        let next = self
            .by_end
            .range(self.evict_after..)
            .next()
            .or_else(|| self.by_end.first_key_value());
        if let Some((&end, _)) = next {
            self.by_end.remove(&end);
            self.evict_after = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::peer;

    fn cache(most: usize) -> ArcCache {
        ArcCache::new(&Settings {
            cached_arcs: most,
            ..Settings::default()
        })
    }

    #[test]
    fn a_key_is_found_in_the_arc_that_holds_it_until_the_arc_is_old() {
        let mut cache = cache(9);
        cache.learn(peer(200).key(), vec![peer(10), peer(20)], Time::ZERO);
        for (position, found) in [
            (5, true),
            (10, true),
            (250, true),
            (200, false),
            (11, false),
        ] {
            assert_eq!(
                cache.owners(peer(position).key(), Time::ZERO).is_some(),
                found,
                "{position}"
            );
        }
        let old = Time::ZERO + Settings::default().cached_for;
        assert!(cache.owners(peer(5).key(), old).is_none());
    }

    #[test]
    fn a_peer_that_failed_is_neither_owner_nor_replica() {
        let mut cache = cache(9);
        cache.learn(peer(10).key(), vec![peer(20), peer(30)], Time::ZERO);
        cache.learn(peer(20).key(), vec![peer(30)], Time::ZERO);
        cache.forget(peer(30).id);
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut cache = cache(3);
        (1..100).for_each(|n| cache.learn(peer(n - 1).key(), vec![peer(n)], Time::ZERO));
        assert_eq!(cache.len(), 3);
        assert!(cache.owners(peer(99).key(), Time::ZERO).is_some());
    }
}
