//! Carrying out what the frontier wants.

use super::{
    Crawler, MAX_OUTBOX,
    admitter::AdmitError,
    starting::{PageFetch, RobotsFetch},
};
use crate::{clock::now, page::news::page_id};
use apoidea_crawl::{Action, Event, Sent};
use apoidea_model::{Domain, Slot, Time};
use apoidea_store::ReadError;
use tokio::time::Instant;

impl Crawler {
    /// Carries out what the frontier wants, as long as it is allowed, pages are not piling up and
    /// the disk works.
    pub(super) fn pump(&mut self) {
        self.timers.resume_at = None;
        while self.may_go_on() && self.may_start() {
            let now = now();
            let Some(action) = self.parts.frontier.poll(now) else {
                break;
            };
            self.attempt(action, now);
        }
    }

    /// With as many pages in processing as there may be, only helpers can fetch more.
    pub(super) fn may_go_on(&self) -> bool {
        let now = now();
        !self.is_stuck()
            && self
                .with_load(|load| !self.lending.is_full(load) || self.lending.may_lend(load, now))
    }

    /// Does the disk not work, or do too many links wait for other owners?
    pub(super) fn is_stuck(&self) -> bool {
        self.disk.trouble.is_some() || self.outbox.count > MAX_OUTBOX
    }

    /// Paused, or without any name server, nothing starts: no look-up, no fetch; domains that go elsewhere go to the disk all
    /// the same. Otherwise the next thing starts when the last is paid for.
    fn may_start(&mut self) -> bool {
        if self.is_held() {
            return self.parts.frontier.next_timeout() == Time::ZERO;
        }
        let wait = self.parts.limits.throttle.wait();
        self.timers.resume_at = wait.map(|wait| Instant::now() + wait);
        if wait.is_some() {
            self.lending.note_shortage(now());
        }
        self.limit_fetches();
        wait.is_none()
    }

    /// Carries out an action, now or when the disk works again.
    fn attempt(&mut self, action: Action, now: Time) {
        if let Err(error) = self.carry_out(action.clone(), now) {
            self.note_trouble(&error);
            self.disk.stuck.push(action);
        }
    }

    /// The disk works: takes up what was left lying.
    pub(super) async fn recover_from_trouble(&mut self) {
        self.disk.trouble = None;
        let now = now();
        for action in std::mem::take(&mut self.disk.stuck) {
            self.attempt(action, now);
        }
        let ready: Vec<Domain> = self
            .parking
            .keys()
            .filter(|domain| !self.pages.has(domain))
            .cloned()
            .collect();
        ready.iter().for_each(|domain| self.park_now(domain));
        self.take_processed().await;
    }

    fn carry_out(&mut self, action: Action, now: Time) -> Result<(), AdmitError> {
        match action {
            Action::Wake { limit } => self.wake(limit, now),
            Action::Resolve(domain) => {
                self.resolve(domain);
                Ok(())
            }
            Action::Refill {
                domain,
                after,
                limit,
            } => Ok(self.refill(domain, after, limit, now)?),
            Action::FetchRobots {
                domain,
                origin,
                url,
                address,
            } => {
                self.start_robots(RobotsFetch {
                    domain,
                    origin,
                    url,
                    address,
                });
                Ok(())
            }
            Action::Fetch {
                pending,
                address,
                connection,
                ..
            } => {
                self.start_page(PageFetch {
                    pending,
                    address,
                    connection,
                });
                Ok(())
            }
            Action::Disallowed { domain, pending } => {
                self.totals.disallowed += 1;
                self.touch(&domain);
                self.leave_untold(&page_id(&pending), &pending, None, Sent::default())
            }
            Action::Park {
                domain,
                state,
                wake,
            } => self.leave_memory(domain, *state, wake),
        }
    }

    fn resolve(&mut self, domain: Domain) {
        let state = self.parts.frontier.state(&domain);
        let failures = state.map_or(0, |state| state.failures());
        self.resolving += 1;
        tokio::spawn(self.parts.work.clone().resolve(domain, failures));
    }

    /// Reads on in a domain's queue, past the pages in processing: these are still in the queue,
    /// but not to be fetched.
    fn refill(
        &mut self,
        domain: Domain,
        after: Option<Slot>,
        limit: usize,
        now: Time,
    ) -> Result<(), ReadError> {
        let in_processing = self.pages.of(&domain);
        let most = limit + in_processing.len();
        let mut urls = self.parts.store.pending(&domain, after, most)?;
        urls.retain(|pending| !in_processing.contains(&pending.slot));
        let is_full = urls.len() >= limit;
        urls.truncate(limit);
        self.drop_needless(&domain, &mut urls);
        if is_full && urls.is_empty() {
            // An empty answer would mean that the queue ends here.
            let last = self.parts.store.pending(&domain, after, most)?;
            urls.extend(
                last.into_iter()
                    .find(|pending| !in_processing.contains(&pending.slot)),
            );
        }
        self.parts
            .frontier
            .handle(Event::Refilled { domain, urls }, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::crawler::{
        MAX_OUTBOX,
        testing::{At, TestCrawler, robots, url},
    };
    use apoidea_crawl::{Access, Outcome};

    #[tokio::test]
    async fn a_url_that_robots_txt_forbids_leaves_its_queue_unfetched() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        crawler.admit(&[url(&here, 0), url(&here, 1)]);
        crawler.resolve(&here).await;
        let rules = b"User-agent: *\nDisallow: /0";
        let access = Access::of_response(200, rules, "Apoidea");
        crawler.tell_page(robots(&here, access)).await;
        crawler.pump();
        assert_eq!(crawler.waiting(&here), ["/1"]);
        assert_eq!(crawler.totals.disallowed, 1);
        assert_eq!(crawler.first_under_way(&here).url, url(&here, 1));
    }

    #[tokio::test]
    async fn pages_in_processing_are_not_fetched_again() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let first = crawler.fetching(&here, 3).await;
        crawler.fetched(&first, Outcome::Page).await;
        // The window in memory is lost, and read again from the queue.
        let state = crawler.parts.frontier.release(&here).unwrap();
        let woke = apoidea_crawl::Event::Woke {
            domains: vec![(here.clone(), state)],
            next: apoidea_model::Time::NEVER,
        };
        crawler.parts.frontier.handle(woke, crate::clock::now());
        crawler.begin(&here).await;
        let second = &crawler.queue(&here)[1];
        assert_eq!(crawler.stage(second), Some(At::Fetching));
        assert_eq!(crawler.stage(&first), Some(At::Processing));
    }

    #[tokio::test]
    async fn nothing_starts_while_too_many_links_wait_for_other_owners() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        crawler.outbox.count = MAX_OUTBOX + 1;
        crawler.admit(&[url(&here, 0)]);
        crawler.pump();
        assert!(!crawler.parts.frontier.is_resident(&here));
        crawler.outbox.count = MAX_OUTBOX;
        crawler.begin(&here).await;
        assert_eq!(crawler.parts.frontier.fetching(), 1);
    }
}
