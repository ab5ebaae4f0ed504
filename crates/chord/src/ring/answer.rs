//! Answering: a peer tells an asker about itself and about the ring.

use super::{Operation, Ring, Turn};
use crate::{
    Contact,
    contact::Contacts,
    event::Phase,
    message::{
        Introduction, Message, Predecessor, RequestId, RingRequest, RingResponse, Scale,
        Successors, Version,
    },
};
use apoidea_model::{Key, PeerId, Time};
use std::net::IpAddr;

/// The number of peers around a key that are wanted at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Breadth {
    /// Before the key, if nobody after it is known.
    before: usize,
    /// Before the key, next to those after it.
    around: usize,
    /// At and after the key.
    after: usize,
}

/// The peers in an answer. With half of the ring dead, one answer in 256 names nobody who is alive.
const ANSWER: Breadth = Breadth {
    before: 8,
    around: 8,
    after: 8,
};
/// The peers in a redirect.
pub(super) const ONE: Breadth = Breadth {
    before: 1,
    around: 1,
    after: 1,
};
/// The peers that an own lookup begins with: as many as it can hold.
pub(super) const OWN: Breadth = Breadth {
    before: 24,
    around: 24,
    after: 24,
};

/// The asker's word about itself, in a request that makes it a neighbour.
fn introduction(request: &RingRequest) -> Option<&Introduction> {
    match request {
        RingRequest::Stabilize { asker, .. }
        | RingRequest::Survey { asker, .. }
        | RingRequest::Roster { asker, .. }
        | RingRequest::Hello { asker } => Some(asker),
        RingRequest::Ping | RingRequest::Neighbours | RingRequest::Find { .. } => None,
    }
}

impl Ring {
    pub(super) fn answer(
        &mut self,
        turn: &mut Turn<'_>,
        from: PeerId,
        at: Option<IpAddr>,
        id: RequestId,
        request: RingRequest,
    ) {
        let asker = self.asker(from, &request);
        let response = match request {
            _ if !self.has_position() => RingResponse::Absent,
            _ if introduction(&request).is_some() && !self.is_welcome(&asker, at, turn.now) => {
                RingResponse::Misplaced
            }
            RingRequest::Ping => RingResponse::Alive,
            RingRequest::Neighbours if self.is_busy() => RingResponse::Busy,
            RingRequest::Neighbours => self.neighbours_as_seen_by(from, None),
            RingRequest::Stabilize { .. } if self.is_busy() => RingResponse::Busy,
            RingRequest::Stabilize {
                known,
                predecessors,
                ..
            } => {
                let response = self.neighbours_as_seen_by(from, known);
                self.consider(turn, &asker, predecessors);
                response
            }
            RingRequest::Survey { known, .. } => {
                let response = self.answer_survey(known);
                self.acquaint(turn, &asker);
                self.meet_member(turn, &asker);
                response
            }
            RingRequest::Find { key, successors } => {
                self.answer_find(turn, key, usize::from(successors))
            }
            RingRequest::Roster { digest, .. } => self.answer_roster(turn, &asker, digest),
            RingRequest::Hello { .. } => {
                self.take_greeting(turn, &asker);
                RingResponse::Alive
            }
        };
        let seat = self.me.seat();
        self.send(turn, &asker, Message::Response(id, seat, response));
    }

    pub(super) fn has_position(&self) -> bool {
        matches!(self.phase, Phase::Alone | Phase::Member)
    }

    fn is_busy(&self) -> bool {
        self.operation != Operation::Idle
    }

    /// The asker by its own word, or as it is known: the transport knows the way back.
    fn asker(&self, from: PeerId, request: &RingRequest) -> Contact {
        if let Some(introduction) = introduction(request) {
            return introduction.of(from);
        }
        let known = self.neighbours.successors().iter();
        let mut known = known.chain(self.neighbours.predecessors());
        let known = known.find(|contact| contact.id == from);
        known.cloned().unwrap_or_else(|| Contact::new(from, &[]))
    }

    /// A member greets. A newcomer greets the peer that it takes for its predecessor. If it stands
    /// between here and the first successor, it becomes the first successor once it has told its
    /// neighbours.
    fn take_greeting(&mut self, turn: &mut Turn<'_>, asker: &Contact) {
        let is_next = |head: &Contact| asker.key().between(self.me.key(), head.key());
        if self.scale == Scale::Small {
            self.meet_member(turn, asker);
        } else if self.neighbours.head().is_some_and(is_next) {
            self.try_successor(turn, asker);
        }
    }

