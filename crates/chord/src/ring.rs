//! The ring as one peer sees it: a state machine without I/O, clock or randomness of its own.
//!
//! This is Chord as corrected by Zave (arXiv 1502.06461, 1610.01140), with a full roster while the
//! ring is small. A driver passes events in and carries out the actions that come back. The
//! simulator drives the same code. The parts of the protocol stand in the files below: asking and
//! answering, stabilising, joining, few peers, merging, seeking.

mod answer;
mod ask;
mod few;
mod join;
mod merge;
mod place;
mod seating;
mod seek;
mod stabilize;
mod survey;
mod touch;
mod view;

use crate::{
    Contact,
    arc::{Arc, ArcChange},
    book::Book,
    cache::ArcCache,
    counters::MessageCounters,
    event::{Phase, RingAction, RingEvent},
    fingers::Fingers,
    heard::Heard,
    in_flight::InFlight,
    lookup::Lookup,
    lost::{Lost, Touch},
    message::{Message, Notice, RingRequest, Scale, Version},
    neighbours::Neighbours,
    roster::Roster,
    round_trips::RoundTrips,
    settings::Settings,
    suspects::Suspects,
};
use apoidea_model::{PeerId, Time};
use rand::{Rng, RngExt};
use std::{net::IpAddr, time::Duration};

pub use view::Ownership;

/// A timer this late means that the machine was asleep, and that silence says nothing about the
/// others.
const PAUSED_AFTER: Duration = Duration::from_secs(2);

/// Rounds in the time of one while the ring outgrows its roster.
const GROWING_PACE: u32 = 4;

/// Rounds after joining in which a peer looks itself up. Each fails if all ways lead through liars,
/// about one time in three where a tenth of all peers lie.
const FIRST_CHECKS: u32 = 2;

/// One peer's view of the ring.
#[derive(Debug)]
pub struct Ring {
    me: Contact,
    settings: Settings,
    phase: Phase,
    scale: Scale,
    neighbours: Neighbours,
    /// The neighbours that have spoken themselves.
    heard: Heard,
    roster: Roster,
    /// When the roster last turned out too long to be kept.
    counted_many: Option<Time>,
    fingers: Fingers,
    lookups: Vec<Lookup>,
    next_lookup: u32,
    in_flight: InFlight,
    operation: Operation,
    /// A predecessor to try once the running operation is over.
    precede_next: Option<Contact>,
    /// The successor list that ours was made from: its peer and its version.
    known: Option<(PeerId, Version)>,
    /// Whether a predecessor was lost, or not met yet, since they were told last.
    lacks_predecessors: bool,
    /// The peer that knows our predecessors, and the version that it knows; then the version that
    /// is being told now.
    told: Option<(PeerId, Version)>,
    telling: Version,
    round_trips: RoundTrips,
    book: Book,
    cache: ArcCache,
    suspects: Suspects,
    /// Peers that have said goodbye. Their last messages may arrive after it.
    departed: Suspects,
    /// Members that fell silent without a goodbye.
    lost: Lost,
    counters: MessageCounters,
    join_attempts: u32,
    round_at: Time,
    last_round: Time,
    check_at: Time,
    last_check: Time,
    now: Time,
    /// Whether the last search for this peer's own place found another peer in its seat.
    has_rival: bool,
    /// Times that others have called this peer misplaced.
    misplaced: u64,
    /// The arc, the peer before it, and the phase that the driver has been told.
    told_arc: Option<Arc>,
    told_before: Option<PeerId>,
    told_phase: Phase,
}

/// The operation that is changing the state: at most one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Idle,
    /// So many peers asked in a row so far.
    Stabilizing(u32),
    Rectifying,
    Preceding,
}

/// One call of [`Ring::handle`]: the time, the randomness, and the actions so far.
struct Turn<'a> {
    now: Time,
    rng: &'a mut dyn Rng,
    actions: Vec<RingAction>,
}

