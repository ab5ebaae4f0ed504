//! Answers what other peers ask about the crawl. Everything that comes in is a stranger's.

use super::{
    COPIES, holdings,
    lease::{LeaseAsk, LeaseResult},
    orders::{Orders, SwarmOrder},
    puller::{self, Puller},
    tenancy::{Claim, Tenancy, whole_ring},
    value::Value,
    wire::{
        self, CensusAsk, CensusPage, ContentAsk, DeltaAnswer, FactsAsk, OfferAnswer, Parcel,
        PieceAsk,
    },
};
use crate::{
    admitter::decode_state,
    content::{LocalIndex, Sight, Verdict},
};
use apoidea_crawl::{Stance, Versions};
use apoidea_model::{Domain, LinkBatch, PeerId};
use apoidea_overlay::{Overlay, Refusal, Request, Service};
use apoidea_store::{Commit, Store};
use bytes::Bytes;
use futures::future::{self, BoxFuture};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::time;

/// Domains looked at for one page of a census.
const SCANNED: usize = 5000;
/// Large values that are being fetched in pieces at the same time.
const MAX_LARGE: usize = 4;
/// Neighbours on the ring are known without asking anybody.
const VIEW_WITHIN: Duration = Duration::from_millis(200);
/// Whoever takes over from a leaving peer asks at least this often.
const QUIET: Duration = Duration::from_millis(300);

/// The desk; empty until the rest of the peer has started.
#[derive(Default)]
pub(crate) struct Desk(OnceLock<Staff>);

/// What answering takes.
pub(crate) struct Staff {
    pub overlay: Arc<dyn Overlay>,
    pub store: Store,
    pub orders: Orders,
    pub tenancy: Arc<Tenancy>,
    pub index: Arc<LocalIndex>,
    pub puller: Puller,
    /// Values larger than a frame that somebody is fetching.
    pub large: Mutex<VecDeque<(u64, Domain, Bytes)>>,
    pub farewell: Farewell,
}

/// How far others have come in taking over from a peer that leaves.
#[derive(Default)]
pub(crate) struct Farewell {
    /// Is this peer leaving?
    pub is_leaving: AtomicBool,
    /// Censuses that were read to the end since.
    pub censuses: AtomicU64,
    last_question: Mutex<Option<Instant>>,
}

impl Farewell {
    fn note(&self) {
        *self
            .last_question
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// When somebody last asked for what this peer knows.
    pub(crate) fn last_question(&self) -> Option<Instant> {
        *self
            .last_question
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// Opens the desk.
    pub(crate) fn open(&self, staff: Staff) {
        // Opened once, when the peer starts.
        let _ = self.0.set(staff);
    }

    /// Whoever answers, once the desk is open.
    pub(crate) fn staff(&self) -> Option<&Staff> {
        self.0.get()
    }
}

impl Service for Desk {
    fn answer(&self, from: PeerId, request: Request) -> BoxFuture<'_, Result<Bytes, Refusal>> {
        Box::pin(async move {
            let staff = self.0.get().ok_or(Refusal::Busy)?;
            staff.answer(from, request).await
        })
    }
}

impl Staff {
    /// Resolves when somebody has asked what this peer holds, and nobody has asked for more for a
    /// moment.
    pub(crate) async fn taken_over(&self) {
        loop {
            time::sleep(QUIET / 4).await;
            let is_quiet = self
                .farewell
                .last_question()
                .is_some_and(|last| last.elapsed() > QUIET);
            if is_quiet && self.farewell.censuses.load(Relaxed) > 0 {
                return;
            }
        }
    }

    async fn answer(
        &self,
        from: PeerId,
        Request { kind, body }: Request,
    ) -> Result<Bytes, Refusal> {
        match kind {
            wire::LINKS => self.links(wire::decode(&body)?).await,
            wire::CONTENT => self.content(wire::decode(&body)?),
            wire::FACTS => self.facts(wire::decode(&body)?),
            wire::DELTAS => self.deltas(from, wire::decode(&body)?).await,
            wire::CENSUS => self.census(wire::decode(&body)?).await,
            wire::OFFER => self.offer(from, wire::decode(&body)?),
            wire::VALUES => self.values(wire::decode(&body)?),
            wire::PIECE => self.piece(&wire::decode(&body)?),
            wire::FETCH => self.fetch(from, wire::decode(&body)?).await,
            wire::LEASE => self.lease(from, wire::decode(&body)?).await,
            wire::LEASED => self.leased(from, wire::decode(&body)?).await,
            wire::FACTS_IN => self.facts_in(&wire::decode(&body)?),
            _ => Err(Refusal::UnknownKind),
        }
    }

