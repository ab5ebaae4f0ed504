//! Asking: sending requests, waiting for the answers, and drawing conclusions from silence.

use super::{Ring, Turn};
use crate::{
    Contact, Seat,
    contact::Contacts,
    event::{Phase, RingAction},
    in_flight::{OpenRequest, Purpose},
    message::{Introduction, Message, Notice, RequestId, RingRequest, RingResponse},
    suspects::SILENT_FOR,
};
use apoidea_model::PeerId;
use std::net::IpAddr;

impl Ring {
    /// Sends the request that this purpose needs. Returns whether it was sent.
    pub(super) fn ask(&mut self, turn: &mut Turn<'_>, to: &Contact, purpose: Purpose) -> bool {
        let Some(request) = self.request(to.id, &purpose) else {
            return false;
        };
        self.ask_this(turn, to, purpose, request)
    }

    pub(super) fn ask_this(
        &mut self,
        turn: &mut Turn<'_>,
        to: &Contact,
        purpose: Purpose,
        request: RingRequest,
    ) -> bool {
        let deadline = turn.now + self.round_trips.timeout(to.id, &self.settings);
        let Some(id) = self
            .in_flight
            .register(to.clone(), purpose, turn.now, deadline)
        else {
            return false;
        };
        self.send(turn, to, Message::Request(id, request));
        true
    }

    pub(super) fn send(&mut self, turn: &mut Turn<'_>, to: &Contact, message: Message) {
        self.counters.sent(message.kind());
        turn.actions.push(RingAction::Send(to.clone(), message));
    }

    pub(super) fn tell(&mut self, turn: &mut Turn<'_>, to: &Contact, notice: Notice) {
        self.send(turn, to, Message::Notice(notice));
    }

    fn request(&mut self, to: PeerId, purpose: &Purpose) -> Option<RingRequest> {
        let asker = || Introduction::from(&self.me);
        Some(match purpose {
            Purpose::Stabilize => {
                let version = self.neighbours.predecessors_version();
                let predecessors = (self.told != Some((to, version)))
                    .then(|| Contacts::new(self.neighbours.predecessors().iter().cloned()));
                self.telling = version;
                let known = self
                    .known
                    .filter(|(peer, _)| *peer == to)
                    .map(|(_, version)| version);
                RingRequest::Stabilize {
                    asker: asker(),
                    known,
                    predecessors,
                }
            }
            Purpose::Adopt | Purpose::Gauge | Purpose::Join { .. } | Purpose::Merge => {
                RingRequest::Neighbours
            }
            Purpose::Rectify { .. } | Purpose::Meet => RingRequest::Ping,
            Purpose::Survey => RingRequest::Survey {
                asker: asker(),
                known: self.heard.view(to),
            },
            Purpose::Roster => RingRequest::Roster {
                asker: asker(),
                digest: self.roster.digest(self.me.key()),
            },
            Purpose::Hello | Purpose::Precede => RingRequest::Hello { asker: asker() },
            Purpose::Find { lookup, .. } => self
                .lookups
                .iter()
                .find(|running| running.number == *lookup)?
                .request(),
        })
    }

    /// Time is over for an attempt: try again, or take the peer for dead.
    pub(super) fn expire(&mut self, turn: &mut Turn<'_>, mut pending: OpenRequest) {
        self.round_trips.unanswered();
        if pending.attempt >= pending.purpose.attempts() {
            return self.lose(turn, pending);
        }
        let Some(request) = self.request(pending.to.id, &pending.purpose) else {
            return;
        };
        pending.attempt += 1;
        let is_last = pending.attempt >= pending.purpose.attempts();
        let patience = self.round_trips.timeout(pending.to.id, &self.settings) * pending.attempt;
        let is_stranger = !self.round_trips.has_measured(pending.to.id);
        let most = self.settings.most_timeout;
        // A stranger may be farther away than anyone measured so far.
        pending.deadline = turn.now
            + if is_last && is_stranger {
                most
            } else {
                patience.min(most)
            };
        let (to, id, purpose) = (pending.to.clone(), pending.id, pending.purpose.clone());
        self.in_flight.again(pending);
        self.send(turn, &to, Message::Request(id, request));
        if let Purpose::Find { lookup, .. } = purpose {
            self.note_slow_find(turn, lookup, to.id);
        }
    }

