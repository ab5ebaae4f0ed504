//! Requests that wait for their answer.
//!
//! An answer counts only while its request waits, and only from the peer that was asked. Everything
//! else is late or forged, and is dropped.

use crate::{Contact, message::RequestId};
use apoidea_model::{PeerId, Time};

/// Most requests waiting at a time: every lookup with all its parallel hops, and the maintenance.
const MAX_PENDING: usize = 1024;

/// The waiting requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight {
    pending: Vec<OpenRequest>,
    next: u32,
}

/// One waiting request.
#[derive(Debug, Clone)]
pub(crate) struct OpenRequest {
    pub id: RequestId,
    pub to: Contact,
    pub purpose: Purpose,
    pub sent: Time,
    pub deadline: Time,
    /// Attempts made so far, the first included.
    pub attempt: u32,
}

/// The reason for a request. It decides the meaning of the answer, or of silence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Ask the first successor about its neighbours.
    Stabilize,
    /// Ask the peer between here and the first successor, before adopting it.
    Adopt,
    /// Ask whether the predecessor is alive. If not, this other one takes its place.
    Rectify { instead: Contact },
    /// Ask a peer that may be the predecessor, if it answers.
    Precede,
    /// Ask an entry point for its neighbours, to learn the density of the ring.
    Gauge,
    /// Ask the owner of this peer's id for its neighbours, to join before it and behind the nearest
    /// peer that has named it.
    Join { behind: Option<Contact> },
    /// Ask the owner of this peer's id in another ring for its neighbours.
    Merge,
    /// Ask a neighbour about the nearest of its own.
    Survey,
    /// Ask whether a peer that may be a neighbour exists.
    Meet,
    /// One hop of a lookup, with how many attempts.
    Find { lookup: u32, attempts: u32 },
    /// Compare rosters.
    Roster,
    /// Verify a member.
    Hello,
}

/// Attempts before a peer that the ring's shape depends on is given up.
const ATTEMPTS: u32 = 3;

impl Purpose {
    /// Attempts before the asked peer is given up.
    pub fn attempts(&self) -> u32 {
        match self {
            Purpose::Find { attempts, .. } => *attempts,
            _ => ATTEMPTS,
        }
    }
}

impl InFlight {
    /// Registers a request; none if too many wait already.
    pub fn register(
        &mut self,
        to: Contact,
        purpose: Purpose,
        sent: Time,
        deadline: Time,
    ) -> Option<RequestId> {
        if self.pending.len() >= MAX_PENDING {
            return None;
        }
        self.next = self.next.wrapping_add(1);
        let id = RequestId(self.next);
        self.pending.push(OpenRequest {
            id,
            to,
            purpose,
            sent,
            deadline,
            attempt: 1,
        });
        Some(id)
    }

    /// The request that this answers, if it still waits for this peer.
    pub fn answered(&mut self, id: RequestId, from: PeerId) -> Option<OpenRequest> {
        let at = self
            .pending
            .iter()
            .position(|p| p.id == id && p.to.id == from)?;
        Some(self.pending.swap_remove(at))
    }

    /// A request whose time is over.
    pub fn expired(&mut self, now: Time) -> Option<OpenRequest> {
        let at = self.pending.iter().position(|p| p.deadline <= now)?;
        Some(self.pending.swap_remove(at))
    }

    /// A request to this peer.
    pub fn to(&mut self, peer: PeerId) -> Option<OpenRequest> {
        let at = self.pending.iter().position(|p| p.to.id == peer)?;
        Some(self.pending.swap_remove(at))
    }

    /// Puts a request back for another attempt, under the same id so that a late answer counts.
    pub fn again(&mut self, pending: OpenRequest) {
        self.pending.push(pending);
    }

    /// Whether this peer is already being asked for this reason.
    pub fn is_asked(&self, peer: PeerId, purpose: &Purpose) -> bool {
        self.pending
            .iter()
            .any(|p| p.to.id == peer && p.purpose == *purpose)
    }

    /// The number of requests that wait for this reason.
    pub fn count(&self, purpose: &Purpose) -> usize {
        self.pending
            .iter()
            .filter(|p| p.purpose == *purpose)
            .count()
    }

    /// Gives every request more time, as if it had just been sent.
    pub fn postpone(&mut self, until: Time) {
        for pending in &mut self.pending {
            pending.deadline = pending.deadline.max(until);
            // Its round trip would measure the pause.
            pending.attempt = pending.attempt.max(2);
        }
    }

    /// Forgets every request except those of lookups.
    pub fn keep_lookups(&mut self) {
        self.pending
            .retain(|p| matches!(p.purpose, Purpose::Find { .. }));
    }

    /// Forgets the requests of a finished lookup.
    pub fn drop_lookup(&mut self, finished: u32) {
        self.pending
            .retain(|p| !matches!(p.purpose, Purpose::Find { lookup, .. } if lookup == finished));
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.pending.clear();
    }

    /// The time at which the next request expires.
    pub fn earliest(&self) -> Time {
        self.pending
            .iter()
            .map(|p| p.deadline)
            .min()
            .unwrap_or(Time::NEVER)
    }
}
