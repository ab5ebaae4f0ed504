//! The volunteer's own watches, and the changes that were told of them.

use super::message::{News, Telling, WatchAnswer, WatchAsk};
use crate::{clock::now, lock::lock};
use apoidea_crawl::{LONGEST_WATCH, WatchSubject};
use apoidea_model::{Domain, InvalidDomain, InvalidUrl, PageUrl, Time};
use apoidea_store::{Commit, CommitError, ReadError, Store};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, fmt, str::FromStr, sync::Mutex, time::Duration};
use tokio::sync::{Notify, broadcast};

/// Watches of one volunteer.
const MAX_OWN: usize = 256;
/// Changes that are kept to be read; the oldest go first.
const MAX_CHANGES: usize = 500;
/// Changes that a slow listener may lag behind before it misses some.
const BACKLOG: usize = 64;
/// A watch that its owner knows is renewed so often; news come with it.
const RENEW_EVERY: Duration = Duration::from_secs(3600);
/// The first pause after a failure; each one after it is twice as long, up to [`RENEW_EVERY`].
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// Nudges about one watch are heeded no more often.
const NUDGED_EVERY: Duration = Duration::from_secs(2);
/// A watch lasts so long unless the volunteer says otherwise.
pub const USUAL_WATCH: Duration = Duration::from_secs(90 * 24 * 3600);
const WATCHES: &str = "watching";
const CHANGES: &str = "change ";

/// What a volunteer watches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum WatchTarget {
    /// One page.
    Page(PageUrl),
    /// All pages of a host; of a whole site, those of its other hosts as well.
    Site(Domain),
}

/// The text names nothing that can be watched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// It is no URL.
    #[error(transparent)]
    Url(#[from] InvalidUrl),
    /// It is no name of a site.
    #[error("{0}; a page is watched by its URL, https://…, and a site by its name")]
    Site(#[from] InvalidDomain),
}

impl FromStr for WatchTarget {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let text = text.trim();
        match text.contains("://") {
            true => Ok(WatchTarget::Page(PageUrl::parse(text)?)),
            false => Ok(WatchTarget::Site(text.parse()?)),
        }
    }
}

impl TryFrom<String> for WatchTarget {
    type Error = InvalidTarget;

    fn try_from(text: String) -> Result<Self, InvalidTarget> {
        text.parse()
    }
}

impl From<WatchTarget> for String {
    fn from(target: WatchTarget) -> String {
        target.to_string()
    }
}

impl fmt::Display for WatchTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WatchTarget::Page(url) => url.fmt(f),
            WatchTarget::Site(domain) => domain.fmt(f),
        }
    }
}

impl WatchTarget {
    /// The domain at whose owner the watch lives.
    pub(crate) fn domain(&self) -> Domain {
        match self {
            WatchTarget::Page(url) => url.domain(),
            WatchTarget::Site(domain) => domain.clone(),
        }
    }

    pub(crate) fn subject(&self) -> WatchSubject {
        match self {
            WatchTarget::Page(url) => WatchSubject::Page(url.hash()),
            WatchTarget::Site(_) => WatchSubject::Site,
        }
    }

    /// Pages that the owner has to know.
    pub(crate) fn seeds(&self) -> Vec<PageUrl> {
        match self {
            WatchTarget::Page(url) => vec![url.clone()],
            WatchTarget::Site(domain) => ["https", "http"]
                .iter()
                .filter_map(|scheme| PageUrl::parse(&format!("{scheme}://{domain}/")).ok())
                .collect(),
        }
    }

    /// Is a change of this page one that the volunteer wants to hear of?
    fn concerns(&self, page: &PageUrl) -> bool {
        match self {
            WatchTarget::Page(url) => url == page,
            WatchTarget::Site(domain) => {
                let is_whole_site = domain.site() == domain.as_str();
                let host = page.domain();
                host == *domain || is_whole_site && host.site() == domain.as_str()
            }
        }
    }
}

/// A watch of the volunteer, as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct OwnWatch {
    /// A URL, or the name of a site.
    #[ts(type = "string")]
    pub target: WatchTarget,
    /// Its beginning.
    pub since: Time,
    /// Its end.
    pub until: Time,
    /// The volunteer has heard of all changes up to then.
    pub told: Time,
    /// The last visit of the page, as far as its owner has told; zero if there was none.
    pub visited: Time,
    /// The answer of the peer that looks after the page.
    pub standing: WatchStanding,
}

