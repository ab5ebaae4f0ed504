//! Seats: a peer becomes a neighbour, a witness, a finger or a member of the roster only where its
//! address puts it.
//!
//! Every request that makes its sender a neighbour says where the sender sits, and so does every
//! answer. Both are compared with the address at which the peer speaks. Nobody's word about a third
//! peer is believed: that peer counts once it has answered from its own address.

use super::{Ring, Turn};
use crate::{Contact, event::RingAction};
use apoidea_model::{PeerId, Time};
use std::net::IpAddr;

impl Ring {
    /// Whether a peer that speaks from this address may stand where it says.
    pub(super) fn is_seated(&self, peer: &Contact, at: Option<IpAddr>, now: Time) -> bool {
        let mine = self.me.seat().prefix();
        let seating = self.settings.seating;
        seating.admits(peer.seat(), at, mine, now)
    }

    /// Whether it may be a neighbour: no two members share a seat.
    pub(super) fn is_welcome(&self, peer: &Contact, at: Option<IpAddr>, now: Time) -> bool {
        !self.is_rival(peer) && self.is_seated(peer, at, now)
    }

    /// Whether this is another peer in the same seat.
    pub(super) fn is_rival(&self, peer: &Contact) -> bool {
        peer.id != self.me.id && peer.key() == self.me.key()
    }

    /// Whether this peer and another one can be in one ring: both have seats that are bound to an
    /// address, or neither has.
    pub(super) fn is_kin(&self, other: &Contact) -> bool {
        self.me.seat().prefix().is_some() == other.seat().prefix().is_some()
    }

    /// A newcomer has found another peer in its seat.
    pub(super) fn lose_seat(&mut self, turn: &mut Turn<'_>) {
        self.round_at = Time::NEVER;
        turn.actions.push(RingAction::SeatTaken);
    }

    /// A member has looked itself up and found another peer in its seat: the others have met that
    /// one first. The second time in a row it gives way, since one liar may have led it there.
    pub(super) fn meet_rival(&mut self, turn: &mut Turn<'_>) {
        if std::mem::replace(&mut self.has_rival, true) {
            self.has_rival = false;
            turn.actions.push(RingAction::SeatTaken);
        }
    }

    /// A member has looked itself up and was found.
    pub(super) fn forget_rival(&mut self) {
        self.has_rival = false;
    }

    /// A peer says that this one has no right to its seat.
    pub(super) fn note_misplaced(&mut self, _by: PeerId) {
        self.misplaced = self.misplaced.saturating_add(1);
    }
}