    fn neighbours_as_seen_by(&self, asker: PeerId, known: Option<Version>) -> RingResponse {
        let predecessor = match self.neighbours.predecessor() {
            None => Predecessor::Unknown,
            Some(predecessor) if predecessor.id == asker && self.lacks_predecessors => {
                Predecessor::YouAgain
            }
            Some(predecessor) if predecessor.id == asker => Predecessor::You,
            Some(predecessor) => Predecessor::Peer(predecessor.clone()),
        };
        let version = self.neighbours.successors_version();
        let successors = if known == Some(version) {
            Successors::Unchanged
        } else {
            Successors::List(
                version,
                Contacts::new(self.neighbours.successors().iter().cloned()),
            )
        };
        RingResponse::Neighbours {
            predecessor,
            successors,
            scale: self.scale,
        }
    }

    /// A peer has this one as its first successor.
    fn consider(&mut self, turn: &mut Turn<'_>, asker: &Contact, predecessors: Option<Contacts>) {
        match self.scale {
            Scale::Small => self.meet_member(turn, asker),
            Scale::Large => self.rectify(turn, asker, predecessors),
        }
    }

    fn answer_find(&self, turn: &Turn<'_>, key: Key, successors: usize) -> RingResponse {
        if let Some(arc) = self.arc()
            && arc.contains(key)
        {
            let list = self
                .neighbours
                .successors()
                .iter()
                .take(successors.min(self.settings.successors));
            return RingResponse::Owner {
                from: arc.from,
                successors: Contacts::new(list.cloned()),
            };
        }
        let (before, after) = self.route(key, ANSWER, turn.now);
        RingResponse::Closer {
            before: Contacts::new(before),
            after: Contacts::new(after),
        }
    }

    fn answer_roster(&mut self, turn: &mut Turn<'_>, asker: &Contact, digest: u64) -> RingResponse {
        if self.scale == Scale::Large && !self.is_busy() && self.may_be_few(turn.now) {
            self.become_few(turn);
        }
        if self.scale == Scale::Large {
            if !self.is_busy() {
                self.rectify(turn, asker, None);
            }
            let run = self
                .neighbours
                .run(&self.me)
                .filter(|c| c.id != self.me.id && c.id != asker.id);
            return RingResponse::Roster {
                members: Contacts::new(run.cloned()),
            };
        }
        self.meet_member(turn, asker);
        let is_same = self.roster.digest(self.me.key()) == digest;
        let members = self
            .roster
            .members()
            .iter()
            .filter(|member| !is_same && member.id != asker.id);
        RingResponse::Roster {
            members: Contacts::new(members.cloned()),
        }
    }

    /// The peers that this one knows around a key: some before it and, if its neighbourhood reaches
    /// that far, some after it, nearest to the key first. All of them are nearer to the key than
    /// this peer.
    pub(super) fn route(
        &self,
        key: Key,
        breadth: Breadth,
        now: Time,
    ) -> (Vec<Contact>, Vec<Contact>) {
        let me = self.me.key();
        let is_before = |c: &&Contact| c.key().between(me, key);
        let is_after = |c: &&Contact| c.key() == key || c.key().between(key, me);
        if self.scale == Scale::Small {
            let before = self
                .roster
                .anticlockwise(key)
                .take_while(is_before)
                .take(breadth.around);
            let after = self
                .roster
                .clockwise(key)
                .take_while(is_after)
                .take(breadth.after);
            return (before.cloned().collect(), after.cloned().collect());
        }
        if self.neighbours.span(key) {
            let run: Vec<&Contact> = self.neighbours.run(&self.me).collect();
            let first = run[0].key();
            let at = run.partition_point(|c| c.key() == first || c.key().between(first, key));
            let before = run[..at]
                .iter()
                .copied()
                .rev()
                .take_while(is_before)
                .take(breadth.around);
            let after = run[at..]
                .iter()
                .copied()
                .take_while(is_after)
                .take(breadth.after);
            return (before.cloned().collect(), after.cloned().collect());
        }
        let fingers = self.fingers.before(me, key);
        let living = fingers.chain(self.neighbours.successors().iter().rev());
        let living = living.filter(|contact| !self.suspects.contains(contact.id, now));
        (living.take(breadth.before).cloned().collect(), Vec::new())
    }
}