/// What became of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum WatchStanding {
    /// The owner of the page was not asked yet, or did not answer.
    Asking,
    /// The owner tells of changes.
    Kept,
    /// There are as many watches on that site as there may be; it is tried again.
    Full,
    /// The owner knows no page of that site yet.
    Unknown,
}

/// A change of something that is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct WatchedChange {
    /// When it was noticed.
    pub at: Time,
    /// What was watched.
    #[ts(type = "string")]
    pub target: WatchTarget,
    /// The page that changed.
    #[ts(type = "string")]
    pub url: PageUrl,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// Lines that are new, or the beginning of the page.
    pub added: String,
    /// Lines that are there no more.
    pub removed: String,
    /// Whether there was more text than is told.
    pub is_cut: bool,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The page reads differently.
    Changed,
    /// The page reads differently, and this is how it begins: no earlier version is known.
    ReadsNow,
    /// The page reads differently, and its text is not known.
    Unseen,
    /// The page is not there any more.
    Gone,
}

/// Why a watch is not begun.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There are as many as there may be.
    #[error("there are {MAX_OWN} watches already; end one first")]
    Full,
    /// Its end has passed.
    #[error("the watch would have ended already")]
    Over,
    /// It lasts too long.
    #[error("no watch lasts longer than a year")]
    Long,
    /// The list cannot be kept.
    #[error("the watches cannot be written: {0}")]
    Store(#[from] CommitError),
    /// The changes cannot be read.
    #[error("the changes cannot be read: {0}")]
    Read(#[from] ReadError),
}

/// The volunteer's watches; shared by all parts that ask, tell or show.
pub(crate) struct Watchlist {
    store: Store,
    watches: Mutex<Vec<OwnWatch>>,
    calls: Mutex<HashMap<WatchTarget, Call>>,
    live: broadcast::Sender<WatchedChange>,
    /// Rung when an owner is to be asked.
    pub bell: Notify,
}

/// When an owner is asked next.
#[derive(Debug, Clone, Copy)]
struct Call {
    last: Time,
    next: Time,
    failures: u32,
}

impl Watchlist {
    /// The watches of the last run.
    pub(crate) fn open(store: Store) -> Result<Self, ReadError> {
        let stored = store.value(WATCHES)?;
        let watches = stored.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Watchlist {
            store,
            watches: Mutex::new(watches.unwrap_or_default()),
            calls: Mutex::default(),
            live: broadcast::Sender::new(BACKLOG),
            bell: Notify::new(),
        })
    }

    /// Begins a watch, or gives one another end. It is durable when this returns.
    pub(crate) fn begin(&self, target: WatchTarget, until: Time) -> Result<OwnWatch, WatchError> {
        let now = now();
        if until <= now {
            return Err(WatchError::Over);
        }
        if until > now + LONGEST_WATCH {
            return Err(WatchError::Long);
        }
        let mut watches = lock(&self.watches);
        let place = watches.iter().position(|watch| watch.target == target);
        if place.is_none() && watches.len() >= MAX_OWN {
            return Err(WatchError::Full);
        }
        let begun = OwnWatch {
            target: target.clone(),
            since: now,
            until,
            told: Time::ZERO,
            visited: Time::ZERO,
            standing: WatchStanding::Asking,
        };
        let place = place.unwrap_or_else(|| {
            watches.push(begun);
            watches.len() - 1
        });
        watches[place].until = until;
        let begun = watches[place].clone();
        self.store.commit(&stored(&watches))?;
        drop(watches);
        lock(&self.calls).remove(&target);
        self.bell.notify_one();
        Ok(begun)
    }

    /// Ends a watch; none if there was none.
    pub(crate) fn end(&self, target: &WatchTarget) -> Result<Option<OwnWatch>, WatchError> {
        let mut watches = lock(&self.watches);
        let place = watches.iter().position(|watch| watch.target == *target);
        let ended = place.map(|place| watches.remove(place));
        self.store.commit(&stored(&watches))?;
        drop(watches);
        lock(&self.calls).remove(target);
        Ok(ended)
    }

    /// All watches.
    pub(crate) fn list(&self) -> Vec<OwnWatch> {
        lock(&self.watches).clone()
    }

    /// The last changes, latest first.
    pub(crate) fn changes(&self) -> Result<Vec<WatchedChange>, ReadError> {
        let stored = self.store.values(CHANGES, MAX_CHANGES)?;
        let read = |(_, bytes): (String, Vec<u8>)| serde_json::from_slice(&bytes).ok();
        let mut changes: Vec<WatchedChange> = stored.into_iter().filter_map(read).collect();
        changes.reverse();
        Ok(changes)
    }

    /// Follows the changes as they come.
    pub(crate) fn follow(&self) -> broadcast::Receiver<WatchedChange> {
        self.live.subscribe()
    }

    /// Somebody says that there is something to hear. True if this peer watches anything there.
    pub(crate) fn nudge(&self, domain: &Domain) -> bool {
        let now = now();
        let targets = self.targets_at(domain);
        let mut calls = lock(&self.calls);
        for target in &targets {
            if let Some(call) = calls.get_mut(target) {
                call.next = call.next.min(now.max(call.last + NUDGED_EVERY));
            }
        }
        self.bell.notify_one();
        !targets.is_empty()
    }

    fn targets_at(&self, domain: &Domain) -> Vec<WatchTarget> {
        let watches = lock(&self.watches);
        let targets = watches.iter().map(|watch| watch.target.clone());
        targets
            .filter(|target| target.domain() == *domain)
            .collect()
    }

    /// The questions that are due, and the time of the next one. Watches that are over are
    /// forgotten: their owners forget them, too.
    pub(crate) fn due(&self, now: Time) -> (Vec<(WatchTarget, WatchAsk)>, Time) {
        let mut watches = lock(&self.watches);
        let mut calls = lock(&self.calls);
        watches.retain(|watch| watch.until > now);
        calls.retain(|target, _| watches.iter().any(|watch| watch.target == *target));
        let next = |watch: &OwnWatch| {
            calls
                .get(&watch.target)
                .map_or(Time::ZERO, |call| call.next)
        };
        let due = watches.iter().filter(|watch| next(watch) <= now);
        let ask = |watch: &OwnWatch| {
            let ask = WatchAsk {
                domain: watch.target.domain(),
                subject: watch.target.subject(),
                until: watch.until,
                // An owner that knows nothing of the watch tells what changed since its beginning.
                told: watch.told.max(watch.since),
            };
            (watch.target.clone(), ask)
        };
        let asks = due.map(ask).collect();
        let later = watches.iter().map(next).filter(|time| *time > now);
        (asks, later.min().unwrap_or(now + RENEW_EVERY))
    }

    /// Takes in an owner's answer, or that there was none.
    pub(crate) fn note(
        &self,
        target: &WatchTarget,
        answer: Option<WatchAnswer>,
        now: Time,
    ) -> Result<(), WatchError> {
        let (standing, is_more) = match &answer {
            None | Some(WatchAnswer::Elsewhere) => (None, false),
            Some(WatchAnswer::Watched { has_more, .. }) => (Some(WatchStanding::Kept), *has_more),
            Some(WatchAnswer::Full) => (Some(WatchStanding::Full), false),
            Some(WatchAnswer::Unknown | WatchAnswer::Ended) => {
                (Some(WatchStanding::Unknown), false)
            }
        };
        self.plan(target, standing, is_more, now);
        let (tellings, visited) = match answer {
            Some(WatchAnswer::Watched {
                tellings, visited, ..
            }) => (tellings.0, visited.min(now)),
            _ => (Vec::new(), Time::ZERO),
        };
        let mut watches = lock(&self.watches);
        let Some(watch) = watches.iter_mut().find(|watch| watch.target == *target) else {
            return Ok(());
        };
        let before = watch.clone();
        watch.standing = standing.unwrap_or(match watch.standing {
            WatchStanding::Kept => WatchStanding::Kept,
            _ => WatchStanding::Asking,
        });
        watch.visited = watch.visited.max(visited);
        let mut changes = Vec::new();
        for telling in tellings {
            let time = telling.time.min(now);
            if time > watch.told {
                watch.told = time;
                changes.extend(change(target, telling));
            }
        }
        let mut commit = match *watch == before {
            true => return Ok(()),
            false => stored(&watches),
        };
        self.keep(&changes, &mut commit)?;
        self.store.apply(&commit)?;
        drop(watches);
        for change in changes {
            // Nobody listening is the usual case.
            let _ = self.live.send(change);
        }
        Ok(())
    }

    /// This peer has asked itself, and may not be the owner for long: it asks again soon.
    pub(crate) fn ask_soon(&self, target: &WatchTarget, at: Time) {
        if let Some(call) = lock(&self.calls).get_mut(target) {
            call.next = call.next.min(at);
        }
    }

    /// Decides when to ask again.
    fn plan(
        &self,
        target: &WatchTarget,
        standing: Option<WatchStanding>,
        is_more: bool,
        now: Time,
    ) {
        let mut calls = lock(&self.calls);
        let failures = calls.get(target).map_or(0, |call| call.failures);
        let failures = match standing {
            Some(WatchStanding::Kept) => 0,
            _ => failures.saturating_add(1),
        };
        let pause = match (failures, is_more) {
            (0, true) => Duration::ZERO,
            (0, false) => RENEW_EVERY,
            (failures, _) => RENEW_EVERY.min(FIRST_PAUSE * (1 << (failures - 1).min(10))),
        };
        let call = Call {
            last: now,
            next: now + pause,
            failures,
        };
        calls.insert(target.clone(), call);
    }

    fn keep(&self, changes: &[WatchedChange], commit: &mut Commit) -> Result<(), ReadError> {
        if changes.is_empty() {
            return Ok(());
        }
        let known = self.store.values(CHANGES, MAX_CHANGES + changes.len())?;
        let too_many = (known.len() + changes.len()).saturating_sub(MAX_CHANGES);
        for (name, _) in known.iter().take(too_many) {
            commit.remove_value(name);
        }
        for change in changes {
            let hash = change.url.hash().0;
            let name = format!("{CHANGES}{:016x} {hash:016x}", change.at.as_millis());
            let bytes = serde_json::to_vec(change).expect("names and texts always serialise");
            commit.set_value(&name, &bytes);
        }
        Ok(())
    }
}

