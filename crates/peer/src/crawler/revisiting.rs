//! Visiting pages again: which of them enter their queues now, and what a visit has taught.
//!
//! The pages that are due are in order on the disk ([`apoidea_store::Store::due_domains`]). Once a
//! second a few of them enter the queues of their domains, at the front. From there on they are
//! pages like all others: the same clocks, helpers and replicas.

use super::{
    Crawler,
    admitter::{AdmitError, Entering},
    ages::{AgeCount, VisitsMade},
    watching::Watching,
};
use crate::{
    clock::now,
    page::{
        news::page_id,
        process::ProcessedPage,
        visited::{Honesty, Told, VisitedPage},
    },
    state_codec::decode_state,
    swarm::{tenancy::Claim, watching::message::News},
};
use apoidea_crawl::{
    Bounds, ChangeRate, DomainState, LONGEST_DISTRUST, MAX_WATCHES, Outcome, Revisit, RevisitShare,
    Sent, SiteFreshness, politeness,
};
use apoidea_model::{
    CrawlId, Domain, PageChange, PageId, PageUrl, Pending, Target, Time, UrlHash, Visit, is_global,
};
use apoidea_store::{ArchivePlace, Commit, PageRecord, PageStanding};
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    time::Duration,
};

/// Pages that wait for another visit at most, for each fetch at a time: enough to keep all busy.
const WAITING_FOR_EACH_FETCH: u64 = 4;
/// The fewest of these.
const LEAST_WAITING: u64 = 64;
/// Domains that are looked at in one second.
const DOMAINS_AT_ONCE: usize = 64;
/// Due pages of one domain that are counted.
const COUNTED: usize = 1000;
/// Pages that hints bring into one queue at a time.
const HINTS_AT_ONCE: usize = 16;
/// Pages of one domain that are passed over, since they were visited a moment ago.
const PASSED_OVER: usize = 16;
/// A domain that cannot be asked now is looked at again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
/// A page that two visits did not find leaves; the second comes so much later.
const MISSING_DAYS: u32 = 7;
/// Lists of pages are read once a day.
const LIST_DAYS: u32 = 1;
/// The weight of an ordinary page.
const ORDINARY: f64 = 1.0;
/// When no page was old enough to be visited before its time, the next look comes after this part
/// of the shortest interval: a minute of a day.
const LOOKS_IN_LEAST: u32 = 1440;
/// Pages that wait because of a hint, at most.
const MAX_HINTED: usize = 10_000;
/// Pages that are not told yet, at most; one beyond that is told when it is visited again.
const MAX_UNTOLD: usize = 100_000;
pub(super) const RULE_VALUE: &str = "revisit rule";

/// The settings of the operator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RevisitSettings {
    /// Later visits in a hundred fetches.
    pub share: f64,
    /// Between two visits of a page.
    pub bounds: Bounds,
}

/// Visits after the first, at one peer.
pub(super) struct Revisiting {
    pub(super) rule: Revisit,
    share: RevisitShare,
    /// Pages that wait in queues for another visit.
    waiting: u64,
    pub(super) made: VisitsMade,
    pub(super) age: AgeCount,
    /// Pages are not visited before their time until then: none was old enough.
    ahead_from: Time,
    /// Pages that wait for a visit because of a hint.
    hinted: HashSet<UrlHash>,
    /// Pages that were visited and are not told to the replicas yet.
    untold: HashMap<PageId, UrlHash>,
    pub(super) watching: Watching,
}

/// The rule as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredRule {
    threshold_days: f64,
    mean: Duration,
}

