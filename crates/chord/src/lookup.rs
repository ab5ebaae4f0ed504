//! One iterative lookup: the next peer to ask on the way to a key's owner, and the time to stop.
//!
//! Candidates stand before the key or at and after it. Nobody's word about itself makes it the
//! owner. The owner is the nearest living peer after the key that several peers right before the
//! key have named; it is asked, too, and confirms. A liar can name false peers or leave true ones
//! out. It cannot hide a peer that an honest one names, and it has no place nearer than its own.
//!
//! Peers right before the key are within the *zone*: the distance in which several peers are to be
//! expected, by the density around the asker (Castro et al. 2002, §4.2). Liars who name only each
//! other are as thin as liars are, so few of them stand in the zone. While the zone has not spoken,
//! the search goes on with everyone else who is known.
//!
//! Answers may only name peers nearer to the key than the answerer. So every hop advances, and a
//! liar cannot lead a lookup in circles. Requests and timeouts are left to the ring.

use crate::{
    Arc, Contact,
    candidate::{self, Candidate, Side, State, place, position_of},
    message::RingRequest,
};
use apoidea_model::{Key, PeerId, Time};

/// Candidates taken from each list of one answer: as many as an honest answer names.
const MAX_NAMED: usize = 8;
/// Peers asked before a lookup gives up: ten times what half a dead ring needs.
const MAX_ASKED: usize = 96;
/// Times that a lookup begins again from the asker's own tables.
const MAX_BEGINNINGS: u32 = 8;
/// Requests in flight when many peers were found silent.
const MAX_PARALLEL: usize = 8;
/// Nearest predecessors asked again after everyone they named was dead.
const ASKED_AGAIN: usize = 3;
/// The edge of the zone, in zones: where the zone has too few peers, one more up to here will do.
const EDGE: f64 = 1.5;
/// Peers outside of the zone that are asked because the zone has said too little.
const MAX_DOUBTS: usize = 24;
/// Entry points that tell how close peers stand before a newcomer believes that it has found its
/// place: one of them may lie.
const GAUGES: usize = 2;

/// A lookup in progress.
#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    pub number: u32,
    pub goal: Goal,
    pub started: Time,
    care: Care,
    /// The key, or where the search goes on because everyone up to there is dead.
    target: Key,
    /// Whether the target has moved on from the key.
    moved_on: bool,
    before: Vec<Candidate>,
    after: Vec<Candidate>,
    /// Whether a peer before the key has named those after it.
    covered: bool,
    hint: Option<Hint>,
    parallel: usize,
    asked: usize,
    doubts: usize,
    beginnings: u32,
    last_aside: Option<Key>,
    has_tried_again: bool,
    gauges: Gauges,
}

/// The entry points that are asked how close peers stand, which bounds a newcomer's zone. Without a
/// zone, peers all over the ring would do as witnesses, and a few liars that are near in time could
/// give the newcomer a place among them before anybody else has answered.
#[derive(Debug, Clone, Copy, Default)]
struct Gauges {
    open: usize,
    told: usize,
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

/// The trust that a lookup has in the peers that it meets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Care {
    /// Peers before the key that must name the owner.
    pub witnesses: usize,
    /// The distance from the key within which they, and the owner, are to be expected, as a share
    /// of the ring; none if the density is not known.
    pub zone: Option<f64>,
}

/// A peer that is asked first, because it was the owner before.
#[derive(Debug, Clone, Copy)]
struct Hint {
    peer: PeerId,
    is_asked: bool,
    /// The start of its arc, if it is known from an earlier lookup.
    from: Option<Key>,
}

/// The next step of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Ask(Contact, Side),
    /// Ask for the peers before this key, which is not the target.
    AskAside(Contact, Key),
    Wait,
    /// The first of these owns the key by its own word and that of others, and at least the keys
    /// after `from`.
    Confirm {
        from: Key,
        owners: Vec<Contact>,
        hops: u32,
    },
    /// The owner is silent; this living peer is the next, followed by others that may be.
    Presume {
        owners: Vec<Contact>,
        hops: u32,
    },
    DeadEnd,
    TooLong,
}