fn stored(watches: &[OwnWatch]) -> Commit {
    let mut commit = Commit::new();
    let bytes = serde_json::to_vec(watches).expect("names and times always serialise");
    commit.set_value(WATCHES, &bytes);
    commit
}

/// A stranger's word about something that is watched; none if it is about something else.
fn change(target: &WatchTarget, telling: Telling) -> Option<WatchedChange> {
    if !target.concerns(&telling.url) {
        return None;
    }
    let (kind, text) = match telling.news {
        News::Changed(text) => (ChangeKind::Changed, text.checked()?),
        News::ReadsNow(text) => (ChangeKind::ReadsNow, text.checked()?),
        News::Unseen => (ChangeKind::Unseen, Default::default()),
        News::Gone => (ChangeKind::Gone, Default::default()),
    };
    Some(WatchedChange {
        at: telling.time.min(now()),
        target: target.clone(),
        url: telling.url,
        kind,
        added: text.added,
        removed: text.removed,
        is_cut: text.is_cut,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::wire::List;
    use apoidea_crawl::TextDelta;

    fn watchlist() -> (tempfile::TempDir, Watchlist) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        (folder, Watchlist::open(store).unwrap())
    }

    fn target(text: &str) -> WatchTarget {
        text.parse().unwrap()
    }

    fn watched(url: &str, times: &[Time]) -> WatchAnswer {
        let telling = |time: &Time| Telling {
            time: *time,
            url: PageUrl::parse(url).unwrap(),
            news: News::Changed(TextDelta::between("old", "new")),
        };
        WatchAnswer::Watched {
            visited: now(),
            tellings: List(times.iter().map(telling).collect()),
            has_more: false,
        }
    }

    #[test]
    fn a_url_and_a_name_are_told_apart_and_nonsense_is_explained() {
        assert!(matches!(target("https://a.test/x"), WatchTarget::Page(_)));
        assert!(matches!(target(" a.test "), WatchTarget::Site(_)));
        let wrong = "a b".parse::<WatchTarget>().unwrap_err().to_string();
        assert!(wrong.contains("https://"), "{wrong}");
        assert!("ftp://a.test/".parse::<WatchTarget>().is_err());
    }

    #[test]
    fn a_site_covers_its_hosts_and_a_host_only_itself() {
        let concerns = |of: &str, url: &str| target(of).concerns(&PageUrl::parse(url).unwrap());
        assert!(concerns("example.org", "https://www.example.org/x"));
        assert!(concerns("www.example.org", "http://www.example.org/"));
        assert!(!concerns("www.example.org", "https://example.org/"));
        assert!(!concerns("example.org", "https://example.com/"));
        assert!(!concerns("http://example.org/", "http://example.org/x"));
    }

    #[test]
    fn a_change_is_kept_once_over_restarts_and_shown_to_all_who_follow() {
        let (folder, list) = watchlist();
        let page = target("http://a.test/x");
        list.begin(page.clone(), now() + USUAL_WATCH).unwrap();
        let mut live = list.follow();
        let (asks, _) = list.due(now());
        assert_eq!(asks.len(), 1);
        let time = now();
        for _ in 0..2 {
            let answer = watched("http://a.test/x", &[time]);
            list.note(&page, Some(answer), now()).unwrap();
        }
        let change = live.try_recv().unwrap();
        assert_eq!(
            (change.added.as_str(), change.removed.as_str()),
            ("new", "old")
        );
        assert!(live.try_recv().is_err(), "once");
        assert!(list.due(now()).0.is_empty(), "not soon again");
        assert!(list.nudge(&"a.test".parse().unwrap()));
        let later = now() + NUDGED_EVERY;
        assert_eq!(
            list.due(later).0[0].1.told,
            time,
            "it says what it has heard"
        );
        list.store.commit(&Commit::new()).unwrap();
        drop(list);
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let list = Watchlist::open(store).unwrap();
        assert_eq!(list.list()[0].standing, WatchStanding::Kept);
        assert_eq!(list.changes().unwrap(), [change]);
    }

    #[test]
    fn news_of_something_else_and_too_long_ones_are_not_taken() {
        let (_folder, list) = watchlist();
        let page = target("http://a.test/x");
        list.begin(page.clone(), now() + USUAL_WATCH).unwrap();
        let other = watched("http://b.test/", &[now()]);
        list.note(&page, Some(other), now()).unwrap();
        let added = "x".repeat(TextDelta::MAX_BYTES + 1);
        let text = TextDelta {
            added,
            ..TextDelta::default()
        };
        let long = Telling {
            time: now(),
            url: PageUrl::parse("http://a.test/x").unwrap(),
            news: News::Changed(text),
        };
        let answer = WatchAnswer::Watched {
            visited: Time::NEVER,
            tellings: List(vec![long]),
            has_more: false,
        };
        list.note(&page, Some(answer), now()).unwrap();
        assert_eq!(list.changes().unwrap(), []);
        assert!(list.list()[0].visited <= now());
    }

    #[test]
    fn watches_end_and_are_bounded() {
        let (_folder, list) = watchlist();
        let soon = now() + Duration::from_secs(60);
        for number in 0..MAX_OWN {
            let page = target(&format!("http://a.test/{number}"));
            list.begin(page, soon).unwrap();
        }
        let more = list.begin(target("http://b.test/"), soon);
        assert!(matches!(more, Err(WatchError::Full)));
        assert!(matches!(
            list.begin(target("c.test"), now()),
            Err(WatchError::Over)
        ));
        assert!(matches!(
            list.begin(target("c.test"), Time::NEVER),
            Err(WatchError::Long)
        ));
        let first = target("http://a.test/0");
        assert!(list.end(&first).unwrap().is_some() && list.end(&first).unwrap().is_none());
        assert!(!list.nudge(&"b.test".parse().unwrap()));
        list.due(soon);
        assert!(list.list().is_empty());
    }

    #[test]
    fn an_owner_that_does_not_answer_is_asked_ever_more_rarely() {
        let (_folder, list) = watchlist();
        let page = target("http://a.test/x");
        list.begin(page.clone(), now() + USUAL_WATCH).unwrap();
        let mut at = now();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            list.note(&page, None, at).unwrap();
            let (asks, next) = list.due(at);
            assert!(asks.is_empty());
            pauses.push(next.since(at));
            at = next;
        }
        assert_eq!((pauses[0], pauses[11]), (FIRST_PAUSE, RENEW_EVERY));
        assert!(pauses.is_sorted());
        assert_eq!(list.list()[0].standing, WatchStanding::Asking);
    }
}