impl Ring {
    /// A peer outside of any ring, reachable as `me` says.
    pub fn new(me: Contact, settings: Settings) -> Self {
        let r = settings.successors.clamp(2, Settings::MAX_SUCCESSORS);
        let settings = Settings {
            successors: r,
            parallel: settings.parallel.max(1),
            ..settings
        };
        Ring {
            phase: Phase::Outside,
            scale: Scale::Small,
            neighbours: Neighbours::new(me.key(), r, 0),
            heard: Heard::default(),
            roster: Roster::default(),
            counted_many: None,
            fingers: Fingers::default(),
            lookups: Vec::new(),
            next_lookup: 0,
            in_flight: InFlight::default(),
            operation: Operation::Idle,
            precede_next: None,
            known: None,
            lacks_predecessors: false,
            told: None,
            telling: Version(0),
            round_trips: RoundTrips::default(),
            book: Book::new(me.id, &settings),
            cache: ArcCache::new(&settings),
            suspects: Suspects::default(),
            departed: Suspects::default(),
            lost: Lost::default(),
            counters: MessageCounters::default(),
            join_attempts: 0,
            round_at: Time::NEVER,
            last_round: Time::ZERO,
            check_at: Time::NEVER,
            last_check: Time::ZERO,
            now: Time::ZERO,
            has_rival: false,
            misplaced: 0,
            told_arc: None,
            told_before: None,
            told_phase: Phase::Outside,
            me,
            settings,
        }
    }

    /// Takes in an event and returns the actions to carry out, in order. A `now` that runs
    /// backwards is taken as unchanged; a long gap is taken as a pause of the machine.
    pub fn handle(&mut self, event: RingEvent, now: Time, rng: &mut dyn Rng) -> Vec<RingAction> {
        let mut turn = Turn {
            now: now.max(self.now),
            rng,
            actions: Vec::new(),
        };
        self.notice_pause(&mut turn);
        self.now = turn.now;
        match event {
            RingEvent::Received(from, at, message) => self.receive(&mut turn, from, at, message),
            RingEvent::Timeout => self.wake(&mut turn),
            RingEvent::Lookup {
                id,
                key,
                count,
                freshness,
            } => self.look_up(&mut turn, id, key, count, freshness),
            RingEvent::Unreachable(peer) => self.unreachable(&mut turn, peer),
            RingEvent::Redirected { by } => self.cache.forget(by),
            RingEvent::Learned(contacts) => self.learn(contacts),
            RingEvent::Join(contacts) => self.start(&mut turn, contacts),
            RingEvent::Leave => self.leave(&mut turn),
        }
        self.tell_changes(&mut turn);
        turn.actions
    }

    /// The time at which [`RingEvent::Timeout`] is wanted next.
    pub fn next_timeout(&self) -> Time {
        self.in_flight
            .earliest()
            .min(self.round_at)
            .min(self.check_at)
    }

    /// This peer can now be reached elsewhere; neighbours learn of it with the next rounds. Its seat
    /// changes only while it is outside.
    pub fn moved_to(&mut self, me: Contact) {
        debug_assert_eq!(me.id, self.me.id, "a peer keeps its id");
        if self.phase == Phase::Outside {
            self.me = me;
        } else {
            self.me.routes = me.routes;
        }
    }

    fn receive(&mut self, turn: &mut Turn<'_>, from: PeerId, at: Option<IpAddr>, message: Message) {
        if from == self.me.id {
            return;
        }
        self.counters.received(message.kind());
        let is_question = matches!(
            message,
            Message::Request(_, RingRequest::Find { .. } | RingRequest::Neighbours)
        );
        if !is_question && self.departed.contains(from, turn.now) {
            return;
        }
        self.suspects.clear(from);
        match message {
            Message::Request(id, request) => self.answer(turn, from, at, id, request),
            Message::Response(id, seat, response) => {
                self.take_response(turn, (from, at), id, seat, response)
            }
            Message::Notice(Notice::Leaving {
                predecessor,
                successors,
            }) => {
                self.take_leave(turn, from, predecessor, successors);
            }
            Message::Notice(Notice::OtherRing { through }) => {
                self.hear_of_other_ring(turn, through)
            }
        }
    }

    /// Notices that the machine slept: nobody's silence counts. After a long sleep all others have
    /// taken this peer for dead, so it joins again with fresh state.
    fn notice_pause(&mut self, turn: &mut Turn<'_>) {
        let late = turn.now.since(self.next_timeout().max(self.now));
        if late < PAUSED_AFTER {
            return;
        }
        self.in_flight
            .postpone(turn.now + self.settings.first_timeout);
        let is_among_others = matches!(self.phase, Phase::Member);
        if is_among_others && turn.now.since(self.now) >= self.settings.absent_after {
            self.start_over(turn);
        }
    }

    fn wake(&mut self, turn: &mut Turn<'_>) {
        while let Some(pending) = self.in_flight.expired(turn.now) {
            self.expire(turn, pending);
        }
        if self.round_at <= turn.now {
            self.round(turn);
        }
        if self.check_at <= turn.now {
            self.check(turn);
        }
    }

