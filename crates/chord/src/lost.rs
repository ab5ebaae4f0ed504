//! Members that fell silent without a goodbye, and whether this peer is still in touch.
//!
//! Nobody can tell a dead peer from one that it does not hear. Where a network falls apart, both
//! parts would take the other one for dead, and both would do its work. So a peer counts: one that
//! lately lost more neighbours than it still hears takes itself for cut off, and does nothing until
//! it hears them again or has waited for long. The others wait for a while before they take the
//! place of a silent peer, so that it has noticed by then.
//!
//! Counting takes time: each silence is two timeouts. So a peer that loses one member asks the
//! others at once, and does nothing until they have answered or are lost, too. After a single crash
//! that is one round trip. After a cut it is the time until the peer knows on which side it is.

use crate::settings::Settings;
use apoidea_model::{PeerId, Time};
use serde::{Deserialize, Serialize};
use std::{cmp::Ordering, time::Duration};

/// Lost members kept at most: two of the longest lists.
const MAX_LOST: usize = 2 * Settings::MAX_SUCCESSORS;
/// Rounds, of up to half as much again, in which a peer that is cut off asks one that it does not
/// hear: the second one, at the latest.
const ROUNDS: u32 = 3;
/// Longest timeouts until it has noticed that silence, at the second attempt, and one to spare.
/// From then on it is unsure, and does nothing.
const TIMEOUTS: u32 = 3;

/// The members that a peer still hears, of those that it knew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// Nobody fell silent lately.
    All,
    /// Some fell silent: they are dead, or cut off.
    Most,
    /// One fell silent a moment ago, and others have not answered yet since.
    Unsure,
    /// Most fell silent: this peer is the one that is cut off.
    Few,
}

/// The lost members, oldest first, and those that were asked when one of them was lost.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lost {
    members: Vec<(PeerId, Time)>,
    /// Asked and not heard yet; at most as many as a small ring has, or a sample of a large one.
    asked: Vec<PeerId>,
}

impl Lost {
    /// A member has fallen silent.
    pub fn add(&mut self, peer: PeerId, now: Time) {
        self.forget(peer);
        self.answered(peer);
        if self.members.len() >= MAX_LOST {
            self.members.remove(0);
        }
        self.members.push((peer, now));
    }

    /// A member is asked because another one was lost.
    pub fn ask(&mut self, peer: PeerId) {
        if !self.asked.contains(&peer) {
            self.asked.push(peer);
        }
    }

    /// A peer has answered.
    pub fn answered(&mut self, peer: PeerId) {
        self.asked.retain(|id| *id != peer);
    }

    /// A member is not silent, or has left as one should.
    pub fn forget(&mut self, peer: PeerId) {
        self.members.retain(|(id, _)| *id != peer);
    }

    /// Drops those that were lost so long ago that the others have to go on without them. The
    /// larger part does so when it takes their places: from then on it is the whole, and may fall
    /// apart itself. The smaller part waits for much longer.
    pub fn age(&mut self, now: Time, touch: Touch, settings: &Settings) {
        let kept_for = match touch {
            Touch::All | Touch::Most => grace(settings).min(settings.lost_for),
            Touch::Unsure | Touch::Few => settings.lost_for,
        };
        self.members.retain(|(_, lost)| now.since(*lost) < kept_for);
    }

    /// Whether this peer, together with the members that it hears, is more than those that it lost.
    /// Of two equal parts, the one with the smallest id is.
    pub fn touch(&self, me: PeerId, present: &[PeerId]) -> Touch {
        let lost = || {
            let ids = self.members.iter().map(|(id, _)| *id);
            ids.filter(|id| *id != me && !present.contains(id))
        };
        let here = 1 + present.iter().filter(|id| **id != me).count();
        let is_larger = match lost().count().cmp(&here) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => present.iter().copied().chain([me]).min() < lost().min(),
        };
        let is_open = self.asked.iter().any(|id| present.contains(id));
        match is_larger {
            true if is_open => Touch::Unsure,
            true if lost().next().is_none() => Touch::All,
            true => Touch::Most,
            false => Touch::Few,
        }
    }

    /// The times from which on others may take the places of the lost members.
    pub fn graces(&self, settings: &Settings) -> Vec<(PeerId, Time)> {
        let until = |(id, lost): &(PeerId, Time)| (*id, *lost + grace(settings));
        self.members.iter().map(until).collect()
    }
}

/// The time after which a peer that is cut off does nothing any more.
fn grace(settings: &Settings) -> Duration {
    ROUNDS * settings.stabilize_every + TIMEOUTS * settings.most_timeout
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
    fn a_peer_is_unsure_until_all_that_it_asks_have_answered_or_are_lost() {
        let (mut lost, present) = (Lost::default(), [2, 3, 4].map(peer));
        lost.add(peer(5), at(1));
        present.iter().for_each(|other| lost.ask(*other));
        assert_eq!(lost.touch(peer(1), &present), Touch::Unsure);
        lost.answered(peer(2));
        lost.add(peer(3), at(2));
        assert_eq!(lost.touch(peer(1), &present), Touch::Unsure);
        assert_eq!(
            lost.touch(peer(1), &present[..2]),
            Touch::Most,
            "4 has left"
        );
        lost.answered(peer(4));
        assert_eq!(lost.touch(peer(1), &present), Touch::Most);
    }

    #[test]
    fn the_larger_part_goes_on_without_the_others_and_after_long_the_smaller_does() {
        let settings = Settings::default();
        let mut lost = Lost::default();
        lost.add(peer(1), at(10));
        lost.age(at(48), Touch::Most, &settings);
        assert_eq!(lost.touch(peer(2), &[]), Touch::Few);
        lost.age(at(189), Touch::Few, &settings);
        assert_eq!(lost.touch(peer(2), &[]), Touch::Few);
        let mut others = lost.clone();
        others.age(at(49), Touch::Most, &settings);
        assert_eq!(others.touch(peer(2), &[]), Touch::All);
        lost.age(at(190), Touch::Few, &settings);
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
        assert_eq!(lost.graces(&settings), [(peer(1), at(22))]);
    }

    #[test]
    fn the_list_is_bounded() {
        let mut lost = Lost::default();
        (0..=255).for_each(|id| lost.add(peer(id), at(1)));
        assert_eq!(lost.members.len(), MAX_LOST);
    }
}
