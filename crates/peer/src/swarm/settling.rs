//! Taking over and handing over parts of the ring, whatever the reason: a join, a leave, a crash, a
//! return.
//!
//! Whoever gains an arc asks all who may have held it which domains they have and how new their
//! copies are, fetches what is newer than its own, and only then acts on the arc. Whoever loses one
//! stops crawling it, and offers what it has.

use super::{
    COPIES, holdings,
    orders::{Orders, SwarmOrder},
    puller,
    sweep::Sweeper,
    tenancy::{Tenancy, whole_ring},
    wire::{self, CensusAsk, CensusPage, FactsAsk},
};
use apoidea_crawl::Versions;
use apoidea_model::{Domain, PeerId};
use apoidea_overlay::{Arc as RingArc, ArcChange, Overlay, RequestError};
use apoidea_store::{Commit, Store};
use futures::future;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time,
};

/// A former owner may still be finishing fetches, or not know yet that it is not the owner any
/// more.
const PATIENCE: Duration = Duration::from_secs(20);
/// Whoever is there answers within this.
const LAST_WORDS: Duration = Duration::from_millis(2500);
const AGAIN: Duration = Duration::from_millis(200);
/// A tick that comes so much late means that the machine slept: meanwhile others may have taken
/// over.
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
    async fn wait_for_a_place(
        &self,
        changes: &mut Receiver<ArcChange>,
    ) -> (RingArc, Option<PeerId>) {
        let mut place = (whole_ring(), None);
        while !self.overlay.owns(self.overlay.me().key()) {
            if let Ok(Ok(ArcChange::Gained { arc, from })) =
                time::timeout(AGAIN, changes.recv()).await
            {
                place = (arc, from);
            }
        }
        place
    }

    /// The first place: until it is settled, the whole ring is not.
    fn settle_first(self, (arc, from): (RingArc, Option<PeerId>)) {
        tokio::spawn(async move {
            self.hear(arc, from, whole_ring()).await;
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
        self.hear(arc, from, arc).await;
        self.tenancy.settle(arc);
        self.act_on(arc).await;
    }

    async fn act_on(&self, arc: RingArc) {
        // A peer that is stopping acts on nothing any more.
        let _ = self.orders.activate(arc).await;
        self.sweeper.hurry();
    }

    /// Fetches what others have and this peer lacks: content facts first, which are `unsettled`
    /// then no more. Whoever is on the ring is asked until it has answered: without its word this
    /// peer would begin from nothing what is done already.
    async fn hear(&self, arc: RingArc, from: Option<PeerId>, unsettled: RingArc) {
        let begun = Instant::now();
        let facts = async {
            let sources = self.sources(arc, from).await;
            let facts = sources
                .iter()
                .map(|source| time::timeout(LAST_WORDS, self.facts(*source, arc)));
            future::join_all(facts).await;
            self.tenancy.settle_facts(unsettled);
        };
        let domains = async {
            let mut heard = BTreeSet::new();
            while begun.elapsed() < PATIENCE {
                // A last owner that is not on the ring any more has left, and answers at once, or
                // it is dead.
                let from = from.filter(|_| begun.elapsed() < LAST_WORDS);
                let sources = self.sources(arc, from).await.into_iter();
                let open: Vec<PeerId> = sources.filter(|source| !heard.contains(source)).collect();
                if open.is_empty() {
                    return;
                }
                heard.extend(self.hear_from(open, arc).await);
                time::sleep(AGAIN).await;
            }
            tracing::debug!("not everybody who may have held an arc was heard");
        };
        future::join(facts, domains).await;
    }

    /// Fetches what some peers have and this one lacks; gives those that have told and given
    /// everything.
    async fn hear_from(&self, sources: Vec<PeerId>, arc: RingArc) -> Vec<PeerId> {
        let censuses = sources.into_iter().map(|source| async move {
            let census = time::timeout(LAST_WORDS, self.census(source, arc))
                .await
                .ok()?;
            match census {
                Ok(held) => Some((source, held)),
                Err(error) => {
                    tracing::debug!(?source, %error, "a former holder was not heard");
                    None
                }
            }
        });
        let told: Vec<_> = future::join_all(censuses)
            .await
            .into_iter()
            .flatten()
            .collect();
        let mut heard: BTreeSet<PeerId> = told.iter().map(|(source, _)| *source).collect();
        let fetched = self
            .choose(told)
            .into_iter()
            .map(|(source, domains)| async move {
                let count = domains.len();
                match puller::pull(self.overlay.as_ref(), &self.orders, source, domains).await {
                    Ok(()) => {
                        tracing::debug!(?source, count, "copies were fetched");
                        None
                    }
                    Err(error) => {
                        tracing::warn!(?source, count, %error, "copies were not fetched");
                        Some(source)
                    }
                }
            });
        for source in future::join_all(fetched).await.into_iter().flatten() {
            heard.remove(&source);
        }
        heard.into_iter().collect()
    }

    /// Who may have held keys of the arc: those who come after this peer, and its last owner.
    async fn sources(&self, arc: RingArc, from: Option<PeerId>) -> Vec<PeerId> {
        let me = self.overlay.me();
        let key = if arc == whole_ring() {
            me.key()
        } else {
            arc.to
        };
        let next = self
            .overlay
            .owners(key, COPIES + 1)
            .await
            .unwrap_or_default();
        let last = from.filter(|from| !next.contains(from));
        next.into_iter()
            .chain(last)
            .filter(|peer| *peer != me)
            .collect()
    }

    /// What a peer holds of an arc.
    async fn census(
        &self,
        source: PeerId,
        arc: RingArc,
    ) -> Result<Vec<(Domain, Versions)>, RequestError> {
        let (mut held, mut after) = (Vec::new(), None);
        loop {
            let ask = wire::encode(&CensusAsk { arc, after });
            let answer = self.overlay.request(source, wire::CENSUS, ask).await?;
            let CensusPage {
                held: page,
                after: next,
            } = wire::decode(&answer)?;
            held.extend(
                page.into_iter()
                    .filter(|(domain, _)| self.overlay.owns(domain.key())),
            );
            match next {
                Some(next) => after = Some(next),
                None => return Ok(held),
            }
        }
    }

    /// From whom to fetch what, so that nothing is lacking afterwards: the latest copies first, and
    /// of the others those that contain something else.
    fn choose(
        &self,
        heard: Vec<(PeerId, Vec<(Domain, Versions)>)>,
    ) -> BTreeMap<PeerId, Vec<Domain>> {
        let mut copies: BTreeMap<Domain, Vec<(Versions, PeerId)>> = BTreeMap::new();
        for (source, held) in heard {
            held.into_iter().for_each(|(domain, versions)| {
                copies.entry(domain).or_default().push((versions, source))
            });
        }
        let mut wanted: BTreeMap<PeerId, Vec<Domain>> = BTreeMap::new();
        for (domain, mut copies) in copies {
            copies.sort_by_key(|(versions, _)| std::cmp::Reverse(versions.rank()));
            let mut mine = holdings::versions(&self.store, &domain).unwrap_or_default();
            for (versions, source) in copies {
                if !mine.contain(&versions) {
                    mine = mine.joined(&versions);
                    wanted.entry(source).or_default().push(domain.clone());
                }
            }
        }
        wanted
    }

    /// Takes over a peer's content facts of an arc; what is known already stays.
    async fn facts(&self, source: PeerId, arc: RingArc) {
        let mut after = None;
        loop {
            let ask = wire::encode(&FactsAsk { arc, after });
            let Ok(answer) = self.overlay.request(source, wire::FACTS_IN, ask).await else {
                return;
            };
            let Ok(facts) = wire::decode::<wire::Facts>(&answer) else {
                return;
            };
            let Some((last, _)) = facts.last() else {
                return;
            };
            after = Some(last.key());
            let mut commit = Commit::new();
            for (content, fact) in facts {
                if self.overlay.owns(content.key()) && matches!(self.store.fact(&content), Ok(None))
                {
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
