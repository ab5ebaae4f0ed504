//! Taking over and handing over parts of the ring, whatever the reason: a join, a leave, a crash, a return.
//!
//! Whoever gains an arc asks all who may have held it which domains they have and how new their copies are, fetches what
//! is newer than its own, and only then acts on the arc. Whoever loses one stops crawling it, and offers what it has.

use super::{
    COPIES, holdings,
    orders::{Orders, SwarmOrder},
    puller,
    sweep::Sweeper,
    tenancy::{Tenancy, whole_ring},
    wire::{self, CensusAsk, CensusPage, FactsAsk},
};
use apoidea_crawl::{Stamp, Stance};
use apoidea_model::{Domain, PeerId};
use apoidea_overlay::{Arc as RingArc, ArcChange, Overlay, Refusal, RequestError};
use apoidea_store::{Commit, Store};
use futures::future;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time,
};

/// A former owner may still be finishing fetches, or not know yet that it is not the owner any more.
const PATIENCE: Duration = Duration::from_secs(20);
/// A former owner that is not on the ring any more has left, and answers at once, or it is dead.
const LAST_WORDS: Duration = Duration::from_millis(2500);
const AGAIN: Duration = Duration::from_millis(200);
/// Tries with a peer that does not answer at all.
const TRIES: u32 = 2;
/// A tick that comes so much late means that the machine slept: meanwhile others may have taken over.
const ASLEEP: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_secs(1);

/// Follows the ring.
#[derive(Clone)]
pub(crate) struct Settler {
    pub overlay: Arc<dyn Overlay>,
    pub store: Store,
    pub tenancy: Arc<Tenancy>,
    pub orders: Orders,
    pub sweeper: Sweeper,
}

impl Settler {
    /// Follows the ring until the task is dropped.
    pub(crate) async fn run(self, mut changes: Receiver<ArcChange>) {
        let from = self.wait_for_a_place(&mut changes).await;
        self.clone().settle_first(from);
        let mut last_tick = Instant::now();
        loop {
            let change = time::timeout(TICK, changes.recv()).await;
            if last_tick.elapsed() > ASLEEP {
                self.begin(whole_ring(), None);
            }
            last_tick = Instant::now();
            match change {
                Ok(Ok(ArcChange::Gained { arc, from })) => self.begin(arc, from),
                Ok(Ok(ArcChange::Lost { arc, to: Some(to) })) => self.lose(arc, Some(to)).await,
                Ok(Ok(ArcChange::Lost { arc, to: None })) => {
                    // Outside the ring: whatever place comes next is as new as the first.
                    self.lose(arc, None).await;
                    self.tenancy.unsettle(whole_ring());
                    let place = self.wait_for_a_place(&mut changes).await;
                    self.clone().settle_first(place);
                    last_tick = Instant::now();
                }
                Ok(Err(RecvError::Lagged(_))) => {
                    self.orders.tell(SwarmOrder::Lose(whole_ring())).await;
                    self.begin(whole_ring(), None);
                }
                Ok(Err(RecvError::Closed)) => return,
                Err(_) => {}
            }
        }
    }

    /// Until this peer has a place on the ring, or knows that it is alone, nothing is its own.
    async fn wait_for_a_place(&self, changes: &mut Receiver<ArcChange>) -> (RingArc, Option<PeerId>) {
        let mut place = (whole_ring(), None);
        while !self.overlay.owns(self.overlay.me().key()) {
            if let Ok(Ok(ArcChange::Gained { arc, from })) = time::timeout(AGAIN, changes.recv()).await {
                place = (arc, from);
            }
        }
        place
    }

    /// The first place: until it is settled, the whole ring is not.
    fn settle_first(self, (arc, from): (RingArc, Option<PeerId>)) {
        tokio::spawn(async move {
            self.hear(arc, from).await;
            self.tenancy.settle(whole_ring());
            self.act_on(arc).await;
        });
    }

    fn begin(&self, arc: RingArc, from: Option<PeerId>) {
        self.tenancy.unsettle(arc);
        self.clone().settle_soon(arc, from);
    }

    fn settle_soon(self, arc: RingArc, from: Option<PeerId>) {
        tokio::spawn(async move { self.settle(arc, from).await });
    }

    /// Hears everyone who may have held the arc, then begins to act on it.
    async fn settle(&self, arc: RingArc, from: Option<PeerId>) {
        self.hear(arc, from).await;
        self.tenancy.settle(arc);
        self.act_on(arc).await;
    }

    async fn act_on(&self, arc: RingArc) {
        // A peer that is stopping acts on nothing any more.
        let _ = self.orders.activate(arc).await;
        self.sweeper.hurry();
    }

