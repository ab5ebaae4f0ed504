//! Making what changed durable, together with what changed meanwhile.

use super::{Crawler, revisiting::RULE_VALUE, writer::WriteOrder};
use crate::report::status::Attention;
use apoidea_model::Domain;
use apoidea_store::Commit;
use std::time::Duration;
use tokio::{sync::oneshot, time::Instant};

/// Changed states of domains are written after this, together.
const SAVE_AFTER: Duration = Duration::from_millis(200);
/// In a swarm, done pages are told so soon.
const TELL_AFTER: Duration = Duration::from_millis(50);
pub(super) const TOTALS_VALUE: &str = "totals";
pub(super) const QUEUED_VALUE: &str = "queued";

impl Crawler {
    /// The state of a domain in memory has changed.
    pub(super) fn touch(&mut self, domain: &Domain) {
        self.dirty.insert(domain.clone());
        self.save_soon();
    }

    pub(super) fn save_soon(&mut self) {
        self.timers
            .save_at
            .get_or_insert_with(|| Instant::now() + SAVE_AFTER);
    }

    /// Something is done: until the replicas know, a crash would repeat it.
    pub(super) fn tell_soon(&mut self) {
        self.save_soon();
        if self.ledger.is_round_over() && !self.parts.swarm.tenancy.is_alone() {
            let at = Instant::now() + TELL_AFTER;
            self.timers.save_at = self.timers.save_at.map(|save| save.min(at));
        }
    }

    pub(super) async fn save_if_due(&mut self) {
        if self.timers.save_at.is_some_and(|at| at <= Instant::now()) {
            self.timers.save_at = None;
            let round = self.begin_round();
            let order = WriteOrder {
                reply: round,
                ..self.saving()
            };
            self.order(order).await;
        }
    }

    /// Resolves when everything up to now is on the disk.
    pub(super) async fn durable(&mut self) -> oneshot::Receiver<()> {
        let (reply, durable) = oneshot::channel();
        let order = WriteOrder {
            reply: Some(reply),
            ..self.saving()
        };
        self.order(order).await;
        durable
    }

    /// Changed states and totals. Making them durable makes everything applied before durable, too.
    /// The states are applied at once: left to the writing thread, they could overwrite what is
    /// written of a domain meanwhile.
    pub(super) fn saving(&mut self) -> WriteOrder {
        let dirty = std::mem::take(&mut self.dirty);
        let mut states = Commit::new();
        for domain in &dirty {
            if let Some(state) = self.parts.frontier.state(domain) {
                states.put_domain(domain, state.encode());
            }
        }
        if let Err(error) = self.parts.store.apply(&states) {
            self.dirty.extend(dirty);
            self.note_trouble(&error.into());
        }
        let mut commit = Commit::new();
        let queued = self.parts.admitter.queued();
        commit.set_value(QUEUED_VALUE, &queued.to_be_bytes());
        commit.set_value(RULE_VALUE, &self.revisiting.stored());
        match serde_json::to_vec(&self.totals) {
            Ok(totals) => commit.set_value(TOTALS_VALUE, &totals),
            Err(error) => tracing::error!(%error, "the totals are not representable"),
        }
        WriteOrder {
            commit,
            ..WriteOrder::default()
        }
    }

    pub(super) async fn order(&mut self, order: WriteOrder) {
        if !self.parts.writer.send(order).await {
            self.disk.trouble = Some(Attention::WriterEnded);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawler::testing::{TestCrawler, url};
    use crate::{crawler::finding::Finding, state_codec::decode_state};

    #[tokio::test]
    async fn durable_means_written() {
        let mut crawler = TestCrawler::alone();
        let mut durable = crawler.durable().await;
        crawler.take_turns().await;
        assert!(durable.try_recv().is_err());
        crawler.write().await;
        assert!(durable.try_recv().is_ok());
    }

    #[tokio::test]
    async fn the_changed_state_of_a_domain_in_memory_is_saved() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        crawler.fetching(&here, 1).await;
        assert!(crawler.dirty.contains(&here));
        crawler.hand_in().await;
        let stored = crawler.store().domain(&here).unwrap().unwrap();
        assert_eq!(decode_state(&here, &stored), crawler.state_of(&here));
        assert_eq!(crawler.state_of(&here).counters.fetched, 1, "robots.txt");
        assert!(crawler.dirty.is_empty());
    }

    #[tokio::test]
    async fn done_pages_are_told_sooner_in_a_swarm_than_changes_are_saved() {
        let mut crawler = TestCrawler::in_swarm();
        crawler.save_soon();
        let saved = crawler.timers.save_at.unwrap();
        crawler.tell_soon();
        let told = crawler.timers.save_at.unwrap();
        assert!(told + Duration::from_millis(100) < saved);
        crawler.save_soon();
        assert_eq!(crawler.timers.save_at, Some(told));
        let mut alone = TestCrawler::alone();
        alone.save_soon();
        let saved = alone.timers.save_at;
        alone.tell_soon();
        assert_eq!(alone.timers.save_at, saved);
    }

    #[tokio::test]
    async fn a_round_under_way_is_not_hurried() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        crawler.admit(&[url(&here, 1)]);
        crawler.timers.save_at = None;
        assert!(crawler.begin_round().is_some());
        crawler.save_soon();
        let saved = crawler.timers.save_at;
        crawler.tell_soon();
        assert_eq!(crawler.timers.save_at, saved);
        let unheld = Vec::new();
        crawler.tell(Finding::Replicated { unheld }).await;
        crawler.tell_soon();
        assert!(crawler.timers.save_at < saved);
    }

    #[tokio::test]
    async fn without_its_writing_thread_the_crawler_is_in_trouble() {
        let mut crawler = TestCrawler::alone();
        crawler.stop_writer();
        crawler.order(WriteOrder::default()).await;
        assert!(crawler.disk.trouble.is_some());
    }
}
