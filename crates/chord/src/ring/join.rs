//! Joining through remembered peers, starting over after isolation, and leaving with a word.

use super::{Operation, Ring, Turn, seek::ZONE};
use crate::{
    Contact,
    contact::Contacts,
    event::Phase,
    in_flight::Purpose,
    lookup::{Goal, Lookup},
    lost::{Lost, Touch},
    message::{Notice, Predecessor, RingResponse, Scale, Successors},
    neighbours::{Neighbours, clockwise},
    suspects::{GONE_FOR, SILENT_FOR},
};
use apoidea_model::{PeerId, Time};
use rand::RngExt;
use std::time::Duration;

/// Remembered peers asked in one attempt to join.
const ENTRY_PEERS: usize = 4;
/// Failed attempts after which a peer takes itself for the only one: about half a minute, as long
/// as a machine that has just woken needs to find its network.
const JOIN_ATTEMPTS: u32 = 5;
/// Wait after the first failed attempt; doubles with each.
const JOIN_AGAIN: Duration = Duration::from_secs(1);
/// Longest that one attempt takes; usually it ends by itself.
const JOIN_PATIENCE: Duration = Duration::from_secs(20);

impl Ring {
    /// Takes a position on the ring.
    pub(super) fn start(&mut self, turn: &mut Turn<'_>, through: Vec<Contact>) {
        self.learn(through);
        if self.phase == Phase::Outside {
            let version = turn.rng.random();
            self.neighbours = Neighbours::new(self.me.key(), self.settings.successors, version);
            self.check_at = turn.now + turn.spread(self.settings.check_every);
            self.begin_joining(turn);
        }
    }

    /// All successors are dead, or the machine slept too long. The peers known so far are only good
    /// for asking.
    pub(super) fn start_over(&mut self, turn: &mut Turn<'_>) {
        let known = self
            .neighbours
            .run(&self.me)
            .cloned()
            .chain(self.fingers.distinct());
        for contact in known
            .chain(self.roster.members().iter().cloned())
            .collect::<Vec<_>>()
        {
            self.book.met(&contact, turn.rng);
        }
        self.forget_ring();
        self.begin_joining(turn);
    }

    fn forget_ring(&mut self) {
        self.neighbours.clear();
        self.heard.clear();
        self.roster.clear();
        self.fingers.clear();
        self.in_flight.keep_lookups();
        self.lookups
            .retain(|lookup| matches!(lookup.goal, Goal::User { .. }));
        self.operation = Operation::Idle;
        self.precede_next = None;
        (self.known, self.told) = (None, None);
        self.scale = Scale::Small;
    }

    fn begin_joining(&mut self, turn: &mut Turn<'_>) {
        self.join_attempts = 0;
        self.phase = Phase::Joining;
        self.try_join(turn);
    }

    /// Looks for the owner of the own id, which is to be the first successor.
    pub(super) fn try_join(&mut self, turn: &mut Turn<'_>) {
        self.end_lookups(|goal| goal == Goal::Join);
        if self.book.is_empty() || self.join_attempts >= JOIN_ATTEMPTS {
            return self.be_alone(turn);
        }
        self.round_at = turn.now + JOIN_PATIENCE;
        self.join_attempts += 1;
        let mut entries = self.book.pick(ENTRY_PEERS, turn.rng);
        entries.retain(|entry| self.is_kin(entry));
        if entries.is_empty() {
            // Without a seat nobody would let this peer in. It may have one in a moment.
            return self.join_failed(turn);
        }
        let mut lookup = self.new_lookup(turn, self.me.key(), Goal::Join);
        lookup.begin(self.me.key(), &entries, &[]);
        let asked = entries
            .iter()
            .filter(|entry| self.ask(turn, entry, Purpose::Gauge));
        lookup.await_gauges(asked.count());
        self.run_lookup(turn, lookup);
    }

    /// An entry point has told its successors. The closest among all that entry points tell show
    /// how close peers stand: a liar can leave some out, and those that it makes up do not answer.
    pub(super) fn gauge(&mut self, turn: &mut Turn<'_>, entry: &Contact, response: &RingResponse) {
        let RingResponse::Neighbours {
            successors: Successors::List(_, list),
            ..
        } = response
        else {
            return self.narrow_join(turn, None);
        };
        let list = clockwise(entry.key(), list.as_slice(), self.settings.successors);
        let gap = list.last().map(|last| {
            let distance = entry.key().distance_to(last.key());
            distance.fraction() / list.len() as f64
        });
        self.narrow_join(turn, gap.map(|gap| gap * ZONE));
    }

    /// An entry point has told how close peers stand, or nothing. The search goes on with it.
    pub(super) fn narrow_join(&mut self, turn: &mut Turn<'_>, zone: Option<f64>) {
        let is_joining = |lookup: &Lookup| lookup.goal == Goal::Join;
        if let Some(at) = self.lookups.iter().position(is_joining) {
            let mut lookup = self.lookups.swap_remove(at);
            lookup.narrow(zone);
            self.run_lookup(turn, lookup);
        }
    }

    pub(super) fn be_alone(&mut self, turn: &mut Turn<'_>) {
        self.phase = Phase::Alone;
        self.scale = Scale::Small;
        self.round_at = turn.now + turn.spread(self.settings.stabilize_every);
    }

