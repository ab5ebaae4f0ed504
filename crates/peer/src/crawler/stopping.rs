//! Coming to rest, and stopping.

use super::{Crawler, admitter::park, finding::Finding, writer::WriterNews};
use crate::{
    clock::now,
    report::status::{State, Status},
};
use apoidea_model::{Domain, Time};
use apoidea_store::Commit;
use std::time::Duration;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

/// A peer that stops has waited for everything under way already. If a slow server or the disk held
/// it up, it still finishes the pages that are here within this.
const FINISH_WITHIN: Duration = Duration::from_millis(2000);
/// In a swarm, time is left for the hand-over; the replicas already know what is done.
const FINISH_WITHIN_IN_SWARM: Duration = Duration::from_millis(300);

impl Crawler {
    /// Answers a wish for rest, once nothing is under way and the replicas know everything. The
    /// rest lasts until the wish is dropped.
    pub(super) fn come_to_rest(&mut self) {
        let over = self.quiescing.take_if(|wish| wish.over.is_cancelled());
        if over.is_some() {
            self.take_allowance();
        }
        let fetching = self.parts.frontier.fetching() + self.lending.borrowed_count();
        let is_at_rest = fetching == 0
            && self.pages.is_empty()
            && self.ledger.is_round_over()
            && self.ledger.is_empty();
        let waiting = self.quiescing.as_mut().filter(|_| is_at_rest);
        if let Some(reached) = waiting.and_then(|quiescing| quiescing.reached.take()) {
            let _ = reached.send(());
        }
    }

    /// Takes in the pages that servers have answered until they are durable, or until it takes too
    /// long: they would be asked for again.
    async fn finish_answered(&mut self) {
        let within = match self.parts.swarm.tenancy.is_alone() {
            true => FINISH_WITHIN,
            false => FINISH_WITHIN_IN_SWARM,
        };
        let until = Instant::now() + within;
        while self.pages.load().answered > 0 && self.disk.trouble.is_none() {
            match timeout_at(until, self.parts.inbox.findings.recv()).await {
                Ok(Some(finding)) => self.take_all(finding).await,
                Ok(None) | Err(_) => break,
            }
        }
    }

    /// Starts nothing more, finishes the pages that are here, parks the domains in memory, and
    /// makes everything durable. Pages still being fetched stay in their queues.
    pub(super) async fn shut_down(mut self) -> Status {
        self.publish(State::Stopping);
        self.finish_answered().await;
        self.release_all_done();
        let parked = self.park_all();
        self.dirty.clear();
        let mut last = self.saving();
        last.commit.absorb(parked);
        let (reply, durable) = oneshot::channel();
        last.reply = Some(reply);
        let writer = self.parts.writer.clone();
        let written = async { writer.send(last).await && durable.await.is_ok() };
        tokio::select! {
            _ = written => {}
            () = trouble(&mut self.parts.inbox.findings) => {
                tracing::warn!("the next start recovers what is not written");
            }
        }
        self.publish(State::Stopping);
        self.parts.reporter.last()
    }

    /// Parks the domains in memory and those that were leaving it.
    fn park_all(&mut self) -> Commit {
        let mut commit = Commit::new();
        let residents = self.parts.frontier.residents();
        let residents: Vec<Domain> = residents.map(|(domain, _)| domain.clone()).collect();
        for domain in residents {
            if let Some(mut state) = self.parts.frontier.release(&domain) {
                state.interrupted(now());
                commit.put_domain(&domain, state.encode());
                let wake = match state.counters.queued {
                    0 => Time::NEVER,
                    _ => state.ready_at(),
                };
                park(&mut commit, &domain, wake);
            }
        }
        for (domain, wake) in self.parking.drain() {
            park(&mut commit, &domain, wake);
        }
        commit
    }
}

