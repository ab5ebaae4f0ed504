//! Watched pages at their owner: who watches, how often they are visited, and who is told.

use super::{Crawler, admitter::AdmitError, finding::Finding};
use crate::{
    clock::now,
    page::{
        changed_text::{ChangedText, Scrutiny},
        process::ProcessedPage,
    },
    state_codec::decode_state,
    swarm::{
        watching::{
            message::{NUDGE, News, Telling, WatchAnswer, WatchAsk},
            tellings,
        },
        wire::{self, List},
    },
};
use apoidea_crawl::{Watch, WatchSubject, Watches};
use apoidea_model::{Domain, PageUrl, PeerId, Pending, Target, Time, Visit};
use apoidea_store::{Commit, PageRecord, PageStanding};
use std::{collections::HashMap, time::Duration};
use tokio::sync::oneshot;

/// Watches that one peer may begin in a day at this one, on all domains together.
const MAX_NEW_IN_A_DAY: u32 = 64;
const DAY: Duration = Duration::from_secs(86_400);
/// Peers whose watches of the day are counted.
const MAX_COUNTED: usize = 4096;
/// The time for a nudge; the peer asks by itself in any case.
const NUDGE_WITHIN: Duration = Duration::from_secs(10);

/// The watches at this owner, as far as they are not in the states of their domains.
#[derive(Debug, Default)]
pub(super) struct Watching {
    /// Watches that peers began, and when the first of them did.
    begun: HashMap<PeerId, (u32, Time)>,
    /// The time of the last telling: each has its own.
    last: Time,
}

impl Watching {
    /// May a peer begin one more?
    fn may_begin(&mut self, peer: PeerId, now: Time) -> bool {
        if self.begun.len() >= MAX_COUNTED {
            self.begun.retain(|_, (_, since)| now.since(*since) < DAY);
        }
        if self.begun.len() >= MAX_COUNTED && !self.begun.contains_key(&peer) {
            return false;
        }
        let (count, since) = self.begun.entry(peer).or_insert((0, now));
        if now.since(*since) >= DAY {
            (*count, *since) = (0, now);
        }
        *count += 1;
        *count <= MAX_NEW_IN_A_DAY
    }

    fn next_time(&mut self, now: Time) -> Time {
        self.last = now.max(self.last + Duration::from_millis(1));
        self.last
    }
}

impl Crawler {
    /// A peer wants to be told of changes, or no more. The answer waits until it is on the disk.
    pub(super) async fn watch(
        &mut self,
        from: PeerId,
        ask: WatchAsk,
        reply: oneshot::Sender<WatchAnswer>,
    ) {
        match self.take_watch(from, &ask, now()) {
            Ok(answer) => {
                let durable = self.durable().await;
                tokio::spawn(async move {
                    if durable.await.is_ok() {
                        let _ = reply.send(answer);
                    }
                });
            }
            Err(error) => self.note_trouble(&error),
        }
    }

    fn take_watch(
        &mut self,
        from: PeerId,
        ask: &WatchAsk,
        now: Time,
    ) -> Result<WatchAnswer, AdmitError> {
        let WatchAsk {
            domain,
            subject,
            until,
            told,
        } = ask;
        if !self.parts.swarm.tenancy.is_owned(domain.key()) {
            return Ok(WatchAnswer::Elsewhere);
        }
        if !self.is_known(domain) {
            return Ok(WatchAnswer::Unknown);
        }
        let (store, mut commit) = (self.parts.store.clone(), Commit::new());
        let whose = (from, domain, *subject);
        let heard = match *until <= now {
            true => Time::NEVER,
            false => *told,
        };
        tellings::forget(&store, whose, heard, &mut commit)?;
        store.apply(&commit)?;
        if *until <= now {
            self.change_watches(domain, |watches| watches.end(from, *subject))?;
            return Ok(WatchAnswer::Ended);
        }
        let watches = self.watches(domain)?;
        let is_own = |watch: &Watch| (watch.subscriber, watch.subject) == (from, *subject);
        let is_new = !watches.iter().any(is_own);
        if is_new && !self.revisiting.watching.may_begin(from, now) {
            return Ok(WatchAnswer::Full);
        }
        let watch = Watch {
            subscriber: from,
            subject: *subject,
            until: *until,
            told: *told,
        };
        let put = self.change_watches(domain, |watches| watches.put(watch, now))?;
        let Ok(watch) = put else {
            return Ok(WatchAnswer::Full);
        };
        let record = match subject {
            WatchSubject::Page(hash) => self.parts.store.page(domain, *hash)?,
            WatchSubject::Site => None,
        };
        if let Some(record) = &record {
            self.hurry(domain, record, now)?;
        }
        let (mut news, has_more) = tellings::after(&store, whose, watch.told)?;
        if news.is_empty() {
            news.extend(record.as_ref().and_then(|record| unseen(record, &watch)));
        }
        Ok(WatchAnswer::Watched {
            visited: record.map_or(Time::ZERO, |record| record.visited),
            tellings: List(news),
            has_more,
        })
    }

