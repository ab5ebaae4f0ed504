//! The task that owns the ring. It turns commands and the clock into events, and carries out the
//! ring's actions.
//!
//! It never waits for the network: what is to be sent is sent by tasks of its own, whose outcomes
//! come back as commands. A ring request travels as a request of the transport and its response as
//! the answer, so that a round of the protocol costs one stream.

use super::{
    ChordSettings, Standing,
    mailbox::{Command, Mailbox, decode, encode},
};
use crate::{Kind, LookupError, RequestError, Source, Transport, clock::Clock};
use apoidea_chord::{
    Action, Addresses, ArcChange, Contact, Event, Freshness, LookupId, Message, NotFound, Ring,
};
use apoidea_model::{Key, PeerId};
use rand::rngs::StdRng;
use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, broadcast, mpsc, oneshot, watch},
    time,
};
use tokio_util::task::TaskTracker;

/// Messages on their way at once; further ones are lost, as they could be on the network.
const SENDS: usize = 256;
/// Lookups under way at once.
const LOOKUPS: usize = 1024;
/// How often addresses are compared and useful connections marked.
const TEND: Duration = Duration::from_secs(5);
/// Shortest sleep, so that a timer that does not move cannot keep a core busy.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
/// Longest sleep; a ring at rest wakes this often at least.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// Successors whose connections are kept alive: those who take over first.
const NEAR_SUCCESSORS: usize = 4;
/// Fingers whose connections are kept alive.
const NEAR_FINGERS: usize = 32;
/// Longest wait for the neighbours to hear that this peer leaves.
const FAREWELL: Duration = Duration::from_millis(800);

type LookupReply = oneshot::Sender<Result<Vec<PeerId>, LookupError>>;

pub(crate) struct Actor {
    ring: Ring,
    transport: Transport,
    mailbox: Mailbox,
    commands: mpsc::Receiver<Command>,
    changes: broadcast::Sender<ArcChange>,
    standing: watch::Sender<Standing>,
    lookups: HashMap<LookupId, LookupReply>,
    next_lookup: u64,
    advertise: Vec<SocketAddr>,
    sends: Arc<Semaphore>,
    tasks: TaskTracker,
    clock: Clock,
    rng: StdRng,
}

