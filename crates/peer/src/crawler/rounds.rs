//! Telling the holders of copies what changed, round by round.
//!
//! That a page is done is told together with the links it led to, as long as their owners have not
//! acknowledged them: an errand, which whoever crawls the domain next carries out. Only links to
//! other domains of this peer come first: the holders have them before they learn that the page is
//! done. So whichever peer dies, somebody still has the page or its links, and nobody fetches a
//! page again because its links were on their way.

use super::Crawler;
use crate::{
    admitter::{AdmitError, decode_state, encode_state},
    swarm::{
        change::{Change, Changes, Delta, Extent},
        replication::{Reach, Replication},
    },
};
use apoidea_crawl::Versions;
use apoidea_model::{Domain, Pending, Slot};
use apoidea_store::Commit;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Pages whose links were delivered are noted with the next change of their domain, and all when
/// there are so many or when the first has waited for this long.
const MAX_NOTES: usize = 4096;
const NOTE_WITHIN: Duration = Duration::from_secs(10);

/// A page that is done here, and on the disk.
#[derive(Debug)]
pub(super) struct Done {
    pub domain: Domain,
    pub slot: Slot,
    pub sent: Sent,
}

/// Where the links of a page are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    /// The outbox record with those for others.
    pub record: Option<u64>,
    /// The round that tells the holders of those to other domains of this peer; zero if there are
    /// none.
    pub round: u64,
}

/// How many rounds began, and how many are over; at most one is under way.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    begun: u64,
    ended: u64,
    /// Up to this one, everything is with at least one holder.
    held: u64,
}

/// Pages whose links are with their owners; the holders of copies need not know soon.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    slots: HashMap<Domain, Vec<Slot>>,
    count: usize,
    /// When the first of these was noted.
    since: Option<Instant>,
}

impl Delivered {
    pub(super) fn note(&mut self, domain: Domain, slot: Slot) {
        self.slots.entry(domain).or_default().push(slot);
        self.count += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    fn is_due(&self) -> bool {
        self.count > MAX_NOTES
            || self
                .since
                .is_some_and(|since| since.elapsed() >= NOTE_WITHIN)
    }

    /// Takes out what goes along with these changes, or everything when it is due.
    fn take(&mut self, changes: &Changes) -> HashMap<Domain, Vec<Slot>> {
        let is_due = self.is_due();
        let taken: HashMap<_, _> = self
            .slots
            .extract_if(|domain, _| is_due || changes.has(domain))
            .collect();
        self.count -= taken.values().map(Vec::len).sum::<usize>();
        self.since = self.since.filter(|_| self.count > 0);
        taken
    }
}

impl Rounds {
    pub(super) fn are_over(&self) -> bool {
        self.begun == self.ended
    }

    /// The one that tells of what changes now.
    pub(super) fn next(&self) -> u64 {
        self.begun + 1
    }
}

impl Crawler {
    /// A URL waits for another try.
    pub(super) fn note_put(
        &mut self,
        domain: &Domain,
        pending: &Pending,
    ) -> Result<(), AdmitError> {
        self.change(domain)?.puts.push(pending.clone());
        Ok(())
    }

    /// More of a domain's state has changed than follows from its queue.
    pub(super) fn note_state(&mut self, domain: &Domain) -> Result<(), AdmitError> {
        self.change(domain)?.state = Extent::State;
        Ok(())
    }

    /// The changes to a domain that the holders of copies do not know yet.
    fn change(&mut self, domain: &Domain) -> Result<&mut Change, AdmitError> {
        let (frontier, store) = (&mut self.parts.frontier, &self.parts.store);
        self.dirty.insert(domain.clone());
        self.changes.of(domain, |tenure| {
            if let Some(step) = frontier.advance(domain, tenure) {
                return Ok(step);
            }
            let stored = store.domain(domain)?;
            let mut state = stored
                .map(|bytes| decode_state(domain, &bytes))
                .unwrap_or_default();
            let step = state.versions.advance(tenure);
            let mut commit = Commit::new();
            commit.put_domain(domain, encode_state(&state));
            store.apply(&commit)?;
            Ok(step)
        })
    }

    /// Begins to send what changed, unless the last round is still under way. Gives whom to tell
    /// when all of it is durable here, too.
    pub(super) fn begin_round(&mut self) -> Option<oneshot::Sender<()>> {
        if !self.rounds.are_over() {
            return None;
        }
        self.settle_done();
        self.note_delivered();
        if self.changes.is_empty() && self.unacknowledged.is_empty() {
            return None;
        }
        let deltas = self.deltas();
        let unacknowledged = std::mem::take(&mut self.unacknowledged);
        self.rounds.begun += 1;
        let swarm = &self.parts.swarm;
        let (overlay, puller, findings, sweep) = (
            swarm.overlay.clone(),
            swarm.puller.clone(),
            swarm.findings.clone(),
            swarm.sweep.clone(),
        );
        let is_alone = swarm.tenancy.is_alone();
        let (reply, durable) = oneshot::channel();
        tokio::spawn(async move {
            let reach = match is_alone {
                true => Reach::default(),
                false => {
                    Replication {
                        overlay,
                        puller,
                        sweep,
                    }
                    .send(deltas)
                    .await
                }
            };
            // Whoever sent links sends them again, if nobody but this peer has them.
            let is_held = reach.unheld.is_empty();
            // Nobody listens any more when the peer has stopped.
            let _ = findings.send(super::Finding::Replicated {
                unheld: reach.unheld,
            });
            if is_held && durable.await.is_ok() {
                // Whoever asked may have gone; the links are here all the same.
                unacknowledged
                    .into_iter()
                    .for_each(|(reply, answer)| drop(reply.send(answer)));
            }
        });
        Some(reply)
    }

