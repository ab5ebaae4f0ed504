//! Hostile members: their rings are honest inside, and their letters are not.
//!
//! A liar knows the truth, since it keeps the ring like everyone else. Every letter that it sends
//! is rewritten on its way out. A liar has a real place on the ring: it cannot be nearer to a key
//! than it is.

use crate::{
    Arc, Contact, Message, Predecessor, RingAction, RingRequest, RingResponse, Successors, Version,
    contact::Contacts,
};
use apoidea_model::{Key, PeerId};
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Accomplices named in one answer to a seeker.
const NAMED: usize = 8;
/// Accomplices named as neighbours: as many as the longest list takes.
const NEIGHBOURS: usize = crate::Settings::MAX_SUCCESSORS;
/// A version that no honest list has for long, so that the false list is sent every time.
const FALSE_VERSION: Version = Version(u32::MAX);
/// Liars are drawn from a source of their own: a run without them stays the same.
const OTHER_SEED: u64 = 0x6c69_6172;

/// The kind of lie that the hostile members tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiarKind {
    /// Each for itself: "that key is mine", to every seeker.
    #[default]
    Naive,
    /// All together: they name only each other, to seekers and to neighbours.
    Cabal,
}

/// The hostile members of a world.
#[derive(Debug, Clone)]
pub(super) struct Liars {
    kind: LiarKind,
    share: f64,
    rng: Xoshiro256PlusPlus,
    /// By position.
    members: BTreeMap<Key, Contact>,
    places: HashMap<PeerId, Key>,
}

