//! How new a copy of a domain is, and who made it: what decides between two copies when views differ.
//!
//! Whoever becomes the owner of an arc begins a [`Tenure`]; the first change it makes to a domain puts the domain into
//! that tenure, and every later one counts on. A later tenure wins, so that the copies of a crash, a partition or a peer
//! that slept for a week find their order without anybody's help.

use apoidea_model::{PeerId, Time};
use serde::{Deserialize, Serialize};

/// The time in which one peer owns some part of the ring. Later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Tenure(u64);

/// How new a copy of a domain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// Under whom the last change was made.
    pub tenure: Tenure,
    /// Changes under that tenure.
    pub version: u32,
}

/// What to do with another peer's copy of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stance {
    /// It is what is here already.
    Same,
    /// It is an earlier state of what is here.
    Skip,
    /// It takes the place of what is here.
    Replace,
    /// Either holds what the other does not: both count.
    Merge,
}

/// Bits of a tenure that tell whose it is: enough to tell the few holders of one domain apart.
const TAG_BITS: u32 = 16;

impl Tenure {
    /// A tenure of `peer` that begins now, after `last`.
    pub fn begin(peer: PeerId, now: Time, last: Tenure) -> Self {
        let millis = now.as_millis().max((last.0 >> TAG_BITS) + 1);
        Tenure(millis << TAG_BITS | tag(peer))
    }

    /// Is this a tenure of `peer`?
    pub fn is_of(self, peer: PeerId) -> bool {
        self.0 & ((1 << TAG_BITS) - 1) == tag(peer)
    }
}

impl Stamp {
    /// Of a domain that nobody has changed yet.
    pub const ZERO: Stamp = Stamp { tenure: Tenure(0), version: 0 };

    /// After another change, made under `tenure`. A copy from a later tenure stays in that one.
    pub fn next(self, tenure: Tenure) -> Self {
        if self.tenure < tenure {
            Stamp { tenure, version: 1 }
        } else {
            Stamp { version: self.version.saturating_add(1), ..self }
        }
    }

    /// What `me`, whose copy has this stamp, does with the copy of `them`. What a peer wrote under its own tenure may
    /// not have reached anybody else, so such a copy is never just dropped.
    pub fn stance(self, me: PeerId, theirs: Stamp, them: PeerId) -> Stance {
        match self.cmp(&theirs) {
            std::cmp::Ordering::Equal => Stance::Same,
            _ if self == Stamp::ZERO => Stance::Replace,
            std::cmp::Ordering::Less if self.tenure.is_of(me) => Stance::Merge,
            std::cmp::Ordering::Less => Stance::Replace,
            std::cmp::Ordering::Greater if theirs.tenure.is_of(them) && theirs != Stamp::ZERO => {
                Stance::Merge
            }
            std::cmp::Ordering::Greater => Stance::Skip,
        }
    }
}

fn tag(peer: PeerId) -> u64 {
    let bytes = *peer.key().as_bytes();
    u64::from(u16::from_be_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    fn peer(name: &str) -> PeerId {
        PeerId::at(Key::hash(name))
    }

    fn stamp(owner: &str, millis: u64, version: u32) -> Stamp {
        Stamp { tenure: Tenure::begin(peer(owner), Time::from_millis(millis), Tenure::default()), version }
    }

    #[test]
    fn later_tenures_win_whatever_the_clock_says() {
        let first = Tenure::begin(peer("a"), Time::from_millis(1000), Tenure::default());
        let second = Tenure::begin(peer("b"), Time::from_millis(10), first);
        assert!(second > first && second.is_of(peer("b")) && !second.is_of(peer("a")));
        let stamp = Stamp::ZERO.next(second).next(second);
        assert_eq!(stamp, Stamp { tenure: second, version: 2 });
        assert!(stamp.next(first) > stamp, "a change never makes a copy older");
    }

    #[test]
    fn copies_are_told_apart() {
        let (me, them) = (peer("me"), peer("them"));
        for (mine, theirs, stance) in [
            (stamp("me", 5, 1), stamp("me", 5, 1), Stance::Same),
            (Stamp::ZERO, stamp("them", 5, 1), Stance::Replace),
            (stamp("other", 5, 1), stamp("other", 5, 2), Stance::Replace),
            (stamp("other", 5, 3), stamp("other", 5, 2), Stance::Skip),
            (stamp("me", 5, 6), stamp("them", 9, 1), Stance::Merge),
            (stamp("me", 5, 6), stamp("me", 5, 8), Stance::Merge),
            (stamp("other", 9, 1), stamp("them", 5, 6), Stance::Merge),
            (stamp("me", 9, 1), Stamp::ZERO, Stance::Skip),
        ] {
            assert_eq!(mine.stance(me, theirs, them), stance, "{mine:?} {theirs:?}");
        }
    }
}