    /// The regular work, every ten seconds or so.
    fn round(&mut self, turn: &mut Turn<'_>) {
        self.last_round = turn.now;
        self.round_at = turn.now + turn.spread(self.pace(turn.now));
        self.lost.age(turn.now, self.touch(), &self.settings);
        // Those that fell silent may be in another ring by now. A search has time to be answered.
        let is_checked = turn.now.since(self.last_check) < self.settings.most_timeout;
        if self.phase == Phase::Member && self.touch() != Touch::All && !is_checked {
            self.check_now(turn);
        }
        match (self.phase, self.scale) {
            (Phase::Outside, _) => self.round_at = Time::NEVER,
            (Phase::Joining, _) => self.try_join(turn),
            (Phase::Alone, _) => self.check_now(turn),
            (Phase::Member, Scale::Small) => self.compare_rosters(turn),
            (Phase::Member, Scale::Large) => {
                self.stabilize(turn);
                self.look_around(turn);
            }
        }
    }

    /// A neighbour and a finger by turns; while fingers are missing, one in every round. A newcomer
    /// also looks itself up, each time through another peer: the way to its place may have led
    /// through a liar.
    fn look_around(&mut self, turn: &mut Turn<'_>) {
        let round = self.heard.next_round();
        if round < FIRST_CHECKS {
            self.check_now(turn);
        }
        let has_surveyed = self.survey(turn, round);
        if !has_surveyed || self.fingers.is_incomplete() {
            self.refresh_finger(turn);
        }
    }

    /// Time between two rounds. It is shorter while many have come at once, since the lists of
    /// neighbours lack them.
    fn pace(&self, now: Time) -> Duration {
        let is_growing = self.scale == Scale::Large && self.has_just_counted_many(now);
        self.settings.stabilize_every / if is_growing { GROWING_PACE } else { 1 }
    }

    /// Lets the next round come at once, unless there was one just now.
    fn hurry(&mut self, turn: &mut Turn<'_>) {
        let soon = (self.last_round + Duration::from_secs(1)).max(turn.now);
        let jitter = Duration::from_millis(turn.rng.random_range(0..200));
        self.round_at = self.round_at.min(soon + jitter);
    }

    fn learn(&mut self, contacts: Vec<Contact>) {
        contacts
            .into_iter()
            .for_each(|contact| self.book.entry(contact));
    }

    /// Tells the driver about changes of the arc and of the phase.
    fn tell_changes(&mut self, turn: &mut Turn<'_>) {
        let arc = self.arc();
        if arc != self.told_arc {
            let changes = self.arc_changes(self.told_arc, arc).into_iter();
            turn.actions.extend(changes.map(RingAction::ArcChanged));
            self.told_arc = arc;
            self.told_before = self.neighbours.predecessor().map(|before| before.id);
        }
        if self.phase != self.told_phase {
            turn.actions.push(RingAction::PhaseChanged(self.phase));
            self.told_phase = self.phase;
        }
    }

    /// A peer that was alone and has found others is as new as any that comes: one of them may have
    /// worked in the place that it has now.
    fn arc_changes(&self, old: Option<Arc>, new: Option<Arc>) -> Vec<ArcChange> {
        let mut changes = vec![self.arc_change(old, new)];
        if old.is_some_and(|arc| arc.from == arc.to) && new.is_some() {
            changes.push(self.arc_change(old, None));
            changes.push(self.arc_change(None, new));
        }
        changes.into_iter().flatten().collect()
    }

    fn arc_change(&self, old: Option<Arc>, new: Option<Arc>) -> Option<ArcChange> {
        let successor = self.neighbours.head().map(|head| head.id);
        let predecessor = self.neighbours.predecessor().map(|before| before.id);
        match (old, new) {
            (None, None) => None,
            (None, Some(arc)) => Some(ArcChange::Gained {
                arc,
                from: successor,
            }),
            (Some(arc), None) => Some(ArcChange::Lost { arc, to: None }),
            (Some(old), Some(new)) if new.from.between(old.from, old.to) => Some(ArcChange::Lost {
                arc: Arc {
                    from: old.from,
                    to: new.from,
                },
                to: predecessor,
            }),
            (Some(old), Some(new)) => Some(ArcChange::Gained {
                arc: Arc {
                    from: new.from,
                    to: old.from,
                },
                from: self.told_before,
            }),
        }
    }
}

impl Turn<'_> {
    /// A time that differs from `mean` by up to half, so that peers do not fall into step.
    fn spread(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(self.rng.random_range(0.5..1.5))
    }
}
