//! Running lookups: for the driver, for fingers, for joining and for finding another ring.

use super::{Ring, Turn, answer::OWN};
use crate::{
    Contact,
    candidate::Side,
    event::{Certainty, Freshness, LookupId, NotFound, Phase, RingAction},
    in_flight::Purpose,
    lookup::{Care, Goal, Lookup, Step},
    message::{RingRequest, RingResponse, Scale},
    neighbours::clockwise,
};
use apoidea_model::{Key, PeerId};
use std::time::Duration;

/// Lookups running at a time; a crawler that wants more should wait for one to end.
const MAX_LOOKUPS: usize = 256;
/// A lookup takes no longer than this; with half the ring dead it takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// Attempts at a peer before the key: there are others.
const ATTEMPTS_BEFORE: u32 = 1;
/// Attempts at a peer that may be the owner: only one is.
const ATTEMPTS_AFTER: u32 = 3;
/// Peers right before a key that must name its owner. The fourth costs three messages and halves
/// the look-ups that a tenth of all peers catch by naming only each other.
const WITNESSES: usize = 4;
/// Mean gaps between peers within which the witnesses are looked for. In 8 gaps there are fewer
/// than four peers before one key in 24. Of liars, at a tenth of all, there are four or more before
/// one key in 110.
pub(super) const ZONE: f64 = 8.0;
/// Remembered peers asked when this peer has no position.
const ENTRY_PEERS: usize = 4;

impl Ring {
    pub(super) fn look_up(
        &mut self,
        turn: &mut Turn<'_>,
        id: LookupId,
        key: Key,
        count: usize,
        freshness: Freshness,
    ) {
        let count = count.clamp(1, self.settings.successors);
        if let Some(owners) = self.answer_from_memory(turn, key, count, freshness) {
            let is_mine = owners.first().is_some_and(|owner| owner.id == self.me.id);
            let certainty = if is_mine {
                Certainty::Confirmed
            } else {
                Certainty::Remembered
            };
            turn.actions.push(RingAction::Found {
                id,
                owners,
                certainty,
                hops: 0,
            });
            return;
        }
        if self.lookups.len() >= MAX_LOOKUPS {
            turn.actions
                .push(RingAction::NotFound(id, NotFound::Overloaded));
            return;
        }
        let mut lookup = self.new_lookup(turn, key, Goal::User { id, count });
        self.seed(turn, &mut lookup, key);
        if let Some((from, owner)) = self.cache.owner(key, turn.now) {
            lookup.try_first(owner, Some(from));
        }
        self.run_lookup(turn, lookup);
    }

    fn answer_from_memory(
        &self,
        turn: &Turn<'_>,
        key: Key,
        count: usize,
        freshness: Freshness,
    ) -> Option<Vec<Contact>> {
        let is_mine = self.arc().is_some_and(|arc| arc.contains(key));
        if !is_mine && freshness == Freshness::Fresh {
            return None;
        }
        self.owners(key, count, turn.now)
    }

    /// The trust in those that this lookup will meet. Members of a small ring have all been met, so
    /// nobody has to vouch for them. A finger decides nothing, so one witness will do.
    pub(super) fn care(&self, goal: Goal) -> Care {
        let is_small = self.has_position() && self.scale == Scale::Small;
        let witnesses = match goal {
            _ if is_small => 0,
            Goal::User { .. } | Goal::Join => WITNESSES,
            Goal::Finger(_) | Goal::Check => 1,
        };
        let zone = match goal {
            Goal::User { .. } | Goal::Finger(_) => self.gap().map(|gap| gap * ZONE),
            // Another ring has another density, and a newcomer has to ask for it.
            Goal::Join | Goal::Check => None,
        };
        Care { witnesses, zone }
    }

    fn seed(&self, turn: &mut Turn<'_>, lookup: &mut Lookup, key: Key) {
        if self.has_position() {
            let (before, after) = self.route(key, OWN, turn.now);
            lookup.begin(self.me.key(), &before, &after);
        } else {
            lookup.begin(self.me.key(), &self.book.pick(ENTRY_PEERS, turn.rng), &[]);
        }
    }

