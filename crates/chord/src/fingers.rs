//! Long-range pointers: the owner of `me + 2^e`, for every e that reaches beyond the successors
//! (Chord §4.3).
//!
//! They make lookups short and never decide which answer is right. A missing or stale finger costs
//! hops, no more.

use crate::Contact;
use apoidea_model::{Key, PeerId};

/// The fingers of one peer, farthest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fingers {
    /// Index i is the finger of exponent 255 − i.
    farthest_first: Vec<Option<Contact>>,
    next: usize,
}

/// Most fingers ever kept: 64 reach beyond the successors of a ring of 2⁶⁰ peers.
const MAX_FINGERS: usize = 64;

impl Fingers {
    /// Keeps as many fingers as reach beyond the last successor.
    pub fn fit(&mut self, me: Key, last_successor: Key) {
        let depth = leading_zeros(me.distance_to(last_successor)).min(MAX_FINGERS);
        self.farthest_first.resize(depth, None);
    }

    /// The exponent to refresh now: a missing one first, otherwise each in turn.
    pub fn next_exponent(&mut self) -> Option<usize> {
        if self.farthest_first.is_empty() {
            return None;
        }
        // One that cannot be found must not keep the others waiting: it comes every other time.
        let missing = self
            .farthest_first
            .iter()
            .position(Option::is_none)
            .filter(|at| at + 1 != self.next);
        let index = missing.unwrap_or(self.next % self.farthest_first.len());
        self.next = index + 1;
        Some(Key::BITS - 1 - index)
    }

    /// Whether any finger is still unknown.
    pub fn is_incomplete(&self) -> bool {
        self.farthest_first.iter().any(Option::is_none)
    }

    pub fn finger(&self, exponent: usize) -> Option<&Contact> {
        self.farthest_first.get(Key::BITS - 1 - exponent)?.as_ref()
    }

    /// Points a finger at this peer and forgets the one before. Returns whether it is another peer.
    pub fn set(&mut self, exponent: usize, contact: Contact) -> bool {
        let Some(finger) = self.farthest_first.get_mut(Key::BITS - 1 - exponent) else {
            return false;
        };
        let is_new = finger.as_ref().is_none_or(|old| old.id != contact.id);
        *finger = Some(contact);
        is_new
    }

    /// Refreshes the finger to this peer next: it was silent once.
    pub fn doubt(&mut self, peer: PeerId) {
        let is_it =
            |finger: &Option<Contact>| finger.as_ref().is_some_and(|contact| contact.id == peer);
        if let Some(index) = self.farthest_first.iter().position(is_it) {
            self.next = index;
        }
    }

    /// Forgets a peer that did not answer.
    pub fn remove(&mut self, gone: PeerId) {
        for finger in &mut self.farthest_first {
            if finger.as_ref().is_some_and(|contact| contact.id == gone) {
                *finger = None;
            }
        }
    }

    pub fn len(&self) -> usize {
        self.farthest_first.len()
    }

    pub fn clear(&mut self) {
        self.farthest_first.clear();
    }

    /// Distinct fingers strictly between `me` and `key`, nearest to the key first.
    pub fn before(&self, me: Key, key: Key) -> impl Iterator<Item = &Contact> {
        let mut last: Option<PeerId> = None;
        self.farthest_first.iter().flatten().filter(move |contact| {
            let is_wanted = Some(contact.id) != last && contact.key().between(me, key);
            if is_wanted {
                last = Some(contact.id);
            }
            is_wanted
        })
    }

    /// Distinct fingers, farthest first.
    pub fn distinct(&self) -> Vec<Contact> {
        let mut all: Vec<Contact> = self.farthest_first.iter().flatten().cloned().collect();
        all.dedup_by_key(|contact| contact.id);
        all
    }
}

fn leading_zeros(distance: Key) -> usize {
    let bytes = distance.as_bytes();
    let zero_bytes = bytes.iter().take_while(|&&byte| byte == 0).count();
    zero_bytes * 8
        + bytes
            .get(zero_bytes)
            .map_or(0, |byte| byte.leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u8, second: u8) -> Key {
        let mut bytes = [0; 32];
        (bytes[0], bytes[1]) = (first, second);
        Key::from_bytes(bytes)
    }

    fn peer(first: u8) -> Contact {
        Contact::new(PeerId::at(key(first, 1)), &[])
    }

    #[test]
    fn only_fingers_beyond_the_successors_are_kept() {
        let mut fingers = Fingers::default();
        fingers.fit(key(1, 0), key(1, 200));
        let exponents: Vec<_> = (0..8)
            .map(|_| {
                let exponent = fingers.next_exponent().unwrap();
                fingers.set(exponent, peer(9));
                exponent
            })
            .collect();
        assert_eq!(
            exponents,
            [255, 254, 253, 252, 251, 250, 249, 248],
            "2^248 is the first beyond 200 · 2^240"
        );
        assert_eq!(fingers.next_exponent(), Some(255), "then in turn again");
        assert!(!fingers.is_incomplete());
    }

    #[test]
    fn the_nearest_before_the_key_comes_first() {
        let mut fingers = Fingers::default();
        fingers.fit(key(0, 0), key(8, 0));
        for (exponent, at) in [(255, 130), (254, 70), (253, 40), (252, 40)] {
            fingers.set(exponent, peer(at));
        }
        let before: Vec<_> = fingers.before(key(0, 0), key(100, 0)).cloned().collect();
        assert_eq!(before, [peer(70), peer(40)]);
        fingers.remove(peer(40).id);
        assert_eq!(fingers.distinct(), [peer(130), peer(70)]);
        assert!(fingers.is_incomplete());
    }
}
