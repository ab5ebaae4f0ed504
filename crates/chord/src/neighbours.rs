//! The peers next to this one: successors clockwise, predecessors anticlockwise, both nearest
//! first.
//!
//! Only the first successor and the first predecessor are pointers of the protocol. They are
//! adopted after they have answered. The rest of each list begins as the word of those two, and
//! each is asked itself (see `ring/survey.rs`).

use crate::{Contact, message::Version};
use apoidea_model::{Key, PeerId};

/// Successor and predecessor lists of one peer, each with the version by which others know it.
#[derive(Debug, Clone)]
pub(crate) struct Neighbours {
    me: Key,
    most: usize,
    successors: Vec<Contact>,
    predecessors: Vec<Contact>,
    successors_version: u32,
    predecessors_version: u32,
}

/// The place that a peer has among the neighbours, or would have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before the first successor.
    First,
    /// Behind the predecessor: it is the true one.
    Nearest,
    /// In one of the lists, behind its first.
    Among,
    /// None.
    None,
}

impl Neighbours {
    /// No neighbours, and at most `most` on either side; `version` should differ between runs.
    pub fn new(me: Key, most: usize, version: u32) -> Self {
        Neighbours {
            me,
            most,
            successors: Vec::new(),
            predecessors: Vec::new(),
            successors_version: version,
            predecessors_version: version,
        }
    }

    pub fn successors(&self) -> &[Contact] {
        &self.successors
    }

    pub fn predecessors(&self) -> &[Contact] {
        &self.predecessors
    }

    /// The first successor.
    pub fn head(&self) -> Option<&Contact> {
        self.successors.first()
    }

    pub fn predecessor(&self) -> Option<&Contact> {
        self.predecessors.first()
    }

    pub fn successors_version(&self) -> Version {
        Version(self.successors_version)
    }

    pub fn predecessors_version(&self) -> Version {
        Version(self.predecessors_version)
    }

    /// Takes over a list of successors as far as it runs clockwise and not past this peer.
    pub fn set_successors<'a>(&mut self, list: impl IntoIterator<Item = &'a Contact>) {
        let list = clockwise(self.me, list, self.most);
        if list != self.successors {
            self.successors = list;
            self.successors_version = self.successors_version.wrapping_add(1);
        }
    }

    /// Takes over a list of predecessors as far as it runs anticlockwise and not past this peer.
    pub fn set_predecessors<'a>(&mut self, list: impl IntoIterator<Item = &'a Contact>) {
        let list = anticlockwise(self.me, list, self.most);
        if list != self.predecessors {
            self.predecessors = list;
            self.predecessors_version = self.predecessors_version.wrapping_add(1);
        }
    }

    pub fn contains(&self, peer: PeerId) -> bool {
        let mut both = self.successors.iter().chain(&self.predecessors);
        both.any(|contact| contact.id == peer)
    }

    /// The place that a peer with this key has, or would have.
    pub fn place_for(&self, key: Key) -> Place {
        let is_first = |head: &Contact| key.between(self.me, head.key());
        let is_nearest = |before: &Contact| key.between(before.key(), self.me);
        if self.head().is_some_and(is_first) {
            Place::First
        } else if self.predecessor().is_some_and(is_nearest) {
            Place::Nearest
        } else if self.fits_after(key) || self.fits_before(key) {
            Place::Among
        } else {
            Place::None
        }
    }

    /// Adds a peer to the lists that it fits into, or renews its routes there.
    pub fn add(&mut self, contact: &Contact) {
        let others = |list: &[Contact]| {
            let others = list.iter().filter(|other| other.id != contact.id);
            others.cloned().collect::<Vec<_>>()
        };
        if self.fits_after(contact.key()) {
            let mut list = others(&self.successors);
            let is_nearer = |other: &Contact| other.key().between(self.me, contact.key());
            list.insert(list.partition_point(is_nearer), contact.clone());
            self.set_successors(&list);
        }
        if self.fits_before(contact.key()) {
            let mut list = others(&self.predecessors);
            let is_nearer = |other: &Contact| other.key().between(contact.key(), self.me);
            list.insert(list.partition_point(is_nearer), contact.clone());
            self.set_predecessors(&list);
        }
    }

    /// At or behind the first successor, and not behind the last; where the list is short, on its
    /// half of the ring.
    fn fits_after(&self, key: Key) -> bool {
        let (Some(head), Some(last)) = (self.head(), self.successors.last()) else {
            return false;
        };
        let is_short = self.successors.len() < self.most && is_less_than_half(self.me, key);
        let is_behind_head = key == head.key() || key.between(head.key(), self.me);
        is_behind_head && (is_short || key.in_arc(self.me, last.key()))
    }

    fn fits_before(&self, key: Key) -> bool {
        let (Some(first), Some(last)) = (self.predecessor(), self.predecessors.last()) else {
            return false;
        };
        let is_short = self.predecessors.len() < self.most && is_less_than_half(key, self.me);
        let is_behind_first = key == first.key() || key.between(self.me, first.key());
        is_behind_first && (is_short || key == last.key() || key.between(last.key(), self.me))
    }

    /// Both lists as one run clockwise, this peer in the middle.
    pub fn run<'a>(&'a self, me: &'a Contact) -> impl Iterator<Item = &'a Contact> {
        self.predecessors
            .iter()
            .rev()
            .chain([me])
            .chain(&self.successors)
    }

    /// Whether the key is within the run, after its first peer.
    pub fn span(&self, key: Key) -> bool {
        let first = self.predecessors.last().map(Contact::key);
        let last = self.successors.last().map(Contact::key);
        first.is_some_and(|first| key.in_arc(first, self.me))
            || last.is_some_and(|last| key.in_arc(self.me, last))
    }

    /// Whether the two lists meet on the far side. Together they are then the whole ring.
    pub fn meet(&self) -> bool {
        let (Some(first), Some(last)) = (self.predecessors.last(), self.successors.last()) else {
            return false;
        };
        first.key().in_arc(self.me, last.key())
    }

    /// Removes a peer that is gone, except as the predecessor, which only another peer replaces.
    pub fn remove(&mut self, gone: PeerId) {
        if self.successors.iter().any(|c| c.id == gone) {
            self.successors.retain(|c| c.id != gone);
            self.successors_version = self.successors_version.wrapping_add(1);
        }
        if self.predecessors.iter().skip(1).any(|c| c.id == gone) {
            let first = self.predecessors.first().map(|c| c.id);
            self.predecessors
                .retain(|c| Some(c.id) == first || c.id != gone);
            self.predecessors_version = self.predecessors_version.wrapping_add(1);
        }
    }

    /// Forgets everyone.
    pub fn clear(&mut self) {
        self.set_successors([]);
        self.set_predecessors([]);
    }
}

