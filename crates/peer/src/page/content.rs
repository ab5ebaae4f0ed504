//! "Is this content known?" (Apoidea §2.2, Seen-Content)
//!
//! The question goes to whoever is responsible for the content's hash, in batches. [`ContentIndex`]
//! is the interface the whole ring answers through; [`LocalIndex`] is the part of the answer that
//! lies with this peer.

use crate::{
    lock::lock,
    page::proof::{Evidence, Nonce, proof_of},
};
use apoidea_crawl::Novelty;
use apoidea_model::{ContentHash, PageUrl, PeerId, Time, Visit};
use apoidea_store::{Commit, Fact, Store};
use serde::{Deserialize, Serialize};
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time,
};

/// Most questions in one batch.
const MAX_BATCH: usize = 256;
/// Batches that are being answered at the same time; an owner that does not answer must not hold up
/// the others.
const PARALLEL: usize = 16;

/// The waits before each question for a proof. A page is on the disk a moment after its content was
/// first asked about, or a few seconds after, where a computer has much to do.
const PROOF_PAUSES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(300),
    Duration::from_millis(900),
    Duration::from_millis(1800),
    Duration::from_millis(3000),
];

/// A page whose content is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sighting {
    /// What it says.
    pub content: ContentHash,
    /// Where.
    pub page: PageUrl,
    /// When.
    pub time: Time,
    /// The peer that fetched it.
    pub keeper: PeerId,
    /// Whether another peer is said to keep it already.
    pub standing: Standing,
}

/// What the asker knows of other keepers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// Nothing yet.
    Open,
    /// The keeper that was named could not prove that it has the content: the asker keeps it now.
    Unproven,
}

/// The answer. An index knows nothing of earlier visits, so it never says that a page is unchanged;
/// [`crate::page::PageWork`] does.
pub(crate) type Verdict = Novelty<Fact>;

/// A sight that somebody waits to have judged.
#[derive(Debug)]
pub(crate) struct Question {
    pub sight: Sighting,
    reply: oneshot::Sender<Verdict>,
}

impl Question {
    pub(crate) fn answer(self, verdict: Verdict) {
        // Whoever asked may have gone.
        let _ = self.reply.send(verdict);
    }
}

/// A keeper's answer to the question for a body, compared with the body here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It has the body.
    Body,
    /// It answers, and has not.
    Nothing,
    /// It does not answer.
    Silence,
}

/// Answers questions about content.
pub(crate) trait ContentIndex: Send + Sync + 'static {
    /// Decides, each as soon as it can be decided, and remembers the sights that are new. One that
    /// is unproven is new, and takes the place of the fact that was known.
    fn judge(&self, questions: Vec<Question>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// The evidence of the keeper that a fact names; none if it does not answer.
    fn proof(
        &self,
        fact: &Fact,
        content: ContentHash,
        nonce: Nonce,
    ) -> Pin<Box<dyn Future<Output = Option<Evidence>> + Send + '_>>;

    /// The helper that says that it keeps a page, if it is to be checked now.
    fn keeper_to_check(&self, _: &PageUrl) -> Option<PeerId> {
        None
    }

    /// Takes in what a helper has shown of a page that it says it keeps.
    fn note_shown(&self, _: PeerId, _: Shown) {}

    /// How long questions collect before they are asked.
    fn collects_for(&self) -> Duration {
        Duration::ZERO
    }
}

/// The facts this peer keeps.
pub(crate) struct LocalIndex {
    store: Store,
    /// Of two who show the same content at once, one is told that it is new.
    turn: Mutex<()>,
    /// New facts, for the holders of copies. What does not fit is found when everything is
    /// compared.
    news: mpsc::Sender<(ContentHash, Fact)>,
}

impl LocalIndex {
    pub(crate) fn new(store: Store, news: mpsc::Sender<(ContentHash, Fact)>) -> Self {
        LocalIndex {
            store,
            turn: Mutex::new(()),
            news,
        }
    }

