//! The task that owns the ring. It turns commands and the clock into events, and carries out the
//! ring's actions.
//!
//! It never waits for the network: a task of its own sends each message, and the outcome comes back
//! as a command. A ring request travels as a request of the transport and its response as the
//! answer, so a round of the protocol costs one stream.

use super::{
    ChordSettings, RingStanding,
    dial_back::Switchboard,
    mailbox::{Command, Mailbox, decode, encode},
    seat_keeper::{SeatKeeper, routes_to},
};
use crate::{
    AddressPolicy, Kind, LookupError, Refusal, RequestError, Source, Transport, clock::Clock,
};
use apoidea_chord::{
    ArcChange, Contact, Freshness, LookupId, Message, Neighbourhood, NotFound, Phase, Ring,
    RingAction, RingEvent, Routes,
};
use apoidea_model::{Key, PeerId, Route, Time};
use bytes::Bytes;
use rand::rngs::StdRng;
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Semaphore, broadcast, mpsc, oneshot, watch},
    time,
};
use tokio_util::task::TaskTracker;

/// Messages being sent at once; further ones are lost, as they could be on the network.
const SENDS: usize = 256;
/// Requests about reachability that are answered at once.
const CALLS: usize = 8;
/// Lookups under way at once.
const LOOKUPS: usize = 1024;
/// Time between two comparisons of the own routes, which also mark the useful connections and
/// publish the round trips.
const TEND: Duration = Duration::from_secs(5);
/// Shortest sleep, so that a timer that does not move cannot keep a core busy.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
/// Longest sleep; a ring at rest wakes this often at least.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// Successors whose connections are kept alive: those that take over first.
const NEAR_SUCCESSORS: usize = 4;
/// Fingers whose connections are kept alive.
const NEAR_FINGERS: usize = 32;
/// Longest wait for the neighbours to hear that this peer leaves.
const FAREWELL: Duration = Duration::from_millis(800);

/// Smoothed round trips, as the ring measured them.
pub(crate) type MeasuredRoundTrips = HashMap<PeerId, Duration>;
/// Members that fell silent, and the times from which on others may take their places.
pub(crate) type Graces = Vec<(PeerId, Time)>;
type LookupReply = oneshot::Sender<Result<Vec<PeerId>, LookupError>>;

pub(crate) struct Actor {
    ring: Ring,
    transport: Transport,
    mailbox: Mailbox,
    commands: mpsc::Receiver<Command>,
    changes: broadcast::Sender<ArcChange>,
    standing: watch::Sender<RingStanding>,
    round_trips: watch::Sender<MeasuredRoundTrips>,
    neighbourhood: watch::Sender<Arc<Neighbourhood>>,
    graces: watch::Sender<Graces>,
    lookups: HashMap<LookupId, LookupReply>,
    next_lookup: u64,
    advertise: Vec<SocketAddr>,
    seat_keeper: SeatKeeper,
    switchboard: Arc<Switchboard>,
    sends: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    tasks: TaskTracker,
    clock: Clock,
    rng: StdRng,
}

/// The parts of the ring's state that others watch.
pub(crate) struct Watches {
    pub standing: watch::Receiver<RingStanding>,
    pub round_trips: watch::Receiver<MeasuredRoundTrips>,
    pub neighbourhood: watch::Receiver<Arc<Neighbourhood>>,
    pub graces: watch::Receiver<Graces>,
}

impl Actor {
    /// The task's state, and the watches on it.
    pub fn new(
        transport: Transport,
        mailbox: Mailbox,
        commands: mpsc::Receiver<Command>,
        changes: broadcast::Sender<ArcChange>,
        settings: &ChordSettings,
    ) -> (Self, Watches) {
        let advertise = settings.advertise.clone();
        let me = Contact::new(transport.me(), &own_routes(&transport, &advertise));
        let seat_keeper = SeatKeeper::new(me.id, settings.ring.seating);
        let ring = Ring::new(me, settings.ring.clone());
        let (neighbourhood, neighbours) = watch::channel(Arc::new(ring.neighbourhood()));
        let (standing, watched) = watch::channel(standing_of(&ring));
        let (graces, granted) = watch::channel(Graces::default());
        let (round_trips, measured) = watch::channel(MeasuredRoundTrips::default());
        let actor = Actor {
            ring,
            transport,
            mailbox,
            commands,
            changes,
            standing,
            round_trips,
            neighbourhood,
            graces,
            lookups: HashMap::new(),
            next_lookup: 0,
            advertise,
            seat_keeper,
            switchboard: Arc::new(Switchboard::new(neighbours.clone())),
            sends: Arc::new(Semaphore::new(SENDS)),
            calls: Arc::new(Semaphore::new(CALLS)),
            tasks: TaskTracker::new(),
            clock: Clock::start(),
            rng: rand::make_rng(),
        };
        let watches = Watches {
            standing: watched,
            round_trips: measured,
            neighbourhood: neighbours,
            graces: granted,
        };
        (actor, watches)
    }