    /// One finger per round; all that are missing in a row, after joining.
    pub(super) fn refresh_finger(&mut self, turn: &mut Turn<'_>) {
        let is_running = self
            .lookups
            .iter()
            .any(|lookup| matches!(lookup.goal, Goal::Finger(_)));
        if is_running || self.lookups.len() >= MAX_LOOKUPS {
            return;
        }
        let Some(exponent) = self.fingers.next_exponent() else {
            return;
        };
        let key = self.me.key().plus_power_of_two(exponent);
        let mut lookup = self.new_lookup(turn, key, Goal::Finger(exponent));
        self.seed(turn, &mut lookup, key);
        if let Some(finger) = self.fingers.finger(exponent) {
            lookup.try_first(finger, None);
        }
        self.run_lookup(turn, lookup);
    }

    pub(super) fn fit_fingers(&mut self) {
        if let Some(last) = self.neighbours.successors().last() {
            self.fingers.fit(self.me.key(), last.key());
        }
    }

    /// Takes a lookup as far as it goes without waiting.
    pub(super) fn run_lookup(&mut self, turn: &mut Turn<'_>, mut lookup: Lookup) {
        if turn.now.since(lookup.started) > PATIENCE {
            return self.give_up(turn, lookup, NotFound::GaveUp);
        }
        loop {
            match lookup.step() {
                Step::Ask(contact, side) => {
                    if !self.ask_find(turn, &lookup, &contact, side) {
                        lookup.note_dead(contact.id);
                    }
                }
                Step::AskAside(contact, key) => {
                    let purpose = Purpose::Find {
                        lookup: lookup.number,
                        attempts: ATTEMPTS_BEFORE,
                    };
                    if !self.ask_this(
                        turn,
                        &contact,
                        purpose,
                        RingRequest::Find { key, successors: 0 },
                    ) {
                        lookup.note_dead(contact.id);
                    }
                }
                Step::Wait => return self.lookups.push(lookup),
                Step::Confirm { from, owners, hops } => {
                    return self.confirm(turn, &lookup, from, owners, hops);
                }
                Step::Presume { owners, hops } => {
                    return self.finish_lookup(turn, &lookup, owners, Certainty::Presumed, hops);
                }
                Step::DeadEnd if self.has_more(turn, &mut lookup) => {}
                Step::DeadEnd => return self.give_up(turn, lookup, NotFound::DeadEnd),
                Step::TooLong => return self.give_up(turn, lookup, NotFound::GaveUp),
            }
        }
    }

    /// All peers that others have named are dead. Tries the peers in this peer's own tables;
    /// returns whether there is hope.
    fn has_more(&self, turn: &mut Turn<'_>, lookup: &mut Lookup) -> bool {
        let is_own_way = matches!(lookup.goal, Goal::User { .. } | Goal::Finger(_));
        if !is_own_way || !lookup.begin_again() {
            return false;
        }
        let target = lookup.target();
        self.seed(turn, lookup, target);
        true
    }

    fn ask_find(&mut self, turn: &mut Turn<'_>, lookup: &Lookup, to: &Contact, side: Side) -> bool {
        let attempts = match side {
            Side::Before if !lookup.is_patient() => ATTEMPTS_BEFORE,
            Side::Before => ATTEMPTS_AFTER,
            Side::After => ATTEMPTS_AFTER,
        };
        let purpose = Purpose::Find {
            lookup: lookup.number,
            attempts,
        };
        self.ask_this(turn, to, purpose, lookup.request())
    }

    fn take_lookup(&mut self, number: u32) -> Option<Lookup> {
        let at = self
            .lookups
            .iter()
            .position(|lookup| lookup.number == number)?;
        Some(self.lookups.swap_remove(at))
    }

    /// A peer on the way has answered.
    pub(super) fn found(
        &mut self,
        turn: &mut Turn<'_>,
        number: u32,
        from: Contact,
        response: RingResponse,
    ) {
        let Some(mut lookup) = self.take_lookup(number) else {
            return;
        };
        if !lookup.knows(&from) {
            lookup.relocate(&from);
        }
        match response {
            RingResponse::Owner {
                from: start,
                successors,
            } => {
                let after = clockwise(from.key(), successors.as_slice(), self.settings.successors);
                lookup.claim(&from, start, after);
                self.run_lookup(turn, lookup);
            }
            RingResponse::Closer { before, after } => {
                self.take_closer(turn, lookup, &from, before.as_slice(), after.as_slice());
            }
            _ => {
                lookup.note_dead(from.id);
                self.run_lookup(turn, lookup);
            }
        }
    }

