//! Taking in what the tasks report: the way of a page from its answer to the disk.

use super::{
    Crawler,
    admitter::AdmitError,
    finding::Finding,
    writer::{WriteOrder, WriterNews},
};
use crate::{
    clock::now,
    page::{
        self,
        news::PageNews,
        process::{PageKind, ProcessedPage},
    },
    report::{outcome::PageOutcome, status::PageEvent},
};
use apoidea_crawl::{Effort, Event, FetchReport, Origin, Outcome, Sent, Settlement};
use apoidea_fetch::{ResolveError, RobotsAnswer};
use apoidea_model::{CrawlId, Domain, Link, PageId, PageUrl, Pending, Target, Time, Visit};
use apoidea_store::Commit;
use std::{net::IpAddr, time::Duration};

/// Findings taken in before the frontier is asked again.
const MAX_AT_ONCE: usize = 256;
/// A domain whose name nobody could be asked for waits this long; a line that comes back is noticed
/// about as soon.
const SILENT_PAUSE: Duration = Duration::from_secs(2);

impl Crawler {
    pub(super) async fn take_all(&mut self, first: Finding) {
        let mut next = Some(first);
        for _ in 0..MAX_AT_ONCE {
            let Some(finding) = next else { break };
            self.take(finding).await;
            next = self.parts.inbox.findings.try_recv().ok();
        }
        if let Some(finding) = next {
            self.take(finding).await;
        }
    }

    async fn take(&mut self, finding: Finding) {
        match finding {
            Finding::Page(news) => self.take_page_news(*news).await,
            Finding::Writer(news) => self.take_writer_news(news).await,
            Finding::Delivered(records) => self.take_delivered(&records),
            Finding::Replicated { unheld } => self.end_round(&unheld),
            Finding::TurnedAway { helper, fetch } => self.turned_away(helper, fetch),
            Finding::Taken { helper, fetch } => self.note_taken(helper, &fetch),
            Finding::Returned => self.lending.on_returned(),
            Finding::Granted { asked, grants } => self.take_grants(asked, grants),
            Finding::Unwatched { subscriber, domain } => self.end_watches(subscriber, &domain),
        }
    }

    pub(super) async fn take_page_news(&mut self, news: PageNews) {
        let now = now();
        match news {
            PageNews::Resolved { domain, address } => self.take_resolved(domain, address, now),
            PageNews::Robots {
                domain,
                origin,
                answer,
            } => self.take_robots(domain, origin, answer, now),
            PageNews::Unsent(fetch) => self.return_to_queue(&fetch, Time::ZERO),
            PageNews::Fetched { report, pending } => self.take_fetched(report, pending, now),
            PageNews::PutAside(page) => {
                self.totals.put_aside += 1;
                self.pages.answered(&page, 0);
            }
            PageNews::Processed(page, result) => {
                let bytes = result
                    .records
                    .as_ref()
                    .map_or(0, |records| records.len() as u64);
                self.pages.processed(page, *result, bytes);
                self.take_processed().await;
            }
            PageNews::BorrowedAnswered => self.lending.on_request_ended(),
            PageNews::Borrowed {
                owner,
                fetch,
                answer,
            } => self.return_borrowed(owner, fetch, answer).await,
        }
    }

    async fn take_writer_news(&mut self, news: WriterNews) {
        match news {
            WriterNews::Trouble(trouble) => self.disk.trouble = Some(trouble),
            WriterNews::Durable {
                pages,
                archive_bytes,
            } => {
                self.parts.reporter.archive_bytes = archive_bytes;
                pages.iter().for_each(|page| self.take_durable(page));
                if self.disk.trouble.is_some() {
                    self.recover_from_trouble().await;
                }
            }
        }
    }

    fn take_resolved(&mut self, domain: Domain, address: Result<IpAddr, ResolveError>, now: Time) {
        self.resolving -= 1;
        // Without a name server no name is at fault: the domain keeps its turn.
        if address == Err(ResolveError::Silent) {
            self.put_back(&domain, now + SILENT_PAUSE);
            return self.park_if_at_rest(&domain);
        }
        if let Err(error) = &address {
            self.count_failure(page::resolve_failure(error).into());
        }
        self.touch(&domain);
        let address = address.ok();
        self.parts
            .frontier
            .handle(Event::Resolved { domain, address }, now);
    }