    /// The transport cannot reach this peer: no need to wait any longer.
    pub(super) fn unreachable(&mut self, turn: &mut Turn<'_>, peer: PeerId) {
        // Giving up on one request may send others, but never to the same peer: it is a suspect by
        // then.
        while let Some(pending) = self.in_flight.to(peer) {
            self.lose(turn, pending);
        }
        self.cache.forget(peer);
    }

    pub(super) fn take_response(
        &mut self,
        turn: &mut Turn<'_>,
        (from, at): (PeerId, Option<IpAddr>),
        id: RequestId,
        seat: Seat,
        response: RingResponse,
    ) {
        let Some(pending) = self.in_flight.answered(id, from) else {
            return;
        };
        self.lost.answered(from);
        if pending.attempt == 1 {
            self.round_trips
                .measured(from, turn.now.since(pending.sent));
        }
        if response == RingResponse::Misplaced {
            self.note_misplaced(from);
        }
        let is_answer = !matches!(response, RingResponse::Absent | RingResponse::Misplaced);
        let answerer = pending.to.at(seat);
        if !is_answer || !self.is_seated(&answerer, at, turn.now) {
            // Outside the ring, another one that is outside may have been cut off as well.
            if self.phase == Phase::Member {
                self.lost.forget(from);
            }
            return self.take_silence(turn, pending);
        }
        let has_moved = answerer != pending.to;
        if has_moved {
            self.book.moved(&answerer);
        }
        if !has_moved && self.neighbours.contains(from) {
            self.heard.note(from, turn.now);
        }
        let is_there = !has_moved && !self.is_rival(&answerer);
        match pending.purpose {
            Purpose::Gauge => self.gauge(turn, &answerer, &response),
            Purpose::Find { lookup, .. } => self.found(turn, lookup, answerer, response),
            _ if !is_there => self.take_silence(turn, pending),
            Purpose::Survey => self.surveyed(turn, &pending.to, response),
            Purpose::Meet => self.met(turn, &pending.to),
            Purpose::Stabilize => self.stabilized(turn, pending.to, response),
            Purpose::Adopt => self.adopt_successor(turn, pending.to, response),
            Purpose::Rectify { .. } => self.finish_operation(turn),
            Purpose::Precede => self.adopt_predecessor(turn, pending.to),
            Purpose::Join { behind } => self.joined(turn, pending.to, behind, response),
            Purpose::Merge => self.merge(turn, pending.to, response),
            Purpose::Roster => self.take_roster(turn, pending.to, response),
            Purpose::Hello => self.take_hello(turn, pending.to),
        }
    }

    /// A peer does not answer at all.
    fn lose(&mut self, turn: &mut Turn<'_>, pending: OpenRequest) {
        let peer = pending.to.id;
        let was_present = self.is_present(peer);
        self.take_silence(turn, pending);
        if was_present && !self.is_present(peer) {
            self.note_lost(turn, peer);
        }
    }

    /// A peer is dead, or no longer a member. Either way, the request has failed.
    fn take_silence(&mut self, turn: &mut Turn<'_>, pending: OpenRequest) {
        let OpenRequest { to, purpose, .. } = pending;
        self.suspects.add(to.id, turn.now + SILENT_FOR);
        self.heard.forget(to.id);
        match purpose {
            Purpose::Find { attempts: 1, .. } => self.fingers.doubt(to.id),
            _ => self.fingers.remove(to.id),
        }
        self.cache.forget(to.id);
        match purpose {
            Purpose::Stabilize => self.drop_head(turn, to.id),
            Purpose::Rectify { instead } => self.replace_predecessor(turn, to.id, instead),
            Purpose::Adopt | Purpose::Precede => self.finish_operation(turn),
            Purpose::Join { .. } => self.join_failed(turn),
            Purpose::Survey | Purpose::Meet => self.lose_neighbour(to.id),
            Purpose::Gauge => self.narrow_join(turn, None),
            Purpose::Merge => {}
            Purpose::Find { lookup, .. } => self.find_failed(turn, lookup, to.id),
            Purpose::Roster | Purpose::Hello => self.drop_member(turn, to.id),
        }
    }
}