impl Revisiting {
    pub(super) fn new(settings: RevisitSettings, stored: Option<Vec<u8>>, now: Time) -> Self {
        let stored = stored.and_then(|bytes| postcard::from_bytes::<StoredRule>(&bytes).ok());
        let rule = match stored {
            Some(rule) => Revisit::restored(settings.bounds, rule.threshold_days, rule.mean),
            None => Revisit::new(settings.bounds),
        };
        Revisiting {
            rule,
            share: RevisitShare::new(settings.share / 100.0),
            waiting: 0,
            made: VisitsMade::new(now),
            age: AgeCount::default(),
            ahead_from: Time::ZERO,
            hinted: HashSet::new(),
            untold: HashMap::new(),
            watching: Watching::default(),
        }
    }

    /// A page is settled; its replicas are to learn what is known of it.
    pub(super) fn note_visited(&mut self, page: &PageId, url: UrlHash) {
        if self.untold.len() < MAX_UNTOLD {
            self.untold.insert(page.clone(), url);
        }
    }

    /// The page that was visited at this place of a queue, if its replicas do not know yet.
    pub(super) fn take_visited(&mut self, page: &PageId) -> Option<UrlHash> {
        self.untold.remove(page)
    }

    /// A page is being fetched.
    pub(super) fn note_fetch(&mut self, visit: &Visit) {
        self.share.note(visit);
    }

    /// A page has left its queue.
    pub(super) fn note_left(&mut self, visit: &Visit) {
        self.waiting = self
            .waiting
            .saturating_sub(u64::from(*visit != Visit::First));
    }

    /// So many days, on the scale of the bounds.
    pub(super) fn days(&self, days: u32) -> Duration {
        let bounds = self.rule.bounds();
        (bounds.most / 180).min(Bounds::GLOBAL.most / 180) * days
    }

    /// The time of the next visit of a page.
    pub(super) fn due(&self, record: &PageRecord, site: &SiteFreshness) -> Time {
        let wait = match (record.target, record.standing) {
            (_, PageStanding::Missing) => self.days(MISSING_DAYS),
            (_, PageStanding::Outdated) => self.rule.bounds().least,
            (Target::Sitemap, _) => self.days(LIST_DAYS),
            (Target::Page, PageStanding::There | PageStanding::Untold) => {
                let rate = ChangeRate::estimate(&record.history, site.changes.prior());
                self.rule.wait(rate, site.hints.recall(), ORDINARY)
            }
        };
        record.visited + wait.max(self.rule.bounds().least)
    }

    /// The rule, for the next run.
    pub(super) fn stored(&self) -> Vec<u8> {
        let rule = StoredRule {
            threshold_days: self.rule.threshold_days(),
            mean: self.rule.mean(),
        };
        postcard::to_stdvec(&rule).expect("numbers always serialise")
    }
}

impl Crawler {
    /// Lets pages that are due enter their queues, as many as have room.
    pub(super) fn enqueue_due(&mut self) {
        let now = now();
        if let Err(error) = self.count_current(now).and_then(|()| self.take_due(now)) {
            self.note_trouble(&error);
        }
    }

    fn take_due(&mut self, now: Time) -> Result<(), AdmitError> {
        let is_still = self.allowed.is_paused || self.quiescing.is_some() || self.is_stuck();
        if is_still || !self.revisiting.share.is_any() || !self.has_room_for_visits() {
            return Ok(());
        }
        let waiting = self.revisiting.waiting;
        let mut is_ahead = false;
        for (due, domain) in self.parts.store.due_domains(DOMAINS_AT_ONCE)? {
            is_ahead |= due > now;
            if !self.has_room_for_visits() || is_ahead && now < self.revisiting.ahead_from {
                break;
            }
            // With room left pages are visited before their time, the first ones first.
            self.enqueue_of(&domain, due, now)?;
        }
        if is_ahead && self.revisiting.waiting == waiting {
            let bounds = self.revisiting.rule.bounds();
            self.revisiting.ahead_from = now + bounds.least / LOOKS_IN_LEAST;
        }
        Ok(())
    }

