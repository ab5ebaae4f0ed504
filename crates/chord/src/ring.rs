//! The ring as one peer sees it: a state machine without I/O, clock or randomness of its own.
//!
//! This is Chord as corrected by Zave (arXiv 1502.06461, 1610.01140), with a full roster while the ring is small.
//! A driver passes in what happened and carries out what comes back; the simulator drives the same code.

use crate::{
    Contact,
    arc::Arc,
    event::{Action, Event, Phase},
    settings::Settings,
    status::Status,
};
use apoidea_model::{Key, Time};
use rand::Rng;

/// One peer's view of the ring.
#[derive(Debug)]
pub struct Ring {
    me: Contact,
    settings: Settings,
    phase: Phase,
}

/// Whose is a key, judged from here?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// Ours: it lies after the predecessor, up to this peer.
    Mine,
    /// Not ours; this peer is nearer to the owner, or is the owner.
    Elsewhere(Contact),
    /// Not ours, and nobody nearer is known.
    Unknown,
}

impl Ring {
    /// A peer outside of any ring, reachable as `me` says.
    pub fn new(me: Contact, settings: Settings) -> Self {
        Ring { me, settings, phase: Phase::Outside }
    }

    /// Takes in what happened and returns what is to be done, in order. `now` never runs backwards; a long gap is
    /// taken as a pause of the machine.
    pub fn handle(&mut self, event: Event, now: Time, rng: &mut dyn Rng) -> Vec<Action> {
        let _ = (event, now, rng);
        Vec::new()
    }

    /// When [`Event::Timeout`] is wanted next; never while outside.
    pub fn next_timeout(&self) -> Time {
        Time::NEVER
    }

    /// This peer.
    pub fn me(&self) -> &Contact {
        &self.me
    }

    /// This peer can now be reached elsewhere; neighbours learn of it with the next rounds.
    pub fn moved_to(&mut self, me: Contact) {
        debug_assert_eq!(me.id, self.me.id, "a peer keeps its id");
        self.me.addresses = me.addresses;
    }

    /// The peer's relation to the ring.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What this peer owns.
    pub fn arc(&self) -> Option<Arc> {
        None
    }

    /// Whose is this key? To be asked on every request that belongs to a key.
    pub fn ownership(&self, key: Key) -> Ownership {
        let _ = key;
        Ownership::Unknown
    }

    /// The owner of a key and the next `count − 1` peers clockwise, if they are known without asking.
    ///
    /// The peers after the owner hold its replicas: when the owner crashes, the first of them becomes the owner and
    /// already has everything.
    pub fn owners(&self, key: Key, count: usize, now: Time) -> Option<Vec<Contact>> {
        let _ = (key, count, now);
        None
    }

    /// The predecessor, if one is known.
    pub fn predecessor(&self) -> Option<&Contact> {
        None
    }

    /// The successors, nearest first.
    pub fn successors(&self) -> &[Contact] {
        &[]
    }

    /// Half the leaf peers on either side: predecessors, farthest first, then successors, without repetition.
    pub fn leaves(&self) -> Vec<Contact> {
        Vec::new()
    }

    /// Peers that have answered before: to be stored, and passed to [`Event::Join`] at the next start.
    pub fn remembered(&self) -> Vec<Contact> {
        Vec::new()
    }

    /// Members of the ring, as far as the density of the neighbours tells.
    pub fn size_estimate(&self) -> f64 {
        1.0
    }

    /// Everything worth showing.
    pub fn status(&self) -> Status {
        Status {
            me: self.me.id,
            phase: self.phase,
            scale: crate::message::Scale::Small,
            arc: self.arc(),
            predecessor: self.predecessor().cloned(),
            successors: self.successors().to_vec(),
            leaves: self.leaves(),
            fingers: Vec::new(),
            round_trips: Vec::new(),
            size_estimate: self.size_estimate(),
            cached_arcs: self.settings.cached_arcs.min(0),
            counters: Vec::new(),
        }
    }
}
