//! Starting a fetch, here or at a helper, and taking the helper's answer.
//!
//! [`Lending`] chooses; this file carries the choice out.

use super::{Crawler, Finding};
use crate::{
    clock::now,
    page::{
        changed_text::Scrutiny,
        news::{Borrow, PageNews, page_id},
    },
    swarm::lending::message::{self, LoanAnswer, LoanReply, LoanResult},
};
use apoidea_crawl::{
    Bounds, Connection, Effort, Failure, FetchReport, Health, Origin, Outcome,
    lending::{self, Choice, FetchId, Lending, Refused},
};
use apoidea_model::{Domain, PageUrl, PeerId, Pending, Time};
use std::{net::IpAddr, time::Duration};

/// A page to be fetched.
#[derive(Debug, Clone)]
pub(super) struct PageFetch {
    pub pending: Pending,
    pub address: IpAddr,
    pub connection: Connection,
}

/// A robots.txt to be fetched.
#[derive(Debug, Clone)]
pub(super) struct RobotsFetch {
    pub domain: Domain,
    pub origin: Origin,
    pub url: PageUrl,
    pub address: IpAddr,
}

/// The subject of a loan: enough to fetch it here after all.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    Page(PageFetch),
    Robots(RobotsFetch),
}

impl Subject {
    fn id(&self) -> FetchId {
        match self {
            Subject::Page(fetch) => FetchId::Page(page_id(&fetch.pending)),
            Subject::Robots(fetch) => FetchId::Robots(fetch.domain.clone()),
        }
    }

    fn to_borrow(&self) -> Borrow {
        match self {
            Subject::Page(fetch) => Borrow::Page(fetch.pending.clone()),
            Subject::Robots(fetch) => Borrow::Robots(fetch.url.clone()),
        }
    }
}

impl Crawler {
    pub(super) fn start_page(&mut self, fetch: PageFetch) {
        if self.is_too_early(&fetch.pending, fetch.address, now()) {
            let wait = Bounds::GLOBAL.least;
            let not_before = fetch.pending.visit.since() + wait;
            let fetch = FetchId::Page(page_id(&fetch.pending));
            return self.return_to_queue(&fetch, not_before);
        }
        self.revisiting.note_fetch(&fetch.pending.visit);
        self.start(Subject::Page(fetch));
    }

    pub(super) fn start_robots(&mut self, fetch: RobotsFetch) {
        self.start(Subject::Robots(fetch));
    }

    fn start(&mut self, subject: Subject) {
        let fetch = subject.id();
        let refused = match self.parts.admitter.is_refused(fetch.domain()) {
            true => Refused::ByVolunteer,
            false => Refused::No,
        };
        let now = now();
        let choice = self.with_load(|load| self.lending.assign(&fetch, refused, load, now));
        let choice = match (choice, refused) {
            (Choice::Lend(_), Refused::No) if self.is_watched(&subject) => self.here_or_later(),
            (choice, _) => choice,
        };
        self.carry_out_choice(choice, fetch, refused, subject);
    }

    /// Only this peer can compare the text of a watched page with the last one.
    fn is_watched(&self, subject: &Subject) -> bool {
        matches!(subject, Subject::Page(page) if self.scrutiny(&page.pending) == Scrutiny::Watched)
    }

    fn here_or_later(&self) -> Choice {
        let fetching = self.with_load(|load| self.lending.fetching_here(load));
        match fetching <= self.parts.limits.fetches {
            true => Choice::Here,
            false => Choice::Later(lending::PUT_OFF),
        }
    }

    fn carry_out_choice(
        &mut self,
        choice: Choice,
        fetch: FetchId,
        refused: Refused,
        subject: Subject,
    ) {
        match choice {
            Choice::Here => self.fetch_here(subject),
            Choice::Lend(helper) => self.lend(helper, fetch, refused, subject),
            Choice::Later(wait) => self.return_to_queue(&fetch, now() + wait),
            Choice::Back => self.return_to_queue(&fetch, Time::ZERO),
        }
    }

