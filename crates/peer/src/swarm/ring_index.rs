//! "Is this content known?", asked where on the ring the content's hash lives.

use super::{
    COPIES,
    tenancy::{Claim, Tenancy},
    wire,
};
use crate::content::{ContentIndex, LocalIndex, Sight, Verdict};
use apoidea_model::{ContentHash, PeerId};
use apoidea_overlay::Overlay;
use apoidea_store::Fact;
use futures::future;
use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, time};

/// Questions are repeated for so long while the ring mends; then a page counts as new: a copy too many is better than
/// a page lost.
const PATIENCE: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(500);
/// Questions collect for so long when they have to travel: processing lags downloading anyway (Apoidea §2.2).
const COLLECT: Duration = Duration::from_millis(300);
/// Facts that wait to be sent to the holders of their copies; more are found by the next sweep.
pub(crate) const MAX_NEWS: usize = 8192;
/// New facts collect for so long.
const NEWS_EVERY: Duration = Duration::from_millis(700);

/// The answers of the whole ring.
pub(crate) struct RingIndex {
    pub overlay: Arc<dyn Overlay>,
    pub tenancy: Arc<Tenancy>,
    pub local: Arc<LocalIndex>,
}

impl ContentIndex for RingIndex {
    fn judge(&self, sights: Vec<Sight>) -> Pin<Box<dyn Future<Output = Vec<Verdict>> + Send + '_>> {
        Box::pin(self.judge_everywhere(sights))
    }

    fn collects_for(&self) -> Duration {
        let is_alone = self.tenancy.is_alone();
        if is_alone { Duration::ZERO } else { COLLECT }
    }
}

impl RingIndex {
    async fn judge_everywhere(&self, sights: Vec<Sight>) -> Vec<Verdict> {
        let deadline = Instant::now() + PATIENCE;
        let mut verdicts: Vec<Option<Verdict>> = vec![None; sights.len()];
        loop {
            let open: Vec<usize> = (0..sights.len()).filter(|&at| verdicts[at].is_none()).collect();
            if open.is_empty() || Instant::now() > deadline {
                return verdicts.into_iter().map(|verdict| verdict.unwrap_or(Verdict::New)).collect();
            }
            let by_owner = self.sort(&sights, open).await;
            let asks = by_owner.iter().map(|(owner, places)| self.ask(*owner, &sights, places));
            for ((_, places), answers) in by_owner.iter().zip(future::join_all(asks).await) {
                places.iter().zip(answers).for_each(|(&at, verdict)| verdicts[at] = Some(verdict));
            }
            if verdicts.iter().any(Option::is_none) {
                time::sleep(AGAIN).await;
            }
        }
    }

    async fn sort(&self, sights: &[Sight], open: Vec<usize>) -> Vec<(PeerId, Vec<usize>)> {
        let mut by_owner: HashMap<PeerId, Vec<usize>> = HashMap::new();
        for at in open {
            let key = sights[at].content.key();
            if self.tenancy.claim_to_fact(key) == Claim::Settled {
                by_owner.entry(self.overlay.me()).or_default().push(at);
            } else if let Ok(owners) = self.overlay.owners(key, 1).await
                && let Some(&owner) = owners.first().filter(|owner| **owner != self.overlay.me())
            {
                by_owner.entry(owner).or_default().push(at);
            }
        }
        by_owner.into_iter().collect()
    }

    /// The verdicts of one peer, in order; none if it did not answer.
    async fn ask(&self, owner: PeerId, sights: &[Sight], places: &[usize]) -> Vec<Verdict> {
        let sights: Vec<Sight> = places.iter().map(|&at| sights[at].clone()).collect();
        if owner == self.overlay.me() {
            return self.local.judge_now(&sights);
        }
        let asks: Vec<wire::ContentAsk> = sights.into_iter().map(wire::ContentAsk::from).collect();
        let mut verdicts = Vec::new();
        for asks in wire::portions(asks, wire::MAX_FACTS) {
            let answer = self.overlay.request(owner, wire::CONTENT, wire::encode(&asks)).await;
            let facts = answer.ok().and_then(|answer| wire::decode::<Vec<Option<Fact>>>(&answer).ok());
            let Some(facts) = facts.filter(|facts| facts.len() == asks.len()) else { break };
            verdicts.extend(facts.into_iter().map(|fact| fact.map_or(Verdict::New, Verdict::Known)));
        }
        verdicts
    }
}

impl From<Sight> for wire::ContentAsk {
    fn from(Sight { content, page, time }: Sight) -> Self {
        wire::ContentAsk { content, page, time }
    }
}

impl From<wire::ContentAsk> for Sight {
    fn from(wire::ContentAsk { content, page, time }: wire::ContentAsk) -> Self {
        Sight { content, page, time }
    }
}

/// Sends new facts to the holders of their copies until the task is dropped.
pub(crate) async fn spread_news(overlay: Arc<dyn Overlay>, mut news: mpsc::Receiver<(ContentHash, Fact)>) {
    let mut facts = Vec::new();
    while news.recv_many(&mut facts, MAX_NEWS).await > 0 {
        time::sleep(NEWS_EVERY).await;
        while let Ok(fact) = news.try_recv() {
            facts.push(fact);
        }
        let mut by_holder: HashMap<PeerId, wire::Facts> = HashMap::new();
        for (content, fact) in facts.drain(..) {
            let owners = overlay.owners(content.key(), COPIES).await.unwrap_or_default();
            for owner in owners.into_iter().filter(|owner| *owner != overlay.me()) {
                by_holder.entry(owner).or_default().push((content, fact.clone()));
            }
        }
        let sends = by_holder.into_iter().map(|(holder, facts)| send_facts(overlay.as_ref(), holder, facts));
        future::join_all(sends).await;
    }
}

/// Sends facts to a holder; says whether it has them.
pub(crate) async fn send_facts(overlay: &dyn Overlay, holder: PeerId, facts: wire::Facts) -> bool {
    for facts in wire::portions(facts, wire::MAX_FACTS) {
        if let Err(error) = overlay.request(holder, wire::FACTS, wire::encode(&facts)).await {
            tracing::debug!(?holder, %error, "content facts were not delivered");
            return false;
        }
    }
    true
}
