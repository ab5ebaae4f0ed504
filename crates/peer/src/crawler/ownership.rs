//! What changes when the ring moves: domains come, domains go, copies of others are kept up to
//! date.

use super::Crawler;
use crate::{
    admitter::{AdmitError, decode_state, encode_state, park},
    page::now,
    swarm::{
        change::Delta,
        holdings,
        orders::SwarmOrder,
        tenancy::Claim,
        value::Value,
        wire::{DeltaAnswer, LinksAnswer},
    },
};
use apoidea_crawl::{DomainState, Event, Stance, Tenure, Versions};
use apoidea_model::{Domain, LinkBatch, PeerId, Slot, Time};
use apoidea_overlay::Arc as RingArc;
use apoidea_store::{Commit, Errand, ReadError, Store};
use std::collections::HashSet;
use tokio::sync::oneshot;

const TENURE_VALUE: &str = "tenure";
/// Domains read and written at a time.
const AT_ONCE: usize = 1000;

impl Crawler {
    pub(super) fn obey_swarm(&mut self, order: SwarmOrder) {
        let now = now();
        let obeyed = match order {
            SwarmOrder::Admit(batch, reply) => self.admit_foreign(batch, reply, now),
            SwarmOrder::Deltas(deltas, reply) => {
                let answers = deltas.iter().map(|delta| self.take_delta(delta)).collect();
                let _ = reply.send(answers);
                Ok(())
            }
            SwarmOrder::Adopt(from, domain, value, reply) => {
                self.adopt(from, domain, value, reply, now);
                Ok(())
            }
            SwarmOrder::Lose(arc) => self.lose(arc, now),
            SwarmOrder::Drained(arc, reply) => {
                let _ = reply.send(self.is_drained(arc));
                Ok(())
            }
            SwarmOrder::Activate(arc, reply) => {
                let activated = self.activate(arc, now);
                let _ = reply.send(());
                activated
            }
            SwarmOrder::Forget(domain, versions) => self.forget(&domain, &versions),
            SwarmOrder::Lease(from, ask, reply) => {
                self.take_lease(from, ask, reply);
                Ok(())
            }
            SwarmOrder::Leased(from, result) => {
                self.take_result(from, *result);
                Ok(())
            }
            SwarmOrder::Quiesce(quiescing) => {
                self.quiescing = Some(quiescing);
                self.take_allowance();
                Ok(())
            }
        };
        if let Err(error) = obeyed {
            self.is_in_trouble(&error);
        }
    }

    /// Begins a tenure that is later than all before.
    pub(super) fn begin_tenure(&mut self, now: Time) -> Result<(), AdmitError> {
        self.changes.tenure = Tenure::begin(self.parts.swarm.me, now, self.changes.tenure);
        let mut commit = Commit::new();
        let bytes = postcard::to_stdvec(&self.changes.tenure).expect("a number always serialises");
        commit.set_value(TENURE_VALUE, &bytes);
        Ok(self.parts.store.apply(&commit)?)
    }

    /// Answers whoever waits for rest, once there is some: nothing under way, nothing that others
    /// do not know. It lasts until they have done what they wanted it for.
    pub(super) fn come_to_rest(&mut self) {
        if self
            .quiescing
            .take_if(|quiescing| quiescing.over.is_cancelled())
            .is_some()
        {
            self.take_allowance();
        }
        let is_at_rest =
            self.parts.frontier.fetching() + self.processing.len() + self.leases.taken() == 0
                && self.errands.is_empty()
                && self.done.is_empty()
                && self.rounds.are_over()
                && self.changes.is_empty();
        let waiting = self.quiescing.as_mut().filter(|_| is_at_rest);
        if let Some(reached) = waiting.and_then(|quiescing| quiescing.reached.take()) {
            let _ = reached.send(());
        }
    }