    /// Later visits have their share of the fetches, or all that first visits leave.
    fn has_room_for_visits(&self) -> bool {
        let Revisiting { share, waiting, .. } = &self.revisiting;
        let fetches = self.parts.limits.fetches as u64;
        let most = LEAST_WAITING.max(WAITING_FOR_EACH_FETCH * fetches);
        let is_all = self.parts.admitter.queued() <= *waiting;
        *waiting < most && (is_all || share.has_room(*waiting))
    }

    /// Lets the first due pages of a domain enter its queue.
    fn enqueue_of(&mut self, domain: &Domain, due: Time, now: Time) -> Result<(), AdmitError> {
        match self.parts.swarm.tenancy.claim(domain.key()) {
            Claim::Owned => {}
            Claim::TakingOver => return self.look_again_at(domain, Some(now + LOOK_AGAIN / 60)),
            Claim::Foreign => return self.look_again_at(domain, None),
        }
        let mut state = match self.parts.frontier.state(domain) {
            Some(state) => state.clone(),
            None => self.parts.admitter.load_state(domain)?,
        };
        let least = self.revisiting.rule.bounds().least;
        let ready = state.ready_at();
        if ready == Time::NEVER || self.parts.admitter.is_refused(domain) {
            return self.look_again_at(domain, Some(now + 30 * least));
        }
        if ready > now + LOOK_AGAIN {
            return self.look_again_at(domain, Some(ready));
        }
        let mut pages = self.parts.store.due_pages(domain, COUNTED)?;
        if pages.is_empty() {
            let again = (state.counters.queued > 0).then(|| now + least);
            return self.look_again_at(domain, again);
        }
        let is_late = now.since(due) > self.revisiting.rule.mean() / 2;
        if state.freshness.is_quiet(pages.len()) && !is_late {
            // A sample has not changed: the others can wait. Then another sample is taken.
            self.with_freshness(domain, SiteFreshness::begin_sample)?;
            self.keep_hurried(domain, &state, &mut pages, now)?;
            if pages.is_empty() {
                return self.look_again_at(domain, Some(now + least));
            }
            state.freshness.begin_sample();
        }
        let sample = SiteFreshness::sample(pages.len());
        let (mut urls, mut commit) = (Vec::new(), Commit::new());
        let (mut next, mut passed_over) = (None, 0);
        for (due, hash) in pages {
            if urls.len() >= sample || passed_over >= PASSED_OVER {
                let after_these = now + time_for(urls.len(), &state);
                next = Some(
                    next.map_or(due, |next: Time| next.min(due))
                        .max(after_these),
                );
                break;
            }
            let Some(record) = self.parts.store.page(domain, hash)? else {
                commit.take_due(domain, due, hash);
                continue;
            };
            let earliest = match (record.standing, record.target) {
                (PageStanding::There, Target::Page) => {
                    self.revisiting.rule.not_before(record.visited)
                }
                // Never before its time: the last visit may have told nothing.
                _ => due,
            };
            if earliest > now {
                passed_over += 1;
                next = next.or(Some(due.max(earliest)));
                continue;
            }
            commit.take_due(domain, due, hash);
            urls.push(self.again(record, &mut state.freshness, now));
        }
        commit.set_next_due(domain, Some(next.unwrap_or(now + least)));
        if urls.is_empty() {
            return Ok(self.parts.store.apply(&commit)?);
        }
        self.enter_queue(domain, urls, state.freshness, commit, now)
    }

    /// Of the pages that are due, those that are watched do not wait with the others.
    fn keep_hurried(
        &self,
        domain: &Domain,
        state: &DomainState,
        pages: &mut Vec<(Time, UrlHash)>,
        now: Time,
    ) -> Result<(), AdmitError> {
        pages.truncate(if state.watches.is_empty() {
            0
        } else {
            MAX_WATCHES
        });
        let mut hurried = Vec::new();
        for (due, hash) in pages.drain(..) {
            let record = self.parts.store.page(domain, hash)?;
            if record.is_some_and(|record| state.watches.hurry(&record.url, now)) {
                hurried.push((due, hash));
            }
        }
        *pages = hurried;
        Ok(())
    }

