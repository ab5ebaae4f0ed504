//! Keeping successors and predecessor right, one operation at a time (Zave 2017 §5: stabilize and
//! rectify).
//!
//! A pointer is adopted only after its peer has answered. The request to the first successor is
//! also the notice to it: the asked peer considers the asker as its predecessor.

use super::{Operation, Ring, Turn, survey::Told};
use crate::{
    Contact,
    contact::Contacts,
    in_flight::Purpose,
    message::{Predecessor, RingResponse, Scale, Successors},
};
use apoidea_model::PeerId;
use rand::RngExt;
use std::time::Duration;

/// Peers asked in a row in one round; the next round finds the others.
const MAX_STEPS: u32 = 32;

impl Ring {
    /// Asks the first successor, unless something else is changing the state.
    pub(super) fn stabilize(&mut self, turn: &mut Turn<'_>) {
        if self.operation == Operation::Idle {
            self.stabilize_step(turn, 1);
        }
    }

    fn stabilize_step(&mut self, turn: &mut Turn<'_>, step: u32) {
        let Some(head) = self.neighbours.head().cloned() else {
            return self.start_over(turn);
        };
        self.operation = Operation::Stabilizing(step);
        if step > MAX_STEPS || !self.ask(turn, &head, Purpose::Stabilize) {
            self.finish_operation(turn);
        }
    }

    fn steps(&self) -> u32 {
        if let Operation::Stabilizing(step) = self.operation {
            step
        } else {
            0
        }
    }

    /// The first successor has answered.
    pub(super) fn stabilized(
        &mut self,
        turn: &mut Turn<'_>,
        head: Contact,
        response: RingResponse,
    ) {
        let is_head = self
            .neighbours
            .head()
            .is_some_and(|current| current.id == head.id);
        if self.scale == Scale::Small || !is_head {
            return self.finish_operation(turn);
        }
        let RingResponse::Neighbours {
            predecessor,
            successors,
            scale,
        } = response
        else {
            self.ask_again_soon(turn);
            return self.finish_operation(turn);
        };
        // Only a predecessor's word about those before it is kept, only in a large ring, and not
        // beyond a restart, which shows in the version of its list.
        let is_unchanged = successors == Successors::Unchanged;
        let is_heard = is_unchanged && predecessor == Predecessor::You && scale == Scale::Large;
        self.told = is_heard.then_some((head.id, self.telling));
        let is_wrapped = self.take_successors(turn, &head, successors);
        let is_told_few = scale == Scale::Small && self.may_be_few(turn.now);
        let is_few = is_wrapped || is_told_few || self.neighbours.meet();
        if is_few && self.neighbours.predecessor().is_some() {
            self.finish_operation(turn);
            return self.become_few(turn);
        }
        self.follow_predecessor_of(turn, &head, predecessor);
    }

    /// `list = (head :: its list)[..r]`, with those that the head leaves out and that live, and
    /// without those that have not spoken yet. Returns whether the list leads back to this peer.
    fn take_successors(
        &mut self,
        turn: &mut Turn<'_>,
        head: &Contact,
        successors: Successors,
    ) -> bool {
        let Successors::List(version, list) = successors else {
            return false;
        };
        self.book.met(head, turn.rng);
        let told = [head].into_iter().chain(list.as_slice());
        let told: Vec<Contact> = told.cloned().collect();
        let outcome = self.take_told_successors(turn, &told);
        // A list that is not known in whole is wanted again.
        self.known = (outcome == Told::Known).then_some((head.id, version));
        if let Some(last) = self.neighbours.successors().last() {
            self.fingers.fit(self.me.key(), last.key());
        }
        told.iter().any(|contact| contact.id == self.me.id)
    }

    fn follow_predecessor_of(
        &mut self,
        turn: &mut Turn<'_>,
        head: &Contact,
        predecessor: Predecessor,
    ) {
        let Predecessor::Peer(other) = predecessor else {
            return self.finish_operation(turn);
        };
        if self.suspects.contains(other.id, turn.now) || other.id == self.me.id {
            return self.finish_operation(turn);
        }
        let is_between = other.key().between(self.me.key(), head.key());
        let purpose = if is_between {
            Purpose::Adopt
        } else {
            Purpose::Precede
        };
        let is_wanted = is_between || self.neighbours.predecessor().is_none();
        if !is_wanted || !self.ask(turn, &other, purpose) {
            self.finish_operation(turn);
        }
    }

