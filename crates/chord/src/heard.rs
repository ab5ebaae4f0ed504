//! The neighbours that have spoken to this peer themselves: when they did, and which view of theirs
//! is known.
//!
//! A neighbour in a list is another peer's word until it has spoken itself. Nobody else can then
//! make it disappear.

use crate::message::Version;
use apoidea_model::{PeerId, Time};
use std::time::Duration;

/// Peers kept at most: the longest lists on both sides.
const MAX_HEARD: usize = 2 * crate::Settings::MAX_SUCCESSORS;
/// Time for which a neighbour's own word counts against those who leave it out.
const RECENT: Duration = Duration::from_secs(120);

/// The peers that have spoken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard {
    /// The latest last.
    voices: Vec<Voice>,
    rounds: u32,
}

#[derive(Debug, Clone, Copy)]
struct Voice {
    peer: PeerId,
    at: Time,
    view: Option<Version>,
    /// Whether another neighbour leaves it out, so that it was asked itself.
    is_left_out: bool,
}

/// What it means that a neighbour leaves another one out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Omission {
    /// It has named it until now: it is probably dead.
    New,
    /// The one that is left out has spoken since, and lives.
    Refuted,
    /// The same, but that was a while ago.
    Old,
}

impl Heard {
    /// A neighbour has spoken.
    pub fn note(&mut self, peer: PeerId, at: Time) {
        let known = self.remove(peer);
        if self.voices.len() >= MAX_HEARD {
            self.voices.remove(0);
        }
        let is_left_out = known.is_some_and(|voice| voice.is_left_out);
        let view = known.and_then(|voice| voice.view);
        self.voices.push(Voice {
            peer,
            at,
            view,
            is_left_out,
        });
    }

    /// Notes the view of the ring that this peer has told.
    pub fn note_view(&mut self, peer: PeerId, view: Version) {
        if let Some(voice) = self.voices.iter_mut().find(|voice| voice.peer == peer) {
            voice.view = Some(view);
        }
    }

    /// The view that this peer told last.
    pub fn view(&self, peer: PeerId) -> Option<Version> {
        self.voice(peer)?.view
    }

    pub fn contains(&self, peer: PeerId) -> bool {
        self.voice(peer).is_some()
    }

    /// A neighbour names this peer. Returns whether the peer has ever spoken.
    pub fn vouch(&mut self, peer: PeerId) -> bool {
        let voice = self.voices.iter_mut().find(|voice| voice.peer == peer);
        voice.map(|voice| voice.is_left_out = false).is_some()
    }

    /// A neighbour leaves this peer out.
    pub fn leave_out(&mut self, peer: PeerId, now: Time) -> Omission {
        let Some(voice) = self.voices.iter_mut().find(|voice| voice.peer == peer) else {
            return Omission::New;
        };
        if !std::mem::replace(&mut voice.is_left_out, true) {
            Omission::New
        } else if now.since(voice.at) < RECENT {
            Omission::Refuted
        } else {
            Omission::Old
        }
    }

    /// Forgets a peer that is silent, or no longer a neighbour.
    pub fn forget(&mut self, peer: PeerId) {
        self.remove(peer);
    }

    /// Forgets everyone.
    pub fn clear(&mut self) {
        *self = Heard::default();
    }

    /// Counts one more round of questions to the neighbours, from 0.
    pub fn next_round(&mut self) -> u32 {
        let round = self.rounds;
        self.rounds = self.rounds.saturating_add(1);
        round
    }

    fn voice(&self, peer: PeerId) -> Option<&Voice> {
        self.voices.iter().find(|voice| voice.peer == peer)
    }

    fn remove(&mut self, peer: PeerId) -> Option<Voice> {
        let at = self.voices.iter().position(|voice| voice.peer == peer)?;
        Some(self.voices.remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::numbered as peer;

    #[test]
    fn a_peer_that_is_left_out_is_asked_at_once_and_then_now_and_then() {
        let (mut heard, id) = (Heard::default(), peer(1).id);
        assert!(!heard.vouch(id));
        assert_eq!(heard.leave_out(id, Time::ZERO), Omission::New);
        heard.note(id, Time::ZERO);
        assert!(heard.vouch(id));
        assert_eq!(heard.leave_out(id, Time::ZERO), Omission::New);
        heard.note(id, Time::ZERO);
        assert_eq!(heard.leave_out(id, Time::ZERO), Omission::Refuted);
        let later = Time::ZERO + RECENT;
        assert_eq!(heard.leave_out(id, later), Omission::Old);
        assert!(heard.vouch(id), "named again, and left out again later");
        assert_eq!(heard.leave_out(id, Time::ZERO), Omission::New);
    }

    #[test]
    fn a_view_stays_known_when_its_peer_speaks_again() {
        let mut heard = Heard::default();
        heard.note_view(peer(1).id, Version(7));
        assert_eq!(heard.view(peer(1).id), None, "a stranger's view");
        heard.note(peer(1).id, Time::ZERO);
        heard.note_view(peer(1).id, Version(7));
        heard.note(peer(1).id, Time::ZERO);
        assert_eq!(heard.view(peer(1).id), Some(Version(7)));
    }

    #[test]
    fn the_oldest_make_room() {
        let mut heard = Heard::default();
        (0..1000).for_each(|n| heard.note(peer(n).id, Time::ZERO));
        assert_eq!(heard.voices.len(), MAX_HEARD);
        assert!(heard.contains(peer(999).id) && !heard.contains(peer(1).id));
    }
}
