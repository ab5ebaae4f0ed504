//! Noise at the peer's door: random bytes, and messages of every kind that were damaged on the way,
//! all the way from the service to the crawler and its store.
//!
//! No case may panic, with overflow checks on, and none may take long.

use super::testing::{TestCrawler, fetch_of, me, other, processed};
use crate::{
    crawler::testing::url,
    swarm::{
        content::message::{CONTENT, ContentAsk, FACTS, FACTS_IN, FactsAsk},
        lending::message::{LOAN, LentPage, LoanAnswer, LoanAsk, LoanResult, RESULT},
        links::message::LINKS,
        orders::SwarmOrder,
        replicas::{
            message::{
                CENSUS, CensusAsk, DELTAS, Delta, FETCH, OFFER, PIECE, Parcel, PieceAsk, REPLICAS,
            },
            replica::Replica,
        },
        service::PeerService,
        tenancy::whole_ring,
        testing::{TestPeer, fact, link, peer, versions, waiting_url},
    },
};
use apoidea_crawl::{Effort, Outcome, PageLinks};
use apoidea_model::{ContentHash, CrawlId, Domain, LinkBatch, PeerId, Pending, Time};
use apoidea_overlay::{Kind, Request, RequestError, Service};
use bytes::Bytes;
use futures::FutureExt;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde::Serialize;
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, task::yield_now};

const SEED: u64 = 4;
const CASES: usize = 10_000;
/// One message, in a build without optimisation on a busy machine.
const LONGEST: Duration = Duration::from_secs(2);
/// Turns that an answer gets; then the peer that asked has gone.
const TURNS: usize = 8;
/// Largest numbers of every width, as the wire writes them.
const LARGE: [&[u8]; 4] = [
    &[0xff],
    &[0xff, 0xff, 0x03],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
];

/// The door of a peer, and the crawler behind it.
struct Door {
    peer: TestPeer,
    service: PeerService,
    inbox: mpsc::Receiver<SwarmOrder>,
    crawler: TestCrawler,
    /// The answer of the other peer that is asked for its replicas.
    parcels: Arc<Mutex<Vec<u8>>>,
    lent: Pending,
}

fn plain(message: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(message).unwrap()
}

fn framed(mut plain: Vec<u8>) -> Bytes {
    plain.insert(0, 0);
    plain.into()
}

impl Door {
    async fn new() -> Self {
        let (peer, inbox) = TestPeer::settled([me(), other()]);
        let mut crawler = TestCrawler::in_swarm();
        let lent = crawler.lent(&crawler.own(0)).await;
        let parcels = Arc::new(Mutex::new(Vec::new()));
        let given = parcels.clone();
        peer.ring.answer_with(move |_, kind, _| match kind {
            REPLICAS => Ok(framed(given.lock().unwrap().clone())),
            _ => Err(RequestError::Busy),
        });
        Door {
            service: peer.service(),
            peer,
            inbox,
            crawler,
            parcels,
            lent,
        }
    }

    /// Brings a message and lets the crawler do what it says.
    async fn bring(&mut self, from: PeerId, kind: Kind, body: Bytes) {
        let request = Request { kind, body };
        let mut answer = self.service.answer(from, request);
        for _ in 0..TURNS {
            if (&mut answer).now_or_never().is_some() {
                break;
            }
            while let Ok(order) = self.inbox.try_recv() {
                self.crawler.order_swarm(order).await;
            }
            yield_now().await;
        }
        drop(answer);
        while let Ok(order) = self.inbox.try_recv() {
            self.crawler.order_swarm(order).await;
        }
    }

    /// A domain of each peer.
    fn domains(&self) -> [Domain; 2] {
        [self.crawler.own(1), self.crawler.foreign(1)]
    }

    /// A message of every kind as an honest peer would send it.
    fn samples(&self) -> Vec<(Kind, Vec<u8>)> {
        let [own, foreign] = self.domains();
        let both = || vec![own.clone(), foreign.clone()];
        let versions = versions(&[(other(), 2), (me(), 1)]);
        let links: Vec<_> = (0..5).map(|number| link(&own, number)).collect();
        let delta = |domain: &Domain| Delta {
            puts: (0..3).map(|number| waiting_url(domain, number)).collect(),
            removes: vec![waiting_url(domain, 1).slot],
            errands: vec![PageLinks {
                slot: waiting_url(domain, 2).slot,
                crawl: CrawlId::OPEN,
                links: links.clone(),
            }],
            state: self
                .peer
                .store
                .domain(&own)
                .unwrap()
                .map(|state| state.to_vec()),
            ..Delta::announcement(domain.clone(), versions.clone())
        };
        let ask = ContentAsk {
            content: self.peer.ring.contents_of(me(), 1)[0],
            page: url(&own, 1),
            time: Time::from_millis(7),
        };
        let facts = vec![(ContentHash::of_body(b"x"), fact("a.test"))];
        let offers = vec![
            (own.clone(), versions.clone()),
            (foreign.clone(), versions.clone()),
        ];
        let census = CensusAsk {
            arc: whole_ring(),
            after: Some(own.clone()),
        };
        let piece = PieceAsk {
            domain: own.clone(),
            id: 1,
            offset: 9,
        };
        let facts_in = FactsAsk {
            arc: whole_ring(),
            after: None,
        };
        let batch = LinkBatch {
            crawl: CrawlId::OPEN,
            links: links.clone(),
        };
        vec![
            (LINKS, plain(&batch)),
            (CONTENT, plain(&vec![ask])),
            (FACTS, plain(&facts)),
            (FACTS_IN, plain(&facts_in)),
            (DELTAS, plain(&vec![delta(&foreign), delta(&own)])),
            (CENSUS, plain(&census)),
            (OFFER, plain(&offers)),
            (REPLICAS, plain(&both())),
            (FETCH, plain(&both())),
            (PIECE, plain(&piece)),
            (
                LOAN,
                plain(&LoanAsk::Page(Box::new(waiting_url(&foreign, 1)))),
            ),
            (RESULT, plain(&self.result())),
        ]
    }

