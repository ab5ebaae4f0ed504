//! Answering: what a peer says about itself and the ring to whoever asks.

use super::{Operation, Ring, Turn};
use crate::{
    Contact,
    contact::{Addresses, Contacts},
    event::Phase,
    message::{Message, Predecessor, Request, RequestId, Response, Scale, Successors, Version},
};
use apoidea_model::{Key, PeerId, Time};

/// How many peers around a key are wanted at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// Before the key, if nobody after it is known.
    before: usize,
    /// Before the key, next to those after it.
    around: usize,
    /// At and after the key.
    after: usize,
}

/// What an answer names: with half of the ring dead, one answer in 256 names nobody who is alive.
const ANSWER: Reach = Reach {
    before: 8,
    around: 3,
    after: 8,
};
/// What a redirect names.
pub(super) const ONE: Reach = Reach {
    before: 1,
    around: 1,
    after: 1,
};
/// What an own lookup begins with: as much as it can hold.
pub(super) const OWN: Reach = Reach {
    before: 24,
    around: 24,
    after: 24,
};

impl Ring {
    pub(super) fn answer(
        &mut self,
        turn: &mut Turn<'_>,
        from: PeerId,
        id: RequestId,
        request: Request,
    ) {
        let asker = Contact {
            id: from,
            addresses: self.asker_addresses(from, &request),
        };
        let response = match request {
            _ if !self.has_position() => Response::Absent,
            Request::Ping => Response::Alive,
            Request::Neighbours if self.is_busy() => Response::Busy,
            Request::Neighbours => self.neighbours_as_seen_by(from, None),
            Request::Stabilize { .. } if self.is_busy() => Response::Busy,
            Request::Stabilize {
                known,
                predecessors,
                ..
            } => {
                let response = self.neighbours_as_seen_by(from, known);
                self.consider(turn, &asker, predecessors);
                response
            }
            Request::Find { key, successors } => {
                self.answer_find(turn, key, usize::from(successors))
            }
            Request::Roster { digest, .. } => self.answer_roster(turn, &asker, digest),
            Request::Hello { .. } => {
                self.take_greeting(turn, &asker);
                Response::Alive
            }
        };
        self.send(turn, &asker, Message::Response(id, response));
    }

    pub(super) fn has_position(&self) -> bool {
        matches!(self.phase, Phase::Alone | Phase::Member)
    }

    fn is_busy(&self) -> bool {
        self.operation != Operation::Idle
    }

    /// Where to send an answer: the asker's own word, or nowhere in particular; the transport knows
    /// the way back.
    fn asker_addresses(&self, from: PeerId, request: &Request) -> Addresses {
        match request {
            Request::Stabilize { addresses, .. }
            | Request::Roster { addresses, .. }
            | Request::Hello { addresses } => addresses.clone(),
            _ => {
                let known = self
                    .neighbours
                    .successors()
                    .iter()
                    .chain(self.neighbours.predecessors());
                let mut known = known.filter(|contact| contact.id == from);
                known
                    .next()
                    .map_or_else(|| Addresses::new(&[]), |contact| contact.addresses.clone())
            }
        }
    }

    /// A member greets. Between here and the first successor, it is the new first successor once it
    /// has told its neighbours: a newcomer greets whom it takes for its predecessor.
    fn take_greeting(&mut self, turn: &mut Turn<'_>, asker: &Contact) {
        let is_next = |head: &Contact| asker.key().between(self.me.key(), head.key());
        if self.scale == Scale::Small {
            self.meet_member(turn, asker);
        } else if self.neighbours.head().is_some_and(is_next) {
            self.try_successor(turn, asker);
        }
    }

    fn neighbours_as_seen_by(&self, asker: PeerId, known: Option<Version>) -> Response {
        let predecessor = match self.neighbours.predecessor() {
            None => Predecessor::Unknown,
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
        Response::Neighbours {
            predecessor,
            successors,
            scale: self.scale,
        }
    }

    /// Someone has this peer as its first successor.
    fn consider(&mut self, turn: &mut Turn<'_>, asker: &Contact, predecessors: Option<Contacts>) {
        match self.scale {
            Scale::Small => self.meet_member(turn, asker),
            Scale::Large => self.rectify(turn, asker, predecessors),
        }
    }

    fn answer_find(&self, turn: &Turn<'_>, key: Key, successors: usize) -> Response {
        if let Some(arc) = self.arc()
            && arc.contains(key)
        {
            let list = self
                .neighbours
                .successors()
                .iter()
                .take(successors.min(self.settings.successors));
            return Response::Owner {
                from: arc.from,
                successors: Contacts::new(list.cloned()),
            };
        }
        let (before, after) = self.route(key, ANSWER, turn.now);
        Response::Closer {
            before: Contacts::new(before),
            after: Contacts::new(after),
        }
    }

    fn answer_roster(&mut self, turn: &mut Turn<'_>, asker: &Contact, digest: u64) -> Response {
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
            return Response::Roster {
                members: Contacts::new(run.cloned()),
            };
        }
        self.meet_member(turn, asker);
        let is_same = self.roster.digest(self.me.id) == digest;
        let members = self
            .roster
            .members()
            .iter()
            .filter(|member| !is_same && member.id != asker.id);
        Response::Roster {
            members: Contacts::new(members.cloned()),
        }
    }

    /// Whom this peer knows around a key: some before it and, if its neighbourhood reaches that
    /// far, some after it; nearest to the key first. Only peers that are nearer to it than this
    /// one.
    pub(super) fn route(&self, key: Key, reach: Reach, now: Time) -> (Vec<Contact>, Vec<Contact>) {
        let me = self.me.key();
        let is_before = |c: &&Contact| c.key().between(me, key);
        let is_after = |c: &&Contact| c.key() == key || c.key().between(key, me);
        if self.scale == Scale::Small {
            let before = self
                .roster
                .anticlockwise(key)
                .take_while(is_before)
                .take(reach.around);
            let after = self
                .roster
                .clockwise(key)
                .take_while(is_after)
                .take(reach.after);
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
                .take(reach.around);
            let after = run[at..]
                .iter()
                .copied()
                .take_while(is_after)
                .take(reach.after);
            return (before.cloned().collect(), after.cloned().collect());
        }
        let fingers = self.fingers.before(me, key);
        let living = fingers.chain(self.neighbours.successors().iter().rev());
        let living = living.filter(|contact| !self.suspects.contains(contact.id, now));
        (living.take(reach.before).cloned().collect(), Vec::new())
    }
}