    /// Answers at once.
    pub(crate) fn answer(&self, questions: Vec<Question>) {
        let sights: Vec<Sighting> = questions
            .iter()
            .map(|question| question.sight.clone())
            .collect();
        let verdicts = self.judge_now(&sights);
        questions
            .into_iter()
            .zip(verdicts)
            .for_each(|(question, verdict)| question.answer(verdict));
    }

    /// Judges one after the other, so that of two equal pages in one batch the first wins. What
    /// cannot be read or remembered counts as new: a copy too many is better than a page lost.
    pub(crate) fn judge_now(&self, sights: &[Sighting]) -> Vec<Verdict> {
        self.judge_at_most(sights, u64::MAX)
    }

    /// The same, but no more than so many new facts are remembered.
    pub(crate) fn judge_at_most(&self, sights: &[Sighting], mut room: u64) -> Vec<Verdict> {
        let _turn = lock(&self.turn);
        let mut verdicts = Vec::with_capacity(sights.len());
        let mut commit = Commit::new();
        for (i, sight) in sights.iter().enumerate() {
            let earlier = sights[..i]
                .iter()
                .position(|other| other.content == sight.content);
            let fact = match earlier {
                _ if sight.standing == Standing::Unproven => None,
                Some(earlier) => Some(match &verdicts[earlier] {
                    Verdict::Duplicate(fact) => Fact::clone(fact),
                    Verdict::New | Verdict::Unchanged => sights[earlier].fact(),
                }),
                None => self.store.fact(&sight.content).ok().flatten(),
            };
            if fact.is_none() && room > 0 {
                room -= 1;
                commit.put_fact(&sight.content, sight.fact());
                let _ = self.news.try_send((sight.content, sight.fact()));
            }
            let first = fact.as_ref().map(|fact| (&fact.page, fact.clone()));
            let visit = Visit::First;
            verdicts.push(Verdict::of(&sight.page, &visit, &sight.content, first));
        }
        if let Err(error) = self.store.apply(&commit) {
            tracing::warn!(%error, "content facts were not remembered");
        }
        verdicts
    }
}

impl Sighting {
    fn fact(&self) -> Fact {
        Fact {
            page: self.page.clone(),
            time: self.time,
            keeper: self.keeper,
        }
    }
}

/// Collects questions into batches.
#[derive(Clone)]
pub(crate) struct ContentQueue {
    questions: mpsc::Sender<Question>,
    index: Arc<dyn ContentIndex>,
}

impl ContentQueue {
    /// Opens a queue before an index. While one batch is being answered the next one collects, so a
    /// busy crawl asks in large batches and a quiet one without delay.
    pub(crate) fn open(index: Arc<dyn ContentIndex>) -> Self {
        let (questions, inbox) = mpsc::channel(MAX_BATCH);
        tokio::spawn(answer(index.clone(), inbox));
        ContentQueue { questions, index }
    }

    /// Asks about one page.
    pub(crate) async fn ask(&self, sight: Sighting) -> Verdict {
        let (reply, verdict) = oneshot::channel();
        // A queue that is gone means the peer is stopping: the page will be fetched and asked about
        // again.
        if self
            .questions
            .send(Question { sight, reply })
            .await
            .is_err()
        {
            return Verdict::New;
        }
        verdict.await.unwrap_or(Verdict::New)
    }

    /// Can the keeper that a fact names show that it has this body? It may just be writing it, so it
    /// is asked a few times.
    pub(crate) async fn is_proven(&self, fact: &Fact, content: ContentHash, body: &[u8]) -> bool {
        self.shown(fact, content, body).await == Shown::Body
    }

    /// Does the helper that fetched a page the last time keep it, as it said? Some are asked, by
    /// chance. One that is away counts as one that does not: nobody else may have the page.
    pub(crate) async fn is_kept(
        &self,
        page: &PageUrl,
        time: Time,
        content: ContentHash,
        body: &[u8],
    ) -> bool {
        let Some(keeper) = self.index.keeper_to_check(page) else {
            return true;
        };
        let page = page.clone();
        let fact = Fact { page, time, keeper };
        let shown = self.shown(&fact, content, body).await;
        self.index.note_shown(keeper, shown);
        shown == Shown::Body
    }