impl Lookup {
    pub fn new(
        number: u32,
        key: Key,
        goal: Goal,
        care: Care,
        parallel: usize,
        started: Time,
    ) -> Self {
        Lookup {
            number,
            goal,
            started,
            care,
            target: key,
            moved_on: false,
            before: Vec::new(),
            after: Vec::new(),
            covered: false,
            hint: None,
            parallel,
            asked: 0,
            doubts: 0,
            beginnings: 0,
            last_aside: None,
            has_tried_again: false,
            gauges: Gauges::default(),
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

    /// So many entry points are asked how close peers stand.
    pub fn await_gauges(&mut self, asked: usize) {
        self.gauges.open = asked;
    }

    /// Peers stand so close, as an entry point says, that this is the zone at most; none if it said
    /// nothing.
    pub fn narrow(&mut self, zone: Option<f64>) {
        self.gauges.open = self.gauges.open.saturating_sub(1);
        let Some(zone) = zone else { return };
        self.gauges.told += 1;
        let known = self.care.zone.unwrap_or(f64::INFINITY);
        self.care.zone = Some(known.min(zone));
    }

    /// Peers to begin with, as this peer, which stands at `me`, knows them.
    pub fn begin(&mut self, me: Key, before: &[Contact], after: &[Contact]) {
        before
            .iter()
            .for_each(|contact| self.insert(contact, Side::Before, 1));
        for contact in after {
            self.insert(contact, Side::After, 1);
            self.vote(contact.id, me);
        }
        self.covered |= !after.is_empty();
    }

    /// Counts one more beginning from the asker's own tables. Returns whether it is allowed:
    /// without a bound, a search would never end.
    pub fn begin_again(&mut self) -> bool {
        self.beginnings += 1;
        self.beginnings <= MAX_BEGINNINGS
    }

    /// A peer to ask first, because it was the owner before, perhaps of an arc known since. Its own
    /// word is then enough.
    pub fn try_first(&mut self, contact: &Contact, from: Option<Key>) {
        self.insert(contact, self.side(contact.id), 1);
        self.hint = Some(Hint {
            peer: contact.id,
            is_asked: false,
            from,
        });
    }

    /// This peer itself stands after the key, and it is alive.
    pub fn note_alive(&mut self, contact: &Contact, informer: &Contact) {
        let depth = self.depth(informer.id) + 1;
        self.insert(contact, Side::After, depth);
        self.vote(contact.id, informer.key());
        self.mark(contact.id, State::Answered);
    }

    /// Whether this peer is a candidate in this seat, or none at all.
    pub fn knows(&self, peer: &Contact) -> bool {
        let mut all = self.before.iter().chain(&self.after);
        let known = all.find(|c| c.contact.id == peer.id);
        known.is_none_or(|known| known.contact.seat() == peer.seat())
    }

    /// A peer that was asked does not sit where it was looked for: it has its place where it says.
    pub fn relocate(&mut self, actual: &Contact) {
        let depth = self.depth(actual.id);
        let is_other = |candidate: &Candidate| candidate.contact.id != actual.id;
        self.before.retain(is_other);
        self.after.retain(is_other);
        let is_at_target = actual.key() == self.target;
        let side = if is_at_target {
            Side::After
        } else {
            Side::Before
        };
        self.insert(actual, side, depth);
    }

    /// An answer that names others; those that are not nearer than the answerer are left out.
    pub fn closer(&mut self, from: &Contact, before: &[Contact], after: &[Contact]) {
        let depth = self.depth(from.id) + 1;
        let answerer_before = self.side(from.id) == Side::Before;
        let (before, after) = (first(before), first(after));
        self.mark(from.id, State::Answered);
        for contact in before.iter().chain(after) {
            if contact.key().between(from.key(), self.target) {
                self.insert(contact, Side::Before, depth);
            }
        }
        for contact in after.iter().filter(|contact| contact.id != from.id) {
            if contact.key() == self.target || contact.key().between(self.target, from.key()) {
                self.insert(contact, Side::After, depth);
                if answerer_before {
                    self.covered = true;
                    self.vote(contact.id, from.key());
                }
            }
        }
    }

    /// A peer says that the target is in its own arc, which begins at `start`.
    pub fn claim(&mut self, claimant: &Contact, start: Key, successors: Vec<Contact>) {
        let arc = Arc {
            from: start,
            to: claimant.key(),
        };
        self.mark(claimant.id, State::Answered);
        if !arc.contains(self.target) {
            return;
        }
        let all = self.after.iter_mut().chain(&mut self.before);
        if let Some(candidate) = all.into_iter().find(|c| c.contact.id == claimant.id) {
            candidate.claim = Some((start, successors));
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

    /// The nearest peer before the key that has answered.
    pub fn nearest_answered(&self) -> Option<Contact> {
        let at = position_of(&self.before, State::Answered)?;
        Some(self.before[at].contact.clone())
    }

    /// The next step; to be repeated while it is [`Step::Ask`].
    pub fn step(&mut self) -> Step {
        let is_gauged = self.gauges.open == 0 || self.gauges.told >= GAUGES;
        match self.search() {
            Step::Confirm { .. } | Step::Presume { .. } if !is_gauged => Step::Wait,
            step => step,
        }
    }

    fn search(&mut self) -> Step {
        if self.asked >= MAX_ASKED {
            return self.after_too_many();
        }
        if let Some(step) = self.ask_hint() {
            return step;
        }
        match self.nearest_after() {
            Some(at) if self.is_trusted(&self.after[at]) => self.finish(&self.after[at]),
            Some(at) if self.covered => self.settle(at),
            None if self.covered && !self.after.is_empty() => self.move_on(),
            _ => self.approach(),
        }
    }

    /// The first candidate after the key that is not dead.
    fn nearest_after(&self) -> Option<usize> {
        self.after.iter().position(|c| c.state != State::Dead)
    }

    /// Nobody has named the peers after the key yet: asks those before it, nearest first.
    fn approach(&mut self) -> Step {
        if self.in_flight() >= self.allowed_in_flight() {
            return Step::Wait;
        }
        let answered = self.before.iter().position(|c| c.state == State::Answered);
        let nearer = &self.before[..answered.unwrap_or(self.before.len())];
        let new = position_of(nearer, State::New).or(position_of(&self.before, State::New));
        if let Some(at) = new {
            return self.ask(Side::Before, at);
        }
        if self.is_waiting() {
            return Step::Wait;
        }
        let all = self.after.iter().chain(&self.before);
        let mut claimants = all.filter(|c| c.state == State::Answered && c.claim.is_some());
        match claimants.next() {
            // Nobody else is there: a ring of one.
            Some(claimant) => self.finish(claimant),
            None => self.ask_aside(),
        }
    }

    /// Someone has named the peers after the key, and `at` is the first of them that is not dead.
    /// It is asked, and so are the peers right before the key, until enough of them have named it.
    fn settle(&mut self, at: usize) -> Step {
        let is_near = self.is_in_zone(self.target, self.after[at].contact.key());
        if self.after[at].state == State::New && is_near {
            return self.ask(Side::After, at);
        }
        if let Some(step) = self.ask_witness(at, is_near) {
            return step;
        }
        match self.after[at].state {
            State::New => self.ask(Side::After, at),
            State::Answered => self.finish(&self.after[at]),
            State::Slow => match position_of(&self.after, State::New) {
                Some(next) => self.ask(Side::After, next),
                None => Step::Wait,
            },
            State::Asked | State::Dead => Step::Wait,
        }
    }

    /// The next peer before the key that is to say whom it knows after it; none if enough have
    /// named this one, or if there is nobody else.
    fn ask_witness(&mut self, at: usize, is_near: bool) -> Option<Step> {
        let is_enough = self.has_witnesses(at);
        if is_enough && (is_near || self.care.witnesses == 0) {
            return None;
        }
        let zone = self.before_within(1.0);
        let edge = self.before_within(EDGE);
        let reach = if position_of(&self.before[..zone], State::New).is_some() {
            zone
        } else {
            edge
        };
        let count = |state: State| {
            let inside = self.before[..reach].iter();
            inside.filter(|c| c.state == state).count()
        };
        let (waiting, silent) = (count(State::Asked), count(State::Dead));
        if !is_enough && let Some(new) = position_of(&self.before[..reach], State::New) {
            let votes = self.votes(at, if reach == zone { 1.0 } else { EDGE });
            let wanted = self.care.witnesses + usize::from(reach > zone) + silent / 2;
            return Some(if votes + waiting < wanted {
                self.ask(Side::Before, new)
            } else {
                Step::Wait
            });
        }
        if waiting > 0 {
            return Some(Step::Wait);
        }
        self.doubt(edge)
    }

    /// Whether enough peers right before the key have named this one: so many in the zone, or one
    /// more up to its edge.
    fn has_witnesses(&self, at: usize) -> bool {
        let wanted = self.care.witnesses;
        self.votes(at, 1.0) >= wanted || self.votes(at, EDGE) > wanted
    }

    /// The number of candidates before the key that stand within so many zones of it.
    fn before_within(&self, zones: f64) -> usize {
        let is_within = |c: &&Candidate| self.is_within(zones, c.contact.key(), self.target);
        self.before.iter().take_while(is_within).count()
    }

    /// The zone has said too little: asks on outside of it.
    fn doubt(&mut self, zone: usize) -> Option<Step> {
        if self.doubts >= MAX_DOUBTS {
            return None;
        }
        let Some(new) = position_of(&self.before[zone..], State::New) else {
            let is_asked = |c: &Candidate| c.state == State::Asked;
            return self.before.iter().any(is_asked).then_some(Step::Wait);
        };
        if self.in_flight() >= self.allowed_in_flight() {
            return Some(Step::Wait);
        }
        self.doubts += 1;
        Some(self.ask(Side::Before, zone + new))
    }

    /// Peers within so many zones before the key that have named this one.
    fn votes(&self, at: usize, zones: f64) -> usize {
        let namers = self.after[at].namers.iter();
        namers
            .filter(|namer| self.is_within(zones, **namer, self.target))
            .count()
    }

    fn is_in_zone(&self, from: Key, to: Key) -> bool {
        self.is_within(1.0, from, to)
    }

    fn is_within(&self, zones: f64, from: Key, to: Key) -> bool {
        let distance = from.distance_to(to).fraction();
        self.care.zone.is_none_or(|zone| distance <= zones * zone)
    }

    /// Whether this peer was the owner before and says that it still is.
    fn is_trusted(&self, candidate: &Candidate) -> bool {
        let hint = self.hint;
        let is_near = self.is_in_zone(self.target, candidate.contact.key());
        candidate.claim.is_some()
            && hint.is_some_and(|hint| {
                hint.peer == candidate.contact.id && (is_near || hint.from.is_some())
            })
    }

    /// This living peer is taken as the owner: by its own word, or because the owner is silent.
    fn finish(&self, owner: &Candidate) -> Step {
        let hops = owner.depth;
        let Some((start, successors)) = &owner.claim else {
            let alive = self.after.iter().filter(|c| c.state != State::Dead);
            let owners = alive.map(|c| c.contact.clone()).collect();
            return Step::Presume { owners, hops };
        };
        let owners = [&owner.contact].into_iter().chain(successors);
        Step::Confirm {
            from: self.start_of_arc(*start),
            owners: owners.cloned().collect(),
            hops,
        }
    }

    /// The start of the owner's arc as far as it is certain: not before any peer that has answered
    /// or that a lookup before this one has found, whatever the owner claims.
    fn start_of_arc(&self, claimed: Key) -> Key {
        let answered = self.before.iter().find(|c| c.state == State::Answered);
        let known = answered.map(|c| c.contact.key());
        let earlier = self.hint.and_then(|hint| hint.from);
        let nearer = |start: Key, other: Key| {
            if other.between(start, self.target) {
                other
            } else {
                start
            }
        };
        known.into_iter().chain(earlier).fold(claimed, nearer)
    }

    /// All that the nearest living peer has named are dead; but there are always some right behind
    /// it that it has not named, because others were nearer to the target.
    fn ask_aside(&mut self) -> Step {
        let Some(at) = position_of(&self.before, State::Answered) else {
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
        let answered = position_of(&self.before, State::Answered);
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

    fn in_flight(&self) -> usize {
        let all = self.before.iter().chain(&self.after);
        all.filter(|c| c.state == State::Asked).count()
    }

    fn is_waiting(&self) -> bool {
        let is_waiting = |c: &Candidate| matches!(c.state, State::Asked | State::Slow);
        self.before.iter().chain(&self.after).any(is_waiting)
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

    fn ask_hint(&mut self) -> Option<Step> {
        let hint = self.hint.as_mut().filter(|hint| !hint.is_asked)?;
        hint.is_asked = true;
        let peer = hint.peer;
        let new = |list: &[Candidate]| place(list, peer).filter(|&at| list[at].state == State::New);
        if let Some(at) = new(&self.before) {
            Some(self.ask(Side::Before, at))
        } else {
            new(&self.after).map(|at| self.ask(Side::After, at))
        }
    }

    fn ask(&mut self, side: Side, at: usize) -> Step {
        let candidate = &mut self.list(side)[at];
        candidate.state = State::Asked;
        let contact = candidate.contact.clone();
        self.asked += 1;
        Step::Ask(contact, side)
    }

    /// Notes that a peer before the key has named this one after it.
    fn vote(&mut self, named: PeerId, namer: Key) {
        if let Some(at) = place(&self.after, named)
            && !self.after[at].namers.contains(&namer)
        {
            self.after[at].namers.push(namer);
        }
    }

    fn insert(&mut self, contact: &Contact, side: Side, depth: u32) {
        let target = self.target;
        candidate::insert(self.list(side), target, side, contact, depth);
    }

    /// Everyone but the peer at the target stands before it, if one only goes far enough around; a
    /// hint counts as after it, where the old owner of a key is.
    fn side(&self, peer: PeerId) -> Side {
        match place(&self.before, peer) {
            Some(_) => Side::Before,
            None => Side::After,
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

fn first(named: &[Contact]) -> &[Contact] {
    &named[..named.len().min(MAX_NAMED)]
}

#[cfg(test)]
mod tests;
