//! Finding another ring after a split, and growing together with it.
//!
//! Chord keeps two rings apart for ever once they are apart. So every peer looks itself up through
//! some peer that it remembers. In one ring the answer is the peer itself; any other owner marks
//! its place in another ring. A peer that finds one adopts it and passes the word on. Stabilisation
//! does the rest (after Shafaat et al., Ring Unification, 2007).

use super::{Ring, Turn};
use crate::{
    Contact,
    event::Phase,
    in_flight::Purpose,
    lookup::Goal,
    message::{Notice, RingResponse, Scale, Successors},
};
use rand::RngExt;
use std::time::Duration;

/// Remembered peers of which one is asked.
const CHECK_CHOICE: usize = 8;
/// Least time between two searches that others set off.
const CHECK_AGAIN: Duration = Duration::from_secs(10);

impl Ring {
    /// The regular search for another ring.
    pub(super) fn check(&mut self, turn: &mut Turn<'_>) {
        self.check_at = turn.now + turn.spread(self.settings.check_every);
        if self.has_position() {
            self.check_now(turn);
        }
    }

    /// Looks this peer's id up through a remembered peer. A neighbour is the last choice: it would
    /// only repeat what this peer knows.
    pub(super) fn check_now(&mut self, turn: &mut Turn<'_>) {
        let picked = self.book.pick(CHECK_CHOICE, turn.rng);
        let is_far = |contact: &&Contact| {
            self.neighbours
                .run(&self.me)
                .all(|known| known.id != contact.id)
        };
        if let Some(through) = picked.iter().find(is_far).or(picked.first()).cloned() {
            self.check_through(turn, through);
        }
    }

    pub(super) fn hear_of_other_ring(&mut self, turn: &mut Turn<'_>, through: Contact) {
        let is_due = turn.now.since(self.last_check) >= CHECK_AGAIN;
        if is_due && self.has_position() && through.id != self.me.id {
            self.check_through(turn, through);
        }
    }

    fn check_through(&mut self, turn: &mut Turn<'_>, through: Contact) {
        if !self.is_kin(&through) {
            return;
        }
        self.last_check = turn.now;
        self.end_lookups(|goal| goal == Goal::Check);
        let mut lookup = self.new_lookup(turn, self.me.key(), Goal::Check);
        lookup.begin(self.me.key(), &[through], &[]);
        self.run_lookup(turn, lookup);
    }

    /// Another peer owns this peer's id: it belongs to another ring, or it is a neighbour that does
    /// not know this peer yet.
    pub(super) fn found_other_ring(&mut self, turn: &mut Turn<'_>, owner: &Contact) {
        let is_known = self
            .neighbours
            .head()
            .is_some_and(|head| head.id == owner.id);
        if is_known {
            self.hurry(turn);
        } else if owner.id != self.me.id {
            self.ask(turn, owner, Purpose::Merge);
        }
    }

    /// The owner of our id in another ring has told its neighbours.
    pub(super) fn merge(&mut self, turn: &mut Turn<'_>, owner: Contact, response: RingResponse) {
        let RingResponse::Neighbours {
            successors: Successors::List(_, list),
            scale,
            ..
        } = &response
        else {
            return;
        };
        match (self.phase, self.scale, scale) {
            (Phase::Outside | Phase::Joining, ..) => {}
            (Phase::Alone, _, Scale::Large) => self.joined(turn, owner, None, response),
            (_, Scale::Small, Scale::Small) => {
                self.phase = Phase::Member;
                self.meet_ring(turn, owner, list.as_slice().iter());
            }
            (_, Scale::Small, Scale::Large) => {
                self.become_many(turn);
                self.merge_large(turn, &owner, list.as_slice());
            }
            (_, Scale::Large, _) => self.merge_large(turn, &owner, list.as_slice()),
        }
    }

    fn merge_large(&mut self, turn: &mut Turn<'_>, owner: &Contact, list: &[Contact]) {
        let Some(head) = self.neighbours.head().cloned() else {
            return;
        };
        if owner.key().between(self.me.key(), head.key()) {
            let both = self.interleave([owner].into_iter().chain(list));
            self.neighbours.set_successors(&both);
            self.known = None;
            self.fit_fingers();
            self.book.met(owner, turn.rng);
            self.pass_on(turn, owner, &head);
            self.hurry(turn);
        } else if head.id != owner.id {
            self.tell(
                turn,
                &head,
                Notice::OtherRing {
                    through: owner.clone(),
                },
            );
        }
    }

    /// The own successors and these, each once, clockwise.
    fn interleave<'a>(&'a self, others: impl Iterator<Item = &'a Contact>) -> Vec<Contact> {
        let me = self.me.key();
        let mut both: Vec<Contact> = self
            .neighbours
            .successors()
            .iter()
            .chain(others)
            .cloned()
            .collect();
        both.retain(|contact| contact.id != self.me.id);
        both.sort_by_key(|contact| me.distance_to(contact.key()));
        both.dedup_by_key(|contact| contact.id);
        both
    }

    /// Tells both neighbours, and someone far away, of the other ring.
    fn pass_on(&mut self, turn: &mut Turn<'_>, through: &Contact, old_head: &Contact) {
        let fingers = self.fingers.distinct();
        let far =
            (!fingers.is_empty()).then(|| fingers[turn.rng.random_range(0..fingers.len())].clone());
        let hearers = [
            Some(old_head.clone()),
            self.neighbours.predecessor().cloned(),
            far,
        ];
        for hearer in hearers.into_iter().flatten() {
            self.tell(
                turn,
                &hearer,
                Notice::OtherRing {
                    through: through.clone(),
                },
            );
        }
    }
}
