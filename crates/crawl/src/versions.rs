//! The changes that a replica of a domain contains, by who made them and how many: they decide
//! between two replicas.
//!
//! A peer that becomes the owner of an arc begins a [`Tenure`] and counts the changes that it makes
//! to a domain. The [`Versions`] of a replica say how many changes of which tenure are in it (a
//! version vector). So two replicas of which each holds something that the other lacks are never
//! taken for an old and a new one, whatever the clocks say: after a crash, a partition or a week of
//! sleep both count.

use apoidea_model::{PeerId, Time};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The time in which one peer owns some part of the ring. Later ones are greater. It is bound to
/// the peer's id, and so to its key: no other peer can make a change under it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Tenure(u128);

/// The number of changes of each tenure in a replica; the empty one is of a domain that nobody has
/// changed yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<(Tenure, u32)>", into = "Vec<(Tenure, u32)>")]
pub struct Versions(Vec<(Tenure, u32)>);

/// Changes that were made under one tenure, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Under whom.
    pub tenure: Tenure,
    /// Changes under that tenure before.
    pub base: u32,
    /// And after.
    pub version: u32,
}

/// The fate of another peer's replica of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stance {
    /// It is what is here already.
    Same,
    /// All that it contains is here, and more.
    Skip,
    /// It contains all that is here, and more.
    Replace,
    /// Either holds what the other does not: both count.
    Merge,
}

/// Not what a peer would have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the versions of a replica are out of order or too many")]
pub struct InvalidVersions;

/// Bits of a tenure that tell whose it is: so many that nobody finds a key with the same ones.
const TAG_BITS: u32 = 64;
/// Clocks of peers may differ by so much; a tenure from later would count as the latest for ever.
const CLOCK_ERROR: Duration = Duration::from_secs(86_400);
/// Of so many tenures, the latest, the changes are counted. With an older one forgotten, two
/// replicas that are the same may be taken for different ones and merged, which changes nothing.
const MAX_TENURES: usize = 16;

impl Tenure {
    /// A tenure of `peer` that begins now, after `last`.
    pub fn begin(peer: PeerId, now: Time, last: Tenure) -> Self {
        let millis = now.as_millis().max(last.millis().saturating_add(1));
        Tenure(u128::from(millis) << TAG_BITS | u128::from(tag(peer)))
    }

    /// The time at which it began, by the clock of the peer that began it.
    pub fn begun(self) -> Time {
        Time::from_millis(self.millis())
    }

    /// Is it a tenure of this peer?
    pub fn is_of(self, peer: PeerId) -> bool {
        self.0 as u64 == tag(peer)
    }

    /// Did it begin so far in the future that no clock is that wrong?
    pub fn is_in_the_future(self, now: Time) -> bool {
        self.begun() > now + CLOCK_ERROR
    }

    fn millis(self) -> u64 {
        (self.0 >> TAG_BITS) as u64
    }
}

impl Versions {
    /// Counts a change under a tenure.
    pub fn advance(&mut self, tenure: Tenure) -> Step {
        let base = self.of(tenure);
        let step = Step {
            tenure,
            base,
            version: base.saturating_add(1),
        };
        self.take(step);
        step
    }

    /// The versions of a replica with these changes too.
    pub fn after(&self, step: Step) -> Self {
        let mut after = self.clone();
        after.take(step);
        after
    }

    /// The number of changes of a tenure that are contained.
    pub fn of(&self, tenure: Tenure) -> u32 {
        self.0
            .binary_search_by_key(&tenure, |(tenure, _)| *tenure)
            .map_or(0, |at| self.0[at].1)
    }

    /// Under whom the last change was made, as far as tenures tell.
    pub fn latest(&self) -> Tenure {
        self.0
            .last()
            .map_or(Tenure::default(), |(tenure, _)| *tenure)
    }

    /// The replica's place among others, as far as one number tells: a replica that contains
    /// another ranks higher.
    pub fn rank(&self) -> u64 {
        self.0.iter().map(|(_, version)| u64::from(*version)).sum()
    }

    /// Of what contains both.
    pub fn joined(&self, other: &Self) -> Self {
        let mut both = self.clone();
        for &(tenure, version) in &other.0 {
            both.take(Step {
                tenure,
                base: 0,
                version,
            });
        }
        both
    }

    /// Whether all of `other` is contained.
    pub fn contain(&self, other: &Self) -> bool {
        other
            .0
            .iter()
            .all(|&(tenure, version)| self.of(tenure) >= version)
    }

    /// The fate of `theirs` at a peer that has this replica.
    pub fn stance(&self, theirs: &Self) -> Stance {
        match (self.contain(theirs), theirs.contain(self)) {
            (true, true) => Stance::Same,
            (true, false) => Stance::Skip,
            (false, true) => Stance::Replace,
            (false, false) => Stance::Merge,
        }
    }

    fn take(
        &mut self,
        Step {
            tenure, version, ..
        }: Step,
    ) {
        match self.0.binary_search_by_key(&tenure, |(tenure, _)| *tenure) {
            Ok(at) => self.0[at].1 = self.0[at].1.max(version),
            Err(at) => self.0.insert(at, (tenure, version)),
        }
        let surplus = self.0.len().saturating_sub(MAX_TENURES);
        self.0.drain(..surplus);
    }
}

