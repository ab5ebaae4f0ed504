//! One iterative lookup: the next peer to ask on the way to a key's owner, and the time to stop.
//!
//! Candidates stand before the key or at and after it. The nearest living one before the key knows
//! the owner; the owner confirms. Answers may only name peers nearer to the key than the answerer.
//! So every hop advances, and a liar cannot lead a lookup in circles. Requests and timeouts are
//! left to the ring.

use crate::{Contact, message::RingRequest};
use apoidea_model::{Key, PeerId, Time};

/// Candidates kept on either side of the key: the dead of a half-dead ring, and the living.
const MAX_CANDIDATES: usize = 64;
/// Peers asked before a lookup gives up: ten times what half a dead ring needs.
const MAX_ASKED: usize = 96;
/// Times that a lookup begins again from the asker's own tables.
const MAX_BEGINNINGS: u32 = 8;
/// Requests in flight when many peers were found silent.
const MAX_PARALLEL: usize = 8;
/// Nearest predecessors asked again after everyone they named was dead.
const ASKED_AGAIN: usize = 3;

/// A lookup in progress.
#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    pub number: u32,
    pub goal: Goal,
    pub started: Time,
    /// The key, or where the search goes on because everyone up to there is dead.
    target: Key,
    /// Whether the target has moved on from the key.
    moved_on: bool,
    before: Vec<Candidate>,
    after: Vec<Candidate>,
    /// Whether a peer before the key has named those after it.
    covered: bool,
    hint: Option<PeerId>,
    parallel: usize,
    asked: usize,
    beginnings: u32,
    last_aside: Option<Key>,
    has_tried_again: bool,
}

/// The purpose of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The driver asked.
    User { id: crate::LookupId, count: usize },
    /// Refreshing the finger of this exponent.
    Finger(usize),
    /// Finding this peer's place.
    Join,
    /// Finding out whether another ring has another owner for this peer's own id.
    Check,
}

#[derive(Debug, Clone)]
struct Candidate {
    contact: Contact,
    depth: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Asked,
    /// Asked more than once; others may be asked meanwhile.
    Slow,
    Answered,
    Dead,
}

/// On which side of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// The next step of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Ask(Contact, Side),
    /// Ask for the peers before this key, which is not the target.
    AskAside(Contact, Key),
    Wait,
    /// The owner is silent; this living peer is the next, followed by others that may be.
    Presume {
        owners: Vec<Contact>,
        hops: u32,
    },
    DeadEnd,
    TooLong,
}

impl Lookup {
    pub fn new(number: u32, key: Key, goal: Goal, parallel: usize, started: Time) -> Self {
        Lookup {
            number,
            goal,
            started,
            target: key,
            moved_on: false,
            before: Vec::new(),
            after: Vec::new(),
            covered: false,
            hint: None,
            parallel,
            asked: 0,
            beginnings: 0,
            last_aside: None,
            has_tried_again: false,
        }
    }

    /// The key to ask for.
    pub fn target(&self) -> Key {
        self.target
    }

    /// Whether the owner of the target is the owner of the key, too.
    pub fn is_on_key(&self) -> bool {
        !self.moved_on
    }

    /// The question to a peer on the way.
    pub fn request(&self) -> RingRequest {
        let Goal::User { count, .. } = self.goal else {
            return RingRequest::Find {
                key: self.target,
                successors: 0,
            };
        };
        let successors = u8::try_from(count.saturating_sub(1)).unwrap_or(u8::MAX);
        RingRequest::Find {
            key: self.target,
            successors,
        }
    }

    /// Peers to begin with, as this peer knows them.
    pub fn begin(&mut self, before: &[Contact], after: &[Contact]) {
        before
            .iter()
            .for_each(|contact| self.insert(contact, Side::Before, 1));
        after
            .iter()
            .for_each(|contact| self.insert(contact, Side::After, 1));
        self.covered |= !after.is_empty();
    }