    fn admit_foreign(
        &mut self,
        batch: LinkBatch,
        reply: oneshot::Sender<LinksAnswer>,
        now: Time,
    ) -> Result<(), AdmitError> {
        let (mut taken, mut declined) = (Vec::new(), Vec::new());
        for (place, link) in (0..).zip(batch.links) {
            if self.parts.swarm.tenancy.is_settled(link.url.domain().key()) {
                taken.push(link);
            } else {
                declined.push(place);
            }
        }
        self.totals.received += taken.len() as u64;
        self.admit(
            LinkBatch {
                crawl: batch.crawl,
                links: taken,
            },
            now,
        )?;
        self.unacknowledged.push((reply, LinksAnswer { declined }));
        Ok(())
    }

    fn take_delta(&mut self, delta: &Delta) -> DeltaAnswer {
        self.apply_delta(delta).unwrap_or_else(|error| {
            tracing::warn!(%error, "a change was not taken in");
            DeltaAnswer::Behind
        })
    }

    /// A change by somebody who takes himself for the owner.
    fn apply_delta(&mut self, delta: &Delta) -> Result<DeltaAnswer, AdmitError> {
        if self.parts.swarm.tenancy.is_settled(delta.domain.key())
            || self.is_under_way(&delta.domain)
        {
            return Ok(holdings::compare(
                &self.versions(&delta.domain)?,
                &delta.versions,
            ));
        }
        let mut commit = Commit::new();
        let answer = holdings::apply(&self.parts.store, delta, &mut commit)?;
        self.parts.store.apply(&commit)?;
        if answer == DeltaAnswer::Applied {
            self.parts.admitter.forget_filter(&delta.domain);
        }
        Ok(answer)
    }

    fn versions(&self, domain: &Domain) -> Result<Versions, ReadError> {
        match self.parts.frontier.state(domain) {
            Some(state) => Ok(state.versions.clone()),
            None => holdings::versions(&self.parts.store, domain),
        }
    }

    /// Takes in a copy of another peer, now or when nothing of the domain is under way.
    fn adopt(
        &mut self,
        from: PeerId,
        domain: Domain,
        value: Box<Value>,
        reply: oneshot::Sender<()>,
        now: Time,
    ) {
        if self.is_under_way(&domain) {
            self.parts.frontier.retire(&domain, now);
            self.adoptions.insert(domain, (from, value, reply));
            return;
        }
        if let Err(error) = self.adopt_now(from, &domain, *value, now) {
            self.is_in_trouble(&error);
        }
        let _ = reply.send(());
    }

    /// Nothing of a domain is under way any more.
    pub(super) fn left_memory(&mut self, domain: &Domain) {
        if self.is_foreign(domain) {
            self.release_done();
        }
        self.adopt_if_waiting(domain);
    }

    fn adopt_if_waiting(&mut self, domain: &Domain) {
        if self.is_under_way(domain) {
            return;
        }
        if let Some((from, value, reply)) = self.adoptions.remove(domain) {
            self.adopt(from, domain.clone(), value, reply, now());
        }
    }

    pub(super) fn is_under_way(&self, domain: &Domain) -> bool {
        self.parts.frontier.is_resident(domain)
            || self.processing.has(domain)
            || self.parking.contains_key(domain)
    }