    /// Runs until it is cancelled.
    pub async fn run(mut self) {
        let mut tend = time::interval(TEND);
        tend.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        loop {
            let sleep = self
                .ring
                .next_timeout()
                .since(self.clock.now())
                .clamp(SHORTEST_SLEEP, LONGEST_SLEEP);
            tokio::select! {
                Some(command) = self.commands.recv() => {
                    let is_question = matches!(command, Command::LookUp { .. } | Command::Status(_));
                    self.obey(command);
                    // A crawl asks thousands of questions a second, which move nobody.
                    if is_question {
                        continue;
                    }
                }
                () = time::sleep(sleep) => self.handle(RingEvent::Timeout),
                _ = tend.tick() => self.tend(),
            }
            self.publish();
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Received(from, message, reply) => self.receive(from, message, reply),
            Command::DialBack(from, body, reply) => self.dial_back(from, body, reply),
            Command::Unreachable(peer) => self.handle(RingEvent::Unreachable(peer)),
            Command::Redirected(by) => self.handle(RingEvent::Redirected { by }),
            Command::Join(contacts) => self.join(contacts),
            Command::Learned(contacts) => {
                let contacts = self.guess_seats(contacts);
                self.handle(RingEvent::Learned(contacts));
            }
            Command::LookUp {
                key,
                count,
                freshness,
                reply,
            } => self.look_up(key, count, freshness, reply),
            Command::Leave(reply) => self.leave(reply),
            // The asker may have gone.
            Command::Status(reply) => drop(reply.send(self.ring.status())),
        }
    }

    /// Answers a request about reachability, which may take as long as a dial. Without an answer
    /// the asker is told that this peer is busy.
    fn dial_back(&self, from: PeerId, body: Bytes, reply: oneshot::Sender<Result<Bytes, Refusal>>) {
        let Ok(permit) = self.calls.clone().try_acquire_owned() else {
            return;
        };
        let (switchboard, transport) = (self.switchboard.clone(), self.transport.clone());
        self.tasks.spawn(async move {
            let answer = switchboard.answer(&transport, from, &body).await;
            drop(permit);
            // The asker may have gone.
            let _ = reply.send(answer);
        });
    }

    fn join(&mut self, contacts: Vec<Contact>) {
        self.seat_keeper.stop_moving();
        // The peers met on the way in have said how they see this peer.
        self.tend();
        let contacts = self.guess_seats(contacts);
        self.handle(RingEvent::Join(contacts));
    }

    fn guess_seats(&mut self, contacts: Vec<Contact>) -> Vec<Contact> {
        let (now, mine) = (self.clock.now(), self.ring.me().seat().prefix());
        let guess = |contact: Contact| {
            let seen = self.transport.proven_address(contact.id);
            self.seat_keeper.guess(contact, seen, mine, now)
        };
        contacts.into_iter().map(guess).collect()
    }

