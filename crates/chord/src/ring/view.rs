//! The ring seen from outside: the owner of a key, the neighbours, the number of members.

use super::{Ring, answer::ONE};
use crate::{Contact, Neighbourhood, arc::Arc, event::Phase, message::Scale, status::RingStatus};
use apoidea_model::{Key, Time};

/// The owner of a key, judged from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// This peer: the key lies after the predecessor, up to this peer.
    Mine,
    /// Another peer. This one is nearer to the owner, or is the owner.
    Elsewhere(Contact),
    /// Another peer, and nobody nearer is known.
    Unknown,
}

impl Ring {
    /// This peer.
    pub fn me(&self) -> &Contact {
        &self.me
    }

    /// The peer's relation to the ring.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The arc of this peer: everything after its predecessor, once that is known and has answered.
    pub fn arc(&self) -> Option<Arc> {
        let me = self.me.key();
        match (self.phase, self.neighbours.predecessor()) {
            (Phase::Alone, _) => Some(Arc { from: me, to: me }),
            (Phase::Member, Some(before))
                if self.scale == Scale::Large || self.roster.is_heard(before.id) =>
            {
                Some(Arc {
                    from: before.key(),
                    to: me,
                })
            }
            // Until the predecessor has answered, nothing is won or lost.
            (Phase::Member, _) => self.told_arc,
            (Phase::Outside | Phase::Joining, _) => None,
        }
    }

    /// The owner of this key. A peer checks it on every request that belongs to a key.
    pub fn ownership(&self, key: Key) -> Ownership {
        if self.arc().is_some_and(|arc| arc.contains(key)) {
            return Ownership::Mine;
        }
        let (before, after) = self.route(key, ONE, self.now);
        let nearest = after.into_iter().chain(before).next();
        nearest.map_or(Ownership::Unknown, Ownership::Elsewhere)
    }

    /// The owner of a key and the next `count − 1` peers clockwise, if they are known without
    /// asking; fewer where the ring is smaller.
    ///
    /// The peers after the owner hold its replicas: when the owner crashes, the first of them
    /// becomes the owner and already has everything.
    pub fn owners(&self, key: Key, count: usize, now: Time) -> Option<Vec<Contact>> {
        let near = match (self.phase, self.scale) {
            (Phase::Outside | Phase::Joining, _) => None,
            (_, Scale::Small) => Some(self.owners_of_few(key, count)),
            (_, Scale::Large) => self.owners_nearby(key, count),
        };
        near.or_else(|| {
            let owners = self.cache.owners(key, now)?;
            (owners.len() >= count).then(|| owners[..count].to_vec())
        })
    }

    fn owners_of_few(&self, key: Key, count: usize) -> Vec<Contact> {
        let me = self.me.key();
        let is_before_me =
            |member: &&Contact| me != key && (member.key() == key || member.key().in_arc(key, me));
        let mut owners: Vec<Contact> = self
            .roster
            .clockwise(key)
            .take_while(is_before_me)
            .cloned()
            .collect();
        let before_me = owners.len();
        owners.push(self.me.clone());
        owners.extend(self.roster.clockwise(key).skip(before_me).cloned());
        owners.truncate(count);
        owners
    }

    fn owners_nearby(&self, key: Key, count: usize) -> Option<Vec<Contact>> {
        if !self.neighbours.span(key) {
            return None;
        }
        let mut last = None;
        let owners = self.neighbours.run(&self.me).skip_while(|contact| {
            let is_owner = last.is_some_and(|last| key.in_arc(last, contact.key()));
            last = Some(contact.key());
            !is_owner
        });
        let owners: Vec<Contact> = owners.take(count).cloned().collect();
        (owners.len() == count).then_some(owners)
    }

    /// The peers around this one, as far as it knows them without asking. Empty outside the ring.
    pub fn neighbourhood(&self) -> Neighbourhood {
        match (self.phase, self.scale) {
            (Phase::Outside | Phase::Joining, _) => Neighbourhood::default(),
            (_, Scale::Small) => {
                Neighbourhood::whole(self.roster.members().iter().chain([&self.me]))
            }
            (_, Scale::Large) => Neighbourhood::part(self.neighbours.run(&self.me)),
        }
    }

    /// The predecessor, if one is known.
    pub fn predecessor(&self) -> Option<&Contact> {
        self.neighbours.predecessor()
    }

    /// The successors, nearest first.
    pub fn successors(&self) -> &[Contact] {
        self.neighbours.successors()
    }

    /// Half the leaf peers on either side: predecessors, farthest first, then successors, without
    /// repetition.
    pub fn leaves(&self) -> Vec<Contact> {
        let half = self.settings.leaves.div_ceil(2);
        let before = self.neighbours.predecessors();
        let mut leaves: Vec<Contact> = before[..half.min(before.len())]
            .iter()
            .rev()
            .cloned()
            .collect();
        for successor in self.neighbours.successors().iter().take(half) {
            if leaves.iter().all(|leaf| leaf.id != successor.id) {
                leaves.push(successor.clone());
            }
        }
        leaves
    }

    /// Peers that have answered before. The driver stores them and passes them to
    /// [`crate::RingEvent::Join`] at the next start.
    pub fn remembered(&self) -> Vec<Contact> {
        self.book.all()
    }

    /// Members of the ring, as far as the density of the neighbours tells; exact in a small ring.
    pub fn size_estimate(&self) -> f64 {
        if self.scale == Scale::Small {
            return 1.0 + self.roster.len() as f64;
        }
        let first = self
            .neighbours
            .predecessors()
            .last()
            .map_or(self.me.key(), Contact::key);
        let last = self
            .neighbours
            .successors()
            .last()
            .map_or(self.me.key(), Contact::key);
        let gaps = self.neighbours.predecessors().len() + self.neighbours.successors().len();
        let share = first.distance_to(last).fraction();
        if share > 0.0 {
            gaps as f64 / share
        } else {
            1.0
        }
    }

    /// Mean gap between neighbours as a share of the ring. A liar can leave neighbours out, but it
    /// cannot add any, so a side that is much thinner than the other counts less. None without a
    /// list on both sides.
    pub(super) fn gap(&self) -> Option<f64> {
        const MUCH_THINNER: f64 = 1.5;
        let (me, lists) = (self.me.key(), &self.neighbours);
        let (after, before) = (lists.successors(), lists.predecessors());
        let (last, first) = (after.last()?.key(), before.last()?.key());
        let (ahead, behind) = (
            me.distance_to(last).fraction(),
            first.distance_to(me).fraction(),
        );
        let (many_after, many_before) = (after.len() as f64, before.len() as f64);
        let mean = (ahead + behind) / (many_after + many_before);
        let denser = (ahead / many_after).min(behind / many_before);
        (self.scale == Scale::Large).then_some(mean.min(denser * MUCH_THINNER))
    }

    /// Everything worth showing.
    pub fn status(&self) -> RingStatus {
        let mut fingers = self.fingers.distinct();
        fingers.reverse();
        RingStatus {
            me: self.me.id,
            seat: self.me.seat(),
            position: self.me.key(),
            phase: self.phase,
            scale: self.scale,
            arc: self.arc(),
            predecessor: self.predecessor().cloned(),
            successors: self.successors().to_vec(),
            leaves: self.leaves(),
            fingers,
            round_trips: self.round_trips.all(),
            size_estimate: self.size_estimate(),
            cached_arcs: self.cache.len(),
            counters: self.counters.all(),
            misplaced: self.misplaced,
        }
    }
}
