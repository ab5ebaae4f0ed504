//! One search in the DHT: ask the nodes nearest to the topic for nearer ones, until the nearest have
//! answered.
//!
//! Everything has an end: nodes known, questions, bytes, time. Only nodes in the Internet are asked,
//! so no answer can make this peer send packets into the volunteer's own network.

use super::{
    budget::Budget,
    krpc::{self, Answer, Position},
    sieve::Sieve,
};
use crate::AddressPolicy;
use std::{
    net::{SocketAddr, SocketAddrV4},
    time::{Duration, Instant},
};
use tokio::{net::UdpSocket, time::timeout_at};

/// Questions under way at a time.
const AT_ONCE: usize = 4;
/// Questions of one search.
const MOST_QUESTIONS: usize = 48;
/// Nodes remembered during a search.
const MOST_NODES: usize = 256;
/// The nodes nearest to a topic that keep its announcements.
const KEEPERS: usize = 8;
/// A node that has not answered after this long is passed over.
const PATIENCE: Duration = Duration::from_millis(1500);
/// A whole search.
const SEARCH_WITHIN: Duration = Duration::from_secs(8);
/// Largest datagram that is read; one that does not fit an Ethernet frame is nobody's answer.
const MAX_DATAGRAM: usize = 1500;

/// A node that keeps announcements under the topic.
#[derive(Debug, Clone)]
pub(super) struct Keeper {
    pub position: Position,
    pub address: SocketAddrV4,
    pub token: Vec<u8>,
}

/// The result of a search.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The announced addresses.
    pub announced: Sieve,
    /// The nodes nearest to the topic that answered, nearest first.
    pub keepers: Vec<Keeper>,
    /// Nodes that answered.
    pub answered: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    New,
    Asked { question: u32, until: Instant },
    Answered { token: Option<Vec<u8>> },
    Silent,
}

#[derive(Debug, Clone)]
struct Node {
    /// Unknown of a node to begin with.
    position: Option<Position>,
    address: SocketAddrV4,
    state: State,
}

pub(super) struct Search<'a> {
    pub socket: &'a UdpSocket,
    pub me: Position,
    pub topic: Position,
    nodes: Vec<Node>,
    asked: usize,
    found: Found,
}

impl<'a> Search<'a> {
    pub fn new(socket: &'a UdpSocket, topic: Position) -> Self {
        Search {
            socket,
            me: Position(rand::random()),
            topic,
            nodes: Vec::new(),
            asked: 0,
            found: Found::default(),
        }
    }

    /// Searches, beginning at these nodes.
    pub async fn run(
        mut self,
        begin: impl IntoIterator<Item = (Option<Position>, SocketAddrV4)>,
        budget: &mut Budget,
    ) -> Found {
        for (position, address) in begin {
            self.add(position, address);
        }
        let end = Instant::now() + SEARCH_WITHIN;
        let mut datagram = [0; MAX_DATAGRAM];
        while Instant::now() < end && !self.is_done() {
            self.ask_next(budget).await;
            let Some(until) = self.next_deadline() else {
                break;
            };
            let received = timeout_at(until.min(end).into(), self.socket.recv_from(&mut datagram));
            if let Ok(Ok((length, SocketAddr::V4(from)))) = received.await {
                budget.take(length);
                if let Some(answer) = krpc::read(&datagram[..length]) {
                    self.take(from, answer);
                }
            }
            self.pass_over();
        }
        self.found.keepers = self.keepers();
        self.found
    }

    /// The nearest nodes have all answered. Each of them is asked, however much the first ones tell:
    /// only what several name can be told from what one made up.
    fn is_done(&self) -> bool {
        let nearest = self.living().take(KEEPERS);
        let mut count = 0;
        let all_answered = nearest
            .inspect(|_| count += 1)
            .all(|node| matches!(node.state, State::Answered { .. }));
        count > 0 && all_answered
    }

    /// Nodes that may still be of use, nearest first; those to begin with come last, since nobody
    /// announces anything there.
    fn living(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.state != State::Silent)
    }

    async fn ask_next(&mut self, budget: &mut Budget) {
        let under_way = |nodes: &[Node]| {
            let is_asked = |node: &&Node| matches!(node.state, State::Asked { .. });
            nodes.iter().filter(is_asked).count()
        };
        while under_way(&self.nodes) < AT_ONCE && self.asked < MOST_QUESTIONS {
            // Only the nearest matter: the way there is short.
            let mut seen = 0;
            let next = self.nodes.iter().position(|node| {
                seen += usize::from(node.state != State::Silent);
                seen <= KEEPERS && node.state == State::New
            });
            let Some(next) = next.filter(|_| budget.has_room()) else {
                return;
            };
            let question: u32 = rand::random();
            let message = krpc::ask(question, self.me, self.topic);
            let node = &mut self.nodes[next];
            self.asked += 1;
            let sent = self.socket.send_to(&message, node.address).await;
            node.state = match sent {
                Ok(length) => {
                    budget.take(length);
                    let until = Instant::now() + PATIENCE;
                    State::Asked { question, until }
                }
                // Without a way into the Internet nobody can be asked.
                Err(_) => State::Silent,
            };
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let deadline = |node: &Node| match node.state {
            State::Asked { until, .. } => Some(until),
            _ => None,
        };
        self.nodes.iter().filter_map(deadline).min()
    }

    fn pass_over(&mut self) {
        let now = Instant::now();
        for node in &mut self.nodes {
            if matches!(node.state, State::Asked { until, .. } if until <= now) {
                node.state = State::Silent;
            }
        }
    }

    fn take(&mut self, from: SocketAddrV4, answer: Answer) {
        let is_its = |node: &&mut Node| {
            let is_asked =
                matches!(node.state, State::Asked { question, .. } if question == answer.question);
            is_asked && node.address == from
        };
        let Some(node) = self.nodes.iter_mut().find(is_its) else {
            return;
        };
        node.position = node.position.or(Some(answer.node));
        node.state = State::Answered {
            token: answer.token,
        };
        self.found.answered += 1;
        self.found.announced.add(answer.announced);
        for (position, address) in answer.nodes {
            self.meet(position, address);
        }
        self.sort();
    }

    /// Takes note of a node that another one names.
    fn meet(&mut self, position: Position, address: SocketAddrV4) {
        if AddressPolicy::Global.allows(address.into()) {
            self.add(Some(position), address);
        }
    }

    fn add(&mut self, position: Option<Position>, address: SocketAddrV4) {
        if self.nodes.iter().any(|node| node.address == address) {
            return;
        }
        self.nodes.push(Node {
            position,
            address,
            state: State::New,
        });
        self.sort();
        self.nodes.truncate(MOST_NODES);
    }

    fn sort(&mut self) {
        let topic = self.topic;
        self.nodes.sort_by_key(|node| match node.position {
            Some(position) => position.distance(topic),
            None => [u8::MAX; 20],
        });
    }

    fn keepers(&self) -> Vec<Keeper> {
        let keeper = |node: &Node| match (&node.state, node.position) {
            (State::Answered { token: Some(token) }, Some(position)) => Some(Keeper {
                position,
                address: node.address,
                token: token.clone(),
            }),
            _ => None,
        };
        self.nodes.iter().filter_map(keeper).take(KEEPERS).collect()
    }
}