    /// Puts pages at the front of the queue of their domain.
    fn enter_queue(
        &mut self,
        domain: &Domain,
        urls: Vec<Pending>,
        freshness: SiteFreshness,
        commit: Commit,
        now: Time,
    ) -> Result<(), AdmitError> {
        let state = match self.parts.frontier.freshness_mut(domain) {
            Some(known) => {
                *known = freshness;
                None
            }
            None => {
                let mut state = self.parts.admitter.load_state(domain)?;
                state.freshness = freshness;
                Some(state)
            }
        };
        let entering = urls.len() as u64;
        self.with_admitter(CrawlId::OPEN, None, |admitter, context| {
            let entering = Entering {
                urls,
                evicted: Vec::new(),
                overflowed: 0,
            };
            admitter.put_in_queue(domain, entering, state, commit, context, now)
        })?;
        self.parts.admitter.note_entered(entering);
        self.revisiting.waiting += entering;
        Ok(())
    }

    /// A page as it waits for another visit, with the conditions of the last one.
    fn again(&mut self, record: PageRecord, site: &mut SiteFreshness, now: Time) -> Pending {
        let mut previous = record.previous_visit();
        previous.validators = match record.standing {
            // The old validators are sent on purpose.
            PageStanding::Outdated if site.believes_validators(now) => record.validators.clone(),
            _ => site.conditions(&record.validators, now),
        };
        Pending {
            slot: self.parts.admitter.next_slot(0),
            url: record.url,
            depth: record.depth,
            target: record.target,
            crawl: CrawlId::OPEN,
            visit: Visit::again(previous),
            attempts: 0,
            not_before: Time::ZERO,
        }
    }

    fn look_again_at(&mut self, domain: &Domain, at: Option<Time>) -> Result<(), AdmitError> {
        let mut commit = Commit::new();
        commit.set_next_due(domain, at);
        Ok(self.parts.store.apply(&commit)?)
    }

    /// Changes what visits have taught about a domain, in memory or on the disk.
    fn with_freshness<T>(
        &mut self,
        domain: &Domain,
        change: impl FnOnce(&mut SiteFreshness) -> T,
    ) -> Result<T, AdmitError> {
        self.dirty.insert(domain.clone());
        if let Some(known) = self.parts.frontier.freshness_mut(domain) {
            return Ok(change(known));
        }
        let mut state = self.parts.admitter.load_state(domain)?;
        let result = change(&mut state.freshness);
        let mut commit = Commit::new();
        commit.put_domain(domain, state.encode());
        self.parts.store.apply(&commit)?;
        Ok(result)
    }

    /// The record of a visit, for the next one.
    pub(super) fn visited(
        &mut self,
        domain: &Domain,
        result: &ProcessedPage,
    ) -> Option<VisitedPage> {
        // A first visit has none before it, and need not look.
        let before = match &result.visit {
            Visit::First => None,
            Visit::Again(_) => self.parts.store.page(domain, result.url.hash()).ok()?,
        };
        let last = before
            .as_ref()
            .map(|before| (before.visited, before.archived.clone()));
        let mut visited = VisitedPage::new(domain, result, before)?;
        let (change, honesty) = (visited.change, visited.honesty);
        if let (Some(change), Some((last, archived))) = (change, last) {
            let gap = visited.record.visited.since(last);
            self.revisiting.made.note();
            self.totals.revisits += 1;
            if result.visited.as_ref()?.told == Told::ByServer {
                self.totals.not_modified += 1;
                self.totals.saved_bytes += match archived.map(|archived| archived.place) {
                    Some(ArchivePlace::Here(position)) => position.length,
                    _ => self.totals.bytes / self.totals.pages.max(1),
                };
            } else {
                self.totals.changed += u64::from(change == PageChange::Changed);
            }
            let distrust = self.revisiting.days(90).min(LONGEST_DISTRUST);
            let was_told = self.revisiting.hinted.remove(&result.url.hash());
            let learned = self.with_freshness(domain, |site| {
                if result.target == Target::Page {
                    site.note_visit(change, gap);
                    site.hints.note(was_told, change);
                }
                if honesty == Honesty::Lied {
                    site.note_lie(now(), distrust);
                }
            });
            if let Err(error) = learned {
                self.note_trouble(&error);
            }
            if honesty == Honesty::Lied {
                tracing::info!(%domain, "its validators are not believed for a while");
                self.totals.liars += 1;
                if let Err(error) = self.note_state(domain) {
                    self.note_trouble(&error);
                }
            }
            if change == PageChange::Changed && result.target == Target::Page {
                self.tell_changed(result);
            }
        }
        let site = self.freshness_of(domain);
        visited.record.due = Some(match self.is_hurried(domain, &result.url) {
            true => self.revisiting.rule.not_before(visited.record.visited),
            false => self.revisiting.due(&visited.record, &site),
        });
        Some(visited)
    }

