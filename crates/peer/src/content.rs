//! "Is this content known?" (Apoidea §2.2, Seen-Content)
//!
//! The question goes to whoever is responsible for the content's hash, in batches. [`ContentIndex`] is the interface
//! the whole ring answers through; [`LocalIndex`] is the part of the answer that lies with this peer, which for a ring of
//! one is all of it.

use apoidea_model::{ContentHash, PageUrl, Time};
use apoidea_store::{Commit, Fact, Store};
use std::{future::Future, pin::Pin, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// Most questions in one batch.
const MAX_BATCH: usize = 256;

/// A page whose content is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// What it says.
    pub content: ContentHash,
    /// Where.
    pub page: PageUrl,
    /// When.
    pub time: Time,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody has shown it before, or this very page did.
    New,
    /// Another page says the same.
    Known(Fact),
}

/// Answers questions about content, one verdict for each in the same order.
pub trait ContentIndex: Send + Sync + 'static {
    /// Decides, and remembers the sights that are new.
    fn judge(&self, sights: Vec<Sight>) -> Pin<Box<dyn Future<Output = Vec<Verdict>> + Send + '_>>;
}

/// The facts this peer keeps.
pub struct LocalIndex(pub Store);

impl ContentIndex for LocalIndex {
    fn judge(&self, sights: Vec<Sight>) -> Pin<Box<dyn Future<Output = Vec<Verdict>> + Send + '_>> {
        Box::pin(std::future::ready(self.judge_now(&sights)))
    }
}

impl LocalIndex {
    /// Judges one after the other, so that of two equal pages in one batch the first wins. What cannot be read or
    /// remembered counts as new: a copy too many is better than a page lost.
    fn judge_now(&self, sights: &[Sight]) -> Vec<Verdict> {
        let mut verdicts = Vec::with_capacity(sights.len());
        let mut commit = Commit::new();
        for (i, sight) in sights.iter().enumerate() {
            let earlier = sights[..i].iter().position(|other| other.content == sight.content);
            let fact = match earlier {
                Some(earlier) => Some(match &verdicts[earlier] {
                    Verdict::Known(fact) => Fact::clone(fact),
                    Verdict::New => sights[earlier].fact(),
                }),
                None => self.0.fact(&sight.content).ok().flatten(),
            };
            verdicts.push(match fact {
                Some(fact) if fact.page != sight.page => Verdict::Known(fact),
                Some(_) => Verdict::New,
                None => {
                    commit.put_fact(&sight.content, sight.fact());
                    Verdict::New
                }
            });
        }
        if let Err(error) = self.0.apply(&commit) {
            tracing::warn!(%error, "content facts were not remembered");
        }
        verdicts
    }
}

impl Sight {
    fn fact(&self) -> Fact {
        Fact { page: self.page.clone(), time: self.time }
    }
}

/// Collects questions into batches.
#[derive(Clone)]
pub(crate) struct ContentDesk(mpsc::Sender<(Sight, oneshot::Sender<Verdict>)>);

impl ContentDesk {
    /// Opens a desk before an index. While one batch is being answered the next one collects, so a busy crawl asks in
    /// large batches and a quiet one without delay.
    pub(crate) fn open(index: Arc<dyn ContentIndex>) -> Self {
        let (questions, inbox) = mpsc::channel(MAX_BATCH);
        tokio::spawn(answer(index, inbox));
        ContentDesk(questions)
    }

    /// Asks about one page.
    pub(crate) async fn ask(&self, sight: Sight) -> Verdict {
        let (reply, verdict) = oneshot::channel();
        // A desk that is gone means the peer is stopping: the page will be fetched and asked about again.
        if self.0.send((sight, reply)).await.is_err() {
            return Verdict::New;
        }
        verdict.await.unwrap_or(Verdict::New)
    }
}

async fn answer(index: Arc<dyn ContentIndex>, mut inbox: mpsc::Receiver<(Sight, oneshot::Sender<Verdict>)>) {
    let mut batch = Vec::new();
    while inbox.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let (sights, replies): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
        let verdicts = index.judge(sights).await;
        for (reply, verdict) in replies.into_iter().zip(verdicts) {
            let _ = reply.send(verdict);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(content: &str, page: &str) -> Sight {
        let page = PageUrl::parse(page).unwrap();
        Sight { content: ContentHash::of_body(content.as_bytes()), page, time: Time::from_millis(1) }
    }

    fn index() -> (tempfile::TempDir, LocalIndex) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        (folder, LocalIndex(store))
    }

    #[tokio::test]
    async fn the_first_page_wins_also_within_a_batch() {
        let (_folder, index) = index();
        let (a, b, c) =
            (sight("x", "http://a.test/"), sight("x", "http://b.test/"), sight("y", "http://c.test/"));
        let verdicts = index.judge(vec![a.clone(), b.clone(), c]).await;
        assert_eq!(verdicts, [Verdict::New, Verdict::Known(a.fact()), Verdict::New]);
        assert_eq!(index.judge(vec![b]).await, [Verdict::Known(a.fact())]);
    }

    #[tokio::test]
    async fn a_page_that_is_fetched_again_is_not_its_own_duplicate() {
        let (_folder, index) = index();
        let a = sight("x", "http://a.test/");
        assert_eq!(index.judge(vec![a.clone(), a.clone()]).await, [Verdict::New, Verdict::New]);
        assert_eq!(index.judge(vec![a]).await, [Verdict::New]);
    }

    #[tokio::test]
    async fn many_ask_at_one_desk_and_one_is_told_new() {
        let (_folder, index) = index();
        let desk = ContentDesk::open(Arc::new(index));
        let asks = (0..500).map(|i| {
            let desk = desk.clone();
            async move { desk.ask(sight("same", &format!("http://h{i}.test/"))).await }
        });
        let verdicts = futures::future::join_all(asks).await;
        assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::New).count(), 1);
    }
}