    /// Counts one more beginning from the asker's own tables. Returns whether it is allowed:
    /// without a bound, a search would never end.
    pub fn begin_again(&mut self) -> bool {
        self.beginnings += 1;
        self.beginnings <= MAX_BEGINNINGS
    }

    /// A peer to ask first, because it was the owner before.
    pub fn try_first(&mut self, contact: &Contact) {
        self.insert(contact, self.side(contact.key()), 1);
        self.hint = Some(contact.id);
    }

    /// This peer itself stands after the key, and it is alive.
    pub fn note_alive(&mut self, contact: &Contact, informer: PeerId) {
        let depth = self.depth(informer) + 1;
        self.insert(contact, Side::After, depth);
        self.mark(contact.id, State::Answered);
    }

    /// An answer that names others; those that are not nearer than the answerer are left out.
    pub fn closer(&mut self, from: PeerId, before: &[Contact], after: &[Contact]) {
        let depth = self.depth(from) + 1;
        let answerer_before = self.side(from.key()) == Side::Before;
        self.mark(from, State::Answered);
        for contact in before.iter().chain(after) {
            if contact.key().between(from.key(), self.target) {
                self.insert(contact, Side::Before, depth);
            }
        }
        for contact in after.iter().filter(|contact| contact.id != from) {
            if contact.key() == self.target || contact.key().between(self.target, from.key()) {
                self.covered |= answerer_before;
                self.insert(contact, Side::After, depth);
            }
        }
    }

    /// A peer has not answered yet and is asked again.
    pub fn note_slow(&mut self, peer: PeerId) {
        self.mark(peer, State::Slow);
    }

    /// A peer did not answer, or is no member.
    pub fn note_dead(&mut self, peer: PeerId) {
        self.mark(peer, State::Dead);
    }

    /// The number of peers asked one after the other to reach this one, itself included.
    pub fn depth(&self, peer: PeerId) -> u32 {
        self.before
            .iter()
            .chain(&self.after)
            .find(|c| c.contact.id == peer)
            .map_or(0, |c| c.depth)
    }

    /// The next step; to be repeated while it is [`Step::Ask`].
    pub fn step(&mut self) -> Step {
        if self.asked >= MAX_ASKED {
            return self.after_too_many();
        }
        let in_flight = self
            .before
            .iter()
            .chain(&self.after)
            .filter(|c| c.state == State::Asked)
            .count();
        if in_flight >= self.allowed_in_flight() {
            return Step::Wait;
        }
        if let Some(hint) = self.hint.take() {
            return self.ask_hint(hint);
        }
        let answered = self.before.iter().position(|c| c.state == State::Answered);
        let nearer = &self.before[..answered.unwrap_or(self.before.len())];
        if let Some(at) = nearer.iter().position(|c| c.state == State::New) {
            return self.ask(Side::Before, at);
        }
        if self.covered && !self.after.is_empty() {
            return match self.after.iter().position(|c| c.state != State::Dead) {
                Some(at) => self.settle(at),
                None => self.move_on(),
            };
        }
        if let Some(at) = self.before.iter().position(|c| c.state == State::New) {
            return self.ask(Side::Before, at);
        }
        let is_waiting = |c: &Candidate| matches!(c.state, State::Asked | State::Slow);
        if self.before.iter().chain(&self.after).any(is_waiting) {
            Step::Wait
        } else {
            self.ask_aside()
        }
    }

    /// All that the nearest living peer has named are dead; but there are always some right behind
    /// it that it has not named, because others were nearer to the target.
    fn ask_aside(&mut self) -> Step {
        let Some(at) = self.before.iter().position(|c| c.state == State::Answered) else {
            return Step::DeadEnd;
        };
        let Some(nearest_dead) = at
            .checked_sub(1)
            .map(|dead| self.before[dead].contact.key())
        else {
            return Step::DeadEnd;
        };
        if self.last_aside == Some(nearest_dead) {
            return self.try_silent_again(at);
        }
        self.last_aside = Some(nearest_dead);
        match self.ask(Side::Before, at) {
            Step::Ask(contact, _) => Step::AskAside(contact, nearest_dead),
            other => other,
        }
    }