impl Liars {
    pub fn new(kind: LiarKind, share: f64, seed: u64) -> Self {
        Liars {
            kind,
            share,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed ^ OTHER_SEED),
            members: BTreeMap::new(),
            places: HashMap::new(),
        }
    }

    /// Draws whether a new peer is a liar.
    pub fn draw(&mut self, newcomer: &Contact) {
        if self.share > 0.0 && self.rng.random_bool(self.share) {
            self.enlist(newcomer);
        }
    }

    /// This peer is a liar.
    pub fn enlist(&mut self, peer: &Contact) {
        self.members.insert(peer.key(), peer.clone());
        self.places.insert(peer.id, peer.key());
    }

    pub fn contains(&self, peer: PeerId) -> bool {
        self.places.contains_key(&peer)
    }

    pub fn forget(&mut self, peer: PeerId) {
        if let Some(place) = self.places.remove(&peer) {
            self.members.remove(&place);
        }
    }

    /// What this peer does instead, if it is a liar; `asked` is the key that it was asked for.
    pub fn twist(&self, me: &Contact, asked: Option<Key>, action: RingAction) -> RingAction {
        match action {
            RingAction::Send(to, message) if self.contains(me.id) => {
                RingAction::Send(to, self.rewrite(me, asked, message))
            }
            honest => honest,
        }
    }

    fn rewrite(&self, me: &Contact, asked: Option<Key>, message: Message) -> Message {
        match (message, asked) {
            (
                Message::Response(
                    id,
                    seat,
                    RingResponse::Owner { .. } | RingResponse::Closer { .. },
                ),
                Some(key),
            ) => Message::Response(id, seat, self.answer(me, key)),
            (Message::Response(id, seat, response), _) if self.kind == LiarKind::Cabal => {
                Message::Response(id, seat, self.false_neighbours(me, response))
            }
            (Message::Request(id, request), _) if self.kind == LiarKind::Cabal => {
                Message::Request(id, self.false_tail(me, request))
            }
            (honest, _) => honest,
        }
    }

    fn answer(&self, me: &Contact, key: Key) -> RingResponse {
        match self.kind {
            LiarKind::Naive => RingResponse::Owner {
                from: me.key(),
                successors: Contacts::new(self.after(me.key()).take(NAMED)),
            },
            LiarKind::Cabal => self.answer_as_one_of(me, key),
        }
    }

    /// The answer of an honest member of a ring that consists of the accomplices alone.
    fn answer_as_one_of(&self, me: &Contact, key: Key) -> RingResponse {
        let before_me = self.before(me.key()).next();
        let from = before_me.map_or(me.key(), |contact| contact.key());
        let arc = Arc { from, to: me.key() };
        if arc.contains(key) {
            return RingResponse::Owner {
                from,
                successors: Contacts::new(self.after(me.key()).take(NAMED)),
            };
        }
        let at_key = self.members.get(&key).cloned();
        let is_after = |c: &Contact| c.key() == key || c.key().between(key, me.key());
        let is_before = |c: &Contact| c.key().between(me.key(), key);
        RingResponse::Closer {
            before: Contacts::new(self.before(key).take_while(is_before).take(NAMED)),
            after: Contacts::new(
                at_key
                    .into_iter()
                    .chain(self.after(key))
                    .take_while(is_after)
                    .take(NAMED),
            ),
        }
    }

    fn false_neighbours(&self, me: &Contact, response: RingResponse) -> RingResponse {
        match response {
            RingResponse::Neighbours { scale, .. } => RingResponse::Neighbours {
                // Nobody stands between the asker and this liar, if one believes it.
                predecessor: Predecessor::You,
                successors: Successors::List(FALSE_VERSION, self.neighbours_after(me)),
                scale,
            },
            RingResponse::Around(_) => RingResponse::Around(Some((
                FALSE_VERSION,
                self.neighbours_before(me),
                self.neighbours_after(me),
            ))),
            honest => honest,
        }
    }

    fn false_tail(&self, me: &Contact, request: RingRequest) -> RingRequest {
        match request {
            RingRequest::Stabilize { asker, known, .. } => RingRequest::Stabilize {
                asker,
                known,
                predecessors: Some(self.neighbours_before(me)),
            },
            honest => honest,
        }
    }

    fn neighbours_after(&self, me: &Contact) -> Contacts {
        Contacts::new(self.after(me.key()).take(NEIGHBOURS))
    }

    fn neighbours_before(&self, me: &Contact) -> Contacts {
        Contacts::new(self.before(me.key()).take(NEIGHBOURS))
    }

    /// All accomplices after a key, clockwise; one that stands at the key itself is left out.
    fn after(&self, key: Key) -> impl Iterator<Item = Contact> {
        let (up_to, behind) = (self.members.range(..key), self.members.range(key..));
        let all = behind.chain(up_to).map(|(_, contact)| contact.clone());
        all.filter(move |contact| contact.key() != key)
    }

    /// The same anticlockwise.
    fn before(&self, key: Key) -> impl Iterator<Item = Contact> {
        let (up_to, behind) = (self.members.range(..key), self.members.range(key..));
        let all = up_to.rev().chain(behind.rev());
        all.map(|(_, contact)| contact.clone())
            .filter(move |contact| contact.key() != key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::peer;

    fn liars(kind: LiarKind, positions: &[u8]) -> Liars {
        let mut liars = Liars::new(kind, 1.0, 1);
        positions.iter().for_each(|&at| liars.draw(&peer(at)));
        liars
    }

    fn positions(contacts: &Contacts) -> Vec<u8> {
        let first = |contact: &Contact| contact.key().as_bytes()[0];
        contacts.as_slice().iter().map(first).collect()
    }

    #[test]
    fn a_naive_liar_claims_every_key() {
        let liars = liars(LiarKind::Naive, &[10, 20]);
        for key in [5, 15, 25] {
            let RingResponse::Owner { from, .. } = liars.answer(&peer(10), peer(key).key()) else {
                panic!("a claim");
            };
            assert_eq!(from, peer(10).key());
        }
    }

    #[test]
    fn a_cabal_answers_like_a_ring_of_its_own() {
        let liars = liars(LiarKind::Cabal, &[10, 20, 30, 200]);
        let RingResponse::Closer { before, after } = liars.answer(&peer(10), peer(35).key()) else {
            panic!("names others");
        };
        assert_eq!(positions(&before), [30, 20]);
        assert_eq!(positions(&after), [200]);
        let RingResponse::Owner { from, .. } = liars.answer(&peer(200), peer(35).key()) else {
            panic!("claims what would be its own");
        };
        assert_eq!(from, peer(30).key());
    }

    #[test]
    fn honest_peers_are_left_alone() {
        let liars = liars(LiarKind::Naive, &[10]);
        let answer = RingAction::Send(
            peer(1),
            Message::Response(crate::RequestId(1), crate::Seat::Free, RingResponse::Alive),
        );
        assert_eq!(liars.twist(&peer(99), None, answer.clone()), answer);
    }
}