    /// A page that is watched from now on is visited as soon as the contract allows.
    fn hurry(&mut self, domain: &Domain, record: &PageRecord, now: Time) -> Result<(), AdmitError> {
        let Some(planned) = record.due else {
            return Ok(());
        };
        let due = self.revisiting.rule.not_before(record.visited).max(now);
        let is_sooner = planned.since(due) > Duration::from_secs(1);
        if is_sooner && self.is_in_order(domain, planned, record.url.hash()) {
            let mut commit = Commit::new();
            let due = Some(due);
            commit.put_page(
                domain,
                &PageRecord {
                    due,
                    ..record.clone()
                },
            );
            self.parts.store.apply(&commit)?;
        }
        Ok(())
    }

    fn watches(&self, domain: &Domain) -> Result<Watches, AdmitError> {
        if let Some(state) = self.parts.frontier.state(domain) {
            return Ok(state.watches.clone());
        }
        let stored = self.parts.store.domain(domain)?;
        Ok(stored.map_or_else(Watches::default, |bytes| {
            decode_state(domain, &bytes).watches
        }))
    }

    /// Changes the watches on a domain, in memory or on the disk. The replicas learn it.
    fn change_watches<T>(
        &mut self,
        domain: &Domain,
        change: impl FnOnce(&mut Watches) -> T,
    ) -> Result<T, AdmitError> {
        let mut watches = self.watches(domain)?;
        let before = watches.clone();
        let result = change(&mut watches);
        if watches == before {
            return Ok(result);
        }
        if let Some(known) = self.parts.frontier.watches_mut(domain) {
            *known = watches;
        } else {
            let mut state = self.parts.admitter.load_state(domain)?;
            state.watches = watches;
            let mut commit = Commit::new();
            commit.put_domain(domain, state.encode());
            self.parts.store.apply(&commit)?;
        }
        self.note_state(domain)?;
        self.tell_soon();
        Ok(result)
    }

    /// A peer that was nudged watches nothing there.
    pub(super) fn end_watches(&mut self, peer: PeerId, domain: &Domain) {
        let ended = self.change_watches(domain, |watches| {
            let own = watches.iter().filter(|watch| watch.subscriber == peer);
            let subjects: Vec<WatchSubject> = own.map(|watch| watch.subject).collect();
            subjects
                .iter()
                .for_each(|subject| watches.end(peer, *subject));
            subjects
        });
        let forgotten = ended.and_then(|subjects| {
            let mut commit = Commit::new();
            for subject in subjects {
                let whose = (peer, domain, subject);
                tellings::forget(&self.parts.store, whose, Time::NEVER, &mut commit)?;
            }
            Ok(self.parts.store.apply(&commit)?)
        });
        if let Err(error) = forgotten {
            self.note_trouble(&error);
        }
    }

    /// The watches that a change of this page concerns, with the domains that they are on: its own,
    /// and that of its whole site.
    fn watches_on(&self, url: &PageUrl, now: Time) -> Result<Vec<(Domain, Watch)>, AdmitError> {
        let domain = url.domain();
        let mut all: Vec<(Domain, Watch)> = Vec::new();
        let own = self.watches(&domain)?;
        all.extend(
            own.on(url.hash(), now)
                .map(|watch| (domain.clone(), *watch)),
        );
        if domain.site() != domain.as_str()
            && let Ok(site) = domain.site().parse::<Domain>()
        {
            let whole = self.watches(&site)?;
            let whole = whole
                .on(url.hash(), now)
                .filter(|watch| watch.subject == WatchSubject::Site);
            all.extend(whole.map(|watch| (site.clone(), *watch)));
        }
        Ok(all)
    }

    /// Is the text of this page wanted, should it have changed?
    pub(super) fn scrutiny(&self, pending: &Pending) -> Scrutiny {
        let is_later = pending.visit != Visit::First && pending.target == Target::Page;
        let is_watched = || {
            self.watches_on(&pending.url, now())
                .is_ok_and(|all| !all.is_empty())
        };
        match is_later && is_watched() {
            true => Scrutiny::Watched,
            false => Scrutiny::Usual,
        }
    }

