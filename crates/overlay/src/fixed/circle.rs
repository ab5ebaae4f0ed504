//! Identifier-seeded consistent hashing (Boldi et al., UbiCrawler §4). Every member has points on
//! the ring, as many as its capacity asks for, drawn from a generator that is seeded with its id. A
//! key belongs to the first living member at or after it. The list of members gives all points.
//! When a member goes, only its own keys move.

use super::Member;
use apoidea_chord::{Arc, ArcChange};
use apoidea_model::{Key, PeerId};
use std::collections::{BTreeMap, HashSet};

/// Points per unit of capacity. With 100 the largest shares are 1.25 times the mean, with 1 they
/// are 4.5 times (both measured, p99 ÷ mean).
const POINTS: u32 = 100;

/// All members' points.
#[derive(Debug, Clone)]
pub(crate) struct Circle {
    points: BTreeMap<Key, PeerId>,
    members: usize,
}

impl Circle {
    /// The circle of these members; a member that is named twice counts once.
    pub fn new<'a>(members: impl IntoIterator<Item = &'a Member>) -> Self {
        let (mut points, mut known) = (BTreeMap::new(), HashSet::new());
        for member in members {
            if known.insert(member.id) {
                points.extend(points_of(member));
            }
        }
        Circle {
            points,
            members: known.len(),
        }
    }

    /// The first `count` distinct members at or after `key` that are not down.
    pub fn owners(&self, key: Key, count: usize, down: &HashSet<PeerId>) -> Vec<PeerId> {
        let count = count.min(self.members);
        let mut owners = Vec::with_capacity(count);
        let clockwise = self.points.range(key..).chain(self.points.range(..key));
        for (_, id) in clockwise {
            if owners.len() >= count {
                break;
            }
            if !down.contains(id) && !owners.contains(id) {
                owners.push(*id);
            }
        }
        owners
    }

    /// The arcs that `me` gains and loses when the members that are down change.
    pub fn changes(
        &self,
        me: PeerId,
        before: &HashSet<PeerId>,
        after: &HashSet<PeerId>,
    ) -> Vec<ArcChange> {
        let mut changes: Vec<ArcChange> = Vec::new();
        for (arc, point) in self.arcs() {
            let owner = |down| self.owners(point, 1, down).first().copied();
            let change = match (owner(before), owner(after)) {
                (old, new) if old == new => continue,
                (old, Some(new)) if new == me => ArcChange::Gained { arc, from: old },
                (Some(old), new) if old == me => ArcChange::Lost { arc, to: new },
                _ => continue,
            };
            match changes.last_mut().and_then(|last| joined(*last, change)) {
                Some(joined) => {
                    *changes.last_mut().expect("it was joined with the last one") = joined
                }
                None => changes.push(change),
            }
        }
        changes
    }

    /// The arcs between neighbouring points, each with the point that it ends at.
    fn arcs(&self) -> impl Iterator<Item = (Arc, Key)> + '_ {
        let last = self.points.keys().next_back();
        let before = last.into_iter().chain(self.points.keys());
        before.zip(self.points.keys()).map(|(from, to)| {
            (
                Arc {
                    from: *from,
                    to: *to,
                },
                *to,
            )
        })
    }
}

/// Two neighbouring arcs that moved the same way are one.
fn joined(first: ArcChange, second: ArcChange) -> Option<ArcChange> {
    match (first, second) {
        (ArcChange::Gained { arc: a, from }, ArcChange::Gained { arc: b, from: same })
            if a.to == b.from && from == same =>
        {
            Some(ArcChange::Gained {
                arc: Arc {
                    from: a.from,
                    to: b.to,
                },
                from,
            })
        }
        (ArcChange::Lost { arc: a, to }, ArcChange::Lost { arc: b, to: same })
            if a.to == b.from && to == same =>
        {
            Some(ArcChange::Lost {
                arc: Arc {
                    from: a.from,
                    to: b.to,
                },
                to,
            })
        }
        _ => None,
    }
}