    async fn links(&self, batch: LinkBatch) -> Result<Bytes, Refusal> {
        if batch.links.len() > LinkBatch::MAX_LINKS {
            return Err(Refusal::Malformed);
        }
        let is_foreign =
            |url: &apoidea_model::PageUrl| self.tenancy.claim(url.domain().key()) == Claim::Foreign;
        if batch.links.iter().all(|link| is_foreign(&link.url)) {
            return Err(Refusal::NotMine);
        }
        let answer = self.orders.admit(batch).await.map_err(|_| Refusal::Busy)?;
        Ok(wire::encode(&answer))
    }

    fn content(&self, asks: Vec<ContentAsk>) -> Result<Bytes, Refusal> {
        if asks.len() > wire::MAX_FACTS {
            return Err(Refusal::Malformed);
        }
        let claims: Vec<Claim> = asks
            .iter()
            .map(|ask| self.tenancy.claim_to_fact(ask.content.key()))
            .collect();
        if claims.contains(&Claim::Foreign) {
            return Err(Refusal::NotMine);
        }
        if claims.contains(&Claim::Unsettled) {
            return Err(Refusal::Busy);
        }
        let sights: Vec<Sight> = asks.into_iter().map(Sight::from).collect();
        let verdicts = self
            .index
            .judge_now(&sights)
            .into_iter()
            .map(|verdict| match verdict {
                Verdict::New => None,
                Verdict::Known(fact) => Some(fact),
            });
        Ok(wire::encode(&verdicts.collect::<Vec<_>>()))
    }

    fn facts(&self, facts: wire::Facts) -> Result<Bytes, Refusal> {
        if facts.len() > wire::MAX_FACTS {
            return Err(Refusal::Malformed);
        }
        let mut commit = Commit::new();
        for (content, fact) in facts {
            if matches!(self.store.fact(&content), Ok(None)) {
                commit.put_fact(&content, fact);
            }
        }
        self.store.apply(&commit).map_err(|_| Refusal::Busy)?;
        Ok(Bytes::new())
    }

    async fn deltas(&self, from: PeerId, deltas: wire::Deltas) -> Result<Bytes, Refusal> {
        if deltas.len() > wire::MAX_NAMES {
            return Err(Refusal::Malformed);
        }
        let looks = deltas
            .iter()
            .map(|delta| self.may_change(from, &delta.domain));
        let is_theirs = future::join_all(looks).await;
        let taken = deltas
            .into_iter()
            .zip(&is_theirs)
            .filter(|(_, is_theirs)| **is_theirs);
        let taken = taken.map(|(delta, _)| delta).collect();
        let mut answers = self
            .orders
            .deltas(taken)
            .await
            .map_err(|_| Refusal::Busy)?
            .into_iter();
        let answer = |is_theirs| {
            if is_theirs {
                answers.next()
            } else {
                Some(DeltaAnswer::Stranger)
            }
        };
        let all: Vec<DeltaAnswer> = is_theirs.into_iter().filter_map(answer).collect();
        Ok(wire::encode(&all))
    }

    /// Whoever changes a domain must be near it on the ring by this peer's own view: its owner, or
    /// one of the next who was or will be while views differ. Without a view nobody is turned away.
    async fn may_change(&self, from: PeerId, domain: &Domain) -> bool {
        let near = time::timeout(VIEW_WITHIN, self.overlay.owners(domain.key(), COPIES + 1)).await;
        near.ok()
            .and_then(Result::ok)
            .is_none_or(|near| near.contains(&from))
    }

    /// Answers when the copies are here.
    async fn fetch(&self, from: PeerId, domains: Vec<Domain>) -> Result<Bytes, Refusal> {
        if domains.len() > wire::MAX_NAMES {
            return Err(Refusal::Malformed);
        }
        let mut taken = Vec::new();
        for domain in domains {
            if self.may_change(from, &domain).await {
                taken.push(domain);
            }
        }
        let pulled = puller::pull(self.overlay.as_ref(), &self.orders, from, taken).await;
        pulled.map(|()| Bytes::new()).map_err(|_| Refusal::Busy)
    }

    /// Only whoever owns the domain can have something of it fetched.
    async fn lease(&self, from: PeerId, ask: LeaseAsk) -> Result<Bytes, Refusal> {
        if !self.may_change(from, &ask.url.domain()).await {
            return Err(Refusal::NotMine);
        }
        self.orders
            .lease(from, ask)
            .await
            .map_err(|_| Refusal::Busy)?;
        Ok(Bytes::new())
    }

    async fn leased(&self, from: PeerId, result: LeaseResult) -> Result<Bytes, Refusal> {
        self.orders
            .tell(SwarmOrder::Leased(from, Box::new(result)))
            .await;
        Ok(Bytes::new())
    }