    /// The owner is known by its own word and by that of others.
    fn confirm(
        &mut self,
        turn: &mut Turn<'_>,
        lookup: &Lookup,
        from: Key,
        owners: Vec<Contact>,
        hops: u32,
    ) {
        let is_asked_for = matches!(lookup.goal, Goal::User { .. });
        if !lookup.is_on_key() {
            return self.finish_lookup(turn, lookup, owners, Certainty::Presumed, hops);
        }
        if is_asked_for {
            self.cache.learn(from, owners.clone(), turn.now);
        }
        self.finish_lookup(turn, lookup, owners, Certainty::Confirmed, hops);
    }

    fn take_closer(
        &mut self,
        turn: &mut Turn<'_>,
        mut lookup: Lookup,
        from: &Contact,
        before: &[Contact],
        after: &[Contact],
    ) {
        let is_me = |contact: &&Contact| contact.id == self.me.id;
        let names_me = after.iter().any(|contact| is_me(&contact));
        if names_me && lookup.goal == Goal::Check {
            self.forget_rival();
            return self.in_flight.drop_lookup(lookup.number);
        }
        let before: Vec<Contact> = before.iter().filter(|c| !is_me(c)).cloned().collect();
        let others: Vec<Contact> = after.iter().filter(|c| !is_me(c)).cloned().collect();
        lookup.closer(from, &before, &others);
        if names_me && self.phase == Phase::Member && lookup.goal != Goal::Join {
            lookup.note_alive(&self.me, from);
        }
        self.run_lookup(turn, lookup);
    }

    pub(super) fn find_failed(&mut self, turn: &mut Turn<'_>, number: u32, silent: PeerId) {
        if let Some(mut lookup) = self.take_lookup(number) {
            lookup.note_dead(silent);
            self.run_lookup(turn, lookup);
        }
    }

    /// A peer that may be the owner has not answered at first: others are asked while it is asked
    /// again.
    pub(super) fn note_slow_find(&mut self, turn: &mut Turn<'_>, number: u32, slow: PeerId) {
        if let Some(mut lookup) = self.take_lookup(number) {
            lookup.note_slow(slow);
            self.run_lookup(turn, lookup);
        }
    }

    fn finish_lookup(
        &mut self,
        turn: &mut Turn<'_>,
        lookup: &Lookup,
        mut owners: Vec<Contact>,
        certainty: Certainty,
        hops: u32,
    ) {
        self.in_flight.drop_lookup(lookup.number);
        let Some(owner) = owners.first().cloned() else {
            return;
        };
        match lookup.goal {
            Goal::User { id, count } => {
                owners.truncate(count);
                turn.actions.push(RingAction::Found {
                    id,
                    owners,
                    certainty,
                    hops,
                });
            }
            Goal::Finger(exponent) => self.take_finger(turn, exponent, owner),
            Goal::Join if self.is_rival(&owner) => self.lose_seat(turn),
            Goal::Join => {
                let behind = lookup.nearest_answered();
                if !self.ask(turn, &owner, Purpose::Join { behind }) {
                    self.join_failed(turn);
                }
            }
            Goal::Check if self.is_rival(&owner) => self.meet_rival(turn),
            Goal::Check => self.found_other_ring(turn, &owner),
        }
    }

    fn take_finger(&mut self, turn: &mut Turn<'_>, exponent: usize, owner: Contact) {
        if self.scale == Scale::Small || self.phase != Phase::Member {
            return;
        }
        let is_other = owner.id != self.me.id;
        let finger = if is_other {
            Some(owner)
        } else {
            self.neighbours.head().cloned()
        };
        if let Some(finger) = finger
            && self.fingers.set(exponent, finger.clone())
        {
            self.book.met(&finger, turn.rng);
        }
        if self.fingers.is_incomplete() {
            self.refresh_finger(turn);
        }
    }

    pub(super) fn give_up(&mut self, turn: &mut Turn<'_>, lookup: Lookup, why: NotFound) {
        self.in_flight.drop_lookup(lookup.number);
        match lookup.goal {
            Goal::User { id, .. } => {
                let is_lost = self.book.is_empty() && !self.has_position();
                let why = if is_lost { NotFound::NoPeers } else { why };
                turn.actions.push(RingAction::NotFound(id, why));
            }
            Goal::Join => self.join_failed(turn),
            Goal::Finger(_) | Goal::Check => {}
        }
    }

    pub(super) fn end_lookups(&mut self, is_ended: impl Fn(Goal) -> bool) {
        let ended = self
            .lookups
            .iter()
            .filter(|lookup| is_ended(lookup.goal))
            .map(|lookup| lookup.number);
        for number in ended.collect::<Vec<_>>() {
            self.in_flight.drop_lookup(number);
        }
        self.lookups.retain(|lookup| !is_ended(lookup.goal));
    }
}
