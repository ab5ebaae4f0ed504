//! "Is this content known?", asked where on the ring the content's hash lives.

use crate::{
    page::{
        content::{ContentIndex, LocalIndex, Question, Shown, Sighting, Verdict},
        proof::{Evidence, Nonce, Prover},
    },
    swarm::{
        REPLICATION_FACTOR,
        content::message::{CONTENT, ContentAsk, FACTS, Facts, MAX_FACTS, PROOF, ProofAsk},
        tenancy::{Claim, Tenancy},
        trust::keepers::Keepers,
        wire,
    },
};
use apoidea_model::{ContentHash, PageUrl, PeerId};
use apoidea_overlay::{Overlay, RequestError};
use apoidea_store::Fact;
use futures::{FutureExt, StreamExt, future, stream::FuturesUnordered};
use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};

/// Questions are repeated for so long while the ring mends; then a page counts as new: a page kept
/// twice is better than a page lost.
const PATIENCE: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(500);
/// A peer that does not answer within this may be gone; the ring is asked again for the owner.
const WITHIN: Duration = Duration::from_secs(2);
/// A keeper that does not answer within this is away: the page is kept once more instead.
const PROOF_WITHIN: Duration = Duration::from_secs(2);
/// A look-up that takes longer is tried again; its answer is remembered when it comes.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(1);
/// Questions collect for so long when they have to travel. Processing lags downloading anyway
/// (Apoidea §2.2), but a page that is not processed when a peer crashes is fetched again.
const COLLECT: Duration = Duration::from_millis(120);
/// Facts that wait to be sent to their replicas; more are found by the next sweep.
pub(crate) const MAX_NEWS: usize = 8192;
/// New facts collect for so long.
const NEWS_EVERY: Duration = Duration::from_millis(1500);

/// The answers of the whole ring.
pub(crate) struct RingIndex {
    pub overlay: Arc<dyn Overlay>,
    pub tenancy: Arc<Tenancy>,
    pub local: Arc<LocalIndex>,
    pub prover: Arc<Prover>,
    pub keepers: Keepers,
}

impl ContentIndex for RingIndex {
    fn judge(&self, questions: Vec<Question>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.judge_everywhere(questions))
    }

    fn proof(
        &self,
        fact: &Fact,
        content: ContentHash,
        nonce: Nonce,
    ) -> Pin<Box<dyn Future<Output = Option<Evidence>> + Send + '_>> {
        let (keeper, page) = (fact.keeper, fact.page.clone());
        if keeper == self.overlay.me() {
            return Box::pin(self.prover.prove(page, content, nonce).map(Some));
        }
        let ask = wire::encode(&ProofAsk {
            content,
            page,
            nonce,
        });
        let request = self.overlay.request(keeper, PROOF, ask);
        Box::pin(async move {
            let answer = time::timeout(PROOF_WITHIN, request).await.ok()?.ok()?;
            wire::decode(&answer).ok()
        })
    }

    fn keeper_to_check(&self, page: &PageUrl) -> Option<PeerId> {
        self.keepers.to_check(page)
    }

    fn note_shown(&self, keeper: PeerId, shown: Shown) {
        self.keepers.note(keeper, shown);
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

    /// Questions by the peer to ask; none, where the ring does not say.
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
        if self.tenancy.claim_to_fact(key) == Claim::Owned {
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

    /// Asks one peer, and gives back the questions that it did not answer, after a while.
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
    async fn verdicts(&self, owner: PeerId, asks: Vec<ContentAsk>) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for asks in wire::portions(asks, MAX_FACTS) {
            let request = self.overlay.request(owner, CONTENT, wire::encode(&asks));
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
                    .map(|fact| fact.map_or(Verdict::New, Verdict::Duplicate)),
            );
        }
        verdicts
    }
}

impl From<Sighting> for ContentAsk {
    fn from(sight: Sighting) -> Self {
        ContentAsk {
            content: sight.content,
            page: sight.page,
            time: sight.time,
            standing: sight.standing,
        }
    }
}

impl ContentAsk {
    /// The sight of the peer that asks.
    pub(super) fn seen_by(self, keeper: PeerId) -> Sighting {
        Sighting {
            content: self.content,
            page: self.page,
            time: self.time,
            keeper,
            standing: self.standing,
        }
    }
}

