//! A rendezvous without a server of ours: peers that know nobody find each other through
//! BitTorrent's DHT.
//!
//! A topic is made of the network's name and the day. Peers that can be reached announce themselves
//! under it, newcomers ask for it. This is a client of the DHT, no node of it: a socket is open while
//! it asks, and nothing is sent otherwise. The result is hearsay: addresses to be dialled, a few of
//! them, where a peer of the right network proves itself or nothing happens.

mod bencode;
mod budget;
mod krpc;
mod search;
mod sieve;

pub(crate) use budget::RendezvousTraffic;

use crate::{EntryPlace, EntryPoint, NetworkId};
use apoidea_model::Key;
use budget::Budget;
use hickory_resolver::{TokioResolver, proto::rr::RData};
use krpc::Position;
use rand::{rng, seq::SliceRandom};
use search::{Found, Keeper, Search};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{net::UdpSocket, time};

/// Bytes for the first search; with three more, a start stays below 50 KB.
const FIRST_BYTES: usize = 24_000;
/// Bytes for a later search, which begins where the last one ended: liars give the longest answers,
/// and most of the eight are to be heard all the same.
const LATER_BYTES: usize = 9_000;
/// Bytes for an announcement at eight nodes.
const ANNOUNCE_BYTES: usize = 2_400;
/// Addresses of one name that are used.
const MOST_BEGINNINGS: usize = 8;
/// Name servers have so long to say where the DHT begins.
const NAMES_WITHIN: Duration = Duration::from_secs(4);
/// Pauses between searches while nobody is found; the last one is repeated.
const PAUSES: [Duration; 6] = [
    Duration::from_secs(5),
    Duration::from_secs(20),
    Duration::from_secs(60),
    Duration::from_secs(240),
    Duration::from_secs(480),
    Duration::from_secs(900),
];
/// The nodes that were nearest are asked first for this long; later they may be others.
const KEEPERS_FOR: Duration = Duration::from_secs(1800);
/// At the beginning of a day, the announcements are still those of the day before.
const YESTERDAY_FOR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A client of the DHT for one network.
pub(crate) struct Rendezvous {
    network: NetworkId,
    nodes: Vec<EntryPoint>,
    /// The address to ask from: what is announced is the address that the nodes see.
    from: Ipv4Addr,
    traffic: RendezvousTraffic,
    last: Option<Last>,
    searches: usize,
    due: Option<Instant>,
}

/// The end of the last search.
struct Last {
    topic: Position,
    keepers: Vec<Keeper>,
    at: Instant,
}

/// The result of a look at the rendezvous.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Meeting {
    /// Addresses to dial, best first.
    pub dial: Vec<SocketAddr>,
    /// Nodes of the DHT that answered; with none, there is no DHT to be seen from here.
    pub answered: usize,
}

impl Rendezvous {
    /// A rendezvous of the network's peers, for one that listens at `from`; `nodes` say where the
    /// DHT begins.
    pub fn new(network: NetworkId, nodes: Vec<EntryPoint>, from: Ipv4Addr) -> Self {
        Rendezvous {
            network,
            nodes,
            from,
            traffic: RendezvousTraffic::default(),
            last: None,
            searches: 0,
            due: None,
        }
    }

    /// The bytes used so far.
    pub fn traffic(&self) -> RendezvousTraffic {
        self.traffic.clone()
    }

    /// Whether a search may begin now.
    pub fn is_due(&self) -> bool {
        self.due.is_none_or(|due| Instant::now() >= due)
    }

    /// Somebody was found: the next search, if there will be one, is like the first.
    pub fn rest(&mut self) {
        (self.searches, self.due) = (0, None);
    }

    /// Looks who is announced today.
    pub async fn meet(&mut self, resolver: Option<&TokioResolver>, own: &[IpAddr]) -> Meeting {
        let pause = PAUSES[self.searches.min(PAUSES.len() - 1)];
        self.searches += 1;
        let found = self.search(resolver).await;
        self.due = Some(Instant::now() + pause);
        let own: Vec<Ipv4Addr> = own
            .iter()
            .filter_map(|address| match address.to_canonical() {
                IpAddr::V4(address) => Some(address),
                IpAddr::V6(_) => None,
            })
            .collect();
        let chosen = found.announced.chosen(&own, &mut rng());
        tracing::debug!(
            answered = found.answered,
            announced = found.announced.len(),
            "looked at the rendezvous"
        );
        Meeting {
            dial: chosen.into_iter().map(SocketAddr::V4).collect(),
            answered: found.answered,
        }
    }

