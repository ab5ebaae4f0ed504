//! The peers of the local network that this one was introduced to: a few at a time, and none for
//! good. So a network full of strangers crowds out no entry point.

use apoidea_model::PeerId;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Peers at a time. One is enough to find the ring; the ring remembers 32 entry points in all.
const MOST: usize = 8;
/// After this long without a word of it, a peer makes room for another one.
const KEPT: Duration = Duration::from_secs(3600);

/// The peers met lately.
#[derive(Debug, Default)]
pub(crate) struct LocalPeers {
    met: HashMap<PeerId, Instant>,
}

impl LocalPeers {
    /// Notes a peer that was met; returns whether there was room for it.
    pub fn note(&mut self, peer: PeerId, now: Instant) -> bool {
        self.met
            .retain(|_, met| now.saturating_duration_since(*met) < KEPT);
        let has_room = self.met.len() < MOST || self.met.contains_key(&peer);
        if has_room {
            self.met.insert(peer, now);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    #[test]
    fn a_crowd_gets_a_few_places_and_an_hour() {
        let (mut peers, now) = (LocalPeers::default(), Instant::now());
        let peer = |n: u8| PeerId::at(Key::hash([n]));
        let taken = (0..64).filter(|&n| peers.note(peer(n), now)).count();
        assert_eq!(taken, MOST);
        assert!(peers.note(peer(0), now + KEPT / 2), "it is still there");
        let later = now + KEPT;
        let taken = (100..200).filter(|&n| peers.note(peer(n), later)).count();
        assert_eq!(taken, MOST - 1, "all but the one that was heard of since");
    }
}
