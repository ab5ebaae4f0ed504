//! Where links and settled pages become durable.

use super::{
    Crawler, Finding, QUEUED_VALUE, SAVE_AFTER, TELL_AFTER, TOTALS_VALUE,
    rounds::{Done, Sent},
};
use crate::{
    admitter::{AdmitError, Desk, encode_state, park},
    page::now,
    status::{State, Status},
    writer::Order,
};
use apoidea_crawl::Event;
use apoidea_model::{CrawlId, Domain, Link, LinkBatch, Pending, Slot, Time};
use apoidea_store::Commit;
use std::time::Duration;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

/// A peer that stops has waited for everything under way already; if a slow server held it up, or
/// the disk did, it still finishes the pages that are here within this.
const FINISH_WITHIN: Duration = Duration::from_millis(2000);
/// Among others there is the goodbye to come, and their copies know what they were told.
const FINISH_WITHIN_AMONG_OTHERS: Duration = Duration::from_millis(300);

impl Crawler {
    /// Sends links that were found at a domain to the peers that own theirs. Those of this peer's
    /// own arc are admitted at once; all others wait in the outbox, durable with the next commit.
    pub(super) fn deliver(
        &mut self,
        links: Vec<Link>,
        found_at: Option<&Domain>,
        now: Time,
    ) -> Result<Sent, AdmitError> {
        let links = links.into_iter().map(without_session);
        let (mine, others): (Vec<Link>, Vec<Link>) = self.divide(links);
        // What enters the queue of the domain itself is told together with the page.
        let leads_on = mine
            .iter()
            .any(|link| found_at.is_some_and(|domain| link.url.host() != domain.as_str()));
        let round = if leads_on { self.rounds.next() } else { 0 };
        let mut mine = mine.into_iter().peekable();
        while mine.peek().is_some() {
            let batch = mine.by_ref().take(LinkBatch::MAX_LINKS).collect();
            self.admit(
                LinkBatch {
                    crawl: CrawlId::OPEN,
                    links: batch,
                },
                now,
            )?;
        }
        Ok(Sent {
            record: self.send_out(others, now)?,
            round,
        })
    }

    /// What this peer may admit itself, and the rest.
    fn divide(&self, links: impl Iterator<Item = Link>) -> (Vec<Link>, Vec<Link>) {
        let tenancy = &self.parts.swarm.tenancy;
        let mut last: Option<(String, bool)> = None;
        links.partition(|link| {
            let host = link.url.host();
            match &last {
                Some((known, is_mine)) if known == host => *is_mine,
                _ => {
                    let is_mine = tenancy.is_settled(link.url.domain().key());
                    last = Some((host.to_owned(), is_mine));
                    is_mine
                }
            }
        })
    }

    /// Puts links for others into the outbox; those that nobody would take are dropped here.
    pub(super) fn send_out(
        &mut self,
        links: Vec<Link>,
        now: Time,
    ) -> Result<Option<u64>, AdmitError> {
        let is_wanted = |link: &Link| self.parts.admitter.may_be_wanted(&link.url, now);
        let links: Vec<Link> = links.into_iter().filter(is_wanted).collect();
        if links.is_empty() {
            return Ok(None);
        }
        let number = self.next_outbox;
        self.next_outbox += 1;
        let mut commit = Commit::new();
        commit.put_outbox(number, &links);
        self.parts.store.apply(&commit)?;
        let recent = self.parts.work.processor.recent();
        links.iter().for_each(|link| recent.insert(&link.url));
        self.parts.swarm.courier.notify_one();
        self.save_soon();
        Ok(Some(number))
    }

    pub(super) fn admit(&mut self, batch: LinkBatch, now: Time) -> Result<(), AdmitError> {
        let mut desk = Desk {
            frontier: &mut self.parts.frontier,
            parking: &mut self.parking,
            totals: &mut self.totals,
            recent: self.parts.work.processor.recent(),
            touched: &mut self.dirty,
            changes: &mut self.changes,
            owned: &mut self.owned,
        };
        let admitted = self.parts.admitter.admit(batch, &mut desk, now);
        self.save_soon();
        admitted
    }

    /// A URL is settled without a page.
    pub(super) fn leave_queue(
        &mut self,
        domain: &Domain,
        slot: Slot,
        sent: Sent,
    ) -> Result<(), AdmitError> {
        let mut commit = Commit::new();
        commit.remove_pending(domain, slot);
        self.parts.admitter.queued = self.parts.admitter.queued.saturating_sub(1);
        self.tell_soon();
        self.parts.store.apply(&commit)?;
        self.done.push_back(Done {
            domain: domain.clone(),
            slot,
            sent,
        });
        Ok(())
    }

    pub(super) fn replace(&mut self, domain: &Domain, pending: &Pending) -> Result<(), AdmitError> {
        let mut commit = Commit::new();
        commit.put_pending(domain, pending);
        self.save_soon();
        self.parts.store.apply(&commit)?;
        self.note_put(domain, pending)
    }

    /// A page is out of processing; its domain may be waiting for that to be parked.
    pub(super) fn finish(&mut self, domain: &Domain, slot: Slot) {
        self.processing.end(domain, slot);
        if !self.processing.has(domain) {
            self.park_if_settled(domain);
        }
    }