    async fn shown(&self, fact: &Fact, content: ContentHash, body: &[u8]) -> Shown {
        let nonce: Nonce = rand::random();
        let expected = proof_of(&nonce, body);
        for pause in PROOF_PAUSES {
            time::sleep(pause).await;
            match self.index.proof(fact, content, nonce).await {
                Some(Evidence::Shown(proof)) if proof == expected => return Shown::Body,
                Some(Evidence::Soon) => {}
                Some(Evidence::Shown(_) | Evidence::Lacking) => return Shown::Nothing,
                None => return Shown::Silence,
            }
        }
        Shown::Nothing
    }
}

async fn answer(index: Arc<dyn ContentIndex>, mut inbox: mpsc::Receiver<Question>) {
    let places = Arc::new(Semaphore::new(PARALLEL));
    let mut batch = Vec::new();
    while inbox.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let collects_for = index.collects_for();
        if collects_for.is_zero() {
            index.judge(std::mem::take(&mut batch)).await;
            continue;
        }
        time::sleep(collects_for).await;
        while batch.len() < MAX_BATCH
            && let Ok(question) = inbox.try_recv()
        {
            batch.push(question);
        }
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let (index, batch) = (index.clone(), std::mem::take(&mut batch));
        tokio::spawn(async move {
            index.judge(batch).await;
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    fn sight(content: &str, page: &str) -> Sighting {
        let page = PageUrl::parse(page).unwrap();
        Sighting {
            content: ContentHash::of_body(content.as_bytes()),
            page,
            time: Time::from_millis(1),
            keeper: PeerId::at(Key::from_bytes([1; 32])),
            standing: Standing::Open,
        }
    }

    fn index() -> (tempfile::TempDir, LocalIndex) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        (folder, LocalIndex::new(store, mpsc::channel(1).0))
    }

    impl ContentIndex for LocalIndex {
        fn judge(&self, questions: Vec<Question>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            self.answer(questions);
            Box::pin(std::future::ready(()))
        }

        fn proof(
            &self,
            _: &Fact,
            _: ContentHash,
            _: Nonce,
        ) -> Pin<Box<dyn Future<Output = Option<Evidence>> + Send + '_>> {
            Box::pin(std::future::ready(None))
        }

        fn collects_for(&self) -> Duration {
            Duration::from_millis(1)
        }
    }

    #[test]
    fn the_first_page_wins_also_within_a_batch() {
        let (_folder, index) = index();
        let (a, b, c) = (
            sight("x", "http://a.test/"),
            sight("x", "http://b.test/"),
            sight("y", "http://c.test/"),
        );
        let verdicts = index.judge_now(&[a.clone(), b.clone(), c]);
        assert_eq!(
            verdicts,
            [Verdict::New, Verdict::Duplicate(a.fact()), Verdict::New]
        );
        assert_eq!(index.judge_now(&[b]), [Verdict::Duplicate(a.fact())]);
    }

    #[test]
    fn a_page_that_is_fetched_again_is_not_its_own_duplicate() {
        let (_folder, index) = index();
        let a = sight("x", "http://a.test/");
        assert_eq!(
            index.judge_now(&[a.clone(), a.clone()]),
            [Verdict::New, Verdict::New]
        );
        assert_eq!(index.judge_now(&[a]), [Verdict::New]);
    }

    #[tokio::test]
    async fn many_ask_at_once_and_one_is_told_new() {
        let (_folder, index) = index();
        let queue = ContentQueue::open(Arc::new(index));
        let asks = (0..500).map(|i| {
            let queue = queue.clone();
            async move {
                queue
                    .ask(sight("same", &format!("http://h{i}.test/")))
                    .await
            }
        });
        let verdicts = futures::future::join_all(asks).await;
        assert_eq!(
            verdicts
                .iter()
                .filter(|verdict| **verdict == Verdict::New)
                .count(),
            1
        );
    }
}