/// Waits for the news that the disk cannot be written.
async fn trouble(findings: &mut mpsc::UnboundedReceiver<Finding>) {
    while let Some(finding) = findings.recv().await {
        if matches!(finding, Finding::Writer(WriterNews::Trouble(_))) {
            return;
        }
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use crate::{
        crawler::{
            finding::Finding,
            parking::RESIDENT,
            testing::{At, TestCrawler, processed, url},
        },
        page::news::{PageNews, page_id},
    };
    use apoidea_crawl::Outcome;
    use std::time::Duration;

    #[tokio::test]
    async fn rest_is_reached_when_nothing_is_under_way_and_all_is_told() {
        let mut crawler = TestCrawler::in_swarm();
        let (here, there, foreign) = (crawler.own(0), crawler.own(1), crawler.foreign(0));
        let pending = crawler.fetching(&here, 3).await;
        let (mut rest, _over) = crawler.wish_for_rest().await;
        crawler.come_to_rest();
        assert!(rest.try_recv().is_err(), "a fetch is under way");
        let links = [url(&there, 5), url(&foreign, 6)];
        crawler.processed(&pending, &links).await;
        crawler.pump();
        assert_eq!(crawler.parts.frontier.fetching(), 0, "nothing starts");
        crawler.write().await;
        crawler.come_to_rest();
        assert!(rest.try_recv().is_err(), "the replicas do not know");
        crawler.save().await;
        crawler.come_to_rest();
        assert!(rest.try_recv().is_err(), "links wait for their owner");
        let record = crawler.outbox()[0].sequence;
        crawler.delivered(record).await;
        crawler.save().await;
        crawler.come_to_rest();
        assert!(rest.try_recv().is_ok());
    }

    #[tokio::test]
    async fn the_crawl_goes_on_when_nobody_wishes_for_rest_any_more() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 2).await;
        let (_rest, over) = crawler.wish_for_rest().await;
        crawler.fetched(&pending, Outcome::Refused(404)).await;
        crawler.pump();
        assert_eq!(crawler.parts.frontier.fetching(), 0);
        over.cancel();
        crawler.come_to_rest();
        crawler.pump();
        assert_eq!(crawler.parts.frontier.fetching(), 1);
    }

    #[tokio::test]
    async fn a_stop_writes_answered_pages_and_parks_all_domains() {
        let mut crawler = TestCrawler::alone();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let fetched = crawler.fetching(&here, 2).await;
        let fetching = crawler.fetching(&there, 2).await;
        crawler.processed(&fetched, &[url(&there, 7)]).await;
        assert_eq!(crawler.waiting(&here), ["/0", "/1"]);
        let (status, next) = crawler.shut_down().await;
        assert_eq!((status.totals.pages, status.queued), (1, 4));
        assert_eq!(next.waiting(&here), ["/1"]);
        assert_eq!(next.queue(&there)[0], fetching, "it is asked for again");
        for domain in [&here, &there] {
            let wake = next.store().wake(domain).unwrap();
            assert!(wake.is_some_and(|wake| wake < RESIDENT));
        }
        assert_eq!(next.parts.admitter.queued(), 4);
    }

    #[tokio::test]
    async fn a_stop_waits_for_a_page_whose_server_has_answered() {
        let mut crawler = TestCrawler::alone();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let pending = crawler.fetching(&here, 1).await;
        crawler.fetched(&pending, Outcome::Page).await;
        let page = processed(&pending, &[url(&there, 7)]);
        let news = PageNews::Processed(page_id(&pending), Box::new(page));
        let findings = crawler.parts.swarm.findings.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            findings.send(Finding::Page(Box::new(news)))
        });
        let (status, next) = crawler.shut_down().await;
        assert_eq!(status.totals.pages, 1);
        assert_eq!(
            (next.queue(&here), next.waiting(&there)),
            (vec![], vec!["/7".to_owned()])
        );
    }

    #[tokio::test]
    async fn a_successor_sees_by_the_versions_what_a_stopped_peer_has_done() {
        let mut crawler = TestCrawler::in_swarm();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let pending = crawler.fetching(&here, 1).await;
        crawler.save().await;
        let before = crawler.state_of(&here).versions;
        crawler.processed(&pending, &[url(&there, 7)]).await;
        crawler.write().await;
        assert_eq!(crawler.stage(&pending), Some(At::Done));
        let (_, next) = crawler.shut_down().await;
        let after = next.state_of(&here).versions;
        assert!(after.contain(&before) && after != before);
    }
}
