//! The keys that this peer may act on now: those of its own arc, once the replicas of their last
//! owner are here.

use crate::{
    lock::{read, write},
    swarm::last_owners::LastOwners,
};
use apoidea_model::{Key, PeerId};
use apoidea_overlay::{Arc as RingArc, Overlay, Touch};
use std::sync::{
    Arc, RwLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// The peer's claim on keys, shared by all parts that act on them.
pub(crate) struct Tenancy {
    overlay: Arc<dyn Overlay>,
    /// Parts of the ring of which not all replicas of domains were heard yet.
    domains: OpenArcs,
    /// The same for content facts, which come first: pages under way wait for them, and a former
    /// owner lets those end before it hands its domains over.
    facts: OpenArcs,
    /// The next peers on the ring.
    neighbours: RwLock<Arc<[PeerId]>>,
    last_owners: LastOwners,
    /// Whether this peer was cut off from the others, and has not heard yet what they did meanwhile.
    was_cut_off: AtomicBool,
}

/// The weight of another peer's replica of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It had the right to do the work: its replica counts, with what is done in it.
    Vouched,
    /// Its URLs may be crawled here, and nothing else of it counts.
    LinksOnly,
    /// The domain is another peer's, and that peer alone may tell of it.
    Nothing,
}

/// The peer's right to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// This peer's, to act on.
    Owned,
    /// This peer's, but other replicas may contain more of it.
    TakingOver,
    /// Another peer's.
    Foreign,
}

impl Tenancy {
    /// Everything has to be taken over first: the last run of this peer may have been long ago.
    pub(crate) fn new(overlay: Arc<dyn Overlay>) -> Self {
        let (domains, facts) = (OpenArcs::everything(), OpenArcs::everything());
        Tenancy {
            overlay,
            domains,
            facts,
            neighbours: Default::default(),
            last_owners: LastOwners::default(),
            was_cut_off: AtomicBool::new(false),
        }
    }

    /// Is this peer cut off from most of the others that it knew, or was it so a moment ago, or is
    /// it unsure? They may do its work: it must start nothing.
    pub(crate) fn is_cut_off(&self) -> bool {
        let touch = self.overlay.touch();
        matches!(touch, Touch::Few | Touch::Unsure) || self.was_cut_off.load(Relaxed)
    }

    /// Has this peer taken over the place that it has on the ring?
    pub(crate) fn is_settled(&self) -> bool {
        !self.domains.has(whole_ring())
    }

    /// Whether this peer was cut off and still has to hear what others did meanwhile.
    pub(crate) fn note_cut_off(&self, was_cut_off: bool) {
        self.was_cut_off.store(was_cut_off, Relaxed);
    }

    /// The arc that this peer owns in its own view, as far as that is known.
    pub(crate) fn own_arc(&self) -> Option<RingArc> {
        let me = self.overlay.position(self.overlay.me())?;
        let before = self.overlay.position(self.overlay.before(me)?)?;
        Some(RingArc {
            from: before,
            to: me,
        })
    }

    /// The claim on the domain at this key.
    pub(crate) fn claim(&self, key: Key) -> Claim {
        self.claim_beside(key, &self.domains)
    }

    /// The claim on the content fact at this key.
    pub(crate) fn claim_to_fact(&self, key: Key) -> Claim {
        self.claim_beside(key, &self.facts)
    }

    fn claim_beside(&self, key: Key, open: &OpenArcs) -> Claim {
        match self.overlay.owns(key) {
            false => Claim::Foreign,
            true if open.contains(key) => Claim::TakingOver,
            true => Claim::Owned,
        }
    }

    /// May this peer act on the domain at this key?
    pub(crate) fn is_owned(&self, key: Key) -> bool {
        self.claim(key) == Claim::Owned
    }

    /// Is there nobody else, as far as known?
    pub(crate) fn is_alone(&self) -> bool {
        self.neighbours().is_empty()
    }

    /// The next peers on the ring, this one not among them.
    pub(crate) fn neighbours(&self) -> Arc<[PeerId]> {
        read(&self.neighbours).clone()
    }

    /// These are the next peers from now on.
    pub(crate) fn note_neighbours(&self, neighbours: impl Iterator<Item = PeerId>) {
        *write(&self.neighbours) = neighbours.collect();
    }

    /// The weight of a peer's replica of the domain at this key.
    pub(crate) fn weigh(&self, peer: PeerId, key: Key) -> Weight {
        let overlay = self.overlay.as_ref();
        match self.claim(key) {
            Claim::Foreign if overlay.near(key, 1).first() == Some(&peer) => Weight::Vouched,
            Claim::Foreign => Weight::Nothing,
            _ if self.last_owners.include(peer, key) => Weight::Vouched,
            _ => Weight::LinksOnly,
        }
    }

    /// This peer takes a place on the ring, and this arc with it, from the next peer.
    pub(crate) fn note_place(&self, arc: RingArc, from: Option<PeerId>) {
        self.last_owners.note_place(arc, from.or(self.next()));
    }

