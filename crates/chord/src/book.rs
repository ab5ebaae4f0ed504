//! Peers worth remembering. Through them a lost peer finds the ring again, and the halves of a
//! split ring find each other.
//!
//! Entry points given from outside are kept for good. Peers met on the ring replace each other at
//! random, so some of a lost half stay even during a long split.

use crate::{Contact, settings::Settings};
use apoidea_model::PeerId;
use rand::{Rng, RngExt};

/// Entry points kept at most: a list of bootstrap peers, not a directory.
const MAX_ENTRIES: usize = 32;

/// The remembered peers.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    me: PeerId,
    entries: Vec<Contact>,
    met: Vec<Contact>,
    most_met: usize,
}

impl Book {
    pub fn new(me: PeerId, settings: &Settings) -> Self {
        Book {
            me,
            entries: Vec::new(),
            met: Vec::new(),
            most_met: settings.remembered,
        }
    }

    /// Keeps an entry point that someone outside of the ring has named.
    pub fn entry(&mut self, contact: Contact) {
        if contact.id == self.me {
            return;
        }
        if let Some(known) = self.entries.iter_mut().find(|known| known.id == contact.id) {
            *known = contact;
        } else if self.entries.len() < MAX_ENTRIES {
            self.entries.push(contact);
        }
    }

    /// Keeps a peer that was met on the ring.
    pub fn met(&mut self, contact: &Contact, rng: &mut dyn Rng) {
        if contact.id == self.me {
            return;
        }
        if let Some(known) = self.met.iter_mut().find(|known| known.id == contact.id) {
            *known = contact.clone();
        } else if self.met.len() < self.most_met {
            self.met.push(contact.clone());
        } else if !self.met.is_empty() {
            let at = rng.random_range(0..self.met.len());
            self.met[at] = contact.clone();
        }
    }

    /// A remembered peer has said where it sits now.
    pub fn moved(&mut self, contact: &Contact) {
        let known = self.entries.iter_mut().chain(&mut self.met);
        for known in known.filter(|known| known.id == contact.id) {
            *known = known.at(contact.seat());
        }
    }

    /// Forgets a peer that has left for good.
    pub fn forget(&mut self, gone: PeerId) {
        self.met.retain(|known| known.id != gone);
    }

    pub fn is_empty(&self) -> bool {
        self.met.is_empty() && self.entries.is_empty()
    }

    /// Up to `count` different peers, at random.
    pub fn pick(&self, count: usize, rng: &mut dyn Rng) -> Vec<Contact> {
        let mut all = self.all();
        let count = count.min(all.len());
        for at in 0..count {
            let other = rng.random_range(at..all.len());
            all.swap(at, other);
        }
        all.truncate(count);
        all
    }

    /// All remembered peers, each once.
    pub fn all(&self) -> Vec<Contact> {
        let is_new = |met: &&Contact| self.entries.iter().all(|entry| entry.id != met.id);
        self.entries
            .iter()
            .chain(self.met.iter().filter(is_new))
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::numbered as peer;
    use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

    #[test]
    fn entries_stay_and_others_replace_each_other() {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(1);
        let mut book = Book::new(
            peer(0).id,
            &Settings {
                remembered: 8,
                ..Settings::default()
            },
        );
        book.entry(peer(1));
        (0..100).for_each(|n| book.met(&peer(n), rng));
        let all = book.all();
        assert!(all.contains(&peer(1)) && !all.contains(&peer(0)));
        assert!((8..=9).contains(&all.len()), "{}", all.len());
        let picked = book.pick(5, rng);
        assert_eq!(picked.len(), 5);
        assert!(
            picked
                .iter()
                .enumerate()
                .all(|(i, a)| picked[..i].iter().all(|b| a.id != b.id))
        );
    }
}
