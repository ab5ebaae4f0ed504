//! The peers around this one, in its own view: the part of the ring that it knows without asking.
//!
//! Rights depend on places. A peer that decides about a stranger's right looks here: it asks nobody,
//! so it waits for nobody, and the stranger cannot choose who answers.

use crate::Contact;
use apoidea_model::{Key, PeerId};

/// A part of the ring around one peer, or the whole ring.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neighbourhood {
    /// Clockwise, each with its position. The first peer's arc is not known unless the run is the
    /// whole ring.
    run: Vec<(Key, PeerId)>,
    extent: Extent,
}

/// How much of the ring a neighbourhood holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// Some peers to either side.
    #[default]
    Part,
    /// Every member.
    Whole,
}

/// Whether a peer is on the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// It has a place.
    Member,
    /// It has none: the whole ring is known.
    Stranger,
    /// The view does not reach so far.
    Unknown,
}

impl Neighbourhood {
    /// Every member of a ring, in any order.
    pub fn whole<'a>(members: impl IntoIterator<Item = &'a Contact>) -> Self {
        let mut run: Vec<(Key, PeerId)> = members.into_iter().map(placed).collect();
        run.sort();
        run.dedup();
        let extent = Extent::Whole;
        Neighbourhood { run, extent }
    }

    /// Neighbours on the ring, clockwise and without gaps.
    pub fn part<'a>(run: impl IntoIterator<Item = &'a Contact>) -> Self {
        let run = run.into_iter().map(placed).collect();
        let extent = Extent::Part;
        Neighbourhood { run, extent }
    }

    /// The peers in it, clockwise.
    pub fn peers(&self) -> Vec<PeerId> {
        self.run.iter().map(|(_, peer)| *peer).collect()
    }

    /// Whether nobody is in it.
    pub fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    /// The position of a peer; none if it is not in the neighbourhood.
    pub fn position(&self, peer: PeerId) -> Option<Key> {
        let mut run = self.run.iter();
        run.find(|(_, other)| *other == peer).map(|(key, _)| *key)
    }

    /// How much of the ring it holds.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The peers at and after a key, its owner first; none where the neighbourhood does not reach.
    pub fn after(&self, key: Key) -> impl Iterator<Item = PeerId> + '_ {
        let start = self.owner_of(key).unwrap_or(self.run.len());
        let around = match self.extent {
            Extent::Whole => &self.run[..start],
            Extent::Part => &[],
        };
        let peers = self.run[start..].iter().chain(around);
        peers.map(|(_, peer)| *peer)
    }

    /// The last peer before a key, where its arc begins; none where the neighbourhood does not reach.
    pub fn before(&self, key: Key) -> Option<PeerId> {
        let start = self.owner_of(key)?;
        let last = start.checked_sub(1).or(self.run.len().checked_sub(1))?;
        Some(self.run[last].1)
    }

    /// Whether a peer is on the ring.
    pub fn membership(&self, peer: PeerId) -> Membership {
        match (self.position(peer).is_some(), self.extent) {
            (true, _) => Membership::Member,
            (false, Extent::Whole) => Membership::Stranger,
            (false, Extent::Part) => Membership::Unknown,
        }
    }

    fn owner_of(&self, key: Key) -> Option<usize> {
        match self.extent {
            Extent::Whole if self.run.is_empty() => None,
            Extent::Whole => {
                let at = self.run.partition_point(|(at, _)| *at < key);
                Some(at % self.run.len())
            }
            Extent::Part => {
                let pairs = self.run.windows(2);
                let is_owner = |pair: &[(Key, PeerId)]| key.in_arc(pair[0].0, pair[1].0);
                pairs
                    .enumerate()
                    .find(|(_, pair)| is_owner(pair))
                    .map(|(at, _)| at + 1)
            }
        }
    }
}

fn placed(contact: &Contact) -> (Key, PeerId) {
    (contact.key(), contact.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::peer;

    fn id(place: u8) -> PeerId {
        peer(place).id
    }

    fn after(neighbourhood: &Neighbourhood, place: u8) -> Vec<u8> {
        let key = Key::from_bytes([place; 32]);
        neighbourhood
            .after(key)
            .map(|peer| peer.key().as_bytes()[0])
            .collect()
    }

    #[test]
    fn the_whole_ring_goes_around() {
        let ring = Neighbourhood::whole(&[60, 20, 40].map(peer));
        assert_eq!(after(&ring, 30), [40, 60, 20]);
        assert_eq!(
            after(&ring, 40),
            [60, 20, 40],
            "the place 40 0 0… lies before the key 40 40 40…"
        );
        assert_eq!(after(&ring, 200), [20, 40, 60]);
        assert!(after(&Neighbourhood::whole(&[]), 1).is_empty());
        assert_eq!(after(&Neighbourhood::whole(&[peer(9)]), 200), [9]);
    }

    #[test]
    fn a_part_says_nothing_about_keys_outside_it() {
        let part = Neighbourhood::part(&[200, 250, 20, 40].map(peer));
        assert_eq!(after(&part, 210), [250, 20, 40]);
        assert_eq!(after(&part, 5), [20, 40]);
        for outside in [60, 190, 200 - 1] {
            assert!(after(&part, outside).is_empty(), "{outside}");
        }
        assert!(after(&Neighbourhood::default(), 1).is_empty());
        assert!(after(&Neighbourhood::part(&[peer(9)]), 1).is_empty());
    }

    #[test]
    fn the_arc_of_a_key_begins_at_the_peer_before_it() {
        let key = |place| Key::from_bytes([place; 32]);
        let ring = Neighbourhood::whole(&[60, 20, 40].map(peer));
        assert_eq!(ring.before(key(30)), Some(id(20)));
        assert_eq!(ring.before(key(10)), Some(id(60)), "around the ring");
        let part = Neighbourhood::part(&[200, 250, 20, 40].map(peer));
        assert_eq!(part.before(key(5)), Some(id(250)));
        assert_eq!(part.before(key(60)), None);
        assert_eq!(Neighbourhood::default().before(key(1)), None);
    }

    #[test]
    fn only_the_whole_ring_tells_strangers_from_members_far_away() {
        let ring = Neighbourhood::whole(&[20, 40].map(peer));
        let part = Neighbourhood::part(&[20, 40].map(peer));
        assert_eq!(ring.membership(id(40)), Membership::Member);
        assert_eq!(part.membership(id(40)), Membership::Member);
        assert_eq!(ring.membership(id(50)), Membership::Stranger);
        assert_eq!(part.membership(id(50)), Membership::Unknown);
    }
}
