//! Keeping in touch: counting the members that fell silent, and asking others when one does.

use super::{Ring, Turn};
use crate::{Contact, Touch, event::Phase, in_flight::Purpose, message::Scale};
use apoidea_model::{PeerId, Time};
use rand::seq::IndexedRandom;
use std::collections::BTreeSet;

/// Neighbours asked in a large ring when another one falls silent; in a small ring all members are.
/// If they are silent too, each leads to as many more, so that a peer that is cut off knows it
/// after a few timeouts, and a single crash costs little.
const SOUNDED: usize = 4;

impl Ring {
    /// Whether this peer still hears the members that it knew.
    pub fn touch(&self) -> Touch {
        self.lost.touch(self.me.id, &self.present())
    }

    /// Members that fell silent lately, and the times from which on others may take their places.
    pub fn graces(&self) -> Vec<(PeerId, Time)> {
        self.lost.graces(&self.settings)
    }

    /// The other members around this one that have spoken themselves.
    fn present(&self) -> Vec<PeerId> {
        let ids = |contacts: &mut dyn Iterator<Item = &Contact>| {
            let ids = contacts.map(|contact| contact.id);
            // In a ring that is hardly large, a peer may stand on both sides.
            let distinct: BTreeSet<PeerId> = ids.filter(|id| *id != self.me.id).collect();
            distinct.into_iter().collect()
        };
        match (self.phase, self.scale) {
            (Phase::Outside | Phase::Joining | Phase::Alone, _) => Vec::new(),
            (Phase::Member, Scale::Small) => {
                let members = self.roster.members().iter();
                ids(&mut members.filter(|member| self.roster.is_heard(member.id)))
            }
            (Phase::Member, Scale::Large) => ids(&mut self.neighbours.run(&self.me)),
        }
    }

    pub(super) fn is_present(&self, peer: PeerId) -> bool {
        match (self.phase, self.scale) {
            (Phase::Member, Scale::Small) => self.roster.is_heard(peer),
            (Phase::Member, Scale::Large) => self.neighbours.contains(peer),
            _ => false,
        }
    }

    /// A member has fallen silent: it is dead, or this peer does not hear others any more.
    pub(super) fn note_lost(&mut self, turn: &mut Turn<'_>, peer: PeerId) {
        self.lost.add(peer, turn.now);
        let present: Vec<Contact> = match self.scale {
            Scale::Small => self.roster.members().to_vec(),
            Scale::Large => self.neighbours.run(&self.me).cloned().collect(),
        };
        let purpose = match self.scale {
            Scale::Small => Purpose::Hello,
            Scale::Large => Purpose::Meet,
        };
        let others: Vec<&Contact> = present
            .iter()
            .filter(|other| other.id != self.me.id)
            .collect();
        let most = match self.scale {
            Scale::Small => others.len(),
            Scale::Large => SOUNDED,
        };
        let sample: Vec<&Contact> = others.sample(turn.rng, most).copied().collect();
        for other in sample {
            let is_asked = self.in_flight.is_asked(other.id, &purpose);
            if is_asked || self.ask(turn, other, purpose.clone()) {
                self.lost.ask(other.id);
            }
        }
    }
}