    /// Announces this peer at a port; gives the number of nodes that were told.
    pub async fn announce(&mut self, resolver: Option<&TokioResolver>, port: u16) -> usize {
        // The word of a node that lets this side announce itself there is good for minutes.
        let is_fresh = |last: &Last| {
            last.topic == topics(&self.network, SystemTime::now())[0]
                && last.at.elapsed() < Duration::from_secs(60)
        };
        if !self.last.as_ref().is_some_and(is_fresh) {
            self.search(resolver).await;
        }
        let (Some(last), Ok(socket)) = (&self.last, socket(self.from).await) else {
            return 0;
        };
        let mut budget = Budget::new(ANNOUNCE_BYTES, self.traffic.clone());
        let (me, mut told) = (Position(rand::random()), 0);
        for keeper in &last.keepers {
            let message = krpc::announce(rand::random(), me, last.topic, port, &keeper.token);
            if budget.has_little_room()
                && let Ok(length) = socket.send_to(&message, keeper.address).await
            {
                budget.take(length);
                told += 1;
            }
        }
        // The answers say nothing that matters; they are read so that they are counted.
        let mut datagram = [0; 1500];
        let read = async {
            for _ in 0..told {
                if let Ok((length, _)) = socket.recv_from(&mut datagram).await {
                    budget.take(length);
                }
            }
        };
        let _ = time::timeout(Duration::from_secs(1), read).await;
        told
    }

    async fn search(&mut self, resolver: Option<&TokioResolver>) -> Found {
        let Ok(socket) = socket(self.from).await else {
            return Found::default();
        };
        let mut all = Found::default();
        // Yesterday's first, so that the end of today's search is the one that is remembered.
        for topic in topics(&self.network, SystemTime::now()).into_iter().rev() {
            let kept = self.last.take().filter(|last| {
                last.topic == topic && last.at.elapsed() < KEEPERS_FOR && !last.keepers.is_empty()
            });
            let (bytes, begin) = match kept {
                Some(last) => {
                    let keepers = last.keepers.into_iter();
                    let begin = keepers.map(|keeper| (Some(keeper.position), keeper.address));
                    (LATER_BYTES, begin.collect::<Vec<_>>())
                }
                None => {
                    let begin = beginnings(&self.nodes, resolver).await.into_iter();
                    (FIRST_BYTES, begin.map(|node| (None, node)).collect())
                }
            };
            let mut budget = Budget::new(bytes, self.traffic.clone());
            let found = Search::new(&socket, topic).run(begin, &mut budget).await;
            self.last = Some(Last {
                topic,
                keepers: found.keepers.clone(),
                at: Instant::now(),
            });
            all.answered += found.answered;
            all.announced.join(found.announced);
        }
        all
    }
}

async fn socket(from: Ipv4Addr) -> std::io::Result<UdpSocket> {
    UdpSocket::bind((from, 0)).await
}

/// The topics of a moment: today's, and at the beginning of a day that of the day before.
fn topics(network: &NetworkId, now: SystemTime) -> Vec<Position> {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (day, into_day) = (
        since.as_secs() / DAY.as_secs(),
        since.as_secs() % DAY.as_secs(),
    );
    let topic = |day: u64| {
        let key = Key::hash(format!("apoidea rendezvous 1 {network} {day}"));
        Position(std::array::from_fn(|at| key.as_bytes()[at]))
    };
    match into_day < YESTERDAY_FOR.as_secs() {
        true => vec![topic(day), topic(day.saturating_sub(1))],
        false => vec![topic(day)],
    }
}

