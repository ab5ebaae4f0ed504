//! The invariants of one peer at any time, and of all peers at rest.

use super::world::World;
use crate::{Arc, Contact, Message, Phase, Ring, RingAction, RingResponse};
use apoidea_model::Key;

/// The first invariant that a peer breaks after a step, if any. `seen` is the version of its list
/// checked last.
pub fn breach(
    ring: &Ring,
    seen: &mut u32,
    asked: Option<Key>,
    actions: &[RingAction],
) -> Option<String> {
    let version = ring.successors_version();
    let is_changed = *seen != version;
    *seen = version;
    let disorder = is_changed.then(|| disorder(ring)).flatten();
    disorder.or_else(|| asked.and_then(|key| detour(ring.me().key(), key, actions)))
}

/// Successors are strictly clockwise, so distinct and without oneself, and at most r.
fn disorder(ring: &Ring) -> Option<String> {
    let (me, successors) = (ring.me().key(), ring.successors());
    let mut last = me;
    for successor in successors {
        if successor.key() == me || !successor.key().between(last, me) {
            return Some(format!("successors out of order: {successors:?}"));
        }
        last = successor.key();
    }
    (successors.len() > ring.most_successors()).then(|| format!("{} successors", successors.len()))
}

/// Every peer named to someone who seeks a key is nearer to it than the one who names it.
fn detour(me: Key, key: Key, actions: &[RingAction]) -> Option<String> {
    for action in actions {
        let RingAction::Send(_, Message::Response(_, _, RingResponse::Closer { before, after })) =
            action
        else {
            continue;
        };
        let leads_on = |c: &Contact| c.key().between(me, key);
        let leads_back = |c: &Contact| c.key() == key || c.key().between(key, me);
        if !before.as_slice().iter().all(leads_on) || !after.as_slice().iter().all(leads_back) {
            return Some(format!(
                "a hop that does not advance towards {key}: {before:?} {after:?}"
            ));
        }
    }
    None
}

/// The distance of a ring from its ideal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disarray {
    /// Living peers without a position, or not on the one ring.
    pub orphans: usize,
    /// Peers whose first successor, predecessor or arc is wrong.
    pub wrong_pointers: usize,
    /// Peers whose further successors or predecessors are wrong.
    pub wrong_lists: usize,
    /// Fingers that do not point at the owner of their start.
    pub wrong_fingers: usize,
}

impl Disarray {
    /// Whether all successors and predecessors are right, and no peer is lost.
    pub fn is_perfect_ring(self) -> bool {
        self.orphans == 0 && self.wrong_pointers == 0
    }

    /// Whether every list is right as well.
    pub fn is_settled(self) -> bool {
        self.is_perfect_ring() && self.wrong_lists == 0
    }

    /// Whether it is the global fixpoint, which no round would change.
    pub fn is_fixpoint(self) -> bool {
        self == Disarray::default()
    }
}

/// Compares every living peer with what an all-knowing observer would give it.
pub fn survey(world: &World) -> Disarray {
    let mut order: Vec<u32> = world.living().to_vec();
    order.sort_by_key(|&peer| world.contact(peer).id);
    let mut disarray = Disarray {
        orphans: orphans(world, &order),
        ..Disarray::default()
    };
    for place in 0..order.len() {
        examine(world, &order, place, &mut disarray);
    }
    disarray
}

fn examine(world: &World, order: &[u32], place: usize, disarray: &mut Disarray) {
    let Some(ring) = world.ring(order[place]) else {
        return;
    };
    let others = order.len() - 1;
    let id_at = |offset: usize| world.contact(order[(place + offset) % order.len()]).id;
    let wanted = ring.most_successors().min(others);
    let right = |list: &[Contact], id: &dyn Fn(usize) -> apoidea_model::PeerId, most: usize| {
        list.len() == wanted
            && list
                .iter()
                .take(most)
                .enumerate()
                .all(|(at, contact)| contact.id == id(at + 1))
    };
    let back = |offset: usize| id_at(order.len() - offset);
    let (after, before) = (ring.successors(), ring.predecessors());
    let head_is_right = others == 0 || after.first().is_some_and(|head| head.id == id_at(1));
    let predecessor_is_right =
        others == 0 || before.first().is_some_and(|first| first.id == back(1));
    let arc_is_right = ring.arc()
        == Some(Arc {
            from: back(1).key(),
            to: ring.me().key(),
        });
    disarray.wrong_pointers +=
        usize::from(!head_is_right || !predecessor_is_right || !arc_is_right);
    disarray.wrong_lists +=
        usize::from(!right(after, &id_at, wanted) || !right(before, &back, wanted));
    disarray.wrong_fingers += wrong_fingers(world, ring);
}

fn wrong_fingers(world: &World, ring: &Ring) -> usize {
    let is_wrong = |(exponent, finger): (usize, Option<Contact>)| {
        let start = ring.me().key().plus_power_of_two(exponent);
        let owner = world.owner(start).map(|owner| world.contact(owner).id);
        let wanted = owner.filter(|owner| *owner != ring.me().id);
        wanted.is_some() && finger.map(|finger| finger.id) != wanted
    };
    ring.fingers_by_exponent()
        .into_iter()
        .filter(|finger| is_wrong(finger.clone()))
        .count()
}

/// Living peers that are not members, or that nobody reaches who follows living successors from the
/// first member.
fn orphans(world: &World, order: &[u32]) -> usize {
    let mut on_ring = vec![false; order.len()];
    let place_of = |id| {
        order
            .binary_search_by_key(&id, |&peer| world.contact(peer).id)
            .ok()
    };
    let is_member = |&place: &usize| {
        world
            .ring(order[place])
            .is_some_and(|ring| matches!(ring.phase(), Phase::Member | Phase::Alone))
    };
    let mut at = (0..order.len()).find(is_member);
    while let Some(place) = at.filter(|&place| !on_ring[place]) {
        on_ring[place] = true;
        let successors = world.ring(order[place]).map_or(&[][..], Ring::successors);
        at = successors
            .iter()
            .find_map(|successor| place_of(successor.id));
    }
    on_ring.iter().filter(|is_on_ring| !**is_on_ring).count()
}