fn is_less_than_half(from: Key, to: Key) -> bool {
    from.distance_to(to).as_bytes()[0] < 0x80
}

/// The part of a list that runs clockwise from `from`, without reaching it again. Of two peers at
/// one position the first counts.
pub(crate) fn clockwise<'a>(
    from: Key,
    list: impl IntoIterator<Item = &'a Contact>,
    most: usize,
) -> Vec<Contact> {
    let mut kept: Vec<Contact> = Vec::new();
    for contact in list {
        let last = kept.last().map(Contact::key);
        if last == Some(contact.key()) {
            continue;
        }
        let is_next = contact.key() != from && contact.key().between(last.unwrap_or(from), from);
        if kept.len() >= most || !is_next {
            break;
        }
        kept.push(contact.clone());
    }
    kept
}

/// The part of a list that runs anticlockwise from `from`, without reaching it again. Of two peers
/// at one position the first counts.
fn anticlockwise<'a>(
    from: Key,
    list: impl IntoIterator<Item = &'a Contact>,
    most: usize,
) -> Vec<Contact> {
    let mut kept: Vec<Contact> = Vec::new();
    for contact in list {
        let last = kept.last().map(Contact::key);
        if last == Some(contact.key()) {
            continue;
        }
        let is_next = contact.key() != from && contact.key().between(from, last.unwrap_or(from));
        if kept.len() >= most || !is_next {
            break;
        }
        kept.push(contact.clone());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::peer;

    fn positions(list: &[Contact]) -> Vec<u8> {
        list.iter().map(|c| c.key().as_bytes()[0]).collect()
    }

    fn neighbours(successors: &[u8], predecessors: &[u8]) -> Neighbours {
        let mut neighbours = Neighbours::new(peer(100).key(), 4, 0);
        neighbours.set_successors(&successors.iter().map(|&p| peer(p)).collect::<Vec<_>>());
        neighbours.set_predecessors(&predecessors.iter().map(|&p| peer(p)).collect::<Vec<_>>());
        neighbours
    }

    #[test]
    fn lists_are_kept_as_far_as_they_are_in_order() {
        for (list, kept) in [
            (&[120, 150, 10, 90][..], &[120, 150, 10, 90][..]),
            (&[120, 150, 100, 110], &[120, 150]),
            (&[120, 110, 130], &[120]),
            (&[120, 120, 130], &[120, 130]),
            (&[10, 110], &[10]),
            (&[100, 110], &[]),
            (&[120, 130, 140, 150, 160], &[120, 130, 140, 150]),
        ] {
            assert_eq!(
                positions(neighbours(list, &[]).successors()),
                kept,
                "{list:?}"
            );
        }
        for (list, kept) in [
            (&[90, 10, 250][..], &[90, 10, 250][..]),
            (&[90, 95], &[90]),
            (&[90, 100, 80], &[90]),
        ] {
            assert_eq!(
                positions(neighbours(&[], list).predecessors()),
                kept,
                "{list:?}"
            );
        }
    }

    #[test]
    fn the_span_runs_from_the_farthest_predecessor_to_the_farthest_successor() {
        let neighbours = neighbours(&[120, 150], &[80, 60]);
        for (position, inside) in [
            (61, true),
            (60, false),
            (100, true),
            (150, true),
            (151, false),
            (20, false),
        ] {
            assert_eq!(neighbours.span(peer(position).key()), inside, "{position}");
        }
        assert!(!Neighbours::new(peer(100).key(), 4, 0).span(peer(1).key()));
    }

    #[test]
    fn lists_that_meet_are_the_whole_ring() {
        assert!(neighbours(&[120, 130, 140, 150], &[80, 60, 20, 150]).meet());
        assert!(!neighbours(&[120, 130, 140, 150], &[80, 60, 20, 160]).meet());
        assert!(
            neighbours(&[120, 150], &[80, 130]).meet(),
            "one of them is out of date"
        );
        assert!(neighbours(&[120], &[120]).meet());
    }
}