    /// Other replicas may contain more of this arc, which this peer gained from another, as far as
    /// that is known.
    pub(crate) fn begin_taking_over(&self, arc: RingArc, from: Option<PeerId>) {
        self.last_owners.note_gain(arc, from, self.next());
        self.begin_hearing(arc);
    }

    /// Other replicas may contain more of this arc, and nobody's word counts for what is done.
    pub(crate) fn begin_hearing(&self, arc: RingArc) {
        self.domains.add(arc);
        self.facts.add(arc);
    }

    /// This peer may have owned the arc until now, while the one here was cut off.
    pub(crate) fn note_last_owner(&self, arc: RingArc, peer: PeerId) {
        self.last_owners.note_gain(arc, Some(peer), None);
    }

    /// The next peer on the ring in this peer's own view, if there is another.
    fn next(&self) -> Option<PeerId> {
        self.next_peers(1).first().copied()
    }

    /// So many next peers on the ring in this peer's own view.
    pub(crate) fn next_peers(&self, count: usize) -> Vec<PeerId> {
        let me = self.overlay.me();
        let place = self.overlay.position(me);
        let mut near = place.map_or_else(Vec::new, |place| self.overlay.near(place, count + 1));
        near.retain(|peer| *peer != me);
        near
    }

    /// This peer has no place on the ring any more: whatever comes next is new to it.
    pub(crate) fn note_no_place(&self) {
        self.domains.add(whole_ring());
        self.facts.add(whole_ring());
    }

    /// All replicas of the arc that could be heard were heard.
    pub(crate) fn end_taking_over(&self, arc: RingArc) {
        self.domains.remove(arc);
    }

    /// The same about content facts.
    pub(crate) fn end_taking_over_facts(&self, arc: RingArc) {
        self.facts.remove(arc);
    }
}

/// Parts of the ring, some perhaps more than once.
struct OpenArcs(RwLock<Vec<RingArc>>);

impl OpenArcs {
    fn everything() -> Self {
        OpenArcs(RwLock::new(vec![whole_ring()]))
    }

    fn contains(&self, key: Key) -> bool {
        read(&self.0).iter().any(|arc| arc.contains(key))
    }

    fn has(&self, arc: RingArc) -> bool {
        read(&self.0).contains(&arc)
    }

    fn add(&self, arc: RingArc) {
        write(&self.0).push(arc);
    }

    fn remove(&self, arc: RingArc) {
        let mut arcs = write(&self.0);
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
    fn nothing_is_owned_at_first_and_foreign_keys_never_are() {
        let tenancy = tenancy();
        assert_eq!(tenancy.claim(key(0x40)), Claim::TakingOver);
        assert_eq!(tenancy.claim(key(0x80)), Claim::Foreign);
        tenancy.end_taking_over(whole_ring());
        assert_eq!(tenancy.claim(key(0x40)), Claim::Owned);
        assert!(tenancy.is_owned(key(0x60)) && !tenancy.is_owned(key(0x80)));
        assert_eq!(tenancy.claim(key(0x80)), Claim::Foreign);
    }

    #[test]
    fn facts_are_taken_over_without_their_domains() {
        let tenancy = tenancy();
        tenancy.end_taking_over_facts(whole_ring());
        assert_eq!(tenancy.claim_to_fact(key(0x40)), Claim::Owned);
        assert_eq!(tenancy.claim(key(0x40)), Claim::TakingOver);
        assert_eq!(tenancy.claim_to_fact(key(0x80)), Claim::Foreign);
        tenancy.begin_taking_over(arc(0x30, 0x50), None);
        assert_eq!(tenancy.claim_to_fact(key(0x40)), Claim::TakingOver);
    }

    #[test]
    fn an_arc_that_was_gained_twice_is_owned_when_both_were_heard() {
        let tenancy = tenancy();
        tenancy.end_taking_over(whole_ring());
        tenancy.begin_taking_over(arc(0x30, 0x50), None);
        tenancy.begin_taking_over(arc(0x30, 0x50), None);
        tenancy.end_taking_over(arc(0x30, 0x50));
        assert_eq!(tenancy.claim(key(0x40)), Claim::TakingOver);
        assert_eq!(tenancy.claim(key(0x60)), Claim::Owned);
        tenancy.end_taking_over(arc(0x30, 0x50));
        assert_eq!(tenancy.claim(key(0x40)), Claim::Owned);
    }

    #[test]
    fn a_peer_that_is_unsure_starts_nothing() {
        let ring = TestRing::new([peer(0x60), peer(0x20)]);
        let tenancy = Tenancy::new(ring.clone());
        for (touch, is_cut_off) in [
            (Touch::All, false),
            (Touch::Most, false),
            (Touch::Unsure, true),
            (Touch::Few, true),
        ] {
            ring.set_touch(touch);
            assert_eq!(tenancy.is_cut_off(), is_cut_off, "{touch:?}");
        }
    }

    #[test]
    fn the_end_of_a_takeover_that_never_began_changes_nothing() {
        let tenancy = tenancy();
        tenancy.end_taking_over(arc(0x20, 0x60));
        assert_eq!(tenancy.claim(key(0x40)), Claim::TakingOver);
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