    /// Is this page visited as often as the contract allows?
    pub(super) fn is_hurried(&self, domain: &Domain, url: &PageUrl) -> bool {
        let now = now();
        match self.parts.frontier.state(domain) {
            Some(state) => state.watches.hurry(url, now),
            None => self
                .watches(domain)
                .is_ok_and(|watches| watches.hurry(url, now)),
        }
    }

    /// A later visit has found another text.
    pub(super) fn tell_changed(&mut self, page: &ProcessedPage) {
        let news = match &page.changed {
            Some(ChangedText::Compared(text)) => News::Changed(text.clone()),
            Some(ChangedText::Beginning(text)) => News::ReadsNow(text.clone()),
            None => News::Unseen,
        };
        self.tell_watchers(&page.url, news);
    }

    /// Lets a change wait for the peers that watch the page, and nudges them.
    pub(super) fn tell_watchers(&mut self, url: &PageUrl, news: News) {
        if let Err(error) = self.put_tellings(url, news) {
            self.note_trouble(&error);
        }
    }

    fn put_tellings(&mut self, url: &PageUrl, news: News) -> Result<(), AdmitError> {
        let now = now();
        for (domain, watch) in self.watches_on(url, now)? {
            // Later than all that its peer has heard of, also within one millisecond.
            let heard = watch.told + Duration::from_millis(1);
            let telling = Telling {
                time: self.revisiting.watching.next_time(now.max(heard)),
                url: url.clone(),
                news: news.clone(),
            };
            let (store, mut commit) = (&self.parts.store, Commit::new());
            let whose = (watch.subscriber, &domain, watch.subject);
            tellings::put(store, whose, telling, &mut commit)?;
            store.apply(&commit)?;
            self.nudge(watch.subscriber, domain);
        }
        self.save_soon();
        Ok(())
    }

    /// Says that there is something to hear.
    fn nudge(&self, subscriber: PeerId, domain: Domain) {
        let swarm = &self.parts.swarm;
        if subscriber == swarm.me {
            swarm.watchlist.nudge(&domain);
            return;
        }
        let (overlay, findings) = (swarm.overlay.clone(), swarm.findings.clone());
        tokio::spawn(async move {
            let request = overlay.request(subscriber, NUDGE, wire::encode(&domain));
            let answer = tokio::time::timeout(NUDGE_WITHIN, request).await;
            let answer = answer.ok().and_then(Result::ok);
            let is_watched = answer.and_then(|answer| wire::decode::<bool>(&answer).ok());
            if is_watched == Some(false) {
                // A peer that has stopped takes no more findings.
                let _ = findings.send(Finding::Unwatched { subscriber, domain });
            }
        });
    }
}

