//! The door of a peer as a fuzzer and the tests of noise knock at it: a message passes rights and
//! answers, and the crawler behind does what it says to a real store.

use super::testing::{TestCrawler, applied, fetch_of, me, other, processed, url};
use crate::{
    clock::now,
    page::content::Standing,
    swarm::{
        addresses::message::{TURNS, TurnWish},
        content::message::{CONTENT, ContentAsk, FACTS, FACTS_IN, FactsAsk, PROOF, ProofAsk},
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
        testing::{TestPeer, fact, link, peer, signed, versions, waiting_url},
        watching::message::{NUDGE, WATCH, WatchAsk},
    },
};
use apoidea_crawl::{Effort, Outcome, PageLinks, WatchSubject};
use apoidea_model::{ContentHash, CrawlId, Domain, LinkBatch, PeerId, Pending, Time};
use apoidea_overlay::{Kind, Request, RequestError, Service};
use bytes::Bytes;
use futures::FutureExt;
use serde::Serialize;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{sync::mpsc, task::yield_now};

/// Turns that an answer gets; then the peer that asked has gone.
const ANSWER_TURNS: usize = 8;
/// The service is new after so many messages: a sender must not run out of time.
const MESSAGES_OF_A_BUDGET: usize = 50;

/// The door of a peer, and the crawler behind it. Both have one store.
pub(crate) struct Door {
    peer: TestPeer,
    service: PeerService,
    messages: usize,
    inbox: mpsc::Receiver<SwarmOrder>,
    pub(super) crawler: TestCrawler,
    /// The answer of the other peer that is asked for its replicas.
    parcels: Arc<Mutex<Vec<u8>>>,
    /// A page that is lent to the other peer.
    pub(super) lent: Pending,
}

/// A message as the wire writes it, without its form.
pub(super) fn plain(message: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(message).unwrap()
}

/// The same with its form: not compressed.
pub(super) fn framed(mut plain: Vec<u8>) -> Bytes {
    plain.insert(0, 0);
    plain.into()
}

/// Possible senders: the other member of the ring, this peer itself, and a stranger.
pub(crate) fn senders() -> [PeerId; 3] {
    [other(), me(), peer(0x80)]
}

impl Door {
    pub(crate) async fn new() -> Self {
        let mut crawler = TestCrawler::in_swarm();
        let lent = crawler.lent(&crawler.own(0)).await;
        let (peer, inbox) = TestPeer::around(crawler.ring.clone(), crawler.store());
        peer.tenancy.end_taking_over(whole_ring());
        peer.tenancy.end_taking_over_facts(whole_ring());
        let parcels = Arc::new(Mutex::new(Vec::new()));
        let given = parcels.clone();
        peer.ring.answer_with(move |_, kind, body| match kind {
            DELTAS => Ok(applied(&body)),
            REPLICAS => Ok(framed(given.lock().unwrap().clone())),
            _ => Err(RequestError::Busy),
        });
        Door {
            service: peer.service(),
            messages: 0,
            peer,
            inbox,
            crawler,
            parcels,
            lent,
        }
    }

    /// The other peer answers with this when it is asked for its replicas.
    pub(crate) fn give(&self, parcels: Vec<u8>) {
        *self.parcels.lock().unwrap() = parcels;
    }

    /// Brings a message and lets the crawler do what it says. Gives whether it was taken, or not
    /// refused so far.
    pub(crate) async fn bring(&mut self, from: PeerId, kind: Kind, body: Bytes) -> bool {
        self.messages += 1;
        if self.messages.is_multiple_of(MESSAGES_OF_A_BUDGET) {
            self.service = self.peer.service();
        }
        let request = Request { kind, body };
        let mut answer = self.service.answer(from, request);
        let mut is_taken = true;
        for _ in 0..ANSWER_TURNS {
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
        self.peer.ring.requests.lock().unwrap().clear();
        is_taken
    }

    /// All that was taken in is used, and can be read again by the next process.
    pub(crate) async fn use_all(mut self) {
        self.crawler.pump();
        self.crawler.hand_in().await;
        self.crawler.write().await;
        self.crawler.crash().pump();
    }

    /// A domain of each peer.
    fn domains(&self) -> [Domain; 2] {
        [self.crawler.own(1), self.crawler.foreign(1)]
    }

    /// A message of every kind as an honest peer would send it.
    pub(crate) fn samples(&self) -> Vec<(Kind, Vec<u8>)> {
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
        let proof = ProofAsk {
            content: ContentHash::of_body(b"x"),
            page: url(&own, 1),
            nonce: [7; 16],
        };
        let wish = TurnWish {
            address: [192, 0, 2, 1].into(),
            wanted_ms: 2000,
        };
        let batch = LinkBatch {
            crawl: CrawlId::OPEN,
            links: links.clone(),
        };
        let watch = WatchAsk {
            domain: own.clone(),
            subject: WatchSubject::Site,
            until: now() + Duration::from_secs(3600),
            told: Time::ZERO,
        };
        vec![
            (LINKS, plain(&batch)),
            (CONTENT, plain(&vec![ask])),
            (PROOF, plain(&proof)),
            (FACTS, plain(&facts)),
            (FACTS_IN, plain(&facts_in)),
            (DELTAS, plain(&signed(&[delta(&foreign), delta(&own)]))),
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
            (TURNS, plain(&vec![wish])),
            (WATCH, plain(&watch)),
            (NUDGE, plain(&own)),
        ]
    }

    /// The result of the fetch that was lent.
    pub(super) fn result(&self) -> LoanResult {
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
    pub(crate) fn replicas(&self) -> Vec<u8> {
        let giver = TestPeer::owner([other(), me()]).0;
        let parcels = self.domains().map(|domain| {
            giver.hold(&domain, &versions(&[(other(), 3)]), 4);
            let replica = Replica::read(&giver.store, &domain).unwrap().unwrap();
            Parcel::Whole(domain, replica)
        });
        plain(&parcels.into_iter().collect::<Vec<_>>())
    }
}