    fn after_too_many(&mut self) -> Step {
        let answered = self.before.iter().position(|c| c.state == State::Answered);
        match answered.filter(|_| !self.has_tried_again) {
            Some(at) => self.try_silent_again(at),
            None => Step::TooLong,
        }
    }

    /// Nobody knows a way around the silent peers. Perhaps they are only slow, so they are asked
    /// once more, with more patience.
    fn try_silent_again(&mut self, nearest_living: usize) -> Step {
        if self.has_tried_again {
            return Step::DeadEnd;
        }
        self.has_tried_again = true;
        self.asked = 0;
        for candidate in self.before[..nearest_living]
            .iter_mut()
            .filter(|c| c.state == State::Dead)
        {
            candidate.state = State::New;
        }
        self.step()
    }

    /// Whether a silent peer is asked more than once. This holds the second time that the silent
    /// peers are asked. It also holds in a search for another ring: the one remembered peer that it
    /// begins with may be farther away than any peer of this ring.
    pub fn is_patient(&self) -> bool {
        self.has_tried_again || self.goal == Goal::Check
    }

    /// The number of requests in flight: the more peers are silent, the more are asked at a time.
    fn allowed_in_flight(&self) -> usize {
        let is_silent = |c: &&Candidate| matches!(c.state, State::Dead | State::Slow);
        let silent = self
            .before
            .iter()
            .chain(&self.after)
            .filter(is_silent)
            .count();
        (self.parallel + silent / 2).min(self.parallel.max(MAX_PARALLEL))
    }

    /// The peers before the key have said their word; `at` is the first one after it that is not
    /// dead.
    fn settle(&mut self, at: usize) -> Step {
        match self.after[at].state {
            State::New => self.ask(Side::After, at),
            State::Answered => {
                let alive = self.after[at..].iter().filter(|c| c.state != State::Dead);
                let owners = alive.map(|c| c.contact.clone()).collect();
                Step::Presume {
                    owners,
                    hops: self.after[at].depth,
                }
            }
            State::Slow => match self.after.iter().position(|c| c.state == State::New) {
                Some(next) => self.ask(Side::After, next),
                None => Step::Wait,
            },
            State::Asked | State::Dead => Step::Wait,
        }
    }

    /// Everyone named after the target is dead: search on behind the last of them.
    fn move_on(&mut self) -> Step {
        let Some(last) = self.after.last() else {
            return Step::DeadEnd;
        };
        self.target = last.contact.key().plus_power_of_two(0);
        self.moved_on = true;
        self.covered = false;
        for dead in std::mem::take(&mut self.after) {
            self.insert(&dead.contact, Side::Before, dead.depth);
            self.mark(dead.contact.id, State::Dead);
        }
        let mut again = 0;
        for candidate in self
            .before
            .iter_mut()
            .filter(|c| c.state == State::Answered)
            .take(ASKED_AGAIN)
        {
            candidate.state = State::New;
            again += 1;
        }
        if again == 0 {
            Step::DeadEnd
        } else {
            self.step()
        }
    }

    fn ask_hint(&mut self, hint: PeerId) -> Step {
        let place = |list: &[Candidate]| {
            list.iter()
                .position(|c| c.contact.id == hint && c.state == State::New)
        };
        if let Some(at) = place(&self.before) {
            self.ask(Side::Before, at)
        } else if let Some(at) = place(&self.after) {
            self.ask(Side::After, at)
        } else {
            self.step()
        }
    }

    fn ask(&mut self, side: Side, at: usize) -> Step {
        let candidate = &mut self.list(side)[at];
        candidate.state = State::Asked;
        let contact = candidate.contact.clone();
        self.asked += 1;
        Step::Ask(contact, side)
    }