    pub(super) fn freshness_of(&self, domain: &Domain) -> SiteFreshness {
        if let Some(state) = self.parts.frontier.state(domain) {
            return state.freshness;
        }
        let stored = self.parts.store.domain(domain).ok().flatten();
        stored.map_or_else(SiteFreshness::default, |bytes| {
            decode_state(domain, &bytes).freshness
        })
    }

    /// A later visit has ended without the page, and is not tried again. A page that is gone, or
    /// elsewhere, is looked for once more; then it leaves.
    pub(super) fn not_told(
        &mut self,
        domain: &Domain,
        pending: &Pending,
        outcome: Option<&Outcome>,
        commit: &mut Commit,
    ) -> Result<(), AdmitError> {
        if pending.visit == Visit::First {
            return Ok(());
        }
        let hash = pending.url.hash();
        let Some(mut record) = self.parts.store.page(domain, hash)? else {
            return Ok(());
        };
        let now = now();
        let is_gone = matches!(
            outcome,
            Some(Outcome::Refused(404 | 410) | Outcome::Redirect(_))
        );
        let is_hurried = self.is_hurried(domain, &pending.url);
        record.due = Some(match is_hurried {
            true => now + self.revisiting.rule.bounds().least,
            false => now + self.revisiting.rule.mean().max(self.revisiting.days(7)),
        });
        if is_gone {
            if record.standing == PageStanding::Missing && !is_hurried {
                commit.remove_page(domain, hash);
                return Ok(());
            }
            if record.standing != PageStanding::Missing {
                self.tell_watchers(&pending.url, News::Gone);
            }
            record.standing = PageStanding::Missing;
            record.due = Some(now + self.revisiting.days(MISSING_DAYS));
        } else if record.standing != PageStanding::Missing {
            record.standing = PageStanding::Untold;
        }
        commit.put_page(domain, &record);
        Ok(())
    }

