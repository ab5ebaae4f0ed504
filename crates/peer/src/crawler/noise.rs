//! Noise at the peer's door: random bytes, and messages of every kind that were damaged on the way,
//! all the way from the service to the crawler and its store.
//!
//! No case may panic, with overflow checks on, and none may take long.

use super::testing::{TestCrawler, fetch_of, me, other, processed};
use crate::{
    crawler::testing::url,
    page::content::Standing,
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
use apoidea_store::Commit;
use bytes::Bytes;
use futures::FutureExt;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, task::yield_now};

const SEED: u64 = 4;
/// Peers that are asked one after the other, and the messages to each: 10,000 in all.
const DOORS: usize = 4;
const CASES_OF_A_DOOR: usize = 2500;
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
        let (peer, inbox) = TestPeer::owner([me(), other()]);
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

    /// Brings a message and lets the crawler do what it says. Gives whether it was taken, or not
    /// refused so far.
    async fn bring(&mut self, from: PeerId, kind: Kind, body: Bytes) -> bool {
        let request = Request { kind, body };
        let mut answer = self.service.answer(from, request);
        let mut is_taken = true;
        for _ in 0..TURNS {
            if let Some(answer) = (&mut answer).now_or_never() {
                is_taken = answer.is_ok();
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
        is_taken
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
            standing: Standing::Open,
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
}

/// Damages a message in one or a few places.
fn damage(bytes: &mut Vec<u8>, others: &[(Kind, Vec<u8>)], random: &mut StdRng) {
    for _ in 0..random.random_range(1..3) {
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

/// Brings messages to a new door, the first of them about the fetch that was lent.
async fn make_noise(random: &mut StdRng, tally: &mut Tally) {
    let mut door = Door::new().await;
    let replicas = door.replicas();
    let samples = door.samples();
    let result = samples.iter().position(|(kind, _)| *kind == RESULT);
    for case in 0..CASES_OF_A_DOOR {
        let number = random.random_range(0..samples.len());
        let (kind, mut bytes) = samples[result.filter(|_| case < 3).unwrap_or(number)].clone();
        let body = if case % 4 == 3 {
            noise(random)
        } else {
            damage(&mut bytes, &samples, random);
            framed(bytes)
        };
        let mut given = replicas.clone();
        damage(&mut given, &samples, random);
        *door.parcels.lock().unwrap() = given;
        let from = *[other(), me(), peer(0x80)].choose(random).unwrap();
        let begun = Instant::now();
        let is_taken = door.bring(from, kind, body).await;
        let took = begun.elapsed();
        assert!(took < LONGEST, "{took:?} for {kind}");
        tally.slowest = tally.slowest.max((took, kind.as_byte()));
        *tally.taken.entry(kind).or_default() += usize::from(is_taken);
    }
    // All that was taken in is used, and can be read again.
    door.crawler.pump();
    door.crawler.hand_in().await;
    door.crawler.write().await;
    door.crawler.crash().pump();
}

/// What came of the messages.
#[derive(Default)]
struct Tally {
    /// The longest time, and the kind of message that took it.
    slowest: (Duration, u8),
    /// Messages that were taken, by kind.
    taken: BTreeMap<Kind, usize>,
}

#[tokio::test]
async fn no_message_of_a_stranger_panics_or_takes_long() {
    let mut random = StdRng::seed_from_u64(SEED);
    let mut tally = Tally::default();
    for _ in 0..DOORS {
        make_noise(&mut random, &mut tally).await;
    }
    println!("slowest: {:?}; taken: {:?}", tally.slowest, tally.taken);
    // Most are refused; those that are not reach the crawler.
    assert!(tally.taken.values().sum::<usize>() > DOORS * CASES_OF_A_DOOR / 20);
}

#[tokio::test]
async fn the_largest_numbers_of_a_helper_are_borne() {
    let mut door = Door::new().await;
    door.crawler.totals.bytes = 1;
    let LoanResult { fetch, answer } = door.result();
    let LoanAnswer::Page {
        outcome,
        page: Some(page),
        ..
    } = answer
    else {
        panic!("a page was lent");
    };
    let answer = LoanAnswer::Page {
        outcome,
        effort: Effort {
            took: Duration::MAX,
            bytes: u64::MAX,
        },
        page: Some(LentPage {
            link_count: u64::MAX,
            bytes: u64::MAX,
            millis: u64::MAX,
            ..page
        }),
    };
    let result = plain(&LoanResult { fetch, answer });
    assert!(door.bring(other(), RESULT, framed(result)).await);
    door.crawler.save().await;
    assert_eq!(door.crawler.waiting(&door.lent.url.domain()), [""; 0]);
}

#[tokio::test]
async fn the_greatest_depth_of_a_replica_is_borne() {
    let mut crawler = TestCrawler::alone();
    let (own, giver) = (crawler.own(0), TestPeer::owner([other(), me()]).0);
    let deepest = Pending {
        depth: u16::MAX,
        ..waiting_url(&own, 1)
    };
    giver.hold(&own, &versions(&[(other(), 3)]), 0);
    let mut commit = Commit::new();
    commit.put_pending(&own, &deepest);
    giver.store.apply(&commit).unwrap();
    let replica = Replica::read(&giver.store, &own).unwrap().unwrap();
    crawler.adopt_replica(&own, replica).await;
    let redirect = Outcome::Redirect(url(&own, 2));
    crawler.fetched(&deepest, redirect).await;
}
