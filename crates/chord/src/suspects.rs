//! Peers that were silent a moment ago. They are not named to others, and not asked again at once.

use apoidea_model::{PeerId, Time};
use std::time::Duration;

/// Suspects kept at most: as many as a lookup through a half-dead ring meets.
const MAX_SUSPECTS: usize = 32;
/// Time for which silence counts against a peer: a few rounds, in which the ring repairs itself.
pub(crate) const SILENT_FOR: Duration = Duration::from_secs(30);
/// Time for which messages of a peer that has left may still arrive.
pub(crate) const GONE_FOR: Duration = Duration::from_secs(3);

/// The peers under suspicion, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Suspects(Vec<(PeerId, Time)>);

impl Suspects {
    pub fn add(&mut self, peer: PeerId, until: Time) {
        self.clear(peer);
        if self.0.len() >= MAX_SUSPECTS {
            self.0.remove(0);
        }
        self.0.push((peer, until));
    }

    /// It has spoken.
    pub fn clear(&mut self, peer: PeerId) {
        if !self.0.is_empty() {
            self.0.retain(|(id, _)| *id != peer);
        }
    }

    pub fn contains(&self, peer: PeerId, now: Time) -> bool {
        self.0.iter().any(|(id, until)| *id == peer && now < *until)
    }
}