    /// What changed, as it is sent.
    fn deltas(&mut self) -> Vec<Delta> {
        let (changed, joined) = self.changes.take();
        let announced = joined
            .into_iter()
            .filter(|domain| !changed.contains_key(domain))
            .collect::<Vec<_>>();
        let mut deltas = Vec::with_capacity(changed.len() + announced.len());
        for (domain, change) in changed {
            let (versions, state) = self.versions_and_state(&domain);
            let state = state.filter(|_| change.state == Extent::State);
            deltas.push(change.into_delta(domain, versions, state));
        }
        for domain in announced {
            let (versions, _) = self.versions_and_state(&domain);
            deltas.push(Delta::announcement(domain, versions));
        }
        deltas
    }

    fn versions_and_state(&self, domain: &Domain) -> (Versions, Option<Vec<u8>>) {
        if let Some(state) = self.parts.frontier.state(domain) {
            return (state.versions.clone(), Some(encode_state(state)));
        }
        let stored = self.parts.store.domain(domain).ok().flatten();
        let versions = stored
            .as_ref()
            .map(|bytes| decode_state(domain, bytes).versions);
        (versions.unwrap_or_default(), stored)
    }

    /// The holders may learn that some pages are done.
    fn settle_done(&mut self) {
        let held = self.rounds.held;
        let (ready, waiting): (Vec<Done>, Vec<Done>) = self
            .done
            .drain(..)
            .partition(|done| done.sent.round <= held);
        self.done = waiting.into();
        self.tell_done(ready);
    }

    /// Domains that went to other peers go with what is done. Their links are durable here, and
    /// this peer lives.
    pub(super) fn release_done(&mut self) {
        let (gone, kept): (Vec<Done>, Vec<Done>) = std::mem::take(&mut self.done)
            .into_iter()
            .partition(|done| self.is_foreign(&done.domain) && !self.is_under_way(&done.domain));
        self.done = kept.into();
        self.tell_done(gone);
        self.save_soon();
    }

    /// Whoever takes over from a peer that stops must see what is done from the versions of its
    /// copies.
    pub(super) fn release_all_done(&mut self) {
        let kept = self
            .kept
            .drain()
            .map(|((domain, slot), sent)| Done { domain, slot, sent });
        let all: Vec<Done> = kept.chain(self.done.drain(..)).collect();
        self.tell_done(all);
    }

    fn tell_done(&mut self, done: Vec<Done>) {
        for done in done {
            if self.is_known(&done.domain)
                && let Err(error) = self.tell_one_done(&done)
            {
                self.is_in_trouble(&error);
            }
        }
    }

    /// Links that are still in the outbox go along as an errand.
    fn tell_one_done(&mut self, Done { domain, slot, sent }: &Done) -> Result<(), AdmitError> {
        let links = match sent.record {
            Some(record) => self.parts.store.links_in_outbox(record)?,
            None => None,
        };
        if let (Some(record), Some(links)) = (sent.record, &links) {
            let mut commit = Commit::new();
            commit.put_errand(domain, *slot, links);
            self.parts.store.apply(&commit)?;
            self.errands.insert(record, (domain.clone(), *slot));
        }
        let change = self.change(domain)?;
        change.removes.push(*slot);
        change.errands.extend(links.map(|links| (*slot, links)));
        Ok(())
    }

    /// The links of these outbox records are with their owners.
    pub(super) fn take_delivered(&mut self, records: &[u64]) {
        let mut commit = Commit::new();
        for (domain, slot) in records
            .iter()
            .filter_map(|record| self.errands.remove(record))
        {
            commit.remove_errand(&domain, slot);
            self.delivered.note(domain, slot);
        }
        if let Err(error) = self.parts.store.apply(&commit) {
            self.is_in_trouble(&error.into());
        }
    }

    /// Sees to it that the last pages of a crawl are noted, too.
    pub(super) fn note_in_time(&mut self) {
        if self.delivered.is_due() {
            self.tell_soon();
        }
    }

    /// The holders drop the errands that are done, in their own time: one that is carried out twice
    /// does no harm.
    fn note_delivered(&mut self) {
        for (domain, slots) in self.delivered.take(&self.changes) {
            // Who owns the domain now was told with everything else, and will tell the holders.
            if !self.is_known(&domain) || self.is_foreign(&domain) {
                continue;
            }
            match self.change(&domain) {
                Ok(change) => change.delivered.extend(slots),
                Err(error) => self.is_in_trouble(&error),
            }
        }
    }

    /// A domain that was forgotten, since others hold it, must not come back as an empty one.
    fn is_known(&self, domain: &Domain) -> bool {
        self.parts.frontier.is_resident(domain)
            || matches!(self.parts.store.domain(domain), Ok(Some(_)))
    }

    /// The changes of a round are with the holders, or will be announced once more.
    pub(super) fn end_round(&mut self, unheld: &[Domain]) {
        self.rounds.ended = self.rounds.begun;
        if unheld.is_empty() {
            self.rounds.held = self.rounds.begun;
        }
        let known = unheld
            .iter()
            .filter(|domain| self.is_known(domain))
            .collect::<Vec<_>>();
        known
            .into_iter()
            .for_each(|domain| self.changes.announce(domain));
        if !(self.changes.is_empty() && self.done.is_empty() && self.unacknowledged.is_empty()) {
            self.tell_soon();
        }
    }
}