    /// Takes the seat that follows from this peer's address now. A member leaves its old one as if
    /// it left the ring, and comes back a little later.
    fn keep_seat(&mut self, routes: &[Route]) {
        let now = self.clock.now();
        let addresses = routes
            .iter()
            .filter_map(|route| Some(route.address()?.ip()));
        let addresses: Vec<IpAddr> = addresses.collect();
        let me = Contact::new(self.transport.me(), routes);
        let Some(seat) = self.seat_keeper.seat(&addresses, now) else {
            return self.ring.moved_to(me.at(self.ring.me().seat()));
        };
        let old = self.ring.me().seat();
        let is_mine = seat == old;
        if old.prefix().is_some() && seat.prefix() != old.prefix() {
            // Others know this peer by the address at which the connections were made.
            self.transport.wake_up();
        }
        match self.ring.phase() {
            Phase::Outside => {
                self.ring.moved_to(me.at(seat));
                if self.seat_keeper.ends_moving(now) {
                    self.handle(RingEvent::Join(Vec::new()));
                }
            }
            _ if is_mine => self.ring.moved_to(me.at(seat)),
            Phase::Joining | Phase::Alone => {
                self.handle(RingEvent::Leave);
                self.ring.moved_to(me.at(seat));
                self.handle(RingEvent::Join(Vec::new()));
            }
            Phase::Member => {
                tracing::info!(?seat, "this peer moves to another seat on the ring");
                let known = self.ring.successors().to_vec();
                self.handle(RingEvent::Leave);
                self.handle(RingEvent::Learned(known));
                self.seat_keeper.begin_moving(now);
            }
        }
    }

    /// Another member has this peer's seat.
    fn lose_seat(&mut self) {
        let now = self.clock.now();
        self.seat_keeper.lose(now, &mut self.rng);
        tracing::info!("another member of this peer's network has its seat");
        self.handle(RingEvent::Leave);
        self.seat_keeper.begin_moving(now);
    }

    fn handle(&mut self, event: RingEvent) {
        let now = self.clock.now();
        let actions = self.ring.handle(event, now, &mut self.rng);
        actions.into_iter().for_each(|action| self.perform(action));
    }

    /// Takes in a message. If the ring has the response ready, it goes back on the stream that the
    /// request came on.
    fn receive(&mut self, from: PeerId, message: Message, reply: Option<oneshot::Sender<Message>>) {
        let asked = match &message {
            Message::Request(id, _) => Some(*id),
            _ => None,
        };
        let now = self.clock.now();
        let at = self.transport.proven_address(from);
        let mut actions =
            self.ring
                .handle(RingEvent::Received(from, at, message), now, &mut self.rng);
        let is_response = |action: &RingAction| matches!(action, RingAction::Send(to, Message::Response(id, ..)) if to.id == from && Some(*id) == asked);
        if let (Some(reply), Some(at)) = (reply, actions.iter().position(is_response))
            && let RingAction::Send(_, response) = actions.remove(at)
        {
            // The asker may have gone.
            let _ = reply.send(response);
        }
        actions.into_iter().for_each(|action| self.perform(action));
    }

    fn perform(&mut self, action: RingAction) {
        match action {
            RingAction::Send(to, message) => self.send(to, &message),
            RingAction::Found { id, owners, .. } => {
                let found = owners.iter().map(|owner| self.meet(owner)).collect();
                self.answer(id, Ok(found));
            }
            RingAction::NotFound(id, why) => self.answer(id, Err(lookup_error(why))),
            // Fails only if nobody listens.
            RingAction::ArcChanged(change) => drop(self.changes.send(change)),
            RingAction::PhaseChanged(phase) => {
                tracing::info!(?phase, "this peer's relation to the ring changed");
                self.mark_useful();
            }
            RingAction::SeatTaken => self.lose_seat(),
        }
    }

    fn look_up(&mut self, key: Key, count: usize, freshness: Freshness, reply: LookupReply) {
        self.lookups.retain(|_, waiting| !waiting.is_closed());
        if self.lookups.len() >= LOOKUPS {
            let _ = reply.send(Err(LookupError::Busy));
            return;
        }
        self.next_lookup += 1;
        let id = LookupId(self.next_lookup);
        self.lookups.insert(id, reply);
        self.handle(RingEvent::Lookup {
            id,
            key,
            count,
            freshness,
        });
    }

    fn answer(&mut self, id: LookupId, found: Result<Vec<PeerId>, LookupError>) {
        if let Some(reply) = self.lookups.remove(&id) {
            // The asker may have given up.
            let _ = reply.send(found);
        }
    }

    /// Notes the routes that others named for a peer.
    fn meet(&self, contact: &Contact) -> PeerId {
        self.transport.learn(
            contact.id,
            routes_to(contact).as_slice().iter().copied(),
            Source::Told,
        );
        contact.id
    }