/// The generator is a hash of the id and a counter, so that it is the same in every version and
/// language.
fn points_of(member: &Member) -> impl Iterator<Item = (Key, PeerId)> + use<> {
    let id = member.id;
    let count = POINTS * u32::from(member.capacity.clamp(1, Member::MAX_CAPACITY));
    (0..count).map(move |n| (point(id, n), id))
}

fn point(id: PeerId, number: u32) -> Key {
    Key::hash([id.key().as_bytes().as_slice(), &number.to_be_bytes()].concat())
}

/// The first point of a member, whatever its capacity.
pub(crate) fn first_point(id: PeerId) -> Key {
    point(id, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn member(n: u32, capacity: u8) -> Member {
        Member {
            id: PeerId::at(Key::hash(n.to_be_bytes())),
            addresses: vec![],
            capacity,
        }
    }

    fn members(count: u32) -> Vec<Member> {
        (0..count).map(|n| member(n, 1)).collect()
    }

    fn keys(count: u32) -> impl Iterator<Item = Key> {
        (0..count).map(|n| Key::hash(format!("key {n}")))
    }

    fn owner(circle: &Circle, key: Key, down: &HashSet<PeerId>) -> Option<PeerId> {
        circle.owners(key, 1, down).first().copied()
    }

    #[test]
    fn shares_follow_capacity() {
        let circle = Circle::new(&[member(0, 1), member(1, 1), member(2, 4)]);
        let big = member(2, 4).id;
        let none = HashSet::new();
        let share = keys(6000)
            .filter(|key| owner(&circle, *key, &none) == Some(big))
            .count();
        assert!(
            (3600..4400).contains(&share),
            "four sixths of 6000 are 4000, not {share}"
        );
    }

    #[test]
    fn replicas_are_distinct_and_the_next_takes_over_from_one_that_is_down() {
        let circle = Circle::new(&members(8));
        for key in keys(200) {
            let owners = circle.owners(key, 3, &HashSet::new());
            assert_eq!(owners.iter().collect::<HashSet<_>>().len(), 3);
            let down = HashSet::from([owners[0]]);
            assert_eq!(circle.owners(key, 2, &down), owners[1..]);
        }
        assert_eq!(circle.owners(Key::hash("x"), 99, &HashSet::new()).len(), 8);
    }

    #[test]
    fn an_empty_circle_has_no_owners() {
        let circle = Circle::new(&[]);
        assert!(circle.owners(Key::hash("x"), 3, &HashSet::new()).is_empty());
        assert!(
            circle
                .changes(member(0, 1).id, &HashSet::new(), &HashSet::new())
                .is_empty()
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn changes_say_exactly_which_keys_moved(before in 0u8..64, after in 0u8..64) {
            let all = members(6);
            let me = all[5].id;
            let down = |bits: u8| -> HashSet<PeerId> {
                (0..5).filter(|n| bits & 1 << n != 0).map(|n| all[n].id).collect()
            };
            let (circle, before, after) = (Circle::new(&all), down(before), down(after));
            let changes = circle.changes(me, &before, &after);
            for key in keys(300) {
                let (old, new) = (owner(&circle, key, &before), owner(&circle, key, &after));
                let told: Vec<_> = changes.iter().filter(|change| match change {
                    ArcChange::Gained { arc, .. } | ArcChange::Lost { arc, .. } => arc.contains(key),
                }).collect();
                let is_told = match (old == Some(me), new == Some(me)) {
                    (false, true) => matches!(told[..], [ArcChange::Gained { from, .. }] if *from == old),
                    (true, false) => matches!(told[..], [ArcChange::Lost { to, .. }] if *to == new),
                    _ => told.is_empty(),
                };
                prop_assert!(is_told, "{key:?} moved from {old:?} to {new:?}, told was {told:?}");
            }
        }

        #[test]
        fn a_new_member_takes_keys_and_no_others_move(n in 6u32..100) {
            let old = members(6);
            let new = [old.clone(), vec![member(n, 1)]].concat();
            let (before, after, none) = (Circle::new(&old), Circle::new(&new), HashSet::new());
            for key in keys(300) {
                let owner_now = owner(&after, key, &none);
                prop_assert!(owner_now == owner(&before, key, &none) || owner_now == Some(member(n, 1).id));
            }
        }
    }
}
