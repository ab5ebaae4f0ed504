//! Which keys this peer may act on now: those of its own arc, once the copies of whoever owned them before are here.

use apoidea_model::Key;
use apoidea_overlay::{Arc as RingArc, Overlay};
use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// The peer's claim on keys, shared by all who act on them.
pub(crate) struct Tenancy {
    overlay: Arc<dyn Overlay>,
    /// Parts of the ring whose former holders were not heard yet.
    unsettled: RwLock<Vec<RingArc>>,
    /// Are there other peers?
    has_company: AtomicBool,
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
        Tenancy { overlay, unsettled: RwLock::new(vec![whole_ring()]), has_company: AtomicBool::new(false) }
    }

    pub(crate) fn claim(&self, key: Key) -> Claim {
        if !self.overlay.owns(key) {
            return Claim::Foreign;
        }
        let unsettled = self.unsettled.read().unwrap_or_else(PoisonError::into_inner);
        if unsettled.iter().any(|arc| arc.contains(key)) { Claim::Unsettled } else { Claim::Settled }
    }

    /// May this peer act on the key?
    pub(crate) fn is_settled(&self, key: Key) -> bool {
        self.claim(key) == Claim::Settled
    }

    /// Is there nobody else, as far as known?
    pub(crate) fn is_alone(&self) -> bool {
        !self.has_company.load(Relaxed)
    }

    pub(crate) fn note_company(&self, has_company: bool) {
        self.has_company.store(has_company, Relaxed);
    }

    pub(crate) fn unsettle(&self, arc: RingArc) {
        self.unsettled.write().unwrap_or_else(PoisonError::into_inner).push(arc);
    }

    /// All former holders of the arc that could be heard were heard.
    pub(crate) fn settle(&self, arc: RingArc) {
        let mut unsettled = self.unsettled.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = unsettled.iter().position(|other| *other == arc) {
            unsettled.swap_remove(at);
        }
    }
}

/// The arc that holds every key.
pub(crate) fn whole_ring() -> RingArc {
    let zero = Key::from_bytes([0; 32]);
    RingArc { from: zero, to: zero }
}
