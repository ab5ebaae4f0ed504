//! Domains that the volunteer refuses while the peer runs.
//!
//! In a swarm, their URLs stay in their queues and helpers fetch them: this peer has no more contact
//! with the domain. A peer that is alone admits them no more, and forgets those that wait. Lists in
//! the settings are the admitter's matter from the start.

use super::{
    Crawler,
    admitter::AdmitError,
    command::{CommandError, RefusalChange},
};
use crate::{clock::now, volunteer::refusals};
use apoidea_model::Domain;
use apoidea_store::{Commit, ReadError};
use std::collections::BTreeSet;
use tokio::sync::oneshot;

/// Domains refused by hand at most; longer lists belong into a file, which is searched faster.
const MAX_REFUSED: usize = 1000;
/// URLs forgotten in one commit.
const AT_ONCE: usize = 1000;

impl Crawler {
    /// Recalls the refusals of earlier runs.
    pub(super) fn recall_refusals(&mut self) -> Result<(), ReadError> {
        *self.parts.admitter.refused_by_hand() = refusals::read(&self.parts.store)?;
        Ok(())
    }

    /// Answers when the change is durable.
    pub(super) async fn change_refusals(
        &mut self,
        change: RefusalChange,
        reply: oneshot::Sender<Result<BTreeSet<Domain>, CommandError>>,
    ) {
        let refused = self.parts.admitter.refused_by_hand();
        let changed = match change {
            RefusalChange::Ask => Ok(()),
            RefusalChange::Add(_) if refused.len() >= MAX_REFUSED => {
                let why = "more than 1,000 domains are refused by hand: put them into a file, crawl.refuse_lists";
                drop(reply.send(Err(CommandError(why.to_owned()))));
                return;
            }
            RefusalChange::Add(domain) => {
                refused.insert(domain.clone());
                let forgotten = match self.parts.swarm.tenancy.is_alone() {
                    true => self.forget_waiting(&domain),
                    false => Ok(()),
                };
                forgotten.and_then(|()| self.remember_refusals())
            }
            RefusalChange::Remove(domain) => {
                refused.remove(&domain);
                self.remember_refusals()
            }
        };
        let answer = match changed {
            Ok(()) => Ok(self.parts.admitter.refused_by_hand().clone()),
            Err(error) => {
                self.note_trouble(&error);
                Err(CommandError(error.to_string()))
            }
        };
        let durable = self.durable().await;
        tokio::spawn(async move {
            if durable.await.is_ok() {
                let _ = reply.send(answer);
            }
        });
    }

    fn remember_refusals(&mut self) -> Result<(), AdmitError> {
        let refused: &BTreeSet<Domain> = self.parts.admitter.refused_by_hand();
        let mut commit = Commit::new();
        refusals::write(refused, &mut commit);
        Ok(self.parts.store.apply(&commit)?)
    }

    /// Forgets the URLs that wait of a domain and of those below it.
    fn forget_waiting(&mut self, refused: &Domain) -> Result<(), AdmitError> {
        let below = format!(".{refused}");
        for entry in self.parts.store.each_domain() {
            let (domain, _) = entry?;
            if domain == *refused || domain.as_str().ends_with(&below) {
                self.empty_queue(&domain)?;
            }
        }
        Ok(())
    }

