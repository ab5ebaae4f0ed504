//! The ring without the peers that this one distrusts.
//!
//! In the view of this peer the keys of a distrusted peer belong to the next one. Links, questions
//! and replicas go there, helpers are chosen among the others, and what a distrusted peer says is a
//! stranger's word. If this peer is the next one, it gains the arc as if the other had died. The
//! ring itself does not change: look-ups find their way as before.

use crate::{
    lock::{read, write},
    swarm::{tenancy::whole_ring, trust::book::TrustBook},
};
use apoidea_model::{Key, PeerId};
use apoidea_overlay::{
    Arc as RingArc, ArcChange, Kind, LookupError, Membership, Overlay, Reachability, RequestError,
    Touch,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, RwLock},
    time::Duration,
};
use tokio::{
    sync::broadcast::{self, Receiver, error::RecvError},
    time,
};

/// How often terms of distrust and the neighbourhood are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Distrusted peers in a row that are passed over.
const MOST_PASSED: usize = 8;
/// Changes that wait for a slow receiver.
const MAX_CHANGES: usize = 1024;

/// An overlay without some of its peers.
pub(crate) struct TrustedRing {
    inner: Arc<dyn Overlay>,
    book: Arc<TrustBook>,
    /// The arcs of distrusted peers right before this one, which it has taken.
    taken: RwLock<BTreeMap<PeerId, RingArc>>,
    changes: broadcast::Sender<ArcChange>,
}

impl TrustedRing {
    pub(crate) fn new(inner: Arc<dyn Overlay>, book: Arc<TrustBook>) -> Self {
        TrustedRing {
            inner,
            book,
            taken: RwLock::default(),
            changes: broadcast::Sender::new(MAX_CHANGES),
        }
    }

    /// Follows the ring and the record of lies until the task is dropped.
    pub(crate) async fn run(self: Arc<Self>, mut changes: Receiver<ArcChange>) {
        loop {
            tokio::select! {
                change = changes.recv() => match change {
                    Ok(change) => self.tell(change),
                    // Some were missed: as after a time outside the ring.
                    Err(RecvError::Lagged(_)) => {
                        let arc = whole_ring();
                        self.tell(ArcChange::Lost { arc, to: None });
                    }
                    Err(RecvError::Closed) => return,
                },
                () = self.book.changed() => {}
                () = time::sleep(LOOK) => self.book.look_at_the_clock(),
            }
            self.take_and_give_back();
        }
    }

    fn tell(&self, change: ArcChange) {
        // Without a receiver nobody acts on the ring yet.
        let _ = self.changes.send(change);
    }

    /// Takes the arcs of peers that are distrusted now, and gives those of others back. A gained arc
    /// comes from nobody but this peer itself: the liar is not believed, and no other peer had a
    /// right to the arc. So nobody may say what is done there.
    fn take_and_give_back(&self) {
        let from = Some(self.me());
        let wanted = self.arcs_before_me();
        let taken = read(&self.taken).clone();
        if wanted == taken {
            return;
        }
        write(&self.taken).clone_from(&wanted);
        for (peer, old) in &taken {
            match wanted.get(peer) {
                Some(new) if new.from == old.from => {}
                Some(new) if old.contains(new.from) => {
                    let arc = RingArc {
                        from: old.from,
                        to: new.from,
                    };
                    let to = self.inner.before(old.to);
                    self.tell(ArcChange::Lost { arc, to });
                }
                Some(new) => {
                    let arc = RingArc {
                        from: new.from,
                        to: old.from,
                    };
                    self.tell(ArcChange::Gained { arc, from });
                }
                // A peer that left the ring has left its arc to this one.
                None if self.inner.owns(old.to) => {}
                None => {
                    let to = self.near(old.to, 1).first().copied();
                    self.tell(ArcChange::Lost { arc: *old, to });
                }
            }
        }
        for (peer, arc) in wanted {
            if !taken.contains_key(&peer) {
                tracing::info!(%peer, "the domains of a distrusted peer are taken over");
                self.tell(ArcChange::Gained { arc, from });
            }
        }
    }