    /// Fetches what is newer at those who may have held the arc.
    async fn hear(&self, arc: RingArc, from: Option<PeerId>) {
        let sources = self.sources(arc, from).await;
        let heard = sources.iter().map(|(source, patience)| async {
            time::timeout(*patience, self.census(*source, arc)).await.unwrap_or_default()
        });
        let heard = future::join_all(heard).await;
        let sources: Vec<PeerId> = sources.into_iter().map(|(source, _)| source).collect();
        let wanted = self.choose(sources.iter().copied().zip(heard));
        let fetched = wanted.into_iter().map(|(source, domains)| {
            let orders = &self.orders;
            async move {
                let count = domains.len();
                match puller::pull(self.overlay.as_ref(), orders, source, domains).await {
                    Ok(()) => tracing::debug!(?source, count, "copies were fetched"),
                    Err(error) => tracing::warn!(?source, count, %error, "copies were not fetched"),
                }
            }
        });
        future::join_all(fetched).await;
        let facts = sources.iter().map(|source| time::timeout(LAST_WORDS, self.facts(*source, arc)));
        future::join_all(facts).await;
    }

    /// Who may have held keys of the arc, and how long to wait for each: those who come after this peer, and its last
    /// owner.
    async fn sources(&self, arc: RingArc, from: Option<PeerId>) -> Vec<(PeerId, Duration)> {
        let me = self.overlay.me();
        let key = if arc == whole_ring() { me.key() } else { arc.to };
        let next = self.overlay.owners(key, COPIES + 1).await.unwrap_or_default();
        let last = from.filter(|from| !next.contains(from)).map(|from| (from, LAST_WORDS));
        let next = next.into_iter().filter(|peer| *peer != me).map(|peer| (peer, PATIENCE));
        next.chain(last).collect()
    }

    /// What a peer holds of an arc. Whoever is gone holds nothing.
    async fn census(&self, source: PeerId, arc: RingArc) -> Vec<(Domain, Stamp)> {
        let (mut held, mut after, mut failures) = (Vec::new(), None, 0);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && failures < TRIES {
            let ask = wire::encode(&CensusAsk { arc, after: after.clone() });
            match self
                .overlay
                .request(source, wire::CENSUS, ask)
                .await
                .and_then(|answer| Ok(wire::decode(&answer)?))
            {
                Ok(CensusPage { held: page, after: next }) => {
                    held.extend(page.into_iter().filter(|(domain, _)| self.overlay.owns(domain.key())));
                    match next {
                        Some(next) => after = Some(next),
                        None => return held,
                    }
                }
                Err(RequestError::Refused(Refusal::Busy)) => time::sleep(AGAIN).await,
                Err(error) => {
                    tracing::debug!(?source, %error, "a former holder was not heard");
                    failures += 1;
                    time::sleep(AGAIN).await;
                }
            }
        }
        held
    }

    /// From whom to fetch what: the newest copy of each domain, and all that may hold something of their own.
    fn choose(
        &self,
        heard: impl Iterator<Item = (PeerId, Vec<(Domain, Stamp)>)>,
    ) -> BTreeMap<PeerId, Vec<Domain>> {
        let mut best: BTreeMap<Domain, (Stamp, PeerId)> = BTreeMap::new();
        let mut wanted: BTreeMap<PeerId, Vec<Domain>> = BTreeMap::new();
        let me = self.overlay.me();
        for (source, held) in heard {
            for (domain, stamp) in held {
                let mine = holdings::stamp(&self.store, &domain).unwrap_or(Stamp::ZERO);
                match mine.stance(me, stamp, source) {
                    Stance::Same | Stance::Skip => {}
                    Stance::Merge => wanted.entry(source).or_default().push(domain),
                    Stance::Replace => {
                        let known = best.entry(domain).or_insert((stamp, source));
                        *known = (*known).max((stamp, source));
                    }
                }
            }
        }
        for (domain, (_, source)) in best {
            wanted.entry(source).or_default().push(domain);
        }
        wanted
    }

    /// Takes over a peer's content facts of an arc; what is known already stays.
    async fn facts(&self, source: PeerId, arc: RingArc) {
        let mut after = None;
        loop {
            let ask = wire::encode(&FactsAsk { arc, after });
            let Ok(answer) = self.overlay.request(source, wire::FACTS_IN, ask).await else { return };
            let Ok(facts) = wire::decode::<wire::Facts>(&answer) else { return };
            let Some((last, _)) = facts.last() else { return };
            after = Some(last.key());
            let mut commit = Commit::new();
            for (content, fact) in facts {
                if self.overlay.owns(content.key()) && matches!(self.store.fact(&content), Ok(None)) {
                    commit.put_fact(&content, fact);
                }
            }
            if let Err(error) = self.store.apply(&commit) {
                tracing::warn!(%error, "content facts were not taken over");
                return;
            }
        }
    }

    async fn lose(&self, arc: RingArc, to: Option<PeerId>) {
        self.orders.tell(SwarmOrder::Lose(arc)).await;
        let settler = self.clone();
        tokio::spawn(async move {
            let deadline = Instant::now() + PATIENCE;
            while !settler.orders.is_drained(arc).await && Instant::now() < deadline {
                time::sleep(AGAIN).await;
            }
            if let Some(to) = to {
                settler.sweeper.offer_arc(arc, to).await;
            }
            settler.sweeper.hurry();
        });
    }
}