/// Sends new facts to their replicas until the task is dropped.
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
        let mut by_replica: HashMap<PeerId, Facts> = HashMap::new();
        for (content, fact) in facts.drain(..) {
            let owners = overlay
                .owners(content.key(), REPLICATION_FACTOR)
                .await
                .unwrap_or_default();
            for owner in owners.into_iter().filter(|owner| *owner != overlay.me()) {
                by_replica
                    .entry(owner)
                    .or_default()
                    .push((content, fact.clone()));
            }
        }
        let sends = by_replica
            .into_iter()
            .map(|(replica, facts)| send_facts(overlay.as_ref(), replica, facts));
        future::join_all(sends).await;
    }
}

/// Sends facts to a peer that is to hold them.
pub(crate) async fn send_facts(
    overlay: &dyn Overlay,
    to: PeerId,
    facts: Facts,
) -> Result<(), RequestError> {
    for facts in wire::portions(facts, MAX_FACTS) {
        let sent = overlay.request(to, FACTS, wire::encode(&facts)).await;
        sent.inspect_err(|error| tracing::debug!(?to, %error, "content facts were not delivered"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        page::content::{ContentQueue, Standing},
        swarm::testing::{TestPeer, fact, peer},
    };
    use apoidea_model::Time;

    const ME: u8 = 0x20;
    const OWNER: u8 = 0x60;
    const OTHER: u8 = 0xa0;
    const LAST: u8 = 0xe0;

    fn sight(content: ContentHash) -> Sighting {
        let Fact { page, .. } = fact("mine.test");
        Sighting {
            content,
            page,
            time: Time::from_millis(3),
            keeper: peer(ME),
            standing: Standing::Open,
        }
    }

    fn index(me: &TestPeer) -> ContentQueue {
        me.tenancy.note_neighbours([peer(OWNER)].into_iter());
        ContentQueue::open(Arc::new(RingIndex {
            overlay: me.ring.clone(),
            tenancy: me.tenancy.clone(),
            local: me.index.clone(),
            prover: Arc::new(Prover::new(peer(ME), None)),
            keepers: me.keepers(),
        }))
    }

    fn owner() -> TestPeer {
        TestPeer::owner([ME, OWNER, OTHER, LAST].map(peer)).0
    }

    /// All other members answer with a fact from `there.test`, as many as they were asked for.
    fn known_there(me: &TestPeer) {
        me.ring.answer_with(|_, _, body| {
            let asks: Vec<ContentAsk> = wire::decode(&body).unwrap();
            Ok(wire::encode(&vec![Some(fact("there.test")); asks.len()]))
        });
    }

    #[tokio::test(start_paused = true)]
    async fn own_content_is_judged_here() {
        let me = owner();
        let content = me.ring.contents_of(peer(ME), 1)[0];
        let index = index(&me);
        assert_eq!(index.ask(sight(content)).await, Verdict::New);
        let elsewhere = Sighting {
            page: fact("else.test").page,
            ..sight(content)
        };
        let verdict = index.ask(elsewhere).await;
        assert!(
            matches!(verdict, Verdict::Duplicate(first) if first.page == fact("mine.test").page)
        );
        assert!(me.ring.requests.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_owner_of_other_content_is_asked() {
        let me = owner();
        known_there(&me);
        let content = me.ring.contents_of(peer(OTHER), 1)[0];
        let verdict = index(&me).ask(sight(content)).await;
        assert_eq!(verdict, Verdict::Duplicate(fact("there.test")));
        assert_eq!(me.ring.asked(CONTENT), [peer(OTHER)]);
    }

    #[tokio::test(start_paused = true)]
    async fn own_content_waits_until_the_facts_are_taken_over() {
        let (me, _inbox) = TestPeer::new([ME, OWNER].map(peer));
        let content = me.ring.contents_of(peer(ME), 1)[0];
        let index = index(&me);
        let mut verdict = Box::pin(index.ask(sight(content)));
        let early = time::timeout(AGAIN * 4, &mut verdict).await;
        assert!(early.is_err());
        me.know(&content, fact("there.test"));
        me.tenancy
            .end_taking_over_facts(crate::swarm::tenancy::whole_ring());
        assert_eq!(verdict.await, Verdict::Duplicate(fact("there.test")));
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_does_not_answer_holds_up_its_own_pages_only_and_not_for_ever() {
        let me = owner();
        known_there(&me);
        me.ring.silence(peer(OWNER));
        let silent = me.ring.contents_of(peer(OWNER), 1)[0];
        let other = me.ring.contents_of(peer(OTHER), 1)[0];
        let (index, begun) = (index(&me), Instant::now());
        let judged = async |content| (index.ask(sight(content)).await, begun.elapsed());
        let ((new, late), (known, soon)) = tokio::join!(judged(silent), judged(other));
        assert_eq!(known, Verdict::Duplicate(fact("there.test")));
        assert!(soon < WITHIN, "{soon:?}");
        assert_eq!(new, Verdict::New);
        assert!(late > PATIENCE && late < PATIENCE + 2 * WITHIN, "{late:?}");
        assert!(
            me.ring.asked(CONTENT).len() > 5,
            "it is asked again and again"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_owner_is_asked_when_the_first_one_is_gone() {
        let me = owner();
        known_there(&me);
        me.ring.silence(peer(OWNER));
        let content = me.ring.contents_of(peer(OWNER), 1)[0];
        let index = index(&me);
        let mut verdict = Box::pin(index.ask(sight(content)));
        assert!(time::timeout(WITHIN / 2, &mut verdict).await.is_err());
        me.ring.set_members([ME, OTHER, LAST].map(peer));
        assert_eq!(verdict.await, Verdict::Duplicate(fact("there.test")));
        assert_eq!(me.ring.asked(CONTENT), [OWNER, OTHER].map(peer));
    }

    #[tokio::test(start_paused = true)]
    async fn questions_that_come_together_are_asked_together() {
        let me = owner();
        known_there(&me);
        let index = index(&me);
        let contents = me.ring.contents_of(peer(OTHER), 20);
        future::join_all(
            contents
                .into_iter()
                .map(|content| index.ask(sight(content))),
        )
        .await;
        let batches: Vec<Vec<ContentAsk>> = me.ring.sent(peer(OTHER), CONTENT);
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [20]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_of_the_wrong_length_is_not_believed() {
        let me = owner();
        me.ring
            .answer_with(|_, _, _| Ok(wire::encode(&vec![Some(fact("there.test")); 2])));
        let content = me.ring.contents_of(peer(OTHER), 1)[0];
        assert_eq!(index(&me).ask(sight(content)).await, Verdict::New);
    }

    #[tokio::test(start_paused = true)]
    async fn new_facts_reach_the_other_replicas_of_their_content() {
        let me = owner();
        me.ring.answer_with(|_, _, _| Ok(Default::default()));
        let contents = me.ring.contents_of(peer(ME), 3);
        let (tell, news) = mpsc::channel(MAX_NEWS);
        for content in &contents {
            tell.send((*content, fact("mine.test"))).await.unwrap();
        }
        drop(tell);
        spread_news(me.ring.clone(), news).await;
        for replica in [OWNER, OTHER] {
            let sent: Vec<Facts> = me.ring.sent(peer(replica), FACTS);
            let told: Vec<_> = sent.iter().map(Vec::len).collect();
            assert_eq!(told, [3]);
        }
        assert_eq!(me.ring.asked(FACTS).len(), 2);
    }

    #[tokio::test]
    async fn facts_are_sent_in_portions_and_one_that_fails_is_told() {
        let me = owner();
        me.ring.answer_with(|_, _, body| {
            let facts: Facts = wire::decode(&body).unwrap();
            match facts.len() {
                MAX_FACTS => Ok(Default::default()),
                _ => Err(RequestError::Busy),
            }
        });
        let facts = |count| -> Facts {
            let contents = me.ring.contents_of(peer(OTHER), count);
            contents
                .into_iter()
                .map(|content| (content, fact("a.test")))
                .collect()
        };
        let sent = send_facts(me.ring.as_ref(), peer(OTHER), facts(2 * MAX_FACTS)).await;
        assert_eq!(sent, Ok(()));
        let failed = send_facts(me.ring.as_ref(), peer(OTHER), facts(MAX_FACTS + 1)).await;
        assert_eq!(failed, Err(RequestError::Busy));
    }
}