    /// The arcs of the distrusted peers that this one comes right after.
    fn arcs_before_me(&self) -> BTreeMap<PeerId, RingArc> {
        let (me, distrusted) = (self.me(), self.book.distrusted());
        let arc = |peer: &PeerId| {
            let to = self.inner.position(*peer)?;
            let near = self.inner.near(to, MOST_PASSED);
            let next = near.iter().find(|other| !distrusted.contains(other))?;
            let from = self.inner.before(to)?;
            let is_mine = near.first() == Some(peer) && *next == me && from != *peer;
            let from = self.inner.position(from)?;
            is_mine.then_some((*peer, RingArc { from, to }))
        };
        distrusted.iter().filter_map(arc).collect()
    }
}

/// The first of the peers that are not distrusted.
fn trusted(mut peers: Vec<PeerId>, distrusted: &BTreeSet<PeerId>, count: usize) -> Vec<PeerId> {
    peers.retain(|peer| !distrusted.contains(peer));
    peers.truncate(count);
    peers
}

impl Overlay for TrustedRing {
    fn me(&self) -> PeerId {
        self.inner.me()
    }

    fn owners(&self, key: Key, count: usize) -> BoxFuture<'_, Result<Vec<PeerId>, LookupError>> {
        let distrusted = self.book.distrusted();
        if distrusted.is_empty() {
            return self.inner.owners(key, count);
        }
        Box::pin(async move {
            let more = distrusted.len().min(MOST_PASSED);
            let owners = self.inner.owners(key, count + more).await?;
            Ok(trusted(owners, &distrusted, count))
        })
    }

    fn owns(&self, key: Key) -> bool {
        self.inner.owns(key) || read(&self.taken).values().any(|arc| arc.contains(key))
    }

    fn near(&self, key: Key, count: usize) -> Vec<PeerId> {
        let distrusted = self.book.distrusted();
        let more = distrusted.len().min(MOST_PASSED);
        trusted(self.inner.near(key, count + more), &distrusted, count)
    }

    fn before(&self, key: Key) -> Option<PeerId> {
        self.inner.before(key)
    }

    fn membership(&self, peer: PeerId) -> Membership {
        match self.book.is_distrusted(peer) {
            true => Membership::Stranger,
            false => self.inner.membership(peer),
        }
    }

    fn position(&self, peer: PeerId) -> Option<Key> {
        self.inner.position(peer)
    }

    fn has_place(&self, peer: PeerId) -> BoxFuture<'_, Result<bool, LookupError>> {
        self.inner.has_place(peer)
    }

    fn reachability(&self) -> Reachability {
        self.inner.reachability()
    }

    fn request(
        &self,
        to: PeerId,
        kind: Kind,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Bytes, RequestError>> {
        self.inner.request(to, kind, body)
    }

    fn round_trip(&self, peer: PeerId) -> Option<Duration> {
        self.inner.round_trip(peer)
    }

    fn touch(&self) -> Touch {
        self.inner.touch()
    }

    fn grace(&self, peer: PeerId) -> Duration {
        self.inner.grace(peer)
    }

    fn arc_changes(&self) -> Receiver<ArcChange> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        testing::{TestPeer, TestRing, peer},
        trust::book::Openness,
    };
    use apoidea_crawl::Matter;

    const ME: u8 = 0x60;
    const LIAR: u8 = 0x40;
    const MEMBERS: [u8; 5] = [ME, LIAR, 0x20, 0x80, 0xa0];

    struct Fixture {
        ring: Arc<TestRing>,
        book: Arc<TrustBook>,
        trusted: TrustedRing,
        changes: Receiver<ArcChange>,
        _me: TestPeer,
    }

    fn fixture() -> Fixture {
        let (me, _) = TestPeer::new(MEMBERS.map(peer));
        let book = TrustBook::open(me.store.clone(), Openness::Open).unwrap();
        let (ring, book) = (me.ring.clone(), Arc::new(book));
        let trusted = TrustedRing::new(ring.clone(), book.clone());
        Fixture {
            changes: trusted.arc_changes(),
            ring,
            book,
            trusted,
            _me: me,
        }
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

    #[tokio::test]
    async fn without_lies_it_is_the_ring_itself() {
        let mut fixture = fixture();
        fixture.trusted.take_and_give_back();
        let owners = fixture.trusted.owners(key(0x30), 2).await.unwrap();
        assert_eq!(owners, [LIAR, ME].map(peer));
        assert!(!fixture.trusted.owns(key(0x30)) && fixture.trusted.owns(key(0x50)));
        assert!(fixture.changes.try_recv().is_err());
    }

    #[tokio::test]
    async fn the_arc_of_a_liar_belongs_to_the_next_peer_and_its_word_is_a_strangers() {
        let mut fixture = fixture();
        fixture.book.note(peer(LIAR), Matter::Links, 5, 5);
        fixture.trusted.take_and_give_back();
        let gained = ArcChange::Gained {
            arc: arc(0x20, LIAR),
            from: Some(peer(ME)),
        };
        assert_eq!(fixture.changes.try_recv(), Ok(gained));
        let trusted = &fixture.trusted;
        assert!(trusted.owns(key(0x30)) && !trusted.owns(key(0x10)));
        assert_eq!(trusted.near(key(0x30), 2), [ME, 0x80].map(peer));
        let owners = trusted.owners(key(0x30), 2).await.unwrap();
        assert_eq!(owners, [ME, 0x80].map(peer));
        assert_eq!(trusted.membership(peer(LIAR)), Membership::Stranger);
        trusted.take_and_give_back();
        assert!(fixture.changes.try_recv().is_err(), "told once");
    }

    #[tokio::test]
    async fn a_liar_elsewhere_gives_this_peer_nothing() {
        let mut fixture = fixture();
        fixture.book.note(peer(0x20), Matter::Links, 5, 5);
        fixture.trusted.take_and_give_back();
        assert!(fixture.changes.try_recv().is_err());
        assert!(!fixture.trusted.owns(key(0x10)));
        assert_eq!(fixture.trusted.near(key(0x10), 1), [peer(LIAR)]);
    }

    #[tokio::test]
    async fn two_liars_in_a_row_are_passed_over() {
        let mut fixture = fixture();
        for liar in [LIAR, 0x20] {
            fixture.book.note(peer(liar), Matter::Links, 5, 5);
        }
        fixture.trusted.take_and_give_back();
        let gained = [arc(0xa0, 0x20), arc(0x20, LIAR)];
        for expected in gained {
            let Ok(ArcChange::Gained { arc, .. }) = fixture.changes.try_recv() else {
                panic!("nothing was gained");
            };
            assert_eq!(arc, expected);
        }
        assert!(fixture.trusted.owns(key(0x10)));
    }

    #[tokio::test]
    async fn a_newcomer_takes_its_part_of_a_liars_arc_back() {
        let mut fixture = fixture();
        fixture.book.note(peer(LIAR), Matter::Links, 5, 5);
        fixture.trusted.take_and_give_back();
        let _ = fixture.changes.try_recv();
        let mut members = MEMBERS.map(peer).to_vec();
        members.push(peer(0x30));
        fixture.ring.set_members(members);
        fixture.trusted.take_and_give_back();
        let lost = ArcChange::Lost {
            arc: arc(0x20, 0x30),
            to: Some(peer(0x30)),
        };
        assert_eq!(fixture.changes.try_recv(), Ok(lost));
        assert!(!fixture.trusted.owns(key(0x28)) && fixture.trusted.owns(key(0x38)));
    }

    #[tokio::test]
    async fn a_liar_that_leaves_leaves_its_arc_to_this_peer() {
        let mut fixture = fixture();
        fixture.book.note(peer(LIAR), Matter::Links, 5, 5);
        fixture.trusted.take_and_give_back();
        let _ = fixture.changes.try_recv();
        fixture.ring.set_members([ME, 0x20, 0x80].map(peer));
        fixture.trusted.take_and_give_back();
        assert!(fixture.changes.try_recv().is_err());
        assert!(fixture.trusted.owns(key(0x30)));
    }
}