    fn adopt_now(
        &mut self,
        from: PeerId,
        domain: &Domain,
        value: Value,
        now: Time,
    ) -> Result<(), AdmitError> {
        let mine = self.parts.admitter.load_state(domain)?;
        let stance = mine.versions.stance(&value.versions);
        if matches!(stance, Stance::Same | Stance::Skip) {
            return Ok(());
        }
        let theirs = match value.check(domain, now) {
            Ok(theirs) => theirs,
            Err(error) => {
                tracing::warn!(%domain, ?from, %error, "a copy was refused");
                return Ok(());
            }
        };
        let claim = self.parts.swarm.tenancy.claim(domain.key());
        if theirs.state.versions.latest() > self.changes.tenure && claim != Claim::Foreign {
            self.changes.tenure = theirs.state.versions.latest();
            self.begin_tenure(now)?;
        }
        let (store, mut commit) = (self.parts.store.clone(), Commit::new());
        let waited = mine.counters.queued;
        let state = match stance {
            Stance::Merge => holdings::merge(&store, domain, mine, theirs, now, &mut commit)?,
            _ => holdings::replace(domain, theirs, now, &mut commit),
        };
        if claim == Claim::Settled {
            let queued = &mut self.parts.admitter.queued;
            *queued = (*queued + state.counters.queued).saturating_sub(waited);
            self.start_crawling(domain, state, now, &mut commit);
        }
        store.apply(&commit)?;
        self.parts.admitter.forget_filter(domain);
        if stance == Stance::Merge {
            // Nobody else may know all of it.
            self.changes.note_joined(domain);
            self.save_soon();
        }
        if claim == Claim::Settled {
            self.take_up(store.errands_of(domain)?, now)?;
        }
        Ok(())
    }

    /// Puts a domain among those whose turn comes. Whoever crawled it before may have asked a
    /// moment ago.
    fn start_crawling(
        &mut self,
        domain: &Domain,
        mut state: DomainState,
        now: Time,
        commit: &mut Commit,
    ) {
        if state.counters.queued == 0 || state.stopped().is_some() {
            return;
        }
        state.interrupted(now);
        commit.put_domain(domain, encode_state(&state));
        park(commit, domain, state.ready_at());
        self.parts.frontier.handle(
            Event::Parked {
                wake: state.ready_at(),
            },
            now,
        );
    }

    /// Parks a domain, unless it is somebody else's now.
    pub(super) fn park_or_release(&self, commit: &mut Commit, domain: &Domain, wake: Time) {
        match self.parts.swarm.tenancy.claim(domain.key()) {
            Claim::Foreign => commit.unpark(domain),
            Claim::Settled | Claim::Unsettled => park(commit, domain, wake),
        }
    }

    /// Domains of this arc are not this peer's any more.
    fn lose(&mut self, arc: RingArc, now: Time) -> Result<(), AdmitError> {
        let residents: Vec<Domain> = self
            .parts
            .frontier
            .residents()
            .map(|(domain, _)| domain.clone())
            .collect();
        for domain in residents {
            if arc.contains(domain.key()) && self.is_foreign(&domain) {
                self.parts.frontier.retire(&domain, now);
            }
        }
        self.look_through(|crawler, domain, state, commit| {
            if arc.contains(domain.key())
                && crawler.is_foreign(domain)
                && !crawler.is_under_way(domain)
            {
                commit.unpark(domain);
            }
            Ok(state.counters.queued)
        })?;
        self.release_done();
        Ok(())
    }

    pub(super) fn is_foreign(&self, domain: &Domain) -> bool {
        self.parts.swarm.tenancy.claim(domain.key()) == Claim::Foreign
    }

    /// Is nothing of the arc under way, and none of it this peer's?
    fn is_drained(&self, arc: RingArc) -> bool {
        let is_busy = |domain: &Domain| arc.contains(domain.key()) && self.is_foreign(domain);
        let residents = self.parts.frontier.residents().map(|(domain, _)| domain);
        !residents
            .chain(self.processing.domains())
            .chain(self.parking.keys())
            .any(is_busy)
    }

    /// Domains of this arc are this peer's to crawl.
    fn activate(&mut self, arc: RingArc, now: Time) -> Result<(), AdmitError> {
        self.begin_tenure(now)?;
        self.look_through(|crawler, domain, mut state, commit| {
            let is_ours =
                arc.contains(domain.key()) && crawler.parts.swarm.tenancy.is_settled(domain.key());
            if is_ours
                && !crawler.is_under_way(domain)
                && crawler.parts.store.wake(domain)?.is_none()
            {
                // As a copy its queue was only estimated.
                state.counters.queued = crawler.parts.store.queue_length(domain)?;
                commit.put_domain(domain, encode_state(&state));
                let queued = state.counters.queued;
                crawler.start_crawling(domain, state, now, commit);
                return Ok(queued);
            }
            Ok(state.counters.queued)
        })?;
        self.take_up_errands(now)?;
        self.parts.frontier.handle(Event::Parked { wake: now }, now);
        self.parts.swarm.courier.notify_one();
        Ok(())
    }

