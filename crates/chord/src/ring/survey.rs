//! Knowing the neighbours by their own word, so that no liar among them can hide the others.
//!
//! Chord takes its lists from one neighbour: successors from the first successor, predecessors from
//! the predecessor. A liar there could replace everyone behind it by its accomplices. So a
//! neighbour that is new comes in when it has answered, and one that is left out is asked itself
//! and stays while it answers. In every other round, one of the neighbours is asked for its own
//! nearest, in turn. The question is also a greeting: the asker proves that it exists, whatever
//! those between the two say.

use super::{Ring, Turn};
use crate::{
    Contact,
    contact::Contacts,
    heard::Omission,
    in_flight::Purpose,
    message::{RingResponse, Scale, Version},
    neighbours::Place,
};
use apoidea_model::{Key, PeerId};

/// Neighbours on either side that are asked often, and that a neighbour names: the owner's replicas
/// and one more.
const NEAR: usize = 4;
/// Rounds after joining in which all near neighbours are asked at once.
const FIRST_ROUNDS: u32 = 2;
/// One question in so many goes to a far neighbour.
const FAR_EVERY: usize = 4;
/// Neighbours that may be asked at a time whether they exist.
const MAX_MEETINGS: usize = 32;

/// Whether a list that was told is the one known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Known,
    /// It names peers that are not known here yet, or no longer names others: it is wanted again.
    New,
}

impl Ring {
    /// In every other round, asks one of the neighbours, in turn; in the first rounds, all near
    /// ones. Returns whether it has asked.
    pub(super) fn survey(&mut self, turn: &mut Turn<'_>, round: u32) -> bool {
        let asked = if round < FIRST_ROUNDS {
            self.near_neighbours()
        } else if round.is_multiple_of(2) {
            self.neighbour_in_turn(round as usize / 2)
                .into_iter()
                .collect()
        } else {
            return false;
        };
        for neighbour in asked {
            if !self.in_flight.is_asked(neighbour.id, &Purpose::Survey) {
                self.ask(turn, &neighbour, Purpose::Survey);
            }
        }
        true
    }

    /// The nearest on both sides, without the first successor, which stabilisation asks.
    fn near_neighbours(&self) -> Vec<Contact> {
        let after = self.neighbours.successors().iter().take(NEAR).skip(1);
        let before = self.neighbours.predecessors().iter().take(NEAR);
        after.chain(before).cloned().collect()
    }

    /// The near ones in turn, and now and then one of the far ones, in turn as well.
    fn neighbour_in_turn(&self, number: usize) -> Option<Contact> {
        let after = self.neighbours.successors().iter().skip(NEAR);
        let far: Vec<&Contact> = after
            .chain(self.neighbours.predecessors().iter().skip(NEAR))
            .collect();
        if number.is_multiple_of(FAR_EVERY) && !far.is_empty() {
            return Some(far[(number / FAR_EVERY) % far.len()].clone());
        }
        let near = self.near_neighbours();
        let at = (number - number / FAR_EVERY) % near.len().max(1);
        near.get(at).cloned()
    }

    /// The nearest neighbours on both sides, unless the asker knows them.
    pub(super) fn answer_survey(&self, known: Option<Version>) -> RingResponse {
        let nearest = |list: &[Contact]| Contacts::new(list.iter().take(NEAR).cloned());
        let before = nearest(self.neighbours.predecessors());
        let after = nearest(self.neighbours.successors());
        let view = digest(before.as_slice().iter().chain(after.as_slice()));
        if known == Some(view) {
            return RingResponse::Around(None);
        }
        RingResponse::Around(Some((view, before, after)))
    }

    /// A neighbour has told its nearest. Those that are missing here are asked themselves.
    pub(super) fn surveyed(&mut self, turn: &mut Turn<'_>, from: &Contact, response: RingResponse) {
        self.acquaint(turn, from);
        let RingResponse::Around(Some((view, before, after))) = response else {
            return;
        };
        let named = before.as_slice().iter().chain(after.as_slice());
        let named = named.take(2 * NEAR);
        let is_missing = |contact: &&Contact| {
            contact.id != self.me.id
                && !self.neighbours.contains(contact.id)
                && self.neighbours.place_for(contact.key()) != Place::None
        };
        let missing: Vec<&Contact> = named.filter(is_missing).collect();
        if missing.is_empty() {
            self.heard.note_view(from.id, view);
        }
        // The view is wanted again: a question to one of the missing may get lost.
        for contact in missing {
            self.meet(turn, contact);
        }
    }

    /// Asks a peer whether it exists, unless it was silent a moment ago.
    pub(super) fn meet(&mut self, turn: &mut Turn<'_>, contact: &Contact) {
        let is_idle = contact.id != self.me.id
            && !self.suspects.contains(contact.id, turn.now)
            && !self.in_flight.is_asked(contact.id, &Purpose::Meet)
            && self.in_flight.count(&Purpose::Meet) < MAX_MEETINGS;
        if is_idle {
            self.ask(turn, contact, Purpose::Meet);
        }
    }

    /// A peer exists. If it fits into no list now, it does when it is told again.
    pub(super) fn met(&mut self, turn: &mut Turn<'_>, contact: &Contact) {
        self.heard.note(contact.id, turn.now);
        self.acquaint(turn, contact);
    }

    /// A peer has spoken itself: it is a neighbour if it stands near enough. It becomes the first
    /// successor or the predecessor only in the way that the protocol has for that. A successor
    /// that lies hides this peer from its true predecessor, which then hears of it in this way.
    pub(super) fn acquaint(&mut self, turn: &mut Turn<'_>, contact: &Contact) {
        if self.scale == Scale::Small || !self.has_position() {
            return;
        }
        match self.neighbours.place_for(contact.key()) {
            Place::First => self.try_successor(turn, contact),
            Place::Nearest => self.try_predecessor(turn, contact.clone()),
            Place::Among => self.neighbours.add(contact),
            Place::None => return,
        }
        self.heard.note(contact.id, turn.now);
    }