    /// Pages in processing stay in the queue: they leave it by themselves when they are durable.
    fn empty_queue(&mut self, domain: &Domain) -> Result<(), AdmitError> {
        let in_processing = self.pages.of(domain);
        let mut state = match self.parts.frontier.release(domain) {
            Some(mut state) => {
                state.interrupted(now());
                state
            }
            None => self.parts.admitter.load_state(domain)?,
        };
        self.dirty.remove(domain);
        let mut after = None;
        loop {
            let waiting = self.parts.store.pending(domain, after, AT_ONCE)?;
            let Some(last) = waiting.last() else { break };
            after = Some(last.slot);
            let mut commit = Commit::new();
            let leaving = waiting
                .iter()
                .filter(|pending| !in_processing.contains(&pending.slot));
            leaving
                .clone()
                .for_each(|pending| commit.remove_pending(domain, pending.slot));
            let count = leaving.count() as u64;
            self.parts.store.apply(&commit)?;
            self.parts.admitter.note_left(count);
        }
        // The frontier does not know the domain any more, so the fetches under way are not
        // counted out later.
        state.counters.queued = 0;
        let mut commit = Commit::new();
        commit.put_domain(domain, state.encode());
        commit.unpark(domain);
        Ok(self.parts.store.apply(&commit)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawler::testing::{TestCrawler, url};
    use apoidea_crawl::{Failure, Outcome};

    async fn change(crawler: &mut TestCrawler, change: RefusalChange) -> BTreeSet<Domain> {
        let (reply, answer) = oneshot::channel();
        crawler.change_refusals(change, reply).await;
        crawler.write().await;
        answer.await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_peer_that_is_alone_forgets_what_waits_of_a_refused_domain() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let below: Domain = format!("www.{here}").parse().unwrap();
        let another = crawler.own(1);
        crawler.admit(&[url(&here, 0), url(&below, 1), url(&another, 2)]);
        let refused = change(&mut crawler, RefusalChange::Add(here.clone())).await;
        assert_eq!(refused, BTreeSet::from([here.clone()]));
        assert_eq!(
            (crawler.queue(&here), crawler.queue(&below)),
            (vec![], vec![])
        );
        assert_eq!(crawler.waiting(&another), ["/2"]);
        assert_eq!(crawler.parts.admitter.queued(), 1);
        crawler.admit(&[url(&here, 5)]);
        assert_eq!(crawler.queue(&here), []);
    }

    #[tokio::test]
    async fn a_page_in_processing_ends_by_itself_after_a_refusal() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 3).await;
        change(&mut crawler, RefusalChange::Add(here.clone())).await;
        assert_eq!(crawler.queue(&here), std::slice::from_ref(&pending));
        assert_eq!(crawler.parts.admitter.queued(), 1);
        crawler
            .fetched(&pending, Outcome::Failed(Failure::Read))
            .await;
        assert_eq!(crawler.queue(&here), [], "it is not tried again");
        assert_eq!(crawler.parts.admitter.queued(), 0);
        assert_eq!(crawler.parts.frontier.fetching(), 0);
    }

    #[tokio::test]
    async fn in_a_swarm_a_refused_domain_keeps_its_queue() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        crawler.admit(&[url(&here, 0)]);
        change(&mut crawler, RefusalChange::Add(here.clone())).await;
        crawler.admit(&[url(&here, 1)]);
        assert_eq!(crawler.waiting(&here), ["/0", "/1"]);
    }

    #[tokio::test]
    async fn refusals_survive_a_crash_until_they_are_taken_back() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        change(&mut crawler, RefusalChange::Add(here.clone())).await;
        let mut crawler = crawler.crash();
        crawler.admit(&[url(&here, 0)]);
        assert_eq!(crawler.queue(&here), []);
        let left = change(&mut crawler, RefusalChange::Remove(here.clone())).await;
        assert_eq!(left, BTreeSet::new());
        crawler.admit(&[url(&here, 1)]);
        assert_eq!(crawler.waiting(&here), ["/1"]);
    }

    #[tokio::test]
    async fn a_refusal_is_confirmed_when_it_is_durable() {
        let mut crawler = TestCrawler::alone();
        let (reply, mut answer) = oneshot::channel();
        let add = RefusalChange::Add(crawler.own(0));
        crawler.change_refusals(add, reply).await;
        crawler.take_turns().await;
        assert!(answer.try_recv().is_err());
        crawler.write().await;
        assert!(answer.try_recv().is_ok());
    }
}