    /// Pages that a list says have changed are visited now, if the list has been right so far.
    pub(super) fn take_hints(
        &mut self,
        domain: &Domain,
        hints: &[(PageUrl, Time)],
    ) -> Result<(), AdmitError> {
        if hints.is_empty() {
            return Ok(());
        }
        let (now, mut site) = (now(), self.freshness_of(domain));
        if !self.revisiting.share.is_any() || !site.hints.is_trusted() {
            return Ok(());
        }
        let (mut urls, mut commit) = (Vec::new(), Commit::new());
        for (url, changed) in hints {
            if url.host() != domain.as_str() || self.revisiting.hinted.len() >= MAX_HINTED {
                continue;
            }
            let Some(record) = self.parts.store.page(domain, url.hash())? else {
                continue;
            };
            let is_news =
                *changed > record.visited && *changed <= now + Duration::from_secs(86_400);
            let is_free = record
                .due
                .is_some_and(|due| self.is_in_order(domain, due, url.hash()));
            if !is_news || !is_free || record.standing != PageStanding::There {
                continue;
            }
            let rate = ChangeRate::estimate(&record.history, site.changes.prior());
            if !self.revisiting.rule.is_worth_a_hint(rate, ORDINARY) {
                continue;
            }
            let earliest = self.revisiting.rule.not_before(record.visited);
            if earliest > now || urls.len() >= HINTS_AT_ONCE {
                self.revisiting.hinted.insert(url.hash());
                let due = Some(earliest.max(now));
                commit.put_page(domain, &PageRecord { due, ..record });
                continue;
            }
            if let Some(due) = record.due {
                commit.take_due(domain, due, url.hash());
            }
            self.revisiting.hinted.insert(url.hash());
            urls.push(self.again(record, &mut site, now));
        }
        if urls.is_empty() {
            return Ok(self.parts.store.apply(&commit)?);
        }
        self.enter_queue(domain, urls, site, commit, now)
    }

    /// Does a page wait for its time, and not in a queue?
    pub(super) fn is_in_order(&self, domain: &Domain, due: Time, url: UrlHash) -> bool {
        let is_due = self.parts.store.is_due(domain, due, url);
        is_due.unwrap_or(false)
    }

    /// Takes later visits out of the queue that have become needless, since another one has told
    /// the page meanwhile.
    pub(super) fn drop_needless(&mut self, domain: &Domain, urls: &mut Vec<Pending>) {
        let needless: Vec<Pending> = urls
            .extract_if(.., |pending| self.is_needless(domain, pending))
            .collect();
        for pending in needless {
            self.revisiting.note_left(&pending.visit);
            if let Err(error) = self.leave_queue(&page_id(&pending), Sent::default()) {
                self.note_trouble(&error);
            }
        }
    }

    fn is_needless(&self, domain: &Domain, pending: &Pending) -> bool {
        let Visit::Again(previous) = &pending.visit else {
            return false;
        };
        let record = self.parts.store.page(domain, pending.url.hash());
        matches!(record, Ok(Some(record)) if record.visited > previous.since)
    }

    /// Must a page not be asked yet? The contract's day between two visits holds for every address
    /// of the Internet, whatever the settings say.
    pub(super) fn is_too_early(&self, pending: &Pending, address: IpAddr, now: Time) -> bool {
        let since = pending.visit.since();
        is_global(address) && since > Time::ZERO && now < since + Bounds::GLOBAL.least
    }
}

