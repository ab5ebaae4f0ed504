//! The rights of other peers: which of them may say what to this one.
//!
//! No message is believed because it is well formed. Every request passes this table first, and the
//! table fails closed: a kind without a line is refused, and so is a sender that this peer cannot
//! place. Roles are those of this peer's own view of the ring ([`Overlay::near`]). Only a sender that
//! the view does not reach is looked up, once in a while and a few at a time.

use crate::{
    lock::lock,
    swarm::{REPLICATION_FACTOR, addresses, content, lending, links, replicas, trust, watching},
};
use apoidea_model::{Key, PeerId};
use apoidea_overlay::{Kind, Membership, Overlay, Refusal};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    time::{self, Instant},
};

/// The peers at and after a key that count as near it: the owner, its replicas, and those that were
/// or will be among them while views differ. After a partition of two halves, all but one in 256 of
/// the other half's owners are among them.
const NEAR: usize = 8;
/// Peers after the owner that may be asked to hold a replica, with one to spare while views differ.
const HOLDERS: usize = REPLICATION_FACTOR + 1;
/// Neighbours that an owner lends fetches to.
const HELPERS: usize = 8;
/// Members outside this peer's view that are remembered.
const MAX_VERIFIED: usize = 4096;
/// For so long; then a member is looked up again.
const VERIFIED_FOR: Duration = Duration::from_secs(600);
/// Senders that are looked up at a time: a stranger must not make this peer busy with look-ups.
const LOOK_UPS: usize = 4;
/// The time for one.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(2);

/// The right to send a kind of message. Every key that the message names is checked by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::swarm) enum Right {
    /// Of every member of the ring.
    Member,
    /// Of the first peers after the key: to read what is held there.
    Near,
    /// Of the key's owner, towards the peers that hold its replicas; and of the first peers after
    /// the key, towards its owner. So one hostile replica cannot change the others.
    HandOver,
    /// Of the key's owner, towards the peers right after it: to have something fetched.
    Lend,
}

/// The part that a sender has towards a key, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// Somewhere on the ring.
    Member,
    /// Among the first peers after the key.
    Near,
    /// The first of them.
    Owner,
}

/// The table: each kind of message, and the right that its sender needs.
fn table() -> impl Iterator<Item = (Kind, Right)> {
    let conversations = [
        links::message::RIGHTS,
        content::message::RIGHTS,
        replicas::message::RIGHTS,
        lending::message::RIGHTS,
        addresses::message::RIGHTS,
        trust::message::RIGHTS,
        watching::message::RIGHTS,
    ];
    conversations.into_iter().flatten().copied()
}

/// Decides about senders.
pub(crate) struct Rights {
    overlay: Arc<dyn Overlay>,
    verified: Mutex<HashMap<PeerId, Instant>>,
    look_ups: Semaphore,
}

/// A sender that may send this kind of message.
pub(in crate::swarm) struct Sender<'a> {
    /// The peer.
    pub id: PeerId,
    right: Right,
    overlay: &'a dyn Overlay,
}

impl Rights {
    pub(crate) fn new(overlay: Arc<dyn Overlay>) -> Self {
        Rights {
            overlay,
            verified: Mutex::default(),
            look_ups: Semaphore::new(LOOK_UPS),
        }
    }

    /// The sender of a message, if it may send such a message at all.
    pub(in crate::swarm) async fn check(
        &self,
        from: PeerId,
        kind: Kind,
    ) -> Result<Sender<'_>, Refusal> {
        let line = table().find(|(other, _)| *other == kind);
        let (_, right) = line.ok_or(Refusal::UnknownKind)?;
        let place = self.overlay.position(self.overlay.me());
        let has_view = place.is_some_and(|place| !self.overlay.near(place, 1).is_empty());
        if !has_view {
            // Without a place there is no view, and nobody can be placed.
            return Err(Refusal::Busy);
        }
        if !self.is_member(from).await? {
            return Err(Refusal::NotYours);
        }
        Ok(Sender {
            id: from,
            right,
            overlay: self.overlay.as_ref(),
        })
    }

    async fn is_member(&self, peer: PeerId) -> Result<bool, Refusal> {
        match self.overlay.membership(peer) {
            Membership::Member => return Ok(true),
            Membership::Stranger => return Ok(false),
            Membership::Unknown if self.was_verified(peer) => return Ok(true),
            Membership::Unknown => {}
        }
        let _place = self.look_ups.try_acquire().map_err(|_| Refusal::Busy)?;
        let found = time::timeout(LOOK_UP_WITHIN, self.overlay.has_place(peer)).await;
        let is_member = found.ok().and_then(Result::ok).ok_or(Refusal::Busy)?;
        if is_member {
            self.note_verified(peer);
        }
        Ok(is_member)
    }

    fn was_verified(&self, peer: PeerId) -> bool {
        let verified = lock(&self.verified);
        verified
            .get(&peer)
            .is_some_and(|at| at.elapsed() < VERIFIED_FOR)
    }

    fn note_verified(&self, peer: PeerId) {
        let mut verified = lock(&self.verified);
        if verified.len() >= MAX_VERIFIED {
            verified.retain(|_, at| at.elapsed() < VERIFIED_FOR);
        }
        if verified.len() >= MAX_VERIFIED {
            verified.clear();
        }
        verified.insert(peer, Instant::now());
    }
}

