//! The records of pages as they travel between the peers that hold a domain.
//!
//! Records are joined, never replaced: the later visit of a page counts, and of its history the
//! larger numbers. So they travel apart from the versions of a replica, in parts of any size and any
//! number of times.

use apoidea_crawl::KnownPage;
use apoidea_model::{Domain, PageUrl, Target, Time};
use apoidea_store::{ArchivePlace, Archived, Commit, PageRecord, PageStanding, ReadError, Store};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Clocks of peers may differ by so much.
const CLOCK_ERROR: Duration = Duration::from_secs(86_400);

/// A page with its URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentPage {
    pub url: PageUrl,
    pub depth: u16,
    pub target: Target,
    pub known: KnownPage,
}

impl SentPage {
    /// A record as it is sent.
    pub(crate) fn of(record: &PageRecord) -> Self {
        SentPage {
            url: record.url.clone(),
            depth: record.depth,
            target: record.target,
            known: known(record),
        }
    }

    /// Takes the page in, as the sender's word; nothing of another domain, and nothing from later
    /// than now.
    pub(crate) fn into_record(self, domain: &Domain, now: Time) -> Option<PageRecord> {
        let is_sound =
            self.url.host() == domain.as_str() && self.known.visited <= now + CLOCK_ERROR;
        is_sound.then(|| record(self.url, self.depth, self.target, self.known))
    }
}

/// What another peer needs to know of a page.
pub(crate) fn known(record: &PageRecord) -> KnownPage {
    let seconds = |due: Time| u32::try_from(due.since(record.visited).as_secs()).ok();
    KnownPage {
        visited: record.visited,
        due_after: record.due.and_then(seconds),
        standing: match record.standing {
            PageStanding::There => 0,
            PageStanding::Outdated => 1,
            PageStanding::Missing => 2,
            PageStanding::Untold => 3,
        },
        validators: record.validators.clone(),
        content: record.content,
        history: record.history,
        captured: record.archived.as_ref().map(|archived| {
            let age = record.visited.since(archived.time).as_millis();
            u64::try_from(age).unwrap_or(u64::MAX)
        }),
    }
}

/// A page that another peer knows.
pub(crate) fn record(url: PageUrl, depth: u16, target: Target, known: KnownPage) -> PageRecord {
    let due = known
        .due_after
        .map(|after| known.visited + Duration::from_secs(after.into()));
    let archived = known.captured.map(|age| Archived {
        time: known.visited - Duration::from_millis(age),
        place: ArchivePlace::Elsewhere,
    });
    PageRecord {
        url,
        visited: known.visited,
        due,
        validators: known.validators,
        content: known.content,
        history: known.history,
        archived,
        standing: match known.standing {
            0 => PageStanding::There,
            1 => PageStanding::Outdated,
            2 => PageStanding::Missing,
            _ => PageStanding::Untold,
        },
        depth,
        target,
    }
}

/// Joins a record with the one in the store. A page that waits in the queue keeps out of the order
/// of due pages: its own record here says so.
pub(crate) fn join(
    store: &Store,
    domain: &Domain,
    theirs: PageRecord,
    commit: &mut Commit,
) -> Result<(), ReadError> {
    let joined = match store.page(domain, theirs.url.hash())? {
        Some(mine) if mine == theirs => return Ok(()),
        Some(mine) => mine.joined(theirs),
        None => theirs,
    };
    commit.put_page(domain, &joined);
    Ok(())
}