    /// Keeps a candidate in its place, nearest to the target first; the farthest give way.
    fn insert(&mut self, contact: &Contact, side: Side, depth: u32) {
        let target = self.target;
        let list = self.list(side);
        if list.iter().any(|c| c.contact.id == contact.id) {
            return;
        }
        let key = contact.key();
        let at = list.partition_point(|c| match side {
            Side::Before => c.contact.key().between(key, target),
            Side::After => c.contact.key() == target || c.contact.key().between(target, key),
        });
        if list.len() >= MAX_CANDIDATES {
            let Some(farthest) = list
                .iter()
                .rposition(|c| !matches!(c.state, State::Asked | State::Slow))
            else {
                return;
            };
            if farthest < at {
                return;
            }
            list.remove(farthest);
        }
        list.insert(
            at,
            Candidate {
                contact: contact.clone(),
                depth,
                state: State::New,
            },
        );
    }

    /// Everyone but the peer at the target stands before it, if one only goes far enough around; a
    /// hint counts as after it, where the old owner of a key is.
    fn side(&self, key: Key) -> Side {
        let is_known_before = self.before.iter().any(|c| c.contact.key() == key);
        if is_known_before {
            Side::Before
        } else {
            Side::After
        }
    }

    fn mark(&mut self, peer: PeerId, state: State) {
        for candidate in self.before.iter_mut().chain(&mut self.after) {
            if candidate.contact.id == peer {
                candidate.state = state;
            }
        }
    }