impl TryFrom<Vec<(Tenure, u32)>> for Versions {
    type Error = InvalidVersions;

    fn try_from(counts: Vec<(Tenure, u32)>) -> Result<Self, InvalidVersions> {
        let is_sound = counts.len() <= MAX_TENURES && counts.is_sorted_by(|a, b| a.0 < b.0);
        if is_sound {
            Ok(Versions(counts))
        } else {
            Err(InvalidVersions)
        }
    }
}

impl From<Versions> for Vec<(Tenure, u32)> {
    fn from(versions: Versions) -> Self {
        versions.0
    }
}

fn tag(peer: PeerId) -> u64 {
    let key = peer.key();
    let bytes = key.as_bytes();
    bytes[..8]
        .iter()
        .fold(0, |tag, byte| tag << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;
    use proptest::prelude::*;

    fn tenure(owner: &str, millis: u64) -> Tenure {
        Tenure::begin(
            PeerId::at(Key::hash(owner)),
            Time::from_millis(millis),
            Tenure::default(),
        )
    }

    fn versions(counts: &[(Tenure, u32)]) -> Versions {
        let mut versions = Versions::default();
        counts
            .iter()
            .for_each(|&(tenure, count)| (0..count).for_each(|_| _ = versions.advance(tenure)));
        versions
    }

    #[test]
    fn later_tenures_are_greater_whatever_the_clock_says() {
        let first = tenure("a", 1000);
        let second = Tenure::begin(PeerId::at(Key::hash("b")), Time::from_millis(10), first);
        assert!(second > first);
        assert_eq!(versions(&[(second, 1), (first, 5)]).latest(), second);
        assert_eq!(first.begun(), Time::from_millis(1000));
    }

    #[test]
    fn a_tenure_is_of_one_peer_and_not_of_the_future() {
        let now = Time::from_millis(1_000_000_000);
        let peer = |name: &str| PeerId::at(Key::hash(name));
        let tenure = Tenure::begin(peer("a"), now, Tenure::default());
        assert!(tenure.is_of(peer("a")) && !tenure.is_of(peer("b")));
        let begun = |at| Tenure::begin(peer("a"), at, Tenure::default());
        let latest = now + CLOCK_ERROR;
        assert!(!begun(latest).is_in_the_future(now));
        assert!(begun(latest + Duration::from_millis(1)).is_in_the_future(now));
        let year_two_million = Time::from_millis(63_000_000_000_000_000);
        assert!(begun(year_two_million).is_in_the_future(now));
        assert!(Tenure(u128::MAX).is_in_the_future(now));
        let after = Tenure::begin(peer("a"), now, Tenure(u128::MAX));
        assert_eq!(after.begun(), Tenure(u128::MAX).begun(), "no overflow");
    }

    #[test]
    fn copies_are_told_apart() {
        let (a, b) = (tenure("a", 5), tenure("b", 9));
        for (mine, theirs, stance) in [
            (vec![(a, 1)], vec![(a, 1)], Stance::Same),
            (vec![], vec![(a, 1)], Stance::Replace),
            (vec![(a, 1)], vec![(a, 2)], Stance::Replace),
            (vec![(a, 3)], vec![(a, 2)], Stance::Skip),
            (vec![(a, 3)], vec![], Stance::Skip),
            (vec![(a, 2)], vec![(a, 2), (b, 1)], Stance::Replace),
            (vec![(a, 3)], vec![(a, 2), (b, 1)], Stance::Merge),
        ] {
            assert_eq!(
                versions(&mine).stance(&versions(&theirs)),
                stance,
                "{mine:?} {theirs:?}"
            );
        }
    }

    #[test]
    fn a_change_is_a_step_from_what_was_there() {
        let a = tenure("a", 5);
        let mut replica = versions(&[(a, 2)]);
        assert_eq!(
            replica.advance(a),
            Step {
                tenure: a,
                base: 2,
                version: 3
            }
        );
        assert_eq!(replica.of(a), 3);
    }

    #[test]
    fn strangers_versions_are_bounded_and_in_order() {
        let read = |counts: &[(Tenure, u32)]| {
            postcard::from_bytes::<Versions>(&postcard::to_stdvec(counts).unwrap())
        };
        let many: Vec<_> = (0..=MAX_TENURES as u64)
            .map(|i| (tenure("a", i), 1))
            .collect();
        assert!(read(&many).is_err() && read(&many[1..]).is_ok());
        assert!(read(&[(tenure("a", 2), 1), (tenure("a", 1), 1)]).is_err());
        assert!(read(&[(tenure("a", 2), 1), (tenure("a", 2), 1)]).is_err());
    }

    fn any_versions() -> impl Strategy<Value = Versions> {
        proptest::collection::vec((0u64..40, 0u32..4), 0..30).prop_map(|counts| {
            versions(
                &counts
                    .iter()
                    .map(|&(i, n)| (tenure("a", i), n))
                    .collect::<Vec<_>>(),
            )
        })
    }

    proptest! {
        #[test]
        fn whoever_joins_in_whatever_order_comes_to_the_same(a in any_versions(), b in any_versions(), c in any_versions()) {
            prop_assert_eq!(a.joined(&b), b.joined(&a));
            prop_assert_eq!(a.joined(&b).joined(&c), a.joined(&b.joined(&c)));
            prop_assert_eq!(a.joined(&a), a);
        }
    }
}
