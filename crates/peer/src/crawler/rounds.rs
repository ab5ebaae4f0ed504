//! Telling the holders of copies what changed, round by round.
//!
//! That a page is done is told last: only when its links are with their owners, and the changes that its links made here
//! are with the holders, may the copies forget it. So whichever peer dies, somebody still has the page or its links.

use super::Crawler;
use crate::{
    admitter::{AdmitError, decode_state, encode_state},
    swarm::{
        change::{Change, Delta, Extent},
        replication::replicate,
        tenancy::Claim,
    },
};
use apoidea_crawl::Stamp;
use apoidea_model::{Domain, Pending, Slot};
use apoidea_store::Commit;
use tokio::sync::oneshot;

/// A page that is done here, and when the holders of copies may learn of it.
#[derive(Debug)]
pub(super) struct Done {
    domain: Domain,
    slot: Slot,
    /// The round that tells them what its links led to.
    after: u64,
}

/// How many rounds began, and how many are over; at most one is under way.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    begun: u64,
    ended: u64,
}

impl Rounds {
    pub(super) fn are_over(&self) -> bool {
        self.begun == self.ended
    }
}

impl Crawler {
    /// A page is done; its links are in their queues, or in the outbox record of this number.
    pub(super) fn note_done(&mut self, domain: Domain, slot: Slot, sent: Option<u64>) {
        let after = if self.changes.has_puts() { self.rounds.begun + 1 } else { self.rounds.begun };
        let done = Done { domain, slot, after };
        match sent {
            Some(record) => drop(self.undelivered.insert(record, done)),
            None => self.done.push_back(done),
        }
    }

    /// A URL waits for another try.
    pub(super) fn note_put(&mut self, domain: &Domain, pending: &Pending) -> Result<(), AdmitError> {
        self.change(domain)?.puts.push(pending.clone());
        Ok(())
    }

    /// More of a domain's state has changed than follows from its queue.
    pub(super) fn note_state(&mut self, domain: &Domain) -> Result<(), AdmitError> {
        self.change(domain)?.state = Extent::State;
        Ok(())
    }

    /// The changes to a domain that the holders of copies do not know yet. A domain that went to another peer stays in
    /// the tenure it went with: what is told of it late must not look newer than what its new owner does.
    fn change(&mut self, domain: &Domain) -> Result<&mut Change, AdmitError> {
        let (frontier, store) = (&mut self.parts.frontier, &self.parts.store);
        let is_foreign = self.parts.swarm.tenancy.claim(domain.key()) == Claim::Foreign;
        self.dirty.insert(domain.clone());
        self.changes.of(domain, |tenure| {
            if let Some(stamps) = frontier.stamp(domain, tenure) {
                return Ok(stamps);
            }
            let stored = store.domain(domain)?;
            let mut state = stored.map(|bytes| decode_state(domain, &bytes)).unwrap_or_default();
            let before: Stamp = state.stamp;
            state.stamp = before.next(if is_foreign { before.tenure } else { tenure });
            let mut commit = Commit::new();
            commit.put_domain(domain, encode_state(&state));
            store.apply(&commit)?;
            Ok((before, state.stamp))
        })
    }

    /// The links of these outbox records are with their owners.
    pub(super) fn take_delivered(&mut self, records: &[u64]) {
        self.done.extend(records.iter().filter_map(|record| self.undelivered.remove(record)));
        self.save_soon();
    }

    /// Begins to send what changed, unless the last round is still under way. Gives whom to tell when all of it is durable
    /// here, too.
    pub(super) fn begin_round(&mut self) -> Option<oneshot::Sender<()>> {
        if !self.rounds.are_over() {
            return None;
        }
        self.settle_done();
        if self.changes.is_empty() && self.unacknowledged.is_empty() {
            return None;
        }
        let changes = self.changes.take().into_iter();
        let deltas: Vec<Delta> = changes.map(|(domain, change)| self.delta(domain, change)).collect();
        let unacknowledged = std::mem::take(&mut self.unacknowledged);
        self.rounds.begun += 1;
        let swarm = &self.parts.swarm;
        let (overlay, puller, findings) =
            (swarm.overlay.clone(), swarm.puller.clone(), swarm.findings.clone());
        let is_alone = swarm.tenancy.is_alone();
        let (reply, durable) = oneshot::channel();
        tokio::spawn(async move {
            if !is_alone {
                replicate(overlay.as_ref(), &puller, deltas).await;
            }
            // Nobody listens any more when the peer has stopped.
            let _ = findings.send(super::Finding::Replicated);
            if durable.await.is_ok() {
                // Whoever asked may have gone; the links are here all the same.
                unacknowledged.into_iter().for_each(|(reply, answer)| drop(reply.send(answer)));
            }
        });
        Some(reply)
    }

    fn delta(&self, domain: Domain, change: Change) -> Delta {
        let state = match change.state {
            Extent::Queue => None,
            Extent::State => match self.parts.frontier.state(&domain) {
                Some(state) => Some(encode_state(state)),
                None => self.parts.store.domain(&domain).ok().flatten(),
            },
        };
        change.into_delta(domain, state)
    }

    /// The holders know what the links of some pages led to; now they may learn that the pages are done.
    fn settle_done(&mut self) {
        let ended = self.rounds.ended;
        let (ready, waiting): (Vec<Done>, Vec<Done>) =
            self.done.drain(..).partition(|done| done.after <= ended);
        self.done = waiting.into();
        for Done { domain, slot, .. } in ready {
            if !self.is_known(&domain) {
                continue;
            }
            match self.change(&domain) {
                Ok(change) => change.removes.push(slot),
                Err(error) => self.is_in_trouble(&error),
            }
        }
    }

    /// Domains that went to other peers went with what is done: whoever holds copies learns of it now, so that a stamp
    /// means the same everywhere. Their links are durable here, and this peer lives.
    pub(super) fn release_done(&mut self) {
        let tenancy = self.parts.swarm.tenancy.clone();
        let is_gone = |done: &Done| tenancy.claim(done.domain.key()) == Claim::Foreign;
        let (mut gone, kept): (Vec<Done>, Vec<Done>) = self.done.drain(..).partition(is_gone);
        self.done = kept.into();
        gone.extend(self.undelivered.extract_if(|_, done| is_gone(done)).map(|(_, done)| done));
        for done in gone {
            if !self.is_known(&done.domain) {
                continue;
            }
            if self.is_under_way(&done.domain) {
                self.done.push_back(done);
                continue;
            }
            match self.change(&done.domain) {
                Ok(change) => change.removes.push(done.slot),
                Err(error) => self.is_in_trouble(&error),
            }
        }
        self.save_soon();
    }

    /// A domain that was forgotten, since others hold it, must not come back as an empty one.
    fn is_known(&self, domain: &Domain) -> bool {
        self.parts.frontier.is_resident(domain) || matches!(self.parts.store.domain(domain), Ok(Some(_)))
    }

    /// The changes of a round are with the holders.
    pub(super) fn end_round(&mut self) {
        self.rounds.ended = self.rounds.begun;
        if !(self.changes.is_empty() && self.done.is_empty() && self.unacknowledged.is_empty()) {
            self.save_soon();
        }
    }
}
