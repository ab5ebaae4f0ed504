//! The small ring: every member knows every other, and computes its neighbours instead of
//! negotiating them.
//!
//! A peer named by another is greeted before it counts. A silent peer is dropped. Each peer judges
//! by its own experience only, so no rumour can remove a living member.

use super::{Ring, Turn};
use crate::{
    Contact,
    event::Phase,
    in_flight::Purpose,
    message::{RingResponse, Scale},
};
use apoidea_model::{PeerId, Time};
use rand::RngExt;

/// Rounds in which a peer that has counted too many for a roster is not talked out of it. Peers
/// that join at the same time are still counting, and would make all others count again.
const COUNT_HOLDS: u32 = 6;

impl Ring {
    /// Most members of a small ring: r on either side and oneself are then the whole ring.
    pub(super) fn most_few(&self) -> usize {
        2 * self.settings.successors + 1
    }

    /// One round: compares rosters with the first successor and with someone else.
    pub(super) fn compare_rosters(&mut self, turn: &mut Turn<'_>) {
        let Some(head) = self.neighbours.head().cloned() else {
            return self.start_over(turn);
        };
        let members = self.roster.members();
        let other = members[turn.rng.random_range(0..members.len())].clone();
        for member in self.roster.unheard() {
            self.greet(turn, &member);
        }
        self.ask_roster(turn, &head);
        if other.id != head.id {
            self.ask_roster(turn, &other);
        }
    }

    fn ask_roster(&mut self, turn: &mut Turn<'_>, member: &Contact) {
        if !self.in_flight.is_asked(member.id, &Purpose::Roster) {
            self.ask(turn, member, Purpose::Roster);
        }
    }

    /// A member has sent its roster. A peer that only one of the two knows is greeted: it is new,
    /// or dead.
    pub(super) fn take_roster(
        &mut self,
        turn: &mut Turn<'_>,
        from: Contact,
        response: RingResponse,
    ) {
        let RingResponse::Roster { members } = response else {
            return;
        };
        self.meet_member(turn, &from);
        if self.scale == Scale::Large || members.as_slice().is_empty() {
            return;
        }
        let named = members.as_slice();
        let is_unnamed =
            |mine: &&Contact| mine.id != from.id && named.iter().all(|c| c.id != mine.id);
        let unnamed: Vec<Contact> = self
            .roster
            .members()
            .iter()
            .filter(is_unnamed)
            .cloned()
            .collect();
        let unknown = named
            .iter()
            .filter(|c| c.id != self.me.id && !self.roster.contains(c.id))
            .cloned();
        for member in unknown.collect::<Vec<_>>().into_iter().chain(unnamed) {
            self.greet(turn, &member);
        }
    }

    fn greet(&mut self, turn: &mut Turn<'_>, member: &Contact) {
        let is_asked = self.in_flight.is_asked(member.id, &Purpose::Hello);
        // A suspect may wait, unless the own ring already counts on it.
        let may_wait =
            !self.roster.contains(member.id) && self.suspects.contains(member.id, turn.now);
        if !is_asked && !may_wait {
            self.ask(turn, member, Purpose::Hello);
        }
    }

    /// A peer has answered our greeting.
    pub(super) fn take_hello(&mut self, turn: &mut Turn<'_>, from: Contact) {
        self.meet_member(turn, &from);
    }

    /// A member has spoken: it counts from now on.
    pub(super) fn meet_member(&mut self, turn: &mut Turn<'_>, member: &Contact) {
        if self.scale == Scale::Large || !self.has_position() {
            return;
        }
        if self.roster.add(member.clone()) {
            self.book.met(member, turn.rng);
            self.compute_neighbours(turn);
        }
    }

    /// Begins among these peers, of which only the first has answered.
    pub(super) fn meet_ring<'a>(
        &mut self,
        turn: &mut Turn<'_>,
        first: Contact,
        others: impl Iterator<Item = &'a Contact>,
    ) {
        let (me, place) = (self.me.id, self.me.key());
        others
            .filter(|other| other.id != me && other.id != first.id && other.key() != place)
            .for_each(|c| self.roster.add_unheard(c));
        self.roster.add(first.clone());
        for member in self.roster.unheard() {
            self.greet(turn, &member);
        }
        self.ask_roster(turn, &first);
        self.compute_neighbours(turn);
    }

    /// A member is silent or has left.
    pub(super) fn drop_member(&mut self, turn: &mut Turn<'_>, gone: PeerId) {
        if self.scale == Scale::Small && self.roster.remove(gone) {
            self.compute_neighbours(turn);
        }
    }

    /// A member has said goodbye. If this peer is alone now, it is not lost: it is the last member.
    pub(super) fn part_from_member(&mut self, turn: &mut Turn<'_>, gone: PeerId) {
        if self.roster.len() > 1 || !self.roster.contains(gone) {
            return self.drop_member(turn, gone);
        }
        self.roster.clear();
        self.neighbours.clear();
        self.be_alone(turn);
    }

    fn compute_neighbours(&mut self, turn: &mut Turn<'_>) {
        let me = self.me.key();
        self.neighbours.set_successors(self.roster.clockwise(me));
        self.neighbours
            .set_predecessors(self.roster.anticlockwise(me));
        if self.roster.len() == 0 {
            return self.start_over(turn);
        }
        self.phase = Phase::Member;
        if self.roster.heard() + 1 > self.most_few() {
            self.counted_many = Some(turn.now);
            self.become_many(turn);
        }
    }

    /// Too many to know everyone: the neighbours computed last are where Chord begins.
    pub(super) fn become_many(&mut self, turn: &mut Turn<'_>) {
        self.scale = Scale::Large;
        self.roster.clear();
        (self.known, self.told) = (None, None);
        self.fit_fingers();
        self.hurry(turn);
    }

    /// Whether a neighbour that keeps a roster can be right. It cannot if this peer has just
    /// counted too many, which the other has not done yet. It cannot if there are clearly more than
    /// a roster holds: an estimate from so few neighbours is rarely eight times too large.
    pub(super) fn may_be_few(&self, now: Time) -> bool {
        !self.has_just_counted_many(now) && self.size_estimate() < 8.0 * self.most_few() as f64
    }

    /// Whether the roster turned out too long a moment ago.
    pub(super) fn has_just_counted_many(&self, now: Time) -> bool {
        let holds = COUNT_HOLDS * self.settings.stabilize_every;
        self.counted_many
            .is_some_and(|counted| now.since(counted) < holds)
    }

    /// The members are few enough again. A peer in the lists is a member once it has answered.
    pub(super) fn become_few(&mut self, turn: &mut Turn<'_>) {
        // Without a predecessor the own arc would be guessed from the far end of the successors.
        let (Some(head), Some(predecessor)) = (
            self.neighbours.head().cloned(),
            self.neighbours.predecessor().cloned(),
        ) else {
            return;
        };
        if self.suspects.contains(predecessor.id, turn.now) {
            return;
        }
        let listed: Vec<Contact> = self.neighbours.run(&self.me).cloned().collect();
        self.scale = Scale::Small;
        self.fingers.clear();
        self.roster.clear();
        self.roster.add(predecessor);
        self.meet_ring(turn, head, listed.iter());
    }
}