    fn take_robots(&mut self, domain: Domain, origin: Origin, answer: RobotsAnswer, now: Time) {
        let RobotsAnswer {
            access,
            retry_after,
            effort,
        } = answer;
        let sitemap = |url: &PageUrl| Link {
            url: url.clone(),
            depth: 0,
            target: Target::Sitemap,
        };
        let sitemaps = access.sitemaps().iter().map(sitemap).collect();
        self.touch(&domain);
        if let Err(error) = self.note_state(&domain) {
            self.note_trouble(&error);
        }
        let event = Event::Robots {
            domain: domain.clone(),
            origin,
            access,
            retry_after,
            effort,
        };
        self.parts.frontier.handle(event, now);
        if let Err(error) = self.deliver(CrawlId::OPEN, sitemaps, Some(&domain), now) {
            self.note_trouble(&error);
        }
    }

    fn take_fetched(&mut self, report: FetchReport, pending: Pending, now: Time) {
        let FetchReport {
            page,
            outcome,
            effort,
        } = report.clone();
        let tells_content = outcome.tells_content(&pending.visit);
        if !tells_content {
            let ended = PageOutcome::from(&outcome);
            self.count_failure(ended);
            self.show_failure(&pending.url, ended, effort, now);
        }
        self.totals.bytes = self.totals.bytes.saturating_add(effort.bytes);
        self.touch(&page.domain);
        let settlement = self.parts.frontier.settle(report, now);
        if tells_content && settlement.is_some() {
            return self.pages.answered(&page, effort.bytes);
        }
        if let Err(error) = self.conclude(&page, &outcome, pending, settlement, now) {
            self.note_trouble(&error);
        }
        self.end_page(&page);
    }

    /// Settles a URL that brought no page. What fails here leaves it in its queue on disk, to be
    /// fetched again.
    fn conclude(
        &mut self,
        page: &PageId,
        outcome: &Outcome,
        pending: Pending,
        settlement: Option<Settlement>,
        now: Time,
    ) -> Result<(), AdmitError> {
        let domain = &page.domain;
        let tells_content = outcome.tells_content(&pending.visit);
        let mut sent = Sent::default();
        if let Outcome::Redirect(to) = outcome {
            // One link further, so that a chain without end ends at the greatest depth.
            let link = Link {
                url: to.clone(),
                depth: pending.depth.saturating_add(1),
                target: pending.target,
            };
            sent = self.deliver(pending.crawl, vec![link], Some(domain), now)?;
        } else {
            self.note_state(domain)?;
        }
        match settlement {
            Some(Settlement::Retry(pending)) => self.put_again(domain, &pending),
            Some(Settlement::Done(pending) | Settlement::Dropped(pending)) => {
                self.leave_untold(page, &pending, Some(outcome), sent)
            }
            // It was refused while it was fetched.
            None if !tells_content && self.parts.admitter.is_refused(domain) => {
                self.leave_untold(page, &pending, Some(outcome), sent)
            }
            None => Ok(()),
        }
    }

    /// Takes processed pages in, while the disk works: their links must be in the queues before
    /// they leave their own.
    pub(super) async fn take_processed(&mut self) {
        while self.disk.trouble.is_none()
            && let Some((page, result)) = self.pages.next_processed()
        {
            let (domain, crawl) = (page.domain.clone(), result.crawl);
            let links = result.links.clone();
            match self.deliver(crawl, links, Some(&domain), now()) {
                Ok(sent) => {
                    if let Some((page, result)) = self.pages.write_next(sent) {
                        self.keep(page, result).await;
                    }
                }
                Err(error) => self.note_trouble(&error),
            }
        }
    }

