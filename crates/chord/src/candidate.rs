//! The peers that one lookup knows on either side of its key.
//!
//! Each side is a list, nearest to the key first and bounded. The asker's own acquaintances are the
//! last to give way, so that no answer can crowd them out.

use crate::Contact;
use apoidea_model::{Key, PeerId};

/// Candidates kept on either side of the key: the dead of a half-dead ring, and the living.
pub(crate) const MAX_CANDIDATES: usize = 64;

/// A peer that a lookup may ask, or has asked.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub contact: Contact,
    /// The number of peers asked one after the other to reach it; 1 if the asker knew it itself.
    pub depth: u32,
    pub state: State,
    /// The peers before the key that have named this one after it.
    pub namers: Vec<Key>,
    /// What it says of itself: the start of its arc, and the peers after it.
    pub claim: Option<(Key, Vec<Contact>)>,
}

/// How far the conversation with a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    New,
    Asked,
    /// Asked more than once; others may be asked meanwhile.
    Slow,
    Answered,
    Dead,
}

/// On which side of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

impl Candidate {
    fn new(contact: &Contact, depth: u32) -> Self {
        Candidate {
            contact: contact.clone(),
            depth,
            state: State::New,
            namers: Vec::new(),
            claim: None,
        }
    }

    fn is_idle(&self) -> bool {
        !matches!(self.state, State::Asked | State::Slow)
    }
}

/// Keeps a candidate in its place, nearest to the target first.
pub(crate) fn insert(
    list: &mut Vec<Candidate>,
    target: Key,
    side: Side,
    contact: &Contact,
    depth: u32,
) {
    if place(list, contact.id).is_some() {
        return;
    }
    let key = contact.key();
    let mut at = list.partition_point(|c| match side {
        Side::Before => c.contact.key().between(key, target),
        Side::After => c.contact.key() == target || c.contact.key().between(target, key),
    });
    if list.len() >= MAX_CANDIDATES {
        let Some(gone) = who_gives_way(list, at, depth) else {
            return;
        };
        list.remove(gone);
        at -= usize::from(gone < at);
    }
    list.insert(at, Candidate::new(contact, depth));
}

/// The farthest one that others have named, or else the farthest; none if the new one is farther.
fn who_gives_way(list: &[Candidate], at: usize, depth: u32) -> Option<usize> {
    let named = list.iter().rposition(|c| c.is_idle() && c.depth > 1);
    let farthest = named.or_else(|| list.iter().rposition(Candidate::is_idle))?;
    let is_own = depth == 1 && named.is_some();
    (farthest >= at || is_own).then_some(farthest)
}

/// The place of a peer in a list.
pub(crate) fn place(list: &[Candidate], peer: PeerId) -> Option<usize> {
    list.iter().position(|c| c.contact.id == peer)
}

/// The nearest one in this state.
pub(crate) fn position_of(list: &[Candidate], state: State) -> Option<usize> {
    list.iter().position(|c| c.state == state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::peer;

    fn list(positions: impl IntoIterator<Item = (u8, u32)>) -> Vec<Candidate> {
        let mut list = Vec::new();
        for (position, depth) in positions {
            insert(
                &mut list,
                peer(200).key(),
                Side::Before,
                &peer(position),
                depth,
            );
        }
        list
    }

    fn positions(list: &[Candidate]) -> Vec<u8> {
        let first = |c: &Candidate| c.contact.key().as_bytes()[0];
        list.iter().map(first).collect()
    }

    #[test]
    fn the_nearest_stand_first_and_each_once() {
        let list = list([(10, 1), (150, 2), (90, 1), (150, 3)]);
        assert_eq!(positions(&list), [150, 90, 10]);
    }

    #[test]
    fn no_answer_crowds_out_those_that_the_asker_knows() {
        let list = list(
            [(5, 1), (6, 1)]
                .into_iter()
                .chain((20..120).map(|n| (n, 2))),
        );
        assert_eq!(list.len(), MAX_CANDIDATES);
        let kept = positions(&list);
        assert!(kept.contains(&5) && kept.contains(&6) && kept.contains(&119));
        assert!(!kept.contains(&20), "the farthest that was named");
    }

    #[test]
    fn a_farther_one_finds_no_room_unless_the_asker_knows_it() {
        let mut list = list((20..84).map(|n| (n, 2)));
        insert(&mut list, peer(200).key(), Side::Before, &peer(10), 2);
        assert!(!positions(&list).contains(&10));
        insert(&mut list, peer(200).key(), Side::Before, &peer(10), 1);
        assert!(positions(&list).contains(&10) && list.len() == MAX_CANDIDATES);
    }
}
