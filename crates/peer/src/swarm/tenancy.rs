//! The keys that this peer may act on now: those of its own arc, once the replicas of their last
//! owner are here.

use apoidea_model::{Key, PeerId};
use apoidea_overlay::{Arc as RingArc, Overlay};
use std::sync::{Arc, PoisonError, RwLock};

/// The peer's claim on keys, shared by all parts that act on them.
pub(crate) struct Tenancy {
    overlay: Arc<dyn Overlay>,
    /// Parts of the ring of which not all replicas of domains were heard yet.
    domains: Unsettled,
    /// The same for content facts, which come first: pages under way wait for them, and a former
    /// owner lets those end before it hands its domains over.
    facts: Unsettled,
    /// The next peers on the ring.
    neighbours: RwLock<Arc<[PeerId]>>,
}

/// The peer's right to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// This peer's, to act on.
    Settled,
    /// This peer's, but other replicas may contain more of it.
    Unsettled,
    /// Another peer's.
    Foreign,
}

impl Tenancy {
    /// Nothing is settled: the last run of this peer may have been long ago.
    pub(crate) fn new(overlay: Arc<dyn Overlay>) -> Self {
        let (domains, facts) = (Unsettled::everything(), Unsettled::everything());
        Tenancy {
            overlay,
            domains,
            facts,
            neighbours: Default::default(),
        }
    }

    /// The claim on the domain at this key.
    pub(crate) fn claim(&self, key: Key) -> Claim {
        self.claim_beside(key, &self.domains)
    }

    /// The claim on the content fact at this key.
    pub(crate) fn claim_to_fact(&self, key: Key) -> Claim {
        self.claim_beside(key, &self.facts)
    }

    fn claim_beside(&self, key: Key, unsettled: &Unsettled) -> Claim {
        match self.overlay.owns(key) {
            false => Claim::Foreign,
            true if unsettled.contains(key) => Claim::Unsettled,
            true => Claim::Settled,
        }
    }

    /// May this peer act on the domain at this key?
    pub(crate) fn is_settled(&self, key: Key) -> bool {
        self.claim(key) == Claim::Settled
    }

    /// Is there nobody else, as far as known?
    pub(crate) fn is_alone(&self) -> bool {
        self.neighbours().is_empty()
    }

    /// The next peers on the ring, this one not among them.
    pub(crate) fn neighbours(&self) -> Arc<[PeerId]> {
        self.neighbours
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// These are the next peers from now on.
    pub(crate) fn note_neighbours(&self, neighbours: impl Iterator<Item = PeerId>) {
        *self
            .neighbours
            .write()
            .unwrap_or_else(PoisonError::into_inner) = neighbours.collect();
    }

    /// Other replicas may contain more of this arc.
    pub(crate) fn unsettle(&self, arc: RingArc) {
        self.domains.add(arc);
        self.facts.add(arc);
    }

    /// All replicas of the arc that could be heard were heard.
    pub(crate) fn settle(&self, arc: RingArc) {
        self.domains.remove(arc);
    }

    /// The same about content facts.
    pub(crate) fn settle_facts(&self, arc: RingArc) {
        self.facts.remove(arc);
    }
}

/// Parts of the ring, some perhaps more than once.
struct Unsettled(RwLock<Vec<RingArc>>);

impl Unsettled {
    fn everything() -> Self {
        Unsettled(RwLock::new(vec![whole_ring()]))
    }

    fn contains(&self, key: Key) -> bool {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .any(|arc| arc.contains(key))
    }

    fn add(&self, arc: RingArc) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(arc);
    }

    fn remove(&self, arc: RingArc) {
        let mut arcs = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = arcs.iter().position(|other| *other == arc) {
            arcs.swap_remove(at);
        }
    }
}

/// The arc that holds every key.
pub(crate) fn whole_ring() -> RingArc {
    let zero = Key::from_bytes([0; 32]);
    RingArc {
        from: zero,
        to: zero,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{TestRing, peer};

    /// This peer owns the keys from 0x20… to 0x60….
    fn tenancy() -> Tenancy {
        Tenancy::new(TestRing::new([peer(0x60), peer(0x20), peer(0xa0)]))
    }

    fn key(place: u8) -> Key {
        Key::from_bytes([place; 32])
    }

    fn arc(from: u8, to: u8) -> RingArc {
        RingArc {
            from: key(from),
            to: key(to),
        }
    }

    #[test]
    fn nothing_is_settled_at_first_and_foreign_keys_never_are() {
        let tenancy = tenancy();
        assert_eq!(tenancy.claim(key(0x40)), Claim::Unsettled);
        assert_eq!(tenancy.claim(key(0x80)), Claim::Foreign);
        tenancy.settle(whole_ring());
        assert_eq!(tenancy.claim(key(0x40)), Claim::Settled);
        assert!(tenancy.is_settled(key(0x60)) && !tenancy.is_settled(key(0x80)));
        assert_eq!(tenancy.claim(key(0x80)), Claim::Foreign);
    }

    #[test]
    fn facts_are_settled_without_their_domains() {
        let tenancy = tenancy();
        tenancy.settle_facts(whole_ring());
        assert_eq!(tenancy.claim_to_fact(key(0x40)), Claim::Settled);
        assert_eq!(tenancy.claim(key(0x40)), Claim::Unsettled);
        assert_eq!(tenancy.claim_to_fact(key(0x80)), Claim::Foreign);
        tenancy.unsettle(arc(0x30, 0x50));
        assert_eq!(tenancy.claim_to_fact(key(0x40)), Claim::Unsettled);
    }

    #[test]
    fn an_arc_that_was_gained_twice_is_settled_when_both_were_heard() {
        let tenancy = tenancy();
        tenancy.settle(whole_ring());
        tenancy.unsettle(arc(0x30, 0x50));
        tenancy.unsettle(arc(0x30, 0x50));
        tenancy.settle(arc(0x30, 0x50));
        assert_eq!(tenancy.claim(key(0x40)), Claim::Unsettled);
        assert_eq!(tenancy.claim(key(0x60)), Claim::Settled);
        tenancy.settle(arc(0x30, 0x50));
        assert_eq!(tenancy.claim(key(0x40)), Claim::Settled);
    }

    #[test]
    fn an_arc_that_was_never_unsettled_settles_no_other() {
        let tenancy = tenancy();
        tenancy.settle(arc(0x20, 0x60));
        assert_eq!(tenancy.claim(key(0x40)), Claim::Unsettled);
    }

    #[test]
    fn a_peer_with_neighbours_is_not_alone() {
        let tenancy = tenancy();
        assert!(tenancy.is_alone());
        tenancy.note_neighbours([peer(0xa0)].into_iter());
        assert!(!tenancy.is_alone());
        assert_eq!(*tenancy.neighbours(), [peer(0xa0)]);
    }
}