    fn list(&mut self, side: Side) -> &mut Vec<Candidate> {
        match side {
            Side::Before => &mut self.before,
            Side::After => &mut self.after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::peer;

    fn peers<const N: usize>(positions: [u8; N]) -> [Contact; N] {
        positions.map(peer)
    }

    /// A lookup of position 100.
    fn lookup(parallel: usize) -> Lookup {
        Lookup::new(1, peer(100).key(), Goal::Join, parallel, Time::ZERO)
    }

    fn asked(lookup: &mut Lookup) -> Vec<u8> {
        let mut asked = Vec::new();
        while let Step::Ask(contact, _) = lookup.step() {
            asked.push(contact.key().as_bytes()[0]);
        }
        asked
    }

    #[test]
    fn the_nearest_before_the_key_are_asked_first_and_in_parallel() {
        let mut lookup = lookup(3);
        lookup.begin(&peers([10, 50, 30, 70, 20]), &[]);
        assert_eq!(asked(&mut lookup), [70, 50, 30]);
        lookup.closer(peer(50).id, &peers([90]), &[]);
        assert_eq!(asked(&mut lookup), [90]);
        assert_eq!(lookup.depth(peer(90).id), 2);
    }

    #[test]
    fn the_owner_is_asked_once_someone_before_the_key_names_it() {
        let mut lookup = lookup(1);
        lookup.begin(&peers([50]), &[]);
        assert_eq!(asked(&mut lookup), [50]);
        lookup.closer(peer(50).id, &[], &peers([110, 120]));
        assert_eq!(asked(&mut lookup), [110]);
    }

    #[test]
    fn a_silent_owner_is_replaced_by_the_next_living_peer() {
        let mut lookup = lookup(1);
        lookup.begin(&peers([50]), &[]);
        asked(&mut lookup);
        lookup.closer(peer(50).id, &[], &peers([110, 120, 130]));
        asked(&mut lookup);
        lookup.note_dead(peer(110).id);
        assert_eq!(asked(&mut lookup), [120]);
        lookup.closer(peer(120).id, &[], &peers([110]));
        let presumed = Step::Presume {
            owners: peers([120, 130]).to_vec(),
            hops: 2,
        };
        assert_eq!(lookup.step(), presumed);
    }

    #[test]
    fn a_slow_owner_is_not_waited_for_alone_but_to_the_end() {
        let mut lookup = lookup(1);
        lookup.begin(&peers([50]), &peers([110, 120]));
        asked(&mut lookup);
        lookup.closer(peer(50).id, &[], &[]);
        assert_eq!(asked(&mut lookup), [110]);
        lookup.note_slow(peer(110).id);
        assert_eq!(asked(&mut lookup), [120]);
        lookup.closer(peer(120).id, &[], &peers([110]));
        assert_eq!(lookup.step(), Step::Wait, "110 may still answer");
        lookup.note_dead(peer(110).id);
        assert!(matches!(lookup.step(), Step::Presume { .. }));
    }

    #[test]
    fn when_all_named_are_dead_the_search_goes_on_behind_them() {
        let mut lookup = lookup(1);
        lookup.begin(&peers([50]), &[]);
        asked(&mut lookup);
        lookup.closer(peer(50).id, &[], &peers([110, 120]));
        for dead in [110, 120] {
            assert_eq!(asked(&mut lookup), [dead]);
            lookup.note_dead(peer(dead).id);
        }
        assert_eq!(asked(&mut lookup), [50]);
        assert!(!lookup.is_on_key());
        assert_eq!(lookup.target(), peer(120).key().plus_power_of_two(0));
        lookup.closer(peer(50).id, &[], &peers([110, 130]));
        assert_eq!(asked(&mut lookup), [130], "110 lies before the new target");
    }

    #[test]
    fn when_all_nearer_peers_are_dead_the_nearest_living_one_is_asked_who_else_there_is() {
        let mut lookup = lookup(1);
        lookup.begin(&peers([50]), &[]);
        asked(&mut lookup);
        lookup.closer(peer(50).id, &peers([90, 80]), &[]);
        asked(&mut lookup);
        lookup.note_dead(peer(90).id);
        assert_eq!(asked(&mut lookup), [80]);
        lookup.note_dead(peer(80).id);
        assert_eq!(lookup.step(), Step::AskAside(peer(50), peer(80).key()));
        lookup.closer(peer(50).id, &peers([70]), &peers([80, 95]));
        assert_eq!(
            asked(&mut lookup),
            [95, 70],
            "two at a time, after two were silent"
        );
    }

    #[test]
    fn answers_that_lead_away_are_ignored() {
        let mut lookup = lookup(1);
        lookup.begin(&peers([50]), &[]);
        asked(&mut lookup);
        lookup.closer(peer(50).id, &peers([50, 40, 10]), &peers([50]));
        assert_eq!(lookup.step(), Step::DeadEnd);
    }

    #[test]
    fn endless_false_candidates_end_the_lookup() {
        let mut lookup = Lookup::new(1, Key::from_bytes([255; 32]), Goal::Join, 1, Time::ZERO);
        lookup.begin(&peers([1]), &[]);
        for step in 0..u32::MAX {
            let Step::Ask(contact, _) = lookup.step() else {
                break;
            };
            assert!(step < 1000, "still going");
            let mut nearer = *contact.key().as_bytes();
            nearer[31] += 1;
            lookup.closer(
                contact.id,
                &[Contact::new(PeerId::at(Key::from_bytes(nearer)), &[])],
                &[],
            );
        }
        assert_eq!(lookup.step(), Step::TooLong);
    }

    #[test]
    fn a_hint_is_asked_first_and_corrects_itself() {
        let mut lookup = lookup(1);
        lookup.begin(&peers([50]), &[]);
        lookup.try_first(&peer(120));
        assert_eq!(asked(&mut lookup), [120]);
        lookup.closer(peer(120).id, &peers([95]), &peers([110]));
        assert_eq!(asked(&mut lookup), [95], "the key's predecessor knows best");
        lookup.closer(peer(95).id, &[], &peers([110, 120]));
        assert_eq!(asked(&mut lookup), [110]);
    }
}