    fn fetch_here(&mut self, subject: Subject) {
        let work = self.parts.work.clone();
        match subject {
            Subject::Page(PageFetch {
                pending,
                address,
                connection,
            }) => {
                self.parts.limits.throttle.start();
                self.pages.begin(&page_id(&pending));
                let scrutiny = self.scrutiny(&pending);
                tokio::spawn(work.fetch_page(pending, address, connection, scrutiny));
            }
            Subject::Robots(RobotsFetch {
                domain,
                origin,
                url,
                address,
            }) => drop(tokio::spawn(
                work.fetch_robots(domain, origin, url, address),
            )),
        }
    }

    /// Asks a helper to fetch.
    fn lend(&mut self, helper: PeerId, fetch: FetchId, refused: Refused, subject: Subject) {
        if let FetchId::Page(page) = &fetch {
            self.pages.begin(page);
        }
        let borrow = subject.to_borrow();
        self.lending
            .lend(fetch.clone(), helper, refused, subject, now());
        let swarm = &self.parts.swarm;
        let (overlay, findings) = (swarm.overlay.clone(), swarm.findings.clone());
        tokio::spawn(async move {
            let finding = match message::ask(overlay.as_ref(), helper, borrow).await {
                LoanReply::TurnedAway => Finding::TurnedAway { helper, fetch },
                LoanReply::Taken => Finding::Taken { helper, fetch },
            };
            // A peer that has stopped takes no more findings.
            let _ = findings.send(finding);
        });
    }

    /// A helper has taken a fetch, or may have.
    pub(super) fn note_taken(&mut self, helper: PeerId, fetch: &FetchId) {
        self.lending.on_taken(helper, fetch);
        self.totals.lent += u64::from(fetch.is_page());
    }

    /// A helper had no time.
    pub(super) fn turned_away(&mut self, helper: PeerId, fetch: FetchId) {
        let now = now();
        // The choice changes the lending, and looks at the rest of the crawler.
        let mut lending = std::mem::replace(&mut self.lending, Lending::new(0));
        let again = self.with_load(|load| lending.on_turned_away(helper, &fetch, load, now));
        self.lending = lending;
        if let Some((subject, choice)) = again {
            self.carry_out_choice(choice, fetch, Refused::No, subject);
        }
    }

    /// A fetch that was not sent: its URL stays in its queue, and its domain waits.
    pub(super) fn return_to_queue(&mut self, fetch: &FetchId, not_before: Time) {
        self.put_back(fetch.domain(), not_before);
        match fetch {
            FetchId::Page(page) => self.end_page(page),
            FetchId::Robots(domain) => self.park_if_at_rest(domain),
        }
    }

    /// A helper tells the result of a fetch.
    pub(super) async fn take_result(&mut self, from: PeerId, result: LoanResult) {
        let LoanResult { fetch, answer } = result;
        let Some(subject) = self.lending.on_result(from, &fetch) else {
            return;
        };
        let news = match (subject, answer) {
            (
                Subject::Page(PageFetch { pending, .. }),
                LoanAnswer::Page {
                    outcome,
                    effort,
                    page,
                },
            ) => {
                let waiting = pending.clone();
                // An outcome that tells content must carry the page; otherwise the answer broke off.
                let tells_content = outcome.tells_content(&pending.visit);
                let outcome = match tells_content && page.is_none() {
                    true => Outcome::Failed(Failure::Read),
                    false => outcome,
                };
                if closes_domain(&outcome) && !self.parts.admitter.is_refused(fetch.domain()) {
                    self.lending.doubt(fetch.domain(), now());
                    return self.take_page_news(PageNews::Unsent(fetch)).await;
                }
                let page = page.filter(|_| tells_content);
                self.take_page_news(fetched(pending, outcome, effort)).await;
                match (fetch, page) {
                    (FetchId::Page(id), Some(page)) => {
                        PageNews::Processed(id, Box::new(page.into_processed(from, &waiting)))
                    }
                    _ => return,
                }
            }
            (Subject::Robots(RobotsFetch { domain, origin, .. }), LoanAnswer::Robots(answer)) => {
                PageNews::Robots {
                    domain,
                    origin,
                    answer: answer.into(),
                }
            }
            (_, LoanAnswer::Unsent) => PageNews::Unsent(fetch),
            (subject, _) => return self.give_up(fetch, subject).await,
        };
        self.take_page_news(news).await;
    }

