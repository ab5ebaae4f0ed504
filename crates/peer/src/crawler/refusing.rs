//! Domains that the volunteer refuses while the peer runs. Among others, their URLs stay in their
//! queues and neighbours fetch them: this peer has no more contact with the domain. Alone, they are
//! not admitted any more, and those that wait are forgotten. Lists in the settings are the
//! admitter's matter from the start.

use super::{Crawler, now};
use crate::{
    admitter::{AdmitError, encode_state},
    handle::{Refusal, RefusalOutcome},
};
use apoidea_model::Domain;
use apoidea_store::{Commit, ReadError};
use std::collections::BTreeSet;
use tokio::sync::oneshot;

/// Domains refused by hand at most; longer lists belong into a file, which is searched faster.
const MAX_REFUSED: usize = 1000;
/// URLs forgotten in one commit.
const AT_ONCE: usize = 1000;
const REFUSED_VALUE: &str = "refused";

impl Crawler {
    /// What was refused in earlier runs.
    pub(super) fn recall_refusals(&mut self) -> Result<(), ReadError> {
        let stored = self.parts.store.value(REFUSED_VALUE)?.unwrap_or_default();
        *self.parts.admitter.refused_by_hand() =
            serde_json::from_slice(&stored).unwrap_or_default();
        Ok(())
    }

    /// Answers when the change is durable.
    pub(super) async fn change_refusals(
        &mut self,
        change: Refusal,
        reply: oneshot::Sender<RefusalOutcome>,
    ) {
        let refused = self.parts.admitter.refused_by_hand();
        let changed = match change {
            Refusal::Ask => Ok(()),
            Refusal::Add(_) if refused.len() >= MAX_REFUSED => {
                let why = "more than 1,000 domains are refused by hand: put them into a file, crawl.refuse_lists";
                drop(reply.send(Err(why.to_owned())));
                return;
            }
            Refusal::Add(domain) => {
                refused.insert(domain.clone());
                let forgotten = match self.parts.swarm.tenancy.is_alone() {
                    true => self.forget_waiting(&domain),
                    false => Ok(()),
                };
                forgotten.and_then(|()| self.remember_refusals())
            }
            Refusal::Remove(domain) => {
                refused.remove(&domain);
                self.remember_refusals()
            }
        };
        let answer = match changed {
            Ok(()) => Ok(self.parts.admitter.refused_by_hand().clone()),
            Err(error) => {
                self.is_in_trouble(&error);
                Err(error.to_string())
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
        let bytes = serde_json::to_vec(refused).expect("names always serialise");
        let mut commit = Commit::new();
        commit.set_value(REFUSED_VALUE, &bytes);
        Ok(self.parts.store.apply(&commit)?)
    }

    /// Forgets what waits of a domain and of those below it.
    fn forget_waiting(&mut self, refused: &Domain) -> Result<(), AdmitError> {
        let below = format!(".{refused}");
        let mut after = None;
        loop {
            let some = self.parts.store.domains("", after.as_ref(), AT_ONCE)?;
            let Some((last, _)) = some.last() else {
                return Ok(());
            };
            after = Some(last.clone());
            for (domain, _) in some {
                if domain == *refused || domain.as_str().ends_with(&below) {
                    self.empty_queue(&domain)?;
                }
            }
        }
    }

    /// Pages in processing stay in the queue: they leave it by themselves when they are durable.
    fn empty_queue(&mut self, domain: &Domain) -> Result<(), AdmitError> {
        let in_processing = self.processing.of(domain);
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
            self.parts.admitter.queued = self.parts.admitter.queued.saturating_sub(count);
        }
        // The frontier does not know the domain any more, so nobody counts the fetches under way
        // out later.
        state.counters.queued = 0;
        let mut commit = Commit::new();
        commit.put_domain(domain, encode_state(&state));
        commit.unpark(domain);
        Ok(self.parts.store.apply(&commit)?)
    }
}
