//! Which keys this peer may act on now: those of its own arc, once the copies of whoever owned them
//! before are here.

use apoidea_model::{Key, PeerId};
use apoidea_overlay::{Arc as RingArc, Overlay};
use std::sync::{Arc, PoisonError, RwLock};

/// The peer's claim on keys, shared by all who act on them.
pub(crate) struct Tenancy {
    overlay: Arc<dyn Overlay>,
    /// Parts of the ring whose former holders were not heard yet about domains.
    domains: Unsettled,
    /// The same for content facts, which come first: pages under way wait for them, and a former
    /// owner lets those end before it hands its domains over.
    facts: Unsettled,
    /// The next peers on the ring.
    neighbours: RwLock<Arc<[PeerId]>>,
}

/// Whose a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// This peer's, to act on.
    Settled,
    /// This peer's, but others may know more of it.
    Unsettled,
    /// Somebody else's.
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

    /// Whose the domain at this key is.
    pub(crate) fn claim(&self, key: Key) -> Claim {
        self.claim_beside(key, &self.domains)
    }

    /// Whose the content fact at this key is.
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

    pub(crate) fn note_neighbours(&self, neighbours: impl Iterator<Item = PeerId>) {
        *self
            .neighbours
            .write()
            .unwrap_or_else(PoisonError::into_inner) = neighbours.collect();
    }

    pub(crate) fn unsettle(&self, arc: RingArc) {
        self.domains.add(arc);
        self.facts.add(arc);
    }

    /// All former holders of the arc that could be heard were heard.
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