    /// Gives up the fetches of helpers that have told nothing for long.
    pub(super) async fn give_up_overdue(&mut self) {
        let now = now();
        let mut lending = std::mem::replace(&mut self.lending, Lending::new(0));
        let overdue = self.with_load(|load| lending.overdue(load, now));
        self.lending = lending;
        for (fetch, subject) in overdue {
            self.give_up(fetch, subject).await;
        }
    }

    async fn give_up(&mut self, fetch: FetchId, subject: Subject) {
        match subject {
            Subject::Robots(_) => {
                self.return_to_queue(&fetch, now() + apoidea_crawl::lending::PUT_OFF);
            }
            Subject::Page(PageFetch { pending, .. }) => {
                let nothing = Effort {
                    took: Duration::ZERO,
                    bytes: 0,
                };
                let outcome = Outcome::Failed(Failure::Timeout);
                self.take_page_news(fetched(pending, outcome, nothing))
                    .await;
            }
        }
    }
}

/// Whether an outcome, repeated or not, ends the crawl of its domain.
fn closes_domain(outcome: &Outcome) -> bool {
    outcome.health() == Health::Forbidden || matches!(outcome, Outcome::Challenge)
}

fn fetched(pending: Pending, outcome: Outcome, effort: Effort) -> PageNews {
    let report = FetchReport {
        page: page_id(&pending),
        outcome,
        effort,
    };
    PageNews::Fetched { report, pending }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        crawler::testing::{At, EFFORT, TestCrawler, fetch_of, other, processed, url},
        swarm::{
            lending::message::{LOAN, LentPage},
            orders::SwarmOrder,
            testing::peer,
        },
    };
    use apoidea_crawl::lending::OVERDUE;

    /// The result of a helper.
    async fn result(crawler: &mut TestCrawler, from: PeerId, fetch: FetchId, answer: LoanAnswer) {
        let result = Box::new(LoanResult { fetch, answer });
        crawler.order_swarm(SwarmOrder::Result(from, result)).await;
    }

    fn page_with(pending: &Pending, links: &[PageUrl]) -> LoanAnswer {
        LoanAnswer::Page {
            outcome: Outcome::Page,
            effort: EFFORT,
            page: Some(LentPage::of(&processed(pending, links)).0),
        }
    }

    fn loans_asked(crawler: &TestCrawler) -> usize {
        let requests = crawler.ring.requests.lock().unwrap();
        let loans = requests.iter().filter(|(_, kind, _)| *kind == LOAN);
        loans.count()
    }

    #[tokio::test]
    async fn with_nothing_else_to_do_a_peer_fetches_itself() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.take_turns().await;
        assert_eq!(crawler.stage(&pending), Some(At::Fetching));
        assert_eq!(
            (crawler.lending.lent_count(), loans_asked(&crawler)),
            (0, 0)
        );
    }

    #[tokio::test]
    async fn a_fetch_that_no_helper_takes_is_done_here() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.lent(&here).await;
        crawler.take_turns().await;
        assert_eq!(loans_asked(&crawler), 1);
        assert_eq!(crawler.lending.lent_count(), 0);
        assert_eq!(crawler.stage(&pending), Some(At::Fetching));
        assert_eq!(crawler.parts.frontier.fetching(), 1);
        assert_eq!(crawler.totals.lent, 0);
    }

    #[tokio::test]
    async fn a_result_counts_only_from_the_helper_that_has_the_loan() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.lent(&here).await;
        let helper = other();
        let fetch = fetch_of(&pending);
        crawler.note_taken(helper, &fetch);
        let answer = page_with(&pending, &[]);
        result(&mut crawler, peer(1), fetch.clone(), answer).await;
        assert_eq!(crawler.stage(&pending), Some(At::Fetching));
        let answer = page_with(&pending, &[]);
        result(&mut crawler, helper, fetch.clone(), answer).await;
        assert_eq!(crawler.stage(&pending), Some(At::Writing));
        crawler.write().await;
        let answer = page_with(&pending, &[url(&here, 9)]);
        result(&mut crawler, helper, fetch, answer).await;
        assert_eq!(crawler.queue(&here), [], "a loan has one result");
        assert_eq!((crawler.totals.pages, crawler.totals.lent), (1, 1));
    }

    #[tokio::test]
    async fn a_page_of_a_helper_leaves_its_queue_when_it_is_written_here() {
        let mut crawler = TestCrawler::in_swarm();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let pending = crawler.lent(&here).await;
        let answer = page_with(&pending, &[url(&there, 5)]);
        result(&mut crawler, other(), fetch_of(&pending), answer).await;
        assert_eq!(crawler.waiting(&there), ["/5"]);
        assert_eq!(crawler.waiting(&here), ["/0"]);
        crawler.write().await;
        assert_eq!(crawler.queue(&here), []);
        assert_eq!(crawler.lending.lent_count(), 0);
    }

    #[tokio::test]
    async fn a_page_of_a_helper_without_its_content_is_a_failure() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.lent(&here).await;
        let broken = LoanAnswer::Page {
            outcome: Outcome::Page,
            effort: EFFORT,
            page: None,
        };
        result(&mut crawler, other(), fetch_of(&pending), broken).await;
        assert_eq!(crawler.queue(&here)[0].attempts, 1);
        assert_eq!(crawler.stage(&pending), None);
        assert_eq!(crawler.parts.frontier.fetching(), 0);
    }

    #[tokio::test]
    async fn an_answer_to_another_question_is_a_failure() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.lent(&here).await;
        let robots = apoidea_fetch::RobotsAnswer {
            access: apoidea_crawl::Access::Open,
            retry_after: None,
            effort: EFFORT,
        };
        let answer = LoanAnswer::Robots(robots.into());
        result(&mut crawler, other(), fetch_of(&pending), answer).await;
        assert_eq!(crawler.stage(&pending), None);
        assert_eq!(crawler.queue(&here)[0].attempts, 1);
    }

    #[tokio::test]
    async fn a_fetch_that_a_helper_did_not_send_goes_back_to_its_queue() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.lent(&here).await;
        result(
            &mut crawler,
            other(),
            fetch_of(&pending),
            LoanAnswer::Unsent,
        )
        .await;
        assert_eq!(crawler.queue(&here), std::slice::from_ref(&pending));
        assert_eq!(
            (crawler.stage(&pending), crawler.lending.lent_count()),
            (None, 0)
        );
        assert!(crawler.store().wake(&here).unwrap().unwrap() <= now());
    }

    #[tokio::test]
    async fn a_helper_that_tells_nothing_is_given_up() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.lent(&here).await;
        crawler.give_up_overdue().await;
        assert_eq!(crawler.stage(&pending), Some(At::Fetching));
        let fetch = fetch_of(&pending);
        let subject = crawler.lending.on_result(other(), &fetch).unwrap();
        let long_ago = Time::from_millis(now().as_millis() - OVERDUE.as_millis() as u64 - 1000);
        crawler
            .lending
            .lend(fetch, other(), Refused::No, subject, long_ago);
        crawler.give_up_overdue().await;
        assert_eq!(crawler.queue(&here)[0].attempts, 1);
        assert_eq!(
            (crawler.stage(&pending), crawler.lending.lent_count()),
            (None, 0)
        );
    }

    #[tokio::test]
    async fn a_refused_domain_is_lent_and_waits_when_no_helper_takes_it() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        crawler
            .parts
            .admitter
            .refused_by_hand()
            .insert(here.clone());
        crawler.admit(&[url(&here, 0)]);
        crawler.resolve(&here).await;
        assert_eq!(crawler.lending.lent_count(), 1, "its robots.txt, too");
        let started = now();
        crawler.take_turns().await;
        assert_eq!(
            (loans_asked(&crawler), crawler.lending.lent_count()),
            (1, 0)
        );
        let wake = crawler.store().wake(&here).unwrap().unwrap();
        assert!(wake >= started + apoidea_crawl::lending::PUT_OFF && wake < Time::NEVER);
        assert_eq!(crawler.waiting(&here), ["/0"]);
    }
}
