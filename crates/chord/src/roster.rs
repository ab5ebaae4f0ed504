//! Full membership of a small ring: all peers that have answered, in ring order.
//!
//! Chord's anomalies live in rings that are not much larger than the successor list (Zave 2015 §4).
//! So in a ring of up to 2r + 1 peers, each member knows every other and computes its neighbours
//! instead of negotiating them.

use crate::{Contact, Contacts};
use apoidea_model::{Key, PeerId};

/// Members kept on others' word at most: two of the longest lists.
const MAX_MEMBERS: usize = 2 * Contacts::MAX;

/// The other members, ordered by position, and by id where two claim one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roster {
    members: Vec<Contact>,
    /// Members that others have named and that have not answered yet.
    unheard: Vec<PeerId>,
}

impl Roster {
    pub fn members(&self) -> &[Contact] {
        &self.members
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn contains(&self, id: PeerId) -> bool {
        self.place(id).is_some()
    }

    /// Adds a member that has answered or spoken, or its new routes; returns whether anything
    /// changed.
    pub fn add(&mut self, member: Contact) -> bool {
        let was_unheard = self.unheard.contains(&member.id);
        self.unheard.retain(|id| *id != member.id);
        self.place_in_order(member) || was_unheard
    }

    /// Adds a member on another's word, unless it is known.
    pub fn add_unheard(&mut self, member: &Contact) {
        if !self.contains(member.id) && self.len() < MAX_MEMBERS {
            self.unheard.push(member.id);
            self.place_in_order(member.clone());
        }
    }

    /// Whether this member has answered or spoken.
    pub fn is_heard(&self, id: PeerId) -> bool {
        self.contains(id) && !self.unheard.contains(&id)
    }

    /// The number of members that have answered or spoken.
    pub fn heard(&self) -> usize {
        self.members.len() - self.unheard.len()
    }

    /// Members that have not answered yet.
    pub fn unheard(&self) -> Vec<Contact> {
        self.members
            .iter()
            .filter(|member| self.unheard.contains(&member.id))
            .cloned()
            .collect()
    }

    fn place_in_order(&mut self, member: Contact) -> bool {
        if let Some(at) = self.place(member.id) {
            if self.members[at] == member {
                return false;
            }
            self.members.remove(at);
        }
        let order = |member: &Contact| (member.key(), member.id);
        let at = self
            .members
            .partition_point(|other| order(other) < order(&member));
        self.members.insert(at, member);
        true
    }

    /// Removes a member; returns whether it was one.
    pub fn remove(&mut self, id: PeerId) -> bool {
        self.unheard.retain(|unheard| *unheard != id);
        self.place(id).map(|at| self.members.remove(at)).is_some()
    }

    pub fn clear(&mut self) {
        self.members.clear();
        self.unheard.clear();
    }

    /// Members clockwise, beginning with the first at or after `key`.
    pub fn clockwise(&self, key: Key) -> impl Iterator<Item = &Contact> {
        let start = self.members.partition_point(|member| member.key() < key);
        self.members[start..].iter().chain(&self.members[..start])
    }

    /// Members anticlockwise, beginning with the last before `key`.
    pub fn anticlockwise(&self, key: Key) -> impl Iterator<Item = &Contact> {
        let start = self.members.partition_point(|member| member.key() < key);
        self.members[..start]
            .iter()
            .rev()
            .chain(self.members[start..].iter().rev())
    }

    /// The same sum means the same members at the same positions, this peer included. Positions are
    /// hashes, so a sum of their heads is enough.
    pub fn digest(&self, me: Key) -> u64 {
        self.members
            .iter()
            .map(|member| head(member.key()))
            .fold(head(me), u64::wrapping_add)
    }

    fn place(&self, id: PeerId) -> Option<usize> {
        self.members.iter().position(|member| member.id == id)
    }
}

fn head(key: Key) -> u64 {
    let (first, _) = key
        .as_bytes()
        .split_first_chunk()
        .expect("a key has 32 bytes, more than 8");
    u64::from_be_bytes(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::peer;

    #[test]
    fn both_directions_wrap_around() {
        let mut roster = Roster::default();
        for position in [30, 10, 20, 10] {
            roster.add(peer(position));
        }
        let clockwise: Vec<_> = roster.clockwise(peer(20).key()).cloned().collect();
        assert_eq!(clockwise, [peer(20), peer(30), peer(10)]);
        let anticlockwise: Vec<_> = roster.anticlockwise(peer(20).key()).cloned().collect();
        assert_eq!(anticlockwise, [peer(10), peer(30), peer(20)]);
    }

    #[test]
    fn the_digest_is_the_same_from_every_member() {
        let (mut mine, mut yours) = (Roster::default(), Roster::default());
        mine.add(peer(2));
        mine.add(peer(3));
        yours.add(peer(3));
        assert_ne!(mine.digest(peer(1).key()), yours.digest(peer(2).key()));
        yours.add(peer(1));
        assert_eq!(mine.digest(peer(1).key()), yours.digest(peer(2).key()));
    }
}