impl Actor {
    /// The task's state, and where its standing can be read.
    pub fn new(
        transport: Transport,
        mailbox: Mailbox,
        commands: mpsc::Receiver<Command>,
        changes: broadcast::Sender<ArcChange>,
        settings: &ChordSettings,
    ) -> (Self, watch::Receiver<Standing>) {
        let advertise = settings.advertise.clone();
        let me = Contact::new(transport.me(), &own_addresses(&transport, &advertise));
        let ring = Ring::new(me, settings.ring.clone());
        let (standing, watched) = watch::channel(standing_of(&ring));
        let actor = Actor {
            ring,
            transport,
            mailbox,
            commands,
            changes,
            standing,
            lookups: HashMap::new(),
            next_lookup: 0,
            advertise,
            sends: Arc::new(Semaphore::new(SENDS)),
            tasks: TaskTracker::new(),
            clock: Clock::start(),
            rng: rand::make_rng(),
        };
        (actor, watched)
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
                Some(command) = self.commands.recv() => self.obey(command),
                () = time::sleep(sleep) => self.handle(Event::Timeout),
                _ = tend.tick() => self.tend(),
            }
            self.publish();
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Received(from, message, reply) => self.receive(from, message, reply),
            Command::Unreachable(peer) => self.handle(Event::Unreachable(peer)),
            // A peer's id is the end of its own arc, so it names the arc that is remembered
            // wrongly.
            Command::Redirected(by) => self.handle(Event::Redirected { key: by.key(), by }),
            Command::Join(contacts) => self.join(contacts),
            Command::Learned(contacts) => self.handle(Event::Learned(contacts)),
            Command::LookUp {
                key,
                count,
                freshness,
                reply,
            } => self.look_up(key, count, freshness, reply),
            Command::Leave(reply) => self.leave(reply),
            // Whoever asked may have gone.
            Command::Status(reply) => drop(reply.send(self.ring.status())),
        }
    }

    fn join(&mut self, contacts: Vec<Contact>) {
        // Whoever was met on the way in has said where it sees this peer.
        self.tend();
        self.handle(Event::Join(contacts));
    }

    fn handle(&mut self, event: Event) {
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
        let mut actions = self
            .ring
            .handle(Event::Received(from, message), now, &mut self.rng);
        let is_response = |action: &Action| matches!(action, Action::Send(to, Message::Response(id, _)) if to.id == from && Some(*id) == asked);
        if let (Some(reply), Some(at)) = (reply, actions.iter().position(is_response))
            && let Action::Send(_, response) = actions.remove(at)
        {
            // Whoever asked may have gone.
            let _ = reply.send(response);
        }
        actions.into_iter().for_each(|action| self.perform(action));
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Send(to, message) => self.send(to, &message),
            Action::Found { id, owners, .. } => {
                let found = owners.iter().map(|owner| self.meet(owner)).collect();
                self.answer(id, Ok(found));
            }
            Action::NotFound(id, why) => self.answer(id, Err(lookup_error(why))),
            // Fails only if nobody listens.
            Action::ArcChanged(change) => drop(self.changes.send(change)),
            Action::PhaseChanged(phase) => {
                tracing::info!(?phase, "this peer's relation to the ring changed");
                self.tend();
            }
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
        self.handle(Event::Lookup {
            id,
            key,
            count,
            freshness,
        });
    }

    fn answer(&mut self, id: LookupId, found: Result<Vec<PeerId>, LookupError>) {
        if let Some(reply) = self.lookups.remove(&id) {
            // Whoever asked may have given up.
            let _ = reply.send(found);
        }
    }

    /// Notes where a peer is said to be.
    fn meet(&self, contact: &Contact) -> PeerId {
        self.transport.learn(
            contact.id,
            contact.addresses.as_slice().iter().copied(),
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
                // Silence is the ring's own business: it has timeouts for it.
                Err(_) => {}
            }
        });
    }

    fn leave(&mut self, reply: oneshot::Sender<()>) {
        self.handle(Event::Leave);
        let tasks = std::mem::take(&mut self.tasks);
        tasks.close();
        tokio::spawn(async move {
            let _ = time::timeout(FAREWELL, tasks.wait()).await;
            let _ = reply.send(());
        });
    }

    /// Keeps the peer's own addresses and the connections that matter up to date.
    fn tend(&mut self) {
        let addresses = Addresses::new(&own_addresses(&self.transport, &self.advertise));
        if addresses != self.ring.me().addresses {
            self.ring.moved_to(Contact {
                id: self.transport.me(),
                addresses,
            });
        }
        let status = self.ring.status();
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
        let now = standing_of(&self.ring);
        self.standing.send_if_modified(|told| {
            let before = std::mem::replace(told, now);
            (before.phase, before.arc) != (now.phase, now.arc)
        });
    }
}

fn standing_of(ring: &Ring) -> Standing {
    Standing {
        phase: ring.phase(),
        arc: ring.arc(),
        size_estimate: ring.size_estimate(),
    }
}

/// Where others can reach this peer: what the user says, else where it listens and where others see
/// it.
fn own_addresses(transport: &Transport, advertise: &[SocketAddr]) -> Vec<SocketAddr> {
    if !advertise.is_empty() {
        return advertise.to_vec();
    }
    let observed = transport
        .observed_addresses()
        .into_iter()
        .map(|(address, _)| address);
    let mut addresses = Vec::new();
    for address in transport.local_addresses().into_iter().chain(observed) {
        if transport.policy().allows(address) && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses.truncate(Addresses::MAX);
    addresses
}

fn lookup_error(why: NotFound) -> LookupError {
    match why {
        NotFound::NoPeers => LookupError::NotJoined,
        NotFound::DeadEnd | NotFound::GaveUp => LookupError::TimedOut(super::LOOKUP_DEADLINE),
        NotFound::Overloaded => LookupError::Busy,
    }
}
