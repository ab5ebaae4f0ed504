//! "Is this content known?", asked where on the ring the content's hash lives.

use super::{
    COPIES,
    tenancy::{Claim, Tenancy},
    wire,
};
use crate::content::{ContentIndex, LocalIndex, Question, Sight, Verdict};
use apoidea_model::{ContentHash, PeerId};
use apoidea_overlay::Overlay;
use apoidea_store::Fact;
use futures::{StreamExt, future, stream::FuturesUnordered};
use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, time};

/// Questions are repeated for so long while the ring mends; then a page counts as new: a copy too
/// many is better than a page lost.
const PATIENCE: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(500);
/// Whoever does not answer within this may be gone; the ring is asked again who answers for it.
const WITHIN: Duration = Duration::from_secs(2);
/// A look-up that takes longer is tried again; its answer is remembered when it comes.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(1);
/// Questions collect for so long when they have to travel. Processing lags downloading anyway
/// (Apoidea §2.2), but what is not processed when a peer crashes is fetched again.
const COLLECT: Duration = Duration::from_millis(120);
/// Facts that wait to be sent to the holders of their copies; more are found by the next sweep.
pub(crate) const MAX_NEWS: usize = 8192;
/// New facts collect for so long.
const NEWS_EVERY: Duration = Duration::from_millis(1500);

/// The answers of the whole ring.
pub(crate) struct RingIndex {
    pub overlay: Arc<dyn Overlay>,
    pub tenancy: Arc<Tenancy>,
    pub local: Arc<LocalIndex>,
}

impl ContentIndex for RingIndex {
    fn judge(&self, questions: Vec<Question>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.judge_everywhere(questions))
    }

    fn collects_for(&self) -> Duration {
        let is_alone = self.tenancy.is_alone();
        if is_alone { Duration::ZERO } else { COLLECT }
    }
}

impl RingIndex {
    /// Each owner is asked by itself: pages must not wait for an answer about others from a peer
    /// that is gone.
    async fn judge_everywhere(&self, questions: Vec<Question>) {
        let deadline = Instant::now() + PATIENCE;
        let mut asked: FuturesUnordered<_> = self
            .sort(questions)
            .await
            .into_iter()
            .map(|group| self.ask(group))
            .collect();
        while let Some(open) = asked.next().await {
            if Instant::now() > deadline {
                open.into_iter()
                    .for_each(|question| question.answer(Verdict::New));
            } else if !open.is_empty() {
                asked.extend(
                    self.sort(open)
                        .await
                        .into_iter()
                        .map(|group| self.ask(group)),
                );
            }
        }
    }

    /// Questions by whom to ask; nobody, where the ring does not say.
    async fn sort(&self, questions: Vec<Question>) -> HashMap<Option<PeerId>, Vec<Question>> {
        let found = future::join_all(questions.iter().map(|question| self.owner(question))).await;
        let mut by_owner: HashMap<Option<PeerId>, Vec<Question>> = HashMap::new();
        for (owner, question) in found.into_iter().zip(questions) {
            by_owner.entry(owner).or_default().push(question);
        }
        by_owner
    }

    async fn owner(&self, question: &Question) -> Option<PeerId> {
        let key = question.sight.content.key();
        if self.tenancy.claim_to_fact(key) == Claim::Settled {
            return Some(self.overlay.me());
        }
        let owners = time::timeout(LOOK_UP_WITHIN, self.overlay.owners(key, 1))
            .await
            .ok()?
            .ok()?;
        owners
            .first()
            .copied()
            .filter(|owner| *owner != self.overlay.me())
    }

    /// Asks one peer, and gives back what it did not answer, after a while.
    async fn ask(&self, (owner, questions): (Option<PeerId>, Vec<Question>)) -> Vec<Question> {
        if owner == Some(self.overlay.me()) {
            self.local.answer(questions);
            return Vec::new();
        }
        let mut open = questions;
        if let Some(owner) = owner {
            let asks = open
                .iter()
                .map(|question| question.sight.clone().into())
                .collect::<Vec<_>>();
            let verdicts = self.verdicts(owner, asks).await;
            let rest = open.split_off(verdicts.len());
            open.into_iter()
                .zip(verdicts)
                .for_each(|(question, verdict)| question.answer(verdict));
            open = rest;
        }
        if !open.is_empty() {
            time::sleep(AGAIN).await;
        }
        open
    }

    /// The verdicts of one peer, in order, as far as it answered.
    async fn verdicts(&self, owner: PeerId, asks: Vec<wire::ContentAsk>) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for asks in wire::portions(asks, wire::MAX_FACTS) {
            let request = self
                .overlay
                .request(owner, wire::CONTENT, wire::encode(&asks));
            let answer = time::timeout(WITHIN, request)
                .await
                .ok()
                .and_then(Result::ok);
            let facts = answer.and_then(|answer| wire::decode::<Vec<Option<Fact>>>(&answer).ok());
            let Some(facts) = facts.filter(|facts| facts.len() == asks.len()) else {
                break;
            };
            verdicts.extend(
                facts
                    .into_iter()
                    .map(|fact| fact.map_or(Verdict::New, Verdict::Known)),
            );
        }
        verdicts
    }
}

impl From<Sight> for wire::ContentAsk {
    fn from(
        Sight {
            content,
            page,
            time,
        }: Sight,
    ) -> Self {
        wire::ContentAsk {
            content,
            page,
            time,
        }
    }
}

impl From<wire::ContentAsk> for Sight {
    fn from(
        wire::ContentAsk {
            content,
            page,
            time,
        }: wire::ContentAsk,
    ) -> Self {
        Sight {
            content,
            page,
            time,
        }
    }
}

/// Sends new facts to the holders of their copies until the task is dropped.
pub(crate) async fn spread_news(
    overlay: Arc<dyn Overlay>,
    mut news: mpsc::Receiver<(ContentHash, Fact)>,
) {
    let mut facts = Vec::new();
    while news.recv_many(&mut facts, MAX_NEWS).await > 0 {
        time::sleep(NEWS_EVERY).await;
        while let Ok(fact) = news.try_recv() {
            facts.push(fact);
        }
        let mut by_holder: HashMap<PeerId, wire::Facts> = HashMap::new();
        for (content, fact) in facts.drain(..) {
            let owners = overlay
                .owners(content.key(), COPIES)
                .await
                .unwrap_or_default();
            for owner in owners.into_iter().filter(|owner| *owner != overlay.me()) {
                by_holder
                    .entry(owner)
                    .or_default()
                    .push((content, fact.clone()));
            }
        }
        let sends = by_holder
            .into_iter()
            .map(|(holder, facts)| send_facts(overlay.as_ref(), holder, facts));
        future::join_all(sends).await;
    }
}

/// Sends facts to a holder; says whether it has them.
pub(crate) async fn send_facts(overlay: &dyn Overlay, holder: PeerId, facts: wire::Facts) -> bool {
    for facts in wire::portions(facts, wire::MAX_FACTS) {
        if let Err(error) = overlay
            .request(holder, wire::FACTS, wire::encode(&facts))
            .await
        {
            tracing::debug!(?holder, %error, "content facts were not delivered");
            return false;
        }
    }
    true
}