/// The addresses where the DHT begins, in any order.
async fn beginnings(nodes: &[EntryPoint], resolver: Option<&TokioResolver>) -> Vec<SocketAddrV4> {
    let look_up = async |node: &EntryPoint| match (&node.place, resolver) {
        (EntryPlace::Address(SocketAddr::V4(address)), _) => vec![*address],
        (EntryPlace::Name(name, port), Some(resolver)) => {
            let name = format!("{}.", name.trim_end_matches('.'));
            let Ok(Ok(answer)) = time::timeout(NAMES_WITHIN, resolver.ipv4_lookup(name)).await
            else {
                return Vec::new();
            };
            let records = answer.answers().iter();
            let addresses = records.filter_map(|record| match record.data {
                RData::A(address) => Some(SocketAddrV4::new(address.0, *port)),
                _ => None,
            });
            // The name is the operator's, but the answer is a name server's.
            addresses
                .filter(|address| crate::AddressPolicy::Global.allows((*address).into()))
                .take(MOST_BEGINNINGS)
                .collect()
        }
        _ => Vec::new(),
    };
    let found = futures::future::join_all(nodes.iter().map(look_up)).await;
    let mut found: Vec<SocketAddrV4> = found.into_iter().flatten().collect();
    found.shuffle(&mut rng());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYWHERE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

    #[test]
    fn a_topic_belongs_to_a_network_and_a_day() {
        let network = |name: &str| name.parse::<NetworkId>().unwrap();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let noon = topics(&network("apoidea"), at(86_400 * 20_000 + 43_200));
        assert_eq!(noon.len(), 1);
        assert_ne!(
            noon,
            topics(&network("other"), at(86_400 * 20_000 + 43_200))
        );
        let next = topics(&network("apoidea"), at(86_400 * 20_001 + 60));
        assert_eq!(next.len(), 2);
        assert_eq!(next[1], noon[0], "after midnight, yesterday's too");
        assert_ne!(next[0], noon[0]);
    }

    #[test]
    fn searches_become_rare_and_a_start_is_cheap() {
        assert!(PAUSES.is_sorted());
        // Those of the first minute, each with an announcement.
        let later = PAUSES.iter().scan(Duration::ZERO, |at, pause| {
            *at += *pause;
            Some(*at)
        });
        let later = later.take_while(|at| *at < Duration::from_secs(60)).count();
        let most = FIRST_BYTES + later * LATER_BYTES + (1 + later) * ANNOUNCE_BYTES;
        assert!(most <= 50_000, "{most}");
    }

    /// A node that keeps announcements, as the standard says; the black-box tests have a whole DHT
    /// of another hand.
    async fn node() -> EntryPoint {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut datagram, mut kept) = ([0; 1500], Vec::<[u8; 6]>::new());
            while let Ok((length, from)) = socket.recv_from(&mut datagram).await {
                let asked = bencode::Value::read(&datagram[..length]).unwrap();
                let part = |name: &str| asked.get(name).unwrap().bytes().unwrap();
                let mut answer = b"d1:rd2:id20:".to_vec();
                answer.extend([7; 20]);
                if part("q") == b"announce_peer" {
                    let arguments = asked.get("a").unwrap();
                    assert_eq!(arguments.get("token").unwrap().bytes(), Some(&b"ok"[..]));
                    let bencode::Value::Integer(port) = arguments.get("port").unwrap() else {
                        panic!("a port is a number");
                    };
                    let [high, low] = u16::try_from(*port).unwrap().to_be_bytes();
                    kept.push([127, 0, 0, 1, high, low]);
                } else {
                    answer.extend(b"5:token2:ok6:valuesl");
                    for address in &kept {
                        answer.extend(b"6:");
                        answer.extend(address);
                    }
                    answer.extend(b"e");
                }
                answer.extend(b"e1:t4:");
                answer.extend(part("t"));
                answer.extend(b"1:y1:re");
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        address.to_string().parse().unwrap()
    }

    #[tokio::test]
    async fn one_announces_itself_and_the_next_finds_it() {
        let nodes = vec![node().await];
        let rendezvous =
            |network: &str| Rendezvous::new(network.parse().unwrap(), nodes.clone(), ANYWHERE);
        let mut first = rendezvous("here");
        let nobody = first.search(None).await;
        assert_eq!((nobody.answered, nobody.announced.len()), (1, 0));
        assert_eq!(first.announce(None, 4242).await, 1);
        let mut second = rendezvous("here");
        let found = second.search(None).await;
        let announced = "127.0.0.1:4242".parse().unwrap();
        assert_eq!(found.announced.addresses(), [announced]);
        let again = second.search(None).await;
        assert_eq!(again.announced.addresses(), [announced], "from the keepers");
        let meeting = rendezvous("here").meet(None, &[]).await;
        assert!(meeting.answered > 0);
        assert_eq!(
            meeting.dial,
            [],
            "an address of a home network is not dialled"
        );
    }

    #[tokio::test]
    async fn without_a_dht_a_search_ends_soon() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let silent = socket.local_addr().unwrap().to_string();
        let mut rendezvous = Rendezvous::new(
            "here".parse().unwrap(),
            vec![silent.parse().unwrap()],
            ANYWHERE,
        );
        let begun = Instant::now();
        let meeting = rendezvous.meet(None, &[]).await;
        assert_eq!((meeting.answered, meeting.dial.len()), (0, 0));
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
        assert!(!rendezvous.is_due());
        rendezvous.rest();
        assert!(rendezvous.is_due());
    }

    /// A node that names nodes and peers without end.
    async fn liar() -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut datagram = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut datagram).await {
                let at = datagram[..length]
                    .windows(4)
                    .position(|part| part == b"1:t4");
                let Some(at) = at else { continue };
                let question = datagram[at + 5..at + 9].to_vec();
                let mut answer = b"d1:rd2:id20:".to_vec();
                answer.extend(rand::random::<[u8; 20]>());
                answer.extend(b"5:nodes520:");
                for n in 0..20u8 {
                    answer.extend(rand::random::<[u8; 20]>());
                    answer.extend([127, 0, 0, 1, 200, n]);
                }
                answer.extend(b"5:token2:ok6:valuesl");
                for _ in 0..100 {
                    answer.extend(b"6:");
                    answer.extend(rand::random::<[u8; 6]>());
                }
                answer.extend(b"ee1:t4:");
                answer.extend(question);
                answer.extend(b"1:y1:re");
                let _ = socket.send_to(&answer, from).await;
            }
        });
        (address, task)
    }

    #[tokio::test]
    async fn a_liar_costs_a_few_dials_and_a_bounded_number_of_bytes() {
        let (address, task) = liar().await;
        let nodes = vec![address.to_string().parse().unwrap()];
        let mut rendezvous = Rendezvous::new("here".parse().unwrap(), nodes, ANYWHERE);
        let meeting = rendezvous.meet(None, &[]).await;
        assert!(meeting.dial.len() <= sieve::MOST_DIALS, "{meeting:?}");
        let global = crate::AddressPolicy::Global;
        assert!(meeting.dial.iter().all(|address| global.allows(*address)));
        let bytes = rendezvous.traffic().bytes();
        assert!(bytes < 40_000, "{bytes}");
        task.abort();
    }
}
