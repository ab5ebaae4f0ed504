//! A proof that an identity has cost some work: a number that makes a hash begin with zeros.
//!
//! It is found once, when the identity is made, and checked with one hash (S/Kademlia's dynamic
//! puzzle, Baumgart and Mies 2007). It slows down a party that wants very many identities. It does
//! not stop one that wants a few; seats do that.

use apoidea_model::{Key, PeerId};
use serde::{Deserialize, Serialize};

/// The number that proves the work for one identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Toil(pub u64);

/// The work asked for, in bits: each doubles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Effort(pub u8);

impl Effort {
    /// No work: any number proves it.
    pub const NONE: Effort = Effort(0);
    /// A million hashes in the mean: about a second of one core, once per identity.
    pub const IDENTITY: Effort = Effort(20);
}

impl Toil {
    /// Does the work, beginning at `start`, for at most so many tries; none if that was too few.
    pub fn find(id: PeerId, effort: Effort, start: u64, tries: u64) -> Option<Self> {
        let numbers = (0..tries).map(|step| Toil(start.wrapping_add(step)));
        numbers.into_iter().find(|toil| toil.proves(id, effort))
    }

    /// Whether this proves the work for this identity.
    pub fn proves(self, id: PeerId, effort: Effort) -> bool {
        self.zeros(id) >= u32::from(effort.0)
    }

    /// The zero bits that the hash begins with, as far as 64.
    fn zeros(self, id: PeerId) -> u32 {
        let number = self.0.to_be_bytes();
        let hash = Key::hash([&b"apoidea toil "[..], id.key().as_bytes(), &number].concat());
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h]).leading_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> PeerId {
        PeerId::of_public_key(&[number])
    }

    #[test]
    fn work_is_found_and_proves_only_its_own_identity() {
        let effort = Effort(12);
        for number in 0..8 {
            let toil = Toil::find(id(number), effort, 0, 1 << 17).expect("twelve bits");
            assert!(toil.proves(id(number), effort));
            assert!(toil.proves(id(number), Effort(0)));
            assert!(!toil.proves(id(number), Effort(40)));
            assert!(!toil.proves(id(number + 100), effort));
        }
    }

    #[test]
    fn the_work_doubles_with_each_bit() {
        let tries = |effort: u8| {
            let found = (0..64).map(|n| Toil::find(id(n), Effort(effort), 0, 1 << 20));
            found.map(|toil| toil.expect("few bits").0 + 1).sum::<u64>() as f64 / 64.0
        };
        let (six, eight) = (tries(6), tries(8));
        assert!(
            (40.0..96.0).contains(&six) && (160.0..384.0).contains(&eight),
            "{six} {eight}"
        );
    }

    #[test]
    fn too_few_tries_find_nothing() {
        assert_eq!(Toil::find(id(1), Effort(64), 0, 100), None);
    }
}
