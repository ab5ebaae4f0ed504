//! All peers of a simulation, the network between them, and the loop that lets time pass.
//!
//! After every step of a peer its invariants are checked; the first breaches are kept in
//! [`World::violations`].

use super::{
    judge,
    liars::{LiarKind, Liars},
    network::{Network, Wall},
    queue::{Happening, Letter, Queue},
    tally::Tally,
};
use crate::{
    ArcChange, Contact, Freshness, LookupId, Message, Phase, Prefix, Ring, RingAction, RingEvent,
    RingRequest, Seat, Seating, Settings,
};
use apoidea_model::{Key, PeerId, Route, Time};
use rand::{Rng, RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

/// Breaches kept; one is enough to fail, a few help to understand.
const MAX_VIOLATIONS: usize = 10;

/// A simulated world.
pub struct World {
    /// Source of all randomness.
    pub rng: Xoshiro256PlusPlus,
    /// The network.
    pub network: Network,
    /// The counters.
    pub tally: Tally,
    /// Every change of an arc with its peer, if a test wants them.
    pub arc_changes: Option<Vec<(u32, ArcChange)>>,
    /// The owner that each look-up named, if a test wants them.
    pub answers: Option<Vec<(Key, Option<u32>)>>,
    /// Invariants that were broken.
    pub violations: Vec<String>,
    settings: Settings,
    liars: Liars,
    queue: Queue,
    now: Time,
    peers: Vec<Peer>,
    numbers: HashMap<PeerId, u32>,
    /// The peers with a position, and so the owners.
    members: BTreeMap<Key, u32>,
    /// The peers that know their own keys; a newcomer learns them a moment later.
    owners: BTreeMap<Key, u32>,
    /// The living, in no order, to pick from.
    living: Vec<u32>,
    lookups: BTreeMap<u64, Sought>,
    next_lookup: u64,
}

struct Peer {
    ring: Option<Ring>,
    contact: Contact,
    state: State,
    armed: Time,
    successors_version: u32,
    place_among_living: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Awake,
    Asleep,
    Dead,
}

/// A lookup whose answer is awaited.
struct Sought {
    by: u32,
    key: Key,
    started: Time,
    owner_at_start: Option<u32>,
}

impl World {
    /// An empty world.
    pub fn new(seed: u64, settings: Settings, network: Network) -> Self {
        World {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            network,
            tally: Tally::default(),
            arc_changes: None,
            answers: None,
            violations: Vec::new(),
            settings,
            liars: Liars::new(LiarKind::Naive, 0.0, seed),
            queue: Queue::default(),
            now: Time::ZERO,
            peers: Vec::new(),
            numbers: HashMap::new(),
            members: BTreeMap::new(),
            owners: BTreeMap::new(),
            living: Vec::new(),
            lookups: BTreeMap::new(),
            next_lookup: 0,
        }
    }

    /// The same, where this share of the peers to come will lie.
    pub fn with_liars(mut self, share: f64, kind: LiarKind, seed: u64) -> Self {
        self.liars = Liars::new(kind, share, seed);
        self
    }

    /// Whether this peer is a liar.
    pub fn is_liar(&self, peer: u32) -> bool {
        self.is_liar_id(self.contact(peer).id)
    }

    pub(super) fn is_liar_id(&self, peer: PeerId) -> bool {
        self.liars.contains(peer)
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Numbers of the living peers, in no particular order.
    pub fn living(&self) -> &[u32] {
        &self.living
    }

    /// A living peer, at random.
    pub fn someone(&mut self) -> u32 {
        let at = self.rng.random_range(0..self.living.len());
        self.living[at]
    }

    /// Those with a position, by position.
    pub fn members(&self) -> &BTreeMap<Key, u32> {
        &self.members
    }

    /// A living peer's view.
    pub fn ring(&self, peer: u32) -> Option<&Ring> {
        self.peers[peer as usize].ring.as_ref()
    }

    /// The routes to a peer.
    pub fn contact(&self, peer: u32) -> &Contact {
        &self.peers[peer as usize].contact
    }

    /// The owner of a key, as an all-knowing observer sees it.
    pub fn owner(&self, key: Key) -> Option<u32> {
        first_from(&self.owners, key)
    }

    /// Makes a peer that has not joined. In an open network it has a /24 of its own.
    pub fn spawn(&mut self) -> u32 {
        let number = self.peers.len() as u32;
        let mut bytes = [0; 32];
        self.rng.fill_bytes(&mut bytes);
        let id = PeerId::at(Key::from_bytes(bytes));
        let address = match self.settings.seating {
            Seating::Private => Ipv4Addr::from_bits(0x0a00_0000 | number),
            Seating::Open { .. } => Ipv4Addr::from_bits(0x0500_0001 + (number << 8)),
        };
        let prefix = Prefix::of(address.into());
        let seat = prefix.map(|prefix| {
            let first = Seat::first_number(id);
            self.settings.seating.seat(prefix, first, self.now)
        });
        let number = self.spawn_as(id, address, seat.unwrap_or_default());
        self.liars.draw(&self.peers[number as usize].contact);
        number
    }

    /// Makes a liar that speaks from this address and says that it sits there. It has not joined.
    pub fn spawn_liar(&mut self, id: PeerId, address: Ipv4Addr, seat: Seat) -> u32 {
        let number = self.spawn_as(id, address, seat);
        self.liars.enlist(&self.peers[number as usize].contact);
        number
    }

    fn spawn_as(&mut self, id: PeerId, address: Ipv4Addr, seat: Seat) -> u32 {
        let number = self.peers.len() as u32;
        let route = Route::from(SocketAddr::from((address, 4433)));
        let contact = Contact::new(id, &[route]).at(seat);
        let ring = Some(Ring::new(contact.clone(), self.settings.clone()));
        let place_among_living = self.living.len();
        self.living.push(number);
        self.numbers.insert(contact.id, number);
        self.peers.push(Peer {
            ring,
            contact,
            state: State::Awake,
            armed: Time::NEVER,
            successors_version: 0,
            place_among_living,
        });
        number
    }

    /// Makes so many peers in their final places, as if the ring had been at rest for long.
    pub fn spawn_ring(&mut self, count: usize) {
        (0..count).for_each(|_| {
            self.spawn();
        });
        self.place_everyone();
    }

    /// Puts all peers into their final places.
    pub fn place_everyone(&mut self) {
        let mut order: Vec<u32> = (0..self.peers.len() as u32).collect();
        order.sort_by_key(|&peer| self.contact(peer).key());
        self.members.extend(
            order
                .iter()
                .map(|&peer| (self.peers[peer as usize].contact.key(), peer)),
        );
        self.owners.clone_from(&self.members);
        let sorted: Vec<Contact> = order
            .iter()
            .map(|&peer| self.contact(peer).clone())
            .collect();
        for (place, &peer) in order.iter().enumerate() {
            let ring = self.peers[peer as usize].ring.as_mut();
            ring.expect("a peer just made is alive")
                .place(&sorted, place, self.now, &mut self.rng);
            self.arm(peer);
        }
    }

    /// Tells a peer that something happened, and does what it wants.
    pub fn tell(&mut self, peer: u32, event: RingEvent) {
        let state = &mut self.peers[peer as usize];
        let Some(ring) = state.ring.as_mut().filter(|_| state.state == State::Awake) else {
            return;
        };
        let asked = asked_key(&event);
        let actions = ring.handle(event, self.now, &mut self.rng);
        let breach = judge::breach(ring, &mut state.successors_version, asked, &actions);
        if let Some(breach) = breach
            && self.violations.len() < MAX_VIOLATIONS
        {
            self.violations.push(format!(
                "{} ms, peer {peer}: {breach}",
                self.now.as_millis()
            ));
        }
        for action in actions {
            let action = self.liars.twist(self.contact(peer), asked, action);
            self.carry_out(peer, action);
        }
        self.arm(peer);
    }

    fn carry_out(&mut self, peer: u32, action: RingAction) {
        match action {
            RingAction::Send(to, message) => self.send(peer, &to, message),
            RingAction::Found {
                id, owners, hops, ..
            } => {
                let owner = owners.first().and_then(|owner| self.number_of(owner.id));
                self.settle(id, owner, hops);
            }
            RingAction::NotFound(id, _) => self.settle(id, None, 0),
            RingAction::PhaseChanged(phase) => self.note_phase(peer, phase),
            RingAction::ArcChanged(change) => self.note_arc(peer, change),
            RingAction::SeatTaken => {}
        }
    }

    fn note_phase(&mut self, peer: u32, phase: Phase) {
        let key = self.peers[peer as usize].contact.key();
        if matches!(phase, Phase::Member | Phase::Alone) {
            self.members.insert(key, peer);
        } else {
            self.members.remove(&key);
        }
    }

    fn note_arc(&mut self, peer: u32, change: ArcChange) {
        let key = self.peers[peer as usize].contact.key();
        self.arc_changes
            .iter_mut()
            .for_each(|changes| changes.push((peer, change)));
        match change {
            ArcChange::Gained { .. } => self.owners.insert(key, peer),
            ArcChange::Lost { to: None, .. } => self.owners.remove(&key),
            ArcChange::Lost { .. } => None,
        };
    }

    fn send(&mut self, from: u32, to: &Contact, message: Message) {
        self.tally.sent(&message);
        let Some(to) = self.number_of(to.id) else {
            return;
        };
        if let Some(delay) = self.network.delay_ms(from, to, &mut self.rng) {
            self.queue.deliver(
                self.now + Duration::from_millis(delay),
                Letter { from, to, message },
            );
        }
    }

    fn arm(&mut self, peer: u32) {
        let state = &mut self.peers[peer as usize];
        let Some(ring) = &state.ring else { return };
        let wanted = ring.next_timeout();
        if wanted < state.armed {
            state.armed = wanted;
            self.queue.ring(wanted.max(self.now), peer);
        }
    }

    /// Lets time pass until this moment or the next cue, whose number is returned.
    pub fn run_until(&mut self, end: Time) -> Option<u32> {
        while self.queue.next_at() <= end {
            let (at, happening) = self.queue.pop()?;
            self.now = at;
            match happening {
                Happening::Arrival(Letter { from, to, message }) => {
                    let contact = self.contact(from);
                    let (from, at) = (contact.id, address_of(contact));
                    self.tell(to, RingEvent::Received(from, at, message));
                }
                Happening::Timer(peer) => self.wake(peer),
                Happening::Cue(number) => return Some(number),
            }
        }
        self.now = end;
        None
    }

    /// Lets so much time pass, without cues.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.run_until(end).is_some() {}
    }

    /// Lets a step of the scenario come after so long.
    pub fn cue(&mut self, after: Duration, number: u32) {
        self.queue.cue(self.now + after, number);
    }

    fn wake(&mut self, peer: u32) {
        let state = &mut self.peers[peer as usize];
        state.armed = Time::NEVER;
        let Some(ring) = state.ring.as_ref().filter(|_| state.state == State::Awake) else {
            return;
        };
        if ring.next_timeout() <= self.now {
            self.tell(peer, RingEvent::Timeout);
        } else {
            self.arm(peer);
        }
    }

    /// A peer dies without a word.
    pub fn kill(&mut self, peer: u32) {
        let state = &mut self.peers[peer as usize];
        if state.state == State::Dead {
            return;
        }
        state.state = State::Dead;
        state.ring = None;
        self.liars.forget(state.contact.id);
        let place = state.place_among_living;
        self.members.remove(&state.contact.key());
        self.owners.remove(&state.contact.key());
        self.living.swap_remove(place);
        if let Some(&moved) = self.living.get(place) {
            self.peers[moved as usize].place_among_living = place;
        }
    }

    /// A dead peer comes back under its old id, and remembers nothing.
    pub fn revive(&mut self, peer: u32) {
        let state = &mut self.peers[peer as usize];
        if state.state == State::Dead {
            state.state = State::Awake;
            state.ring = Some(Ring::new(state.contact.clone(), self.settings.clone()));
            state.place_among_living = self.living.len();
            self.living.push(peer);
        }
    }

    /// A peer says goodbye and stops.
    pub fn leave(&mut self, peer: u32) {
        self.lookups.retain(|_, sought| sought.by != peer);
        self.tell(peer, RingEvent::Leave);
        self.kill(peer);
    }

    /// A machine goes to sleep: it hears nothing and its clock stands still.
    pub fn sleep(&mut self, peer: u32) {
        let state = &mut self.peers[peer as usize];
        state.state = State::Asleep;
        self.members.remove(&state.contact.key());
        self.owners.remove(&state.contact.key());
    }

    /// A machine wakes up.
    pub fn rouse(&mut self, peer: u32) {
        let state = &mut self.peers[peer as usize];
        state.state = State::Awake;
        let phase = state.ring.as_ref().map(Ring::phase);
        self.tell(peer, RingEvent::Timeout);
        if let Some(phase) = self
            .ring(peer)
            .map(Ring::phase)
            .filter(|now| Some(*now) == phase)
        {
            self.note_phase(peer, phase);
            self.owners.insert(self.contact(peer).key(), peer);
        }
    }

    /// Lets a peer look for a key's owner.
    pub fn look_up(&mut self, peer: u32, key: Key) {
        self.look_up_as(peer, key, Freshness::Fresh);
    }

    /// The same, from memory where the peer may answer from it.
    pub fn look_up_as(&mut self, peer: u32, key: Key, freshness: Freshness) {
        let id = self.next_lookup;
        self.next_lookup += 1;
        let owner_at_start = self.owner(key);
        self.lookups.insert(
            id,
            Sought {
                by: peer,
                key,
                started: self.now,
                owner_at_start,
            },
        );
        self.tally.lookups_started += 1;
        self.tell(
            peer,
            RingEvent::Lookup {
                id: LookupId(id),
                key,
                count: 1,
                freshness,
            },
        );
    }

    /// Lets a random member look for a random key's owner.
    pub fn look_up_something(&mut self) {
        let peer = self.someone();
        let key = self.some_key();
        let is_member = |ring: &Ring| ring.phase() == Phase::Member;
        if self.ring(peer).is_some_and(is_member) && !self.is_liar(peer) {
            self.look_up(peer, key);
        }
    }

    /// A key, at random.
    pub fn some_key(&mut self) -> Key {
        let mut key = [0; 32];
        self.rng.fill_bytes(&mut key);
        Key::from_bytes(key)
    }

    /// Lookups whose answer is still awaited, of peers that may have died since.
    pub fn lookups_open(&self) -> usize {
        self.lookups.len()
    }

    fn settle(&mut self, id: LookupId, owner: Option<u32>, hops: u32) {
        let Some(sought) = self.lookups.remove(&id.0) else {
            return;
        };
        let took = self.now.since(sought.started);
        let right = [
            sought.owner_at_start,
            self.owner(sought.key),
            first_from(&self.members, sought.key),
        ];
        let is_right = owner.is_some() && right.contains(&owner);
        self.answers
            .iter_mut()
            .for_each(|answers| answers.push((sought.key, owner)));
        self.tally
            .lookup_ended(owner.is_some(), is_right, hops, took);
        let is_honest = |owner: &Option<u32>| owner.is_some_and(|owner| !self.is_liar(owner));
        if right.iter().any(is_honest) {
            let is_hijacked = !is_right && owner.is_some_and(|owner| self.is_liar(owner));
            self.tally.lookup_of_honest(is_hijacked, hops);
        }
    }

    fn number_of(&self, peer: PeerId) -> Option<u32> {
        self.numbers.get(&peer).copied()
    }

    /// Changes how many requests of a lookup are in flight at a time, for every peer.
    pub fn set_parallel(&mut self, parallel: usize) {
        self.settings.parallel = parallel;
        self.peers
            .iter_mut()
            .filter_map(|peer| peer.ring.as_mut())
            .for_each(|ring| ring.set_parallel(parallel));
    }

    /// Splits the network, or heals it.
    pub fn set_wall(&mut self, wall: Wall) {
        self.network.set_wall(wall);
    }
}

/// The first peer at or after a key.
fn first_from(peers: &BTreeMap<Key, u32>, key: Key) -> Option<u32> {
    peers
        .range(key..)
        .next()
        .or_else(|| peers.first_key_value())
        .map(|(_, peer)| *peer)
}

/// The key that this event asks for, whose answer must lead nearer to it.
fn asked_key(event: &RingEvent) -> Option<Key> {
    match event {
        RingEvent::Received(_, _, Message::Request(_, RingRequest::Find { key, .. })) => Some(*key),
        _ => None,
    }
}

fn address_of(contact: &Contact) -> Option<IpAddr> {
    let route = contact.routes.as_slice().first()?;
    Some(route.address()?.ip())
}