    pub(super) fn park_if_settled(&mut self, domain: &Domain) {
        let Some(wake) = self.parking.remove(domain) else {
            return;
        };
        let mut commit = Commit::new();
        self.park_or_release(&mut commit, domain, wake);
        match self.parts.store.apply(&commit) {
            Ok(()) => {
                self.parts.frontier.handle(Event::Parked { wake }, now());
                self.left_memory(domain);
            }
            Err(error) => {
                self.parking.insert(domain.clone(), wake);
                self.is_in_trouble(&error.into());
            }
        }
    }

    pub(super) fn touch(&mut self, domain: &Domain) {
        self.dirty.insert(domain.clone());
        self.save_soon();
    }

    pub(super) fn save_soon(&mut self) {
        self.save_at
            .get_or_insert_with(|| Instant::now() + SAVE_AFTER);
    }

    /// Something is done: until the holders of copies know, a crash would repeat it.
    pub(super) fn tell_soon(&mut self) {
        self.save_soon();
        if self.rounds.are_over() && !self.parts.swarm.tenancy.is_alone() {
            let at = Instant::now() + TELL_AFTER;
            self.save_at = self.save_at.map(|save| save.min(at));
        }
    }

    pub(super) async fn save_if_due(&mut self) {
        if self.save_at.is_some_and(|at| at <= Instant::now()) {
            self.save_at = None;
            let round = self.begin_round();
            let order = Order {
                reply: round,
                ..self.saving()
            };
            self.order(order).await;
        }
    }

    /// States that changed and totals. Making them durable makes everything applied before durable
    /// too. The states are applied at once: left to the writing thread, they could overwrite what
    /// is written of a domain meanwhile.
    pub(super) fn saving(&mut self) -> Order {
        let dirty = std::mem::take(&mut self.dirty);
        let mut states = Commit::new();
        for domain in &dirty {
            if let Some(state) = self.parts.frontier.state(domain) {
                states.put_domain(domain, encode_state(state));
            }
        }
        if let Err(error) = self.parts.store.apply(&states) {
            self.dirty.extend(dirty);
            self.is_in_trouble(&error.into());
        }
        let mut commit = Commit::new();
        commit.set_value(QUEUED_VALUE, &self.parts.admitter.queued.to_be_bytes());
        match serde_json::to_vec(&self.totals) {
            Ok(totals) => commit.set_value(TOTALS_VALUE, &totals),
            Err(error) => tracing::error!(%error, "the totals are not representable"),
        }
        Order {
            commit,
            ..Order::default()
        }
    }

    pub(super) async fn order(&mut self, order: Order) {
        if !self.parts.writer.send(order).await {
            self.trouble = Some("The writing thread has ended; restart the peer".to_owned());
        }
    }

    /// Takes in the pages that servers have answered until they are durable, or until it takes too
    /// long: they would be asked for again.
    async fn finish_answered(&mut self) {
        let within = if self.parts.swarm.tenancy.is_alone() {
            FINISH_WITHIN
        } else {
            FINISH_WITHIN_AMONG_OTHERS
        };
        let until = Instant::now() + within;
        while self.processing.answered() > 0 && self.trouble.is_none() {
            match timeout_at(until, self.parts.findings.recv()).await {
                Ok(Some(finding)) => self.take_all(finding).await,
                Ok(None) | Err(_) => break,
            }
        }
    }

    /// Starts nothing more, finishes the pages that are here, parks what is in memory, and makes
    /// everything durable. Pages still being fetched stay in their queues.
    pub(super) async fn shut_down(mut self) -> Status {
        self.publish(State::Stopping);
        self.finish_answered().await;
        self.release_all_done();
        let mut commit = Commit::new();
        let residents: Vec<Domain> = self
            .parts
            .frontier
            .residents()
            .map(|(domain, _)| domain.clone())
            .collect();
        for domain in residents {
            if let Some(mut state) = self.parts.frontier.release(&domain) {
                state.interrupted(now());
                commit.put_domain(&domain, encode_state(&state));
                let has_work = state.counters.queued > 0;
                park(
                    &mut commit,
                    &domain,
                    if has_work {
                        state.ready_at()
                    } else {
                        Time::NEVER
                    },
                );
            }
        }
        for (domain, wake) in self.parking.drain() {
            park(&mut commit, &domain, wake);
        }
        self.dirty.clear();
        let mut last = self.saving();
        last.commit.absorb(commit);
        let (reply, durable) = oneshot::channel();
        last.reply = Some(reply);
        let writer = self.parts.writer.clone();
        let written = async { writer.send(last).await && durable.await.is_ok() };
        tokio::select! {
            _ = written => {}
            () = trouble(&mut self.parts.findings) => tracing::warn!("the next start recovers what is not written"),
        }
        self.publish(State::Stopping);
        self.parts.reporter.last()
    }
}

/// Waits for the news that the disk cannot be written.
async fn trouble(findings: &mut mpsc::UnboundedReceiver<Finding>) {
    while let Some(finding) = findings.recv().await {
        if matches!(finding, Finding::Trouble(_)) {
            return;
        }
    }
    std::future::pending().await
}

/// A page has one address, whatever session a site hands out with it.
fn without_session(mut link: Link) -> Link {
    if let Some(url) = apoidea_crawl::without_session(&link.url) {
        link.url = url;
    }
    link
}