    /// Nobody is told what is here while it may still change: the new owner would do again what is
    /// being done.
    async fn census(&self, ask: CensusAsk) -> Result<Bytes, Refusal> {
        self.farewell.note();
        let is_leaving = self.farewell.is_leaving.load(Relaxed);
        let is_mine = ask.arc != whole_ring() && self.tenancy.claim(ask.arc.to) != Claim::Foreign;
        if !is_leaving && (is_mine || !self.orders.is_drained(ask.arc).await) {
            return Err(Refusal::Busy);
        }
        let domains = self
            .store
            .domains("", ask.after.as_ref(), SCANNED)
            .map_err(|_| Refusal::Busy)?;
        let is_last = domains.len() < SCANNED;
        let (mut held, mut bytes) = (Vec::new(), 0);
        let mut after = None;
        for (domain, state) in domains {
            if bytes > wire::FRAME_BYTES {
                after = held
                    .last()
                    .map(|(domain, _): &(Domain, Versions)| domain.clone());
                return Ok(wire::encode(&CensusPage { held, after }));
            }
            after = Some(domain.clone());
            if ask.arc.contains(domain.key()) {
                let entry = (domain.clone(), decode_state(&domain, &state).versions);
                bytes += wire::plain_bytes(&entry);
                held.push(entry);
            }
        }
        let after = after.filter(|_| !is_last);
        if after.is_none() && is_leaving {
            self.farewell.censuses.fetch_add(1, Relaxed);
        }
        Ok(wire::encode(&CensusPage { held, after }))
    }

    fn offer(&self, from: PeerId, offers: Vec<(Domain, Versions)>) -> Result<Bytes, Refusal> {
        if offers.len() > wire::MAX_NAMES {
            return Err(Refusal::Malformed);
        }
        let answers: Vec<OfferAnswer> = offers
            .into_iter()
            .map(|(domain, versions)| self.consider(from, domain, &versions))
            .collect();
        Ok(wire::encode(&answers))
    }

    fn consider(&self, from: PeerId, domain: Domain, theirs: &Versions) -> OfferAnswer {
        let Ok(mine) = holdings::versions(&self.store, &domain) else {
            return OfferAnswer::Wanted;
        };
        match mine.stance(theirs) {
            Stance::Same => OfferAnswer::Held,
            Stance::Skip => OfferAnswer::Newer,
            Stance::Replace | Stance::Merge => {
                self.puller.want(domain, from);
                OfferAnswer::Wanted
            }
        }
    }

    fn values(&self, domains: Vec<Domain>) -> Result<Bytes, Refusal> {
        self.farewell.note();
        if domains.len() > wire::MAX_NAMES {
            return Err(Refusal::Malformed);
        }
        let (mut parcels, mut room) = (Vec::new(), wire::FRAME_BYTES);
        for domain in domains {
            let value = Value::read(&self.store, &domain).map_err(|_| Refusal::Busy)?;
            let Some(value) = value else {
                parcels.push(Parcel::Unknown(domain));
                continue;
            };
            let bytes = wire::plain_bytes(&value) + domain.as_str().len();
            if bytes > wire::FRAME_BYTES {
                parcels.push(self.wrap(domain, &value));
                continue;
            }
            if bytes > room {
                break;
            }
            room -= bytes;
            parcels.push(Parcel::Whole(domain, value));
        }
        Ok(wire::encode(&parcels))
    }

    /// Keeps a large value until it is fetched in pieces.
    fn wrap(&self, domain: Domain, value: &Value) -> Parcel {
        let bytes: Bytes = postcard::to_stdvec(value)
            .expect("names, numbers and lists always serialise")
            .into();
        let id = rand::random();
        let mut large = self.large.lock().unwrap_or_else(PoisonError::into_inner);
        if large.len() == MAX_LARGE {
            large.pop_front();
        }
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        large.push_back((id, domain.clone(), bytes));
        Parcel::Large {
            domain,
            id,
            bytes: length,
        }
    }

    fn piece(&self, ask: &PieceAsk) -> Result<Bytes, Refusal> {
        self.farewell.note();
        let large = self.large.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = large
            .iter()
            .find(|(id, domain, _)| *id == ask.id && *domain == ask.domain);
        let Some((_, _, bytes)) = whole else {
            return Ok(Bytes::new());
        };
        let from = (ask.offset as usize).min(bytes.len());
        let to = (from + wire::FRAME_BYTES).min(bytes.len());
        Ok(bytes.slice(from..to))
    }

    fn facts_in(&self, ask: &FactsAsk) -> Result<Bytes, Refusal> {
        self.farewell.note();
        let from = ask.after.unwrap_or(ask.arc.from);
        if ask.after == Some(ask.arc.to) {
            return Ok(wire::encode(&wire::Facts::new()));
        }
        let facts = self
            .store
            .facts_in(from, ask.arc.to, wire::MAX_FACTS)
            .map_err(|_| Refusal::Busy)?;
        Ok(wire::encode(
            &wire::portions(facts, wire::MAX_FACTS)
                .into_iter()
                .next()
                .unwrap_or_default(),
        ))
    }
}