    /// A neighbour is silent. The predecessor is replaced only by another one.
    pub(super) fn lose_neighbour(&mut self, gone: PeerId) {
        self.heard.forget(gone);
        if self.scale == Scale::Large && self.neighbours.contains(gone) {
            self.neighbours.remove(gone);
            // There is room for one more on either side.
            self.known = None;
            self.lacks_predecessors = true;
        }
    }

    /// The successors that the first of them has told, and those known before that it leaves out.
    /// Those that are new here come in once they have answered.
    pub(super) fn take_told_successors(&mut self, turn: &mut Turn<'_>, told: &[Contact]) -> Told {
        let me = self.me.key();
        let known = self.neighbours.successors();
        let both = self.with_known(turn, told, known, |c| me.distance_to(c.key()));
        self.neighbours.set_successors(&both);
        let list = self.neighbours.successors().to_vec();
        self.meet_unheard(turn, &list, told, |c| me.distance_to(c.key()))
    }

    /// The predecessor has spoken; those before it stay.
    pub(super) fn take_first_predecessor(&mut self, turn: &Turn<'_>, first: &Contact) {
        self.keep_predecessors(turn, std::slice::from_ref(first));
    }

    /// The predecessors that the first of them has told, as with successors.
    pub(super) fn take_told_predecessors(&mut self, turn: &mut Turn<'_>, told: &[Contact]) {
        self.keep_predecessors(turn, told);
        let list = self.neighbours.predecessors().to_vec();
        let me = self.me.key();
        let outcome = self.meet_unheard(turn, &list, told, |c| c.key().distance_to(me));
        self.lacks_predecessors = outcome == Told::New;
    }

    fn keep_predecessors(&mut self, turn: &Turn<'_>, told: &[Contact]) {
        let me = self.me.key();
        let known = self.neighbours.predecessors();
        let both = self.with_known(turn, told, known, |c| c.key().distance_to(me));
        self.neighbours.set_predecessors(&both);
    }

    /// The first of those told, and all living ones behind it that are known or have spoken, in
    /// order.
    fn with_known(
        &self,
        turn: &Turn<'_>,
        told: &[Contact],
        known: &[Contact],
        distance: impl Fn(&Contact) -> Key,
    ) -> Vec<Contact> {
        let Some((first, behind)) = told.split_first() else {
            return known.to_vec();
        };
        let is_living = |contact: &&Contact| {
            contact.id != self.me.id && !self.suspects.contains(contact.id, turn.now)
        };
        let is_kept = |contact: &&Contact| distance(contact) > distance(first);
        let is_heard = |contact: &&Contact| self.heard.contains(contact.id);
        let is_new = |contact: &&Contact| known.iter().all(|known| known.id != contact.id);
        // The routes that a peer has told itself come before those that others tell.
        let renewed = |contact: &Contact| {
            let named = behind.iter().find(|named| named.id == contact.id);
            named
                .filter(|named| !is_heard(named))
                .unwrap_or(contact)
                .clone()
        };
        let kept = known
            .iter()
            .filter(|c| is_kept(c) && is_living(c))
            .map(renewed);
        let new = behind
            .iter()
            .filter(|c| is_heard(c) && is_new(c) && is_living(c));
        let mut both: Vec<Contact> = [first.clone()].into_iter().chain(kept).collect();
        both.extend(new.filter(is_kept).cloned());
        both.sort_by_key(&distance);
        both
    }

    /// Asks those themselves whom nobody vouches for: peers that are told and new here, and peers
    /// that are left out. One that has been named until now is probably dead, and comes back when
    /// it answers.
    fn meet_unheard(
        &mut self,
        turn: &mut Turn<'_>,
        list: &[Contact],
        told: &[Contact],
        distance: impl Fn(&Contact) -> Key,
    ) -> Told {
        let end = told.last().map(&distance);
        let mut outcome = Told::Known;
        for contact in list {
            if told.iter().any(|told| told.id == contact.id) {
                if !self.heard.vouch(contact.id) {
                    self.meet(turn, contact);
                }
            } else if end.is_some_and(|end| distance(contact) < end)
                && self.doubt_neighbour(turn, contact) == Omission::New
            {
                outcome = Told::New;
            }
        }
        let is_short = list.len() < self.settings.successors;
        let (me, last) = (self.me.id, list.last().map(&distance));
        for contact in told.iter().filter(|contact| contact.id != me) {
            let is_missing = list.iter().all(|known| known.id != contact.id);
            let fits = is_short || last.is_some_and(|last| distance(contact) < last);
            if is_missing && fits {
                outcome = Told::New;
                self.meet(turn, contact);
            }
        }
        outcome
    }

    /// Another neighbour has left this one out.
    fn doubt_neighbour(&mut self, turn: &mut Turn<'_>, contact: &Contact) -> Omission {
        let omission = self.heard.leave_out(contact.id, turn.now);
        if omission == Omission::New {
            self.neighbours.remove(contact.id);
        }
        if omission != Omission::Refuted {
            self.meet(turn, contact);
        }
        omission
    }
}

/// A number that differs where these peers differ.
fn digest<'a>(contacts: impl Iterator<Item = &'a Contact>) -> Version {
    let word = |contact: &Contact| {
        let key = contact.key();
        let bytes = key.as_bytes();
        u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    };
    let mix = |sum: u32, contact: &Contact| sum.rotate_left(5).wrapping_mul(31) ^ word(contact);
    Version(contacts.fold(1, mix))
}