    /// The result of the fetch that was lent.
    fn result(&self) -> LoanResult {
        let page = processed(&self.lent, &[url(&self.crawler.foreign(0), 3)]);
        LoanResult {
            fetch: fetch_of(&self.lent),
            answer: LoanAnswer::Page {
                outcome: Outcome::Page,
                effort: Effort {
                    took: Duration::from_millis(20),
                    bytes: 300,
                },
                page: Some(LentPage::of(&page).0),
            },
        }
    }

    /// Replicas as an honest peer would give them.
    fn replicas(&self) -> Vec<u8> {
        let parcels = self.domains().map(|domain| {
            self.peer.hold(&domain, &versions(&[(other(), 3)]), 4);
            let replica = Replica::read(&self.peer.store, &domain).unwrap().unwrap();
            Parcel::Whole(domain, replica)
        });
        plain(&parcels.into_iter().collect::<Vec<_>>())
    }

    /// A fetch is lent again, once the last one is over.
    async fn lend(&mut self, number: usize) {
        if self.crawler.lending.lent_count() == 0 {
            let domain = self.crawler.own(number);
            self.lent = self.crawler.lent(&domain).await;
        }
    }
}

/// Damages a message in one or a few places.
fn damage(bytes: &mut Vec<u8>, others: &[(Kind, Vec<u8>)], random: &mut StdRng) {
    for _ in 0..random.random_range(1..4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        let end = (at + random.random_range(1..9)).min(bytes.len());
        match random.random_range(0..7) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            5 => {
                let large = LARGE.choose(random).unwrap();
                bytes.splice(at..=at, large.iter().copied());
            }
            _ => {
                let (_, other) = others.choose(random).unwrap();
                let from = random.random_range(0..other.len());
                bytes.splice(at..end, other[from..].iter().copied().take(16));
            }
        }
    }
}

/// Random bytes in a random form.
fn noise(random: &mut StdRng) -> Bytes {
    let length = random.random_range(0..300);
    let mut bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
    if let Some(form) = bytes.first_mut() {
        *form = random.random_range(0..3);
    }
    bytes.into()
}

#[tokio::test]
async fn no_message_of_a_stranger_panics_or_takes_long() {
    let mut random = StdRng::seed_from_u64(SEED);
    let mut door = Door::new().await;
    let replicas = door.replicas();
    let samples = door.samples();
    let kinds: Vec<Kind> = samples.iter().map(|(kind, _)| *kind).collect();
    let mut slowest = (Duration::ZERO, LINKS);
    for case in 0..CASES {
        let (kind, body) = if case % 4 == 0 {
            (*kinds.choose(&mut random).unwrap(), noise(&mut random))
        } else {
            let (kind, mut bytes) = samples.choose(&mut random).unwrap().clone();
            if kind == RESULT {
                bytes = plain(&door.result());
            }
            if random.random_bool(0.9) {
                damage(&mut bytes, &samples, &mut random);
            }
            (kind, framed(bytes))
        };
        let mut given = replicas.clone();
        damage(&mut given, &samples, &mut random);
        *door.parcels.lock().unwrap() = given;
        let from = *[other(), me(), peer(0x80)].choose(&mut random).unwrap();
        let begun = Instant::now();
        door.bring(from, kind, body).await;
        let took = begun.elapsed();
        slowest = slowest.max((took, kind));
        assert!(took < LONGEST, "{took:?} for {kind} in case {case}");
        if case % 100 == 0 {
            door.crawler.pump();
            door.crawler.save().await;
            door.lend(2 + case / 100).await;
        }
    }
    println!(
        "{CASES} messages; the slowest, of kind {}, took {:?}",
        slowest.1, slowest.0
    );
    // All that was taken in can be read again.
    door.crawler.save().await;
    let mut crawler = door.crawler.crash();
    crawler.pump();
    crawler.save().await;
}