    /// Hands a page to the writer. It leaves its queue in the commit that makes it durable.
    async fn keep(&mut self, page: PageId, result: ProcessedPage) {
        let visited = self.visited(&page.domain, &result);
        self.revisiting.note_left(&result.visit);
        if visited.is_some() {
            self.revisiting.note_visited(&page, result.url.hash());
        }
        if let Err(error) = self.take_hints(&page.domain, &result.hints) {
            self.note_trouble(&error);
        }
        let ProcessedPage {
            link_count,
            records,
            url,
            bytes,
            millis,
            kind,
            ..
        } = result;
        let outcome = match kind {
            PageKind::New => PageOutcome::Page,
            PageKind::Duplicate => PageOutcome::Duplicate,
            PageKind::Unchanged => PageOutcome::Unchanged,
            PageKind::Sitemap => PageOutcome::Sitemap,
        };
        self.totals.links += link_count;
        self.totals.pages += u64::from(kind != PageKind::Sitemap);
        self.totals.duplicates += u64::from(kind == PageKind::Duplicate);
        self.parts.feed.publish(PageEvent {
            at: now(),
            url,
            outcome,
            bytes,
            links: link_count,
            millis,
        });
        let mut commit = Commit::new();
        commit.remove_pending(&page.domain, page.slot);
        self.parts.admitter.note_left(1);
        self.order(WriteOrder {
            commit,
            records,
            visited,
            page: Some(page),
            reply: None,
        })
        .await;
    }

    /// A URL leaves its queue although no page was told.
    pub(super) fn leave_untold(
        &mut self,
        page: &PageId,
        pending: &Pending,
        outcome: Option<&Outcome>,
        sent: Sent,
    ) -> Result<(), AdmitError> {
        let mut commit = Commit::new();
        self.not_told(&page.domain, pending, outcome, &mut commit)?;
        self.revisiting.note_left(&pending.visit);
        if pending.visit != Visit::First {
            self.revisiting.note_visited(page, pending.url.hash());
        }
        self.leave_queue_with(page, sent, commit)
    }

    /// A page is on the disk: now it is done.
    fn take_durable(&mut self, page: &PageId) {
        if self.pages.durable(page) {
            self.tell_soon();
        }
        self.end_page(page);
    }

    fn count_failure(&mut self, outcome: PageOutcome) {
        *self.totals.failures.entry(outcome).or_default() += 1;
    }

