//! Members that fell silent without a goodbye, and whether this peer is still in touch.
//!
//! Nobody can tell a dead peer from one that it does not hear. Where a network falls apart, both
//! parts would take the other one for dead, and both would do its work. So a peer counts: one that
//! lately lost more neighbours than it still hears takes itself for cut off, and does nothing until
//! it hears them again or has waited for long. The others wait for a while before they take the
//! place of a silent peer, so that it has noticed by then.

use crate::settings::Settings;
use apoidea_model::{PeerId, Time};
use serde::{Deserialize, Serialize};
use std::{cmp::Ordering, time::Duration};

/// Lost members kept at most: two of the longest lists.
const MAX_LOST: usize = 2 * Settings::MAX_SUCCESSORS;
/// Rounds in which a peer that hears nobody begins to ask, at the latest.
const ROUNDS: u32 = 2;
/// Longest timeouts in a row until it has asked so many others that it knows: a neighbour falls
/// silent, then the sample that is asked because of it, each at its second attempt.
const TIMEOUTS: u32 = 4;

/// The members that a peer still hears, of those that it knew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// Nobody fell silent lately.
    All,
    /// Some fell silent: they are dead, or cut off.
    Most,
    /// Most fell silent: this peer is the one that is cut off.
    Few,
}

/// The lost members, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lost(Vec<(PeerId, Time)>);

impl Lost {
    /// A member has fallen silent.
    pub fn add(&mut self, peer: PeerId, now: Time) {
        self.forget(peer);
        if self.0.len() >= MAX_LOST {
            self.0.remove(0);
        }
        self.0.push((peer, now));
    }

    /// A member is not silent, or has left as one should.
    pub fn forget(&mut self, peer: PeerId) {
        self.0.retain(|(id, _)| *id != peer);
    }

    /// Drops those that were lost so long ago that the others have to go on without them.
    pub fn age(&mut self, now: Time, lost_for: Duration) {
        self.0.retain(|(_, lost)| now.since(*lost) < lost_for);
    }

    /// Whether this peer, together with the members that it hears, is more than those that it lost.
    /// Of two equal parts, the one with the smallest id is.
    pub fn touch(&self, me: PeerId, present: &[PeerId]) -> Touch {
        let lost = || {
            let ids = self.0.iter().map(|(id, _)| *id);
            ids.filter(|id| *id != me && !present.contains(id))
        };
        let here = 1 + present.iter().filter(|id| **id != me).count();
        let is_larger = match lost().count().cmp(&here) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => present.iter().copied().chain([me]).min() < lost().min(),
        };
        match is_larger {
            true if lost().next().is_none() => Touch::All,
            true => Touch::Most,
            false => Touch::Few,
        }
    }

    /// The times from which on others may take the places of the lost members.
    pub fn graces(&self, settings: &Settings) -> Vec<(PeerId, Time)> {
        let grace = ROUNDS * settings.stabilize_every + TIMEOUTS * settings.most_timeout;
        let until = |(id, lost): &(PeerId, Time)| (*id, *lost + grace);
        self.0.iter().map(until).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> PeerId {
        PeerId::at(apoidea_model::Key::from_bytes([number; 32]))
    }

    fn at(seconds: u64) -> Time {
        Time::from_millis(1000 * seconds)
    }

    /// Whether a peer is in touch that lost and still hears these.
    fn is_in_touch(me: u8, lost: &[u8], present: &[u8]) -> bool {
        let mut list = Lost::default();
        lost.iter().for_each(|id| list.add(peer(*id), at(1)));
        let present: Vec<PeerId> = present.iter().map(|id| peer(*id)).collect();
        list.touch(peer(me), &present) != Touch::Few
    }

    #[test]
    fn the_larger_part_is_in_touch_and_the_smaller_is_cut_off() {
        assert!(is_in_touch(1, &[], &[]));
        assert!(is_in_touch(1, &[4, 5], &[2, 3]));
        assert!(!is_in_touch(4, &[1, 2, 3], &[5]));
        assert!(!is_in_touch(1, &[2, 3, 4], &[]));
    }

    #[test]
    fn of_two_equal_parts_just_one_is_in_touch() {
        assert!(is_in_touch(1, &[2], &[]) && !is_in_touch(2, &[1], &[]));
        assert!(is_in_touch(4, &[2, 3], &[1]) && !is_in_touch(2, &[1, 4], &[3]));
    }

    #[test]
    fn members_that_are_heard_again_are_not_lost() {
        assert!(is_in_touch(4, &[1, 2, 3], &[3, 5]));
        let mut lost = Lost::default();
        lost.add(peer(2), at(1));
        lost.add(peer(3), at(1));
        lost.forget(peer(3));
        assert_eq!(lost.touch(peer(1), &[]), Touch::Most);
        assert_eq!(lost.touch(peer(1), &[peer(2)]), Touch::All);
    }

    #[test]
    fn after_a_while_a_part_goes_on_without_the_others() {
        let mut lost = Lost::default();
        lost.add(peer(1), at(10));
        lost.age(at(69), Duration::from_secs(60));
        assert_eq!(lost.touch(peer(2), &[]), Touch::Few);
        lost.age(at(70), Duration::from_secs(60));
        assert_eq!(lost.touch(peer(2), &[]), Touch::All);
    }

    #[test]
    fn the_place_of_a_lost_member_is_not_taken_before_it_can_know() {
        let settings = Settings {
            stabilize_every: Duration::from_secs(1),
            most_timeout: Duration::from_secs(3),
            ..Settings::default()
        };
        let mut lost = Lost::default();
        lost.add(peer(1), at(10));
        assert_eq!(lost.graces(&settings), [(peer(1), at(24))]);
    }

    #[test]
    fn the_list_is_bounded() {
        let mut lost = Lost::default();
        (0..=255).for_each(|id| lost.add(peer(id), at(1)));
        assert_eq!(lost.0.len(), MAX_LOST);
    }
}