    /// Nobody knew this peer's place, or its owner is gone. Tries again, after longer and longer
    /// waits.
    pub(super) fn join_failed(&mut self, turn: &mut Turn<'_>) {
        if self.phase == Phase::Joining {
            // A peer that was cut off from all others does nothing until it finds them.
            let most = if self.touch() == Touch::Few { 1 } else { 5 };
            let wait = JOIN_AGAIN * (1 << (self.join_attempts.max(1) - 1).min(most));
            self.round_at = turn.now + turn.spread(wait);
        }
    }

    /// The owner of the own id has told its neighbours. The peer behind which the place is has
    /// named the owner; it is greeted in any case, since the owner might hide it.
    pub(super) fn joined(
        &mut self,
        turn: &mut Turn<'_>,
        owner: Contact,
        behind: Option<Contact>,
        response: RingResponse,
    ) {
        let RingResponse::Neighbours {
            predecessor,
            successors: Successors::List(_, list),
            scale,
        } = response
        else {
            return self.join_failed(turn);
        };
        if self.phase == Phase::Member {
            return;
        }
        self.phase = Phase::Member;
        self.scale = scale;
        self.book.met(&owner, turn.rng);
        self.round_at = turn.now + turn.spread(self.settings.stabilize_every);
        match scale {
            Scale::Small => {
                let before = if let Predecessor::Peer(before) = predecessor {
                    Some(before)
                } else {
                    None
                };
                self.meet_ring(turn, owner, list.as_slice().iter().chain(&before));
            }
            Scale::Large => {
                self.neighbours
                    .set_successors([&owner].into_iter().chain(list.as_slice()));
                // Nobody of them has been heard yet: the list is wanted again, to meet them.
                self.known = None;
                self.last_round = turn.now;
                self.stabilize(turn);
                let named = match predecessor {
                    Predecessor::Peer(before) => Some(before.key()),
                    _ => None,
                };
                // A peer between the two has the better claim, and is met when it answers.
                let is_nearer = |behind: &Contact| {
                    named.is_none_or(|named| !named.between(behind.key(), self.me.key()))
                };
                let behind = behind.filter(|behind| behind.id != owner.id && is_nearer(behind));
                if let Some(behind) = behind {
                    self.try_predecessor(turn, behind);
                }
                self.fit_fingers();
                self.refresh_finger(turn);
            }
        }
    }

    /// Gives the position up. The first successor now owns the keys of this peer.
    pub(super) fn leave(&mut self, turn: &mut Turn<'_>) {
        if self.phase == Phase::Member {
            self.say_goodbye(turn);
        }
        self.forget_ring();
        self.lost = Lost::default();
        self.in_flight.clear();
        self.phase = Phase::Outside;
        (self.round_at, self.check_at) = (Time::NEVER, Time::NEVER);
        for lookup in std::mem::take(&mut self.lookups) {
            self.give_up(turn, lookup, crate::NotFound::GaveUp);
        }
    }

    fn say_goodbye(&mut self, turn: &mut Turn<'_>) {
        let predecessor = self.neighbours.predecessor().cloned();
        let successors = Contacts::new(self.neighbours.successors().iter().cloned());
        let mut hearers: Vec<Contact> = self.roster.members().to_vec();
        if self.scale == Scale::Large {
            hearers.extend(self.neighbours.head().cloned());
            hearers.extend(predecessor.clone());
        }
        for hearer in hearers {
            let notice = Notice::Leaving {
                predecessor: predecessor.clone(),
                successors: successors.clone(),
            };
            self.tell(turn, &hearer, notice);
        }
    }

    /// A neighbour goes. Its predecessor becomes ours once it has answered.
    pub(super) fn take_leave(
        &mut self,
        turn: &mut Turn<'_>,
        gone: PeerId,
        before: Option<Contact>,
        after: Contacts,
    ) {
        self.suspects.add(gone, turn.now + SILENT_FOR);
        self.departed.add(gone, turn.now + GONE_FOR);
        self.lost.forget(gone);
        self.fingers.remove(gone);
        self.cache.forget(gone);
        self.book.forget(gone);
        if self.phase != Phase::Member {
            return;
        }
        if self.scale == Scale::Small {
            return self.part_from_member(turn, gone);
        }
        let was_head = self.neighbours.head().is_some_and(|head| head.id == gone);
        self.lose_neighbour(gone);
        self.known = None;
        if was_head {
            after
                .into_vec()
                .iter()
                .for_each(|contact| self.book.met(contact, turn.rng));
            self.hurry(turn);
        }
        let was_predecessor = self
            .neighbours
            .predecessor()
            .is_some_and(|current| current.id == gone);
        if let Some(before) = before.filter(|before| was_predecessor && before.id != self.me.id) {
            self.try_predecessor(turn, before);
        }
    }

    pub(super) fn new_lookup(
        &mut self,
        turn: &Turn<'_>,
        key: apoidea_model::Key,
        goal: Goal,
    ) -> Lookup {
        self.next_lookup = self.next_lookup.wrapping_add(1);
        let parallel = match goal {
            Goal::User { .. } | Goal::Join => self.settings.parallel,
            Goal::Finger(_) | Goal::Check => 1,
        };
        let care = self.care(goal);
        Lookup::new(self.next_lookup, key, goal, care, parallel, turn.now)
    }
}