    /// The peer between here and the first successor has answered: it is the first successor now,
    /// and is told so.
    pub(super) fn adopt_successor(
        &mut self,
        turn: &mut Turn<'_>,
        new: Contact,
        response: RingResponse,
    ) {
        let is_between = |head: &Contact| new.key().between(self.me.key(), head.key());
        let RingResponse::Neighbours {
            successors: Successors::List(version, list),
            ..
        } = response
        else {
            self.ask_again_soon(turn);
            return self.finish_operation(turn);
        };
        if !self.neighbours.head().is_some_and(is_between) {
            return self.finish_operation(turn);
        }
        self.take_successors(turn, &new, Successors::List(version, list));
        self.stabilize_step(turn, self.steps() + 1);
    }

    /// The first successor is dead: the next one takes its place.
    pub(super) fn drop_head(&mut self, turn: &mut Turn<'_>, dead: PeerId) {
        self.neighbours.remove(dead);
        self.known = None;
        if self.scale == Scale::Small {
            return self.drop_member(turn, dead);
        }
        self.stabilize_step(turn, self.steps() + 1);
    }

    /// A peer has this one as its first successor, and may be its predecessor.
    pub(super) fn rectify(&mut self, turn: &mut Turn<'_>, asker: &Contact, tail: Option<Contacts>) {
        match self.neighbours.predecessor().cloned() {
            Some(current) if current.id == asker.id => self.take_predecessors(turn, asker, tail),
            Some(current) if !asker.key().between(current.key(), self.me.key()) => {
                self.operation = Operation::Rectifying;
                if !self.ask(
                    turn,
                    &current,
                    Purpose::Rectify {
                        instead: asker.clone(),
                    },
                ) {
                    self.finish_operation(turn);
                }
            }
            _ => {
                self.take_predecessors(turn, asker, tail);
                self.book.met(asker, turn.rng);
            }
        }
    }

    /// The predecessor has spoken, and has perhaps told those before it.
    fn take_predecessors(&mut self, turn: &mut Turn<'_>, first: &Contact, tail: Option<Contacts>) {
        self.heard.note(first.id, turn.now);
        self.take_first_predecessor(turn, first);
        if let Some(tail) = tail {
            let told = [first].into_iter().chain(tail.as_slice());
            let told: Vec<Contact> = told.cloned().collect();
            self.take_told_predecessors(turn, &told);
        }
    }

    /// The predecessor is dead, and another peer is waiting to take its place.
    pub(super) fn replace_predecessor(
        &mut self,
        turn: &mut Turn<'_>,
        dead: PeerId,
        instead: Contact,
    ) {
        if self
            .neighbours
            .predecessor()
            .is_some_and(|current| current.id == dead)
        {
            self.take_predecessors(turn, &instead, None);
            self.book.met(&instead, turn.rng);
        }
        self.finish_operation(turn);
    }

    /// A peer that may be the predecessor has answered.
    pub(super) fn adopt_predecessor(&mut self, turn: &mut Turn<'_>, candidate: Contact) {
        let is_nearer = |current: &Contact| {
            candidate.key().between(current.key(), self.me.key())
                || self.suspects.contains(current.id, turn.now)
        };
        if self.neighbours.predecessor().is_none_or(is_nearer) {
            self.take_predecessors(turn, &candidate, None);
        }
        self.finish_operation(turn);
    }

    /// Asks a peer before the first successor for its neighbours, to make it the first. If another
    /// operation is running, it asks later.
    pub(super) fn try_successor(&mut self, turn: &mut Turn<'_>, candidate: &Contact) {
        if self.operation != Operation::Idle {
            return self.ask_again_soon(turn);
        }
        self.operation = Operation::Stabilizing(1);
        if !self.ask(turn, candidate, Purpose::Adopt) {
            self.finish_operation(turn);
        }
    }

    /// Asks a peer whether it lives, to make it the predecessor; at once or after the running
    /// operation.
    pub(super) fn try_predecessor(&mut self, turn: &mut Turn<'_>, candidate: Contact) {
        if self.operation != Operation::Idle {
            self.precede_next = Some(candidate);
            return;
        }
        self.operation = Operation::Preceding;
        if !self.ask(turn, &candidate, Purpose::Precede) {
            self.finish_operation(turn);
        }
    }

    pub(super) fn finish_operation(&mut self, turn: &mut Turn<'_>) {
        self.operation = Operation::Idle;
        if let Some(candidate) = self.precede_next.take() {
            self.try_predecessor(turn, candidate);
        }
    }

    fn ask_again_soon(&mut self, turn: &mut Turn<'_>) {
        let soon = turn.now + Duration::from_millis(turn.rng.random_range(500..1500));
        self.round_at = self.round_at.min(soon);
    }
}
