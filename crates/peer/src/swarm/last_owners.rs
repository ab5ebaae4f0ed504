//! The last owners of the keys that this peer gained: they alone may tell it what is done there.
//!
//! A page that another peer calls done is never fetched, so this word is taken only from a peer that
//! had the right to do the work, by this peer's own view of the ring. That is the owner of a domain
//! towards those that hold its replicas, and the last owner towards the next one, for a while. The
//! word of any other peer counts for the URLs that it knows, which cost a fetch if they are false.

use crate::lock::{read, write};
use apoidea_model::{Key, PeerId};
use apoidea_overlay::Arc as RingArc;
use std::{sync::RwLock, time::Duration};
use tokio::time::Instant;

/// A last owner may still finish fetches, and tell of them, for so long after its time.
const HEARD_FOR: Duration = Duration::from_secs(120);
/// A peer that came to the ring so short a time ago may lack replicas that it should hold.
const NEW_FOR: Duration = Duration::from_secs(5);
/// Changes of the arc that are remembered: more in so short a time are not honest.
const MAX_GAINS: usize = 64;

/// The arcs that this peer gained lately, and their last owners.
#[derive(Default)]
pub(in crate::swarm) struct LastOwners(RwLock<Lately>);

#[derive(Default)]
struct Lately {
    gains: Vec<Gain>,
    /// When this peer took its place on the ring.
    came: Option<Instant>,
}

struct Gain {
    arc: RingArc,
    from: PeerId,
    at: Instant,
}

impl LastOwners {
    /// This peer takes a place on the ring, and with it an arc that the next peer had before; none
    /// if this peer is alone.
    pub(in crate::swarm) fn note_place(&self, arc: RingArc, next: Option<PeerId>) {
        let mut lately = write(&self.0);
        lately.came = Some(Instant::now());
        lately.note(arc, next);
    }

    /// This peer gains an arc. `from` is none if its owner before is not known, as after a sleep:
    /// then it was the next peer, which is the owner when this one is not there.
    pub(in crate::swarm) fn note_gain(
        &self,
        arc: RingArc,
        from: Option<PeerId>,
        next: Option<PeerId>,
    ) {
        let mut lately = write(&self.0);
        let is_new = lately.came.is_some_and(|came| came.elapsed() < NEW_FOR);
        lately.note(arc, from.or(next));
        lately.note(arc, next.filter(|_| is_new));
    }

    /// Was this peer the last owner of a key that the one here owns now?
    pub(in crate::swarm) fn include(&self, peer: PeerId, key: Key) -> bool {
        let is_last = |gain: &Gain| {
            gain.from == peer && gain.arc.contains(key) && gain.at.elapsed() < HEARD_FOR
        };
        read(&self.0).gains.iter().any(is_last)
    }
}

impl Lately {
    fn note(&mut self, arc: RingArc, from: Option<PeerId>) {
        let Some(from) = from else { return };
        self.gains.retain(|gain| gain.at.elapsed() < HEARD_FOR);
        if self.gains.len() >= MAX_GAINS {
            self.gains.remove(0);
        }
        let at = Instant::now();
        self.gains.push(Gain { arc, from, at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{tenancy::whole_ring, testing::peer};
    use tokio::time;

    const ME: u8 = 0x60;
    const BEFORE: u8 = 0x20;
    const GONE: u8 = 0x40;
    const NEXT: u8 = 0xa0;

    fn arc(from: u8, to: u8) -> RingArc {
        let (from, to) = (peer(from).key(), peer(to).key());
        RingArc { from, to }
    }

    /// The peers among all that count as last owners of a key.
    fn heard(owners: &LastOwners, key: u8) -> Vec<u8> {
        let mut all = vec![BEFORE, GONE, NEXT];
        all.retain(|place| owners.include(peer(*place), peer(key).key()));
        all
    }

    fn note_crash(owners: &LastOwners) {
        owners.note_gain(arc(BEFORE, GONE), Some(peer(GONE)), Some(peer(NEXT)));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_crash_only_the_dead_owner_is_heard() {
        let owners = LastOwners::default();
        assert_eq!(heard(&owners, 0x30), [0u8; 0]);
        note_crash(&owners);
        assert_eq!(heard(&owners, 0x30), [GONE]);
        assert_eq!(heard(&owners, 0x50), [0u8; 0], "not of the gained arc");
        time::advance(HEARD_FOR).await;
        assert_eq!(heard(&owners, 0x30), [0u8; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_hears_the_next_peer() {
        let owners = LastOwners::default();
        owners.note_place(arc(BEFORE, ME), Some(peer(NEXT)));
        assert_eq!(heard(&owners, 0x50), [NEXT]);
        assert_eq!(heard(&owners, 0x80), [0u8; 0], "not this peer's");
        time::advance(NEW_FOR - Duration::from_millis(1)).await;
        note_crash(&owners);
        let both = heard(&owners, 0x30);
        assert_eq!(both, [GONE, NEXT], "replicas may be lacking");
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_is_new_for_a_moment_only() {
        let owners = LastOwners::default();
        owners.note_place(arc(GONE, ME), Some(peer(NEXT)));
        time::advance(NEW_FOR).await;
        note_crash(&owners);
        assert_eq!(heard(&owners, 0x30), [GONE]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_was_alone_hears_nobody() {
        let owners = LastOwners::default();
        owners.note_place(whole_ring(), None);
        assert_eq!(heard(&owners, 0x50), [0u8; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_slept_hears_the_one_that_stood_in_for_it() {
        let owners = LastOwners::default();
        owners.note_gain(whole_ring(), None, Some(peer(NEXT)));
        assert_eq!(heard(&owners, 0x30), [NEXT]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_gains_is_bounded() {
        let owners = LastOwners::default();
        (0..2 * MAX_GAINS).for_each(|_| note_crash(&owners));
        assert_eq!(read(&owners.0).gains.len(), MAX_GAINS);
    }
}