/// The time that a host needs for so many pages.
fn time_for(pages: usize, state: &DomainState) -> Duration {
    let pause = state.last_pause().unwrap_or(politeness::HOST_DELAY);
    pause * u32::try_from(pages).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawler::testing::{At, TestCrawler};
    use crate::swarm::replicas::merge;
    use apoidea_store::Store;
    use tokio::time::sleep;

    /// The shortest time between two visits in these tests.
    const LEAST: Duration = Duration::from_millis(2);
    const SETTINGS: [&str; 3] = [
        "crawl.private_networks=[\"127.0.0.0/8\"]",
        "freshness.private_least_ms=2",
        "freshness.private_most_ms=1000",
    ];

    /// A crawler with one page that was fetched.
    async fn with_page() -> (TestCrawler, Domain, Pending) {
        let mut crawler = TestCrawler::alone_with(&SETTINGS);
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.processed(&pending, &[]).await;
        crawler.write().await;
        assert_eq!(crawler.queue(&here), []);
        (crawler, here, pending)
    }

    /// The page when it waits again. Its time is kept to the second, so that may take two.
    async fn waits_again(crawler: &mut TestCrawler, domain: &Domain) -> Pending {
        for _ in 0..150 {
            sleep(10 * LEAST).await;
            crawler.enqueue_due();
            if let [pending] = &crawler.queue(domain)[..] {
                return pending.clone();
            }
        }
        panic!("it never waits: {:?}", crawler.store().due_domains(9));
    }

    /// The page when it is fetched again. Its domain may be in memory still, with its address.
    async fn fetched_again(crawler: &mut TestCrawler, domain: &Domain) -> Pending {
        let again = waits_again(crawler, domain).await;
        for _ in 0..100 {
            crawler.pump();
            if crawler.stage(&again) == Some(At::Fetching) {
                return again;
            }
            if crawler.resolving > 0 {
                crawler.open(domain).await;
            }
            sleep(LEAST).await;
        }
        panic!("it is not fetched: {:?}", crawler.stage(&again));
    }

    #[tokio::test]
    async fn a_page_waits_again_with_what_the_last_visit_left_and_once() {
        let (mut crawler, here, pending) = with_page().await;
        let again = waits_again(&mut crawler, &here).await;
        assert_eq!(again.url, pending.url);
        assert!(again.visit.previous().is_some());
        crawler.enqueue_due();
        assert_eq!(crawler.queue(&here), std::slice::from_ref(&again));
        assert_eq!(crawler.parts.admitter.queued(), 1);
        let crawler = crawler.crash();
        assert_eq!(crawler.queue(&here), [again], "it waits on the disk");
        assert_eq!(crawler.store().due_pages(&here, 9).unwrap(), []);
    }

    #[tokio::test]
    async fn a_visit_is_counted_and_the_next_one_planned() {
        let (mut crawler, here, _) = with_page().await;
        let again = fetched_again(&mut crawler, &here).await;
        crawler.processed(&again, &[]).await;
        crawler.write().await;
        let record = crawler
            .store()
            .page(&here, again.url.hash())
            .unwrap()
            .unwrap();
        assert_eq!((record.history.visits, record.history.changes), (2, 0));
        assert_eq!(crawler.store().due_pages(&here, 9).unwrap().len(), 1);
        assert_eq!((crawler.totals.revisits, crawler.totals.changed), (1, 0));
        assert_eq!(crawler.revisiting.waiting, 0);
    }

    #[tokio::test]
    async fn a_page_that_two_visits_do_not_find_leaves() {
        let (mut crawler, here, _) = with_page().await;
        for is_known in [true, false] {
            let again = fetched_again(&mut crawler, &here).await;
            crawler.fetched(&again, Outcome::Refused(404)).await;
            assert_eq!(crawler.queue(&here), []);
            let record = crawler.store().page(&here, again.url.hash()).unwrap();
            assert_eq!(record.is_some(), is_known);
        }
        assert_eq!(crawler.store().due_pages(&here, 9).unwrap(), []);
        assert_eq!(crawler.store().page_count().unwrap(), 0);
    }

    #[tokio::test]
    async fn the_replicas_learn_of_a_visit_with_the_page_that_leaves_the_queue() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.save().await;
        let first = crawler.told();
        crawler.processed(&pending, &[]).await;
        crawler.write().await;
        crawler.hand_in().await;
        let deltas = [first, crawler.told()].concat();
        let folder = tempfile::tempdir().unwrap();
        let replica = Store::open(folder.path(), Default::default()).unwrap();
        for delta in deltas.iter().filter(|delta| delta.domain == here) {
            let mut commit = Commit::new();
            merge::apply(&replica, delta, now(), &mut commit).unwrap();
            replica.commit(&commit).unwrap();
        }
        let hash = pending.url.hash();
        let mine = crawler.store().page(&here, hash).unwrap().unwrap();
        let theirs = replica
            .page(&here, hash)
            .unwrap()
            .expect("the replica knows the page");
        assert_eq!(
            (theirs.visited, theirs.content),
            (mine.visited, mine.content)
        );
        assert_eq!((theirs.history, theirs.url), (mine.history, mine.url));
        assert_eq!(replica.due_pages(&here, 9).unwrap().len(), 1);
    }
}