    fn send(&self, to: Contact, message: &Message) {
        let Ok(permit) = self.sends.clone().try_acquire_owned() else {
            tracing::debug!(to = ?to.id, "too many messages are on their way: one is lost");
            return;
        };
        let to = self.meet(&to);
        let (transport, mailbox, body) = (
            self.transport.clone(),
            self.mailbox.clone(),
            encode(message),
        );
        self.tasks.spawn(async move {
            let answer = transport.request(to, Kind::RING, body).await;
            drop(permit);
            match answer {
                Ok(body) => {
                    if let Some(message) = decode(&body) {
                        mailbox.send(Command::Received(to, message, None)).await;
                    }
                }
                Err(RequestError::Unreachable(_)) => mailbox.send(Command::Unreachable(to)).await,
                // The ring has its own timeouts for silence.
                Err(_) => {}
            }
        });
    }

    fn leave(&mut self, reply: oneshot::Sender<()>) {
        self.seat_keeper.stop_moving();
        if self.ring.phase() == Phase::Outside {
            // Nobody has to be told any more.
            let _ = reply.send(());
            return;
        }
        self.handle(RingEvent::Leave);
        let tasks = std::mem::take(&mut self.tasks);
        tasks.close();
        tokio::spawn(async move {
            let _ = time::timeout(FAREWELL, tasks.wait()).await;
            let _ = reply.send(());
        });
    }

    /// Keeps the peer's own routes, its seat, the useful connections and the published round trips
    /// up to date.
    fn tend(&mut self) {
        let routes = own_routes(&self.transport, &self.advertise);
        self.keep_seat(&routes);
        self.mark_useful();
    }

    fn mark_useful(&self) {
        let status = self.ring.status();
        let measured = status.round_trips.iter().copied().collect();
        self.round_trips.send_replace(measured);
        let successors = status.successors.iter().take(NEAR_SUCCESSORS);
        let near = status
            .predecessor
            .iter()
            .chain(successors)
            .chain(&status.leaves);
        let useful = near.chain(status.fingers.iter().take(NEAR_FINGERS));
        self.transport.mark_useful(useful.map(|contact| contact.id));
    }

    fn publish(&self) {
        self.publish_neighbourhood();
        let graces = self.ring.graces();
        self.graces.send_if_modified(|told| {
            let before = std::mem::replace(told, graces);
            before != *told
        });
        let now = standing_of(&self.ring);
        self.standing.send_if_modified(|told| {
            let before = std::mem::replace(told, now);
            (before.phase, before.arc, before.touch) != (now.phase, now.arc, now.touch)
        });
    }

    /// A peer without a place keeps the view of its last one.
    fn publish_neighbourhood(&self) {
        let now = self.ring.neighbourhood();
        if !now.is_empty() {
            self.neighbourhood.send_if_modified(|told| {
                let is_new = **told != now;
                if is_new {
                    *told = Arc::new(now);
                }
                is_new
            });
        }
    }
}

fn standing_of(ring: &Ring) -> RingStanding {
    RingStanding {
        phase: ring.phase(),
        arc: ring.arc(),
        seat: ring.me().seat(),
        size_estimate: ring.size_estimate(),
        touch: ring.touch(),
    }
}

/// The routes on which others can reach this peer: those that the user gives, otherwise the
/// addresses that it listens on, and those on which others see it. In the open network enough of
/// them have to agree; friends are believed.
fn own_routes(transport: &Transport, advertise: &[SocketAddr]) -> Vec<Route> {
    if !advertise.is_empty() {
        return advertise.iter().copied().map(Route::from).collect();
    }
    let observed: Vec<Route> = match transport.policy() {
        AddressPolicy::Global => {
            let believed = transport.believed_addresses().into_iter();
            believed.map(Route::from).collect()
        }
        AddressPolicy::Private => {
            let observed = transport.observed_routes().into_iter();
            observed.map(|(route, _)| route).collect()
        }
    };
    let local = transport.local_addresses().into_iter().map(Route::from);
    let mut routes = Vec::new();
    for route in local.chain(observed) {
        if transport.policy().allows_route(route) && !routes.contains(&route) {
            routes.push(route);
        }
    }
    routes.truncate(Routes::MAX);
    routes
}

fn lookup_error(why: NotFound) -> LookupError {
    match why {
        NotFound::NoPeers => LookupError::NotJoined,
        NotFound::DeadEnd | NotFound::GaveUp => LookupError::TimedOut(super::LOOKUP_DEADLINE),
        NotFound::Overloaded => LookupError::Busy,
    }
}