impl Sender<'_> {
    /// May it say this about the key?
    pub(in crate::swarm) fn may(&self, key: Key) -> bool {
        match self.right {
            Right::Member => true,
            Right::Near => self.role(key) >= Role::Near,
            Right::HandOver => self.may_hand_over(key),
            Right::Lend => self.role(key) == Role::Owner && self.is_before_me(),
        }
    }

    fn may_hand_over(&self, key: Key) -> bool {
        let holders = self.overlay.near(key, HOLDERS);
        let my_rank = holders.iter().position(|peer| *peer == self.overlay.me());
        match my_rank {
            Some(0) => self.role(key) >= Role::Near,
            Some(_) => self.role(key) == Role::Owner,
            None => false,
        }
    }

    /// Is this peer one of the next after the sender?
    fn is_before_me(&self) -> bool {
        let position = self.overlay.position(self.id);
        position.is_some_and(|position| {
            let next = self.overlay.near(position, HELPERS + 1);
            next.contains(&self.overlay.me())
        })
    }

    fn role(&self, key: Key) -> Role {
        let near = self.overlay.near(key, NEAR);
        match near.iter().position(|peer| *peer == self.id) {
            Some(0) => Role::Owner,
            Some(_) => Role::Near,
            // A newcomer that is not in the view yet may be near, but it is not the owner yet.
            None => {
                let Some(place) = self.overlay.position(self.id) else {
                    return Role::Member;
                };
                let places = near.iter().filter_map(|peer| self.overlay.position(*peer));
                let is_between = |other: &Key| *other == key || other.in_arc(key, place);
                let rank = places.filter(is_between).count();
                let is_near = !near.is_empty() && rank < NEAR;
                if is_near { Role::Near } else { Role::Member }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        content::message::{FACTS, FACTS_IN},
        lending::message::LOAN,
        links::message::LINKS,
        replicas::message::{CENSUS, DELTAS, FETCH, OFFER, PIECE, REPLICAS},
        testing::{TestRing, peer},
    };
    use std::sync::Arc;

    const ME: u8 = 0x40;
    /// Clockwise from the first, which stands after all others and so before the first again.
    const MEMBERS: [u8; 10] = [ME, 0x50, 0x60, 0x70, 0x80, 0x90, 0xa0, 0xb0, 0xc0, 0x30];
    const STRANGER: u8 = 0x3c;

    fn rights() -> (Rights, Arc<TestRing>) {
        let ring = TestRing::new(MEMBERS.map(peer));
        (Rights::new(ring.clone()), ring)
    }

    fn key(place: u8) -> Key {
        Key::from_bytes([place; 32])
    }

    #[test]
    fn the_table_has_one_line_for_each_kind() {
        let mut kinds: Vec<Kind> = table().map(|(kind, _)| kind).collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), table().count());
    }

    #[tokio::test]
    async fn a_stranger_may_send_nothing() {
        let (rights, _ring) = rights();
        for (kind, _) in table() {
            let refused = rights.check(peer(STRANGER), kind).await.err();
            assert_eq!(refused, Some(Refusal::NotYours), "{kind}");
            assert!(rights.check(peer(0x50), kind).await.is_ok(), "{kind}");
        }
    }

    #[tokio::test]
    async fn a_kind_without_a_line_is_refused() {
        let (rights, _ring) = rights();
        let refused = rights.check(peer(0x50), Kind::free(200)).await.err();
        assert_eq!(refused, Some(Refusal::UnknownKind));
    }

    #[tokio::test]
    async fn without_a_place_of_its_own_a_peer_grants_nothing() {
        let (rights, ring) = rights();
        ring.set_lost(true);
        let refused = rights.check(peer(0x50), LINKS).await.err();
        assert_eq!(refused, Some(Refusal::Busy));
    }

    async fn may(rights: &Rights, from: u8, kind: Kind, domain: u8) -> bool {
        let sender = rights.check(peer(from), kind).await.unwrap();
        sender.may(key(domain))
    }

    #[tokio::test]
    async fn a_replica_is_changed_by_the_owner_of_its_domain_only() {
        let (rights, _ring) = rights();
        for kind in [DELTAS, FETCH, OFFER, FACTS] {
            assert!(may(&rights, 0x30, kind, 0x28).await, "its owner");
            assert!(!may(&rights, 0x50, kind, 0x28).await, "a replica of it");
            assert!(!may(&rights, 0x90, kind, 0x28).await, "another member");
            assert!(
                may(&rights, 0xb0, kind, 0xa8).await,
                "the last that this peer may hold"
            );
            assert!(!may(&rights, 0xa0, kind, 0x98).await, "others hold it");
        }
    }

    #[tokio::test]
    async fn an_owner_hears_the_peers_near_its_domain_only() {
        let (rights, _ring) = rights();
        for kind in [DELTAS, FETCH, OFFER, FACTS] {
            for near in [0x50, 0x60, 0x70, 0xb0] {
                assert!(may(&rights, near, kind, 0x38).await, "{near:x}");
            }
            for far in [0xc0, 0x30] {
                assert!(!may(&rights, far, kind, 0x38).await, "{far:x}");
            }
        }
    }

    #[tokio::test]
    async fn peers_near_a_key_read_what_is_held_there() {
        let (rights, _ring) = rights();
        for kind in [CENSUS, REPLICAS, PIECE, FACTS_IN] {
            assert!(may(&rights, 0x30, kind, 0x28).await);
            assert!(may(&rights, 0xa0, kind, 0x28).await, "the eighth");
            assert!(!may(&rights, 0xb0, kind, 0x28).await, "the ninth");
        }
    }

    #[tokio::test]
    async fn an_owner_lends_to_the_peers_right_after_it() {
        let (rights, _ring) = rights();
        assert!(may(&rights, 0x30, LOAN, 0x28).await);
        assert!(may(&rights, 0x60, LOAN, 0x58).await);
        assert!(
            !may(&rights, 0x50, LOAN, 0x48).await,
            "nine peers lie between"
        );
        assert!(
            !may(&rights, 0x30, LOAN, 0x58).await,
            "it does not own the domain"
        );
    }

    #[tokio::test]
    async fn a_member_outside_the_view_is_looked_up_once() {
        let (rights, ring) = rights();
        ring.set_large();
        let refused = rights.check(peer(STRANGER), LINKS).await.err();
        assert_eq!(
            refused,
            Some(Refusal::NotYours),
            "the look-up names another"
        );
        rights.note_verified(peer(STRANGER));
        assert!(rights.check(peer(STRANGER), LINKS).await.is_ok());
    }

    #[tokio::test]
    async fn a_newcomer_may_read_before_it_may_write() {
        let (rights, ring) = rights();
        ring.set_large();
        rights.note_verified(peer(STRANGER));
        assert!(may(&rights, STRANGER, CENSUS, 0x38).await);
        assert!(may(&rights, STRANGER, REPLICAS, 0x38).await);
        assert!(!may(&rights, STRANGER, DELTAS, 0x28).await);
        assert!(!may(&rights, STRANGER, LOAN, 0x38).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_verified_member_is_looked_up_again_after_a_while() {
        let (rights, ring) = rights();
        ring.set_large();
        rights.note_verified(peer(STRANGER));
        time::advance(VERIFIED_FOR).await;
        assert!(rights.check(peer(STRANGER), LINKS).await.is_err());
    }

    #[tokio::test]
    async fn the_number_of_remembered_members_is_bounded() {
        let (rights, _ring) = rights();
        for number in 0..MAX_VERIFIED as u32 + 10 {
            rights.note_verified(PeerId::at(Key::hash(number.to_be_bytes())));
        }
        assert!(lock(&rights.verified).len() <= MAX_VERIFIED);
    }
}