/// A change that the owner before this one saw, and perhaps did not tell.
fn unseen(record: &PageRecord, watch: &Watch) -> Option<Telling> {
    let history = record.history;
    let since = history
        .observed_seconds
        .saturating_sub(history.changed_after_seconds);
    // The history counts whole seconds, so each visit may have lost one.
    let lost = Duration::from_secs(history.visits.into());
    let changed = record.visited - Duration::from_secs(since.into()) - lost;
    let is_news = history.changes > 0 && changed > watch.told;
    (is_news && record.standing != PageStanding::Missing).then(|| Telling {
        time: record.visited,
        url: record.url.clone(),
        news: News::Unseen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawler::testing::{TestCrawler, other, url};
    use crate::swarm::testing::peer;
    use apoidea_crawl::TextDelta;

    fn ask(page: &PageUrl, told: Time) -> WatchAsk {
        WatchAsk {
            domain: page.domain(),
            subject: WatchSubject::Page(page.hash()),
            until: now() + DAY,
            told,
        }
    }

    fn changed() -> News {
        News::Changed(TextDelta::between("old", "new"))
    }

    fn tellings(answer: WatchAnswer) -> Vec<Telling> {
        match answer {
            WatchAnswer::Watched { tellings, .. } => tellings.0,
            other => panic!("not watched: {other:?}"),
        }
    }

    /// A crawler in a swarm that has visited one page.
    async fn with_page() -> (TestCrawler, PageUrl) {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.processed(&pending, &[]).await;
        crawler.write().await;
        (crawler, pending.url)
    }

    #[tokio::test]
    async fn a_watch_hears_of_later_changes_until_it_has_said_so() {
        let (mut crawler, page) = with_page().await;
        let first = crawler.take_watch(other(), &ask(&page, Time::ZERO), now());
        assert_eq!(tellings(first.unwrap()), []);
        assert!(crawler.is_hurried(&page.domain(), &page));
        crawler.tell_watchers(&page, changed());
        for _ in 0..2 {
            let again = crawler.take_watch(other(), &ask(&page, Time::ZERO), now());
            assert_eq!(tellings(again.unwrap()).len(), 1, "until it is heard");
        }
        let again = crawler.take_watch(other(), &ask(&page, Time::ZERO), now());
        let told = tellings(again.unwrap())[0].time;
        let heard = crawler.take_watch(other(), &ask(&page, told), now());
        assert_eq!(tellings(heard.unwrap()), []);
        let over = WatchAsk {
            until: Time::ZERO,
            ..ask(&page, told)
        };
        let ended = crawler.take_watch(other(), &over, now()).unwrap();
        assert_eq!(ended, WatchAnswer::Ended);
        assert!(crawler.state_of(&page.domain()).watches.is_empty());
    }

    #[tokio::test]
    async fn a_watch_is_told_to_the_replicas_and_outlives_a_crash() {
        let (mut crawler, page) = with_page().await;
        crawler.save().await;
        crawler.told();
        crawler
            .take_watch(other(), &ask(&page, Time::ZERO), now())
            .unwrap();
        crawler.save().await;
        let told = crawler.told();
        let delta = told.iter().find(|delta| delta.domain == page.domain());
        let state = delta.unwrap().state.clone().expect("the state travels");
        let state = apoidea_crawl::DomainState::decode(&state).unwrap();
        assert_eq!(state.watches.iter().count(), 1);
        crawler.tell_watchers(&page, changed());
        crawler.write().await;
        let mut crawler = crawler.crash();
        let again = crawler.take_watch(other(), &ask(&page, Time::ZERO), now());
        assert_eq!(tellings(again.unwrap()).len(), 1);
    }

    #[tokio::test]
    async fn the_next_owner_tells_a_change_that_only_the_record_knows() {
        let (mut crawler, page) = with_page().await;
        let begun = now() - DAY;
        crawler
            .take_watch(other(), &ask(&page, begun), now())
            .unwrap();
        let domain = page.domain();
        let record = crawler.store().page(&domain, page.hash()).unwrap().unwrap();
        let mut history = record.history;
        history.note(apoidea_model::PageChange::Changed, record.visited, now());
        let mut commit = Commit::new();
        commit.put_page(&domain, &PageRecord { history, ..record });
        crawler.store().apply(&commit).unwrap();
        let told = crawler.take_watch(other(), &ask(&page, begun), now());
        let told = tellings(told.unwrap());
        assert_eq!(told[0].news, News::Unseen);
        let heard = crawler.take_watch(other(), &ask(&page, told[0].time), now());
        assert_eq!(tellings(heard.unwrap()), []);
    }

    #[tokio::test]
    async fn only_pages_of_own_and_known_domains_are_watched_and_not_without_end() {
        let (mut crawler, page) = with_page().await;
        let foreign = url(&crawler.foreign(0), 1);
        let elsewhere = crawler.take_watch(other(), &ask(&foreign, Time::ZERO), now());
        assert_eq!(elsewhere.unwrap(), WatchAnswer::Elsewhere);
        let unknown = url(&crawler.own(7), 1);
        let answer = crawler.take_watch(other(), &ask(&unknown, Time::ZERO), now());
        assert_eq!(answer.unwrap(), WatchAnswer::Unknown);
        let mut kept = 0;
        for number in 0..200 {
            let page = url(&page.domain(), number);
            let subscriber = peer(100 + u8::try_from(number / 7).unwrap());
            let answer = crawler.take_watch(subscriber, &ask(&page, Time::ZERO), now());
            kept += usize::from(matches!(answer.unwrap(), WatchAnswer::Watched { .. }));
        }
        assert_eq!(kept, apoidea_crawl::MAX_WATCHES);
    }

    #[test]
    fn a_flood_of_watches_ends_with_the_day() {
        let mut watching = Watching::default();
        let begin = |watching: &mut Watching, now| {
            (0..1000)
                .filter(|_| watching.may_begin(peer(1), now))
                .count()
        };
        assert_eq!(begin(&mut watching, now()), MAX_NEW_IN_A_DAY as usize);
        assert_eq!(begin(&mut watching, now() + DAY), MAX_NEW_IN_A_DAY as usize);
        for number in 0..2 * MAX_COUNTED as u32 {
            let stranger = PeerId::at(apoidea_model::Key::hash(number.to_be_bytes()));
            watching.may_begin(stranger, now());
        }
        assert!(watching.begun.len() <= MAX_COUNTED);
    }
}