    /// Carries out what the last owners of this peer's domains have left undone.
    fn take_up_errands(&mut self, now: Time) -> Result<(), AdmitError> {
        let mut last: Option<Errand> = None;
        loop {
            let some = self.parts.store.errands(last.as_ref(), AT_ONCE)?;
            let Some(end) = some.last().cloned() else {
                return Ok(());
            };
            last = Some(end);
            let tenancy = self.parts.swarm.tenancy.clone();
            let mine = some
                .into_iter()
                .filter(|errand| tenancy.is_settled(errand.domain.key()));
            self.take_up(mine.collect(), now)?;
        }
    }

    /// Puts the links of errands into the outbox, unless they are there already.
    fn take_up(&mut self, errands: Vec<Errand>, now: Time) -> Result<(), AdmitError> {
        if errands.is_empty() {
            return Ok(());
        }
        let under_way: HashSet<(Domain, Slot)> = self.errands.values().cloned().collect();
        for Errand {
            domain,
            slot,
            links,
        } in errands
        {
            if under_way.contains(&(domain.clone(), slot)) {
                continue;
            }
            match self.send_out(links, now)? {
                Some(record) => _ = self.errands.insert(record, (domain, slot)),
                None => self.delivered.note(domain, slot),
            }
        }
        Ok(())
    }

    /// Goes through all domains known, and adds up what waits at those that are this peer's: `each`
    /// says how much.
    fn look_through(
        &mut self,
        mut each: impl FnMut(&mut Self, &Domain, DomainState, &mut Commit) -> Result<u64, AdmitError>,
    ) -> Result<(), AdmitError> {
        let (mut after, mut queued, mut owned) = (None, 0, 0);
        loop {
            let page = self.parts.store.domains("", after.as_ref(), AT_ONCE)?;
            let is_last = page.len() < AT_ONCE;
            after = page.last().map(|(domain, _)| domain.clone());
            let mut commit = Commit::new();
            for (domain, bytes) in page {
                let state = match self.parts.frontier.state(&domain) {
                    Some(state) => state.clone(),
                    None => decode_state(&domain, &bytes),
                };
                let waiting = each(self, &domain, state, &mut commit)?;
                if !self.is_foreign(&domain) {
                    queued += waiting;
                    owned += 1;
                }
            }
            self.parts.store.apply(&commit)?;
            if is_last {
                break;
            }
        }
        self.parts.admitter.queued = queued;
        self.owned = owned;
        Ok(())
    }

    /// Drops a copy that others hold now.
    fn forget(&mut self, domain: &Domain, versions: &Versions) -> Result<(), AdmitError> {
        let is_the_same = self.versions(domain)? == *versions;
        let is_told =
            !self.changes.has(domain) && !self.done.iter().any(|done| done.domain == *domain);
        if is_the_same && is_told && self.is_foreign(domain) && !self.is_under_way(domain) {
            let mut commit = Commit::new();
            commit.forget_domain(domain);
            self.parts.store.apply(&commit)?;
            self.parts.admitter.forget_filter(domain);
        }
        Ok(())
    }
}

/// The tenure of the last run.
pub(super) fn last_tenure(store: &Store) -> Result<Tenure, ReadError> {
    let stored = store.value(TENURE_VALUE)?;
    Ok(stored
        .and_then(|bytes| postcard::from_bytes(&bytes).ok())
        .unwrap_or_default())
}
