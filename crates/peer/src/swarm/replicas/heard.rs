//! The replicas of other peers of which this owner has heard all that it can take.
//!
//! A settled owner takes only URLs from a replica that no last owner vouches for. Its own versions
//! do not grow by that: they name the changes that are in its replica, and a stranger's claim is
//! none. So it remembers beside them which versions of which peer it has heard. It does not ask
//! again for those, and tells the peer so: a holder whose versions the owner has heard takes the
//! owner's replica in place of its own.

use crate::lock::lock;
use apoidea_crawl::Versions;
use apoidea_model::{Domain, PeerId};
use apoidea_overlay::Arc as RingArc;
use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
};

/// Replicas that are remembered; a forgotten one is read once more.
const MAX_HEARD: usize = 16_384;
/// Replicas that wait until their domain may be acted on; others are found by the next sweep.
const MAX_LATER: usize = 16_384;

/// What this owner has heard, by domain and peer.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    versions: HashMap<(Domain, PeerId), Versions>,
    /// The same names, the oldest first.
    order: VecDeque<(Domain, PeerId)>,
    /// Replicas that came before their domain could be acted on.
    later: Vec<(Domain, PeerId)>,
}

impl Heard {
    /// All URLs of a peer's replica with these versions are known here.
    pub(crate) fn note(&self, domain: &Domain, from: PeerId, versions: Versions) {
        let name = (domain.clone(), from);
        let mut inner = lock(&self.0);
        if inner.versions.insert(name.clone(), versions).is_none() {
            inner.order.push_back(name);
        }
        while inner.order.len() > MAX_HEARD
            && let Some(oldest) = inner.order.pop_front()
        {
            inner.versions.remove(&oldest);
        }
    }

    /// The versions of a peer's replica that were heard.
    pub(crate) fn of(&self, domain: &Domain, from: PeerId) -> Versions {
        let name = (domain.clone(), from);
        lock(&self.0)
            .versions
            .get(&name)
            .cloned()
            .unwrap_or_default()
    }

    /// A peer's replica is to be read when its domain may be acted on.
    pub(crate) fn note_later(&self, domain: Domain, from: PeerId) {
        let mut inner = lock(&self.0);
        if inner.later.len() < MAX_LATER {
            inner.later.push((domain, from));
        }
    }

    /// The replicas of an arc that are to be read now.
    pub(crate) fn take_later(&self, arc: RingArc) -> Vec<(Domain, PeerId)> {
        let is_there = |(domain, _): &mut (Domain, PeerId)| arc.contains(domain.key());
        lock(&self.0).later.extract_if(.., is_there).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        tenancy::whole_ring,
        testing::{TestRing, peer, versions},
    };

    #[test]
    fn versions_are_heard_of_one_peer_and_one_domain() {
        let domains = TestRing::new([peer(1)]).domains_of(peer(1), 2);
        let heard = Heard::default();
        let told = versions(&[(peer(9), 3)]);
        heard.note(&domains[0], peer(2), told.clone());
        assert_eq!(heard.of(&domains[0], peer(2)), told);
        assert_eq!(heard.of(&domains[0], peer(3)), Versions::default());
        assert_eq!(heard.of(&domains[1], peer(2)), Versions::default());
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let domain = TestRing::new([peer(1)]).domain_of(peer(1));
        let heard = Heard::default();
        let told = versions(&[(peer(9), 3)]);
        let from = |number: u32| PeerId::at(apoidea_model::Key::hash(number.to_be_bytes()));
        let all = 0..MAX_HEARD as u32 + 1;
        all.for_each(|number| heard.note(&domain, from(number), told.clone()));
        assert_eq!(heard.of(&domain, from(0)), Versions::default());
        assert_eq!(heard.of(&domain, from(1)), told);
        assert_eq!(lock(&heard.0).versions.len(), MAX_HEARD);
    }

    #[test]
    fn replicas_wait_for_their_arc() {
        let ring = TestRing::new([0x40, 0xc0].map(peer));
        let (one, other) = (ring.domain_of(peer(0x40)), ring.domain_of(peer(0xc0)));
        let heard = Heard::default();
        heard.note_later(one.clone(), peer(2));
        heard.note_later(other.clone(), peer(2));
        let arc = RingArc {
            from: peer(0xc0).key(),
            to: peer(0x40).key(),
        };
        assert_eq!(heard.take_later(arc), [(one, peer(2))]);
        assert_eq!(heard.take_later(arc), []);
        assert_eq!(heard.take_later(whole_ring()), [(other, peer(2))]);
    }
}