    fn show_failure(&mut self, url: &PageUrl, outcome: PageOutcome, effort: Effort, now: Time) {
        let millis = u64::try_from(effort.took.as_millis()).unwrap_or(u64::MAX);
        self.parts.feed.publish(PageEvent {
            at: now,
            url: url.clone(),
            outcome,
            bytes: effort.bytes,
            links: 0,
            millis,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        crawler::testing::{At, TestCrawler, robots, url},
        page::news::{PageNews, page_id},
    };
    use apoidea_crawl::{Access, Failure, Outcome, lending::FetchId};
    use apoidea_model::PageUrl;

    #[tokio::test]
    async fn a_page_leaves_its_queue_only_with_its_records_written_and_its_links_queued() {
        let mut crawler = TestCrawler::in_swarm();
        let (here, there, foreign) = (crawler.own(0), crawler.own(1), crawler.foreign(0));
        let pending = crawler.fetching(&here, 1).await;
        crawler
            .processed(&pending, &[url(&there, 5), url(&foreign, 6)])
            .await;
        assert_eq!(crawler.waiting(&there), ["/5"]);
        assert_eq!(crawler.outgoing(), [format!("http://{foreign}/6")]);
        assert_eq!(
            crawler.waiting(&here),
            ["/0"],
            "its records are not written"
        );
        crawler.write().await;
        assert_eq!(crawler.queue(&here), []);
        let record = crawler.store().page(&here, pending.url.hash()).unwrap();
        assert_eq!(record.expect("the visit is remembered").url, pending.url);
    }

    #[tokio::test]
    async fn a_crash_before_the_write_repeats_the_page_and_loses_no_link() {
        let mut crawler = TestCrawler::in_swarm();
        let (here, there, foreign) = (crawler.own(0), crawler.own(1), crawler.foreign(0));
        let pending = crawler.fetching(&here, 1).await;
        crawler
            .processed(&pending, &[url(&there, 5), url(&foreign, 6)])
            .await;
        let mut crawler = crawler.crash();
        assert_eq!(crawler.queue(&here), [pending]);
        assert_eq!(crawler.waiting(&there), ["/5"]);
        assert_eq!(crawler.outgoing().len(), 1);
        crawler.write().await;
        assert_eq!(crawler.waiting(&here), ["/0"]);
    }

    #[tokio::test]
    async fn a_crash_after_the_write_repeats_nothing() {
        let mut crawler = TestCrawler::alone();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let pending = crawler.fetching(&here, 1).await;
        crawler.processed(&pending, &[url(&there, 5)]).await;
        crawler.write().await;
        let crawler = crawler.crash();
        assert_eq!(crawler.queue(&here), []);
        assert_eq!(crawler.waiting(&there), ["/5"]);
    }

    #[tokio::test]
    async fn a_redirect_leaves_the_queue_when_its_target_is_queued() {
        let mut crawler = TestCrawler::alone();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let pending = crawler.fetching(&here, 1).await;
        crawler
            .fetched(&pending, Outcome::Redirect(url(&there, 7)))
            .await;
        assert_eq!(crawler.queue(&here), []);
        let target = &crawler.queue(&there)[0];
        assert_eq!((&target.url, target.depth), (&url(&there, 7), 1));
        assert_eq!(crawler.stage(&pending), Some(At::Done));
    }

    #[tokio::test]
    async fn a_page_that_could_not_be_read_waits_for_another_try() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler
            .fetched(&pending, Outcome::Failed(Failure::Read))
            .await;
        assert_eq!(crawler.queue(&here)[0].attempts, 1);
        assert_eq!(crawler.stage(&pending), None);
        assert_eq!(crawler.parts.admitter.queued(), 1);
        assert_eq!(crawler.totals.failures.values().sum::<u64>(), 1);
    }

    #[tokio::test]
    async fn a_page_that_is_not_there_is_done_at_once() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        assert_eq!(crawler.parts.admitter.queued(), 1);
        crawler.fetched(&pending, Outcome::Refused(404)).await;
        assert_eq!(crawler.queue(&here), []);
        assert_eq!(crawler.stage(&pending), Some(At::Done));
        assert_eq!(crawler.parts.admitter.queued(), 0);
    }

    #[tokio::test]
    async fn a_page_whose_body_was_lost_stays_in_its_queue() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.fetched(&pending, Outcome::Page).await;
        let lost = PageNews::Unsent(FetchId::Page(page_id(&pending)));
        crawler.tell_page(lost).await;
        assert_eq!(crawler.stage(&pending), None);
        assert_eq!(crawler.queue(&here), std::slice::from_ref(&pending));
    }

    #[tokio::test]
    async fn while_the_disk_is_broken_processed_pages_wait_with_their_links() {
        let mut crawler = TestCrawler::alone();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let pending = crawler.fetching(&here, 2).await;
        crawler.break_disk().await;
        crawler.processed(&pending, &[url(&there, 5)]).await;
        crawler.pump();
        assert_eq!(crawler.stage(&pending), Some(At::Processed));
        assert_eq!(crawler.queue(&there), []);
        assert_eq!(crawler.parts.frontier.fetching(), 0, "nothing starts");
        crawler.mend_disk().await;
        crawler.pump();
        assert_eq!(crawler.stage(&pending), Some(At::Writing));
        assert_eq!(crawler.waiting(&there), ["/5"]);
        assert_eq!(crawler.parts.frontier.fetching(), 1);
    }

    #[tokio::test]
    async fn the_sitemaps_of_a_robots_txt_are_queued() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        crawler.admit(&[url(&here, 0)]);
        crawler.resolve(&here).await;
        let sitemap = PageUrl::parse(&format!("http://{here}/map.xml")).unwrap();
        let text = format!("Sitemap: {sitemap}");
        let access = Access::of_response(200, text.as_bytes(), "Apoidea");
        crawler.tell_page(robots(&here, access)).await;
        assert!(
            crawler
                .queue(&here)
                .iter()
                .any(|pending| pending.url == sitemap)
        );
        assert!(crawler.ledger.has(&here), "the replicas learn the rules");
    }
}
