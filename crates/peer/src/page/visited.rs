//! A visit that told a page's content, as it is remembered for the next one.
//!
//! The record of a page is written in the commit that takes the page out of its queue. Where the
//! page lies in the archive is known only to the writer, which puts it in.

use crate::page::process::ProcessedPage;
use apoidea_crawl::Revisit;
use apoidea_model::{ChangeHistory, ContentHash, Domain, PageChange, PeerId, Time, Validators};
use apoidea_store::{ArchivePlace, Archived, PageRecord, archive::Position};
use serde::{Deserialize, Serialize};

/// The rule about visiting pages again; asked here and nowhere else.
const RULE: Revisit = Revisit::Once;

/// The facts about one visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Visited {
    /// The time of the fetch.
    pub time: Time,
    /// The page's content.
    pub content: ContentHash,
    /// The validators that came with it.
    pub validators: Validators,
    /// The part of it that the archive records hold.
    pub kept: Kept,
}

/// The part of a page that its archive records hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kept {
    /// All of it.
    Content,
    /// The fact that it was seen, and where its content is.
    Reference,
    /// Nothing: there are no records.
    Nothing,
}

/// A page whose record is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VisitedPage {
    pub domain: Domain,
    pub record: PageRecord,
    kept: Kept,
}

impl VisitedPage {
    /// The record of a page after a visit; none for a list of pages. `before` is the record of the
    /// visit before this one.
    pub(crate) fn new(
        domain: &Domain,
        page: &ProcessedPage,
        before: Option<PageRecord>,
    ) -> Option<Self> {
        let visited = page.visited.clone()?;
        let change = match &before {
            Some(before) if before.content != visited.content => PageChange::Changed,
            _ => PageChange::Unchanged,
        };
        let history = before.as_ref().map_or(ChangeHistory::FIRST, |before| {
            let mut history = before.history;
            history.note(change, before.visited, visited.time);
            history
        });
        let archived = match (visited.kept, page.helper) {
            (Kept::Content, Some(helper)) => Some(at_helper(visited.time, helper)),
            // The writer knows the position.
            (Kept::Content, None) => None,
            (Kept::Reference | Kept::Nothing, _) => before
                .filter(|_| change == PageChange::Unchanged)
                .and_then(|before| before.archived),
        };
        let record = PageRecord {
            url: page.url.clone(),
            visited: visited.time,
            validators: visited.validators,
            content: visited.content,
            history,
            archived,
        };
        debug_assert_eq!(RULE.next_visit(&record.history, record.visited), None);
        Some(VisitedPage {
            domain: domain.clone(),
            record,
            kept: visited.kept,
        })
    }

    /// Takes in where the records of the page lie in this peer's archive.
    pub(crate) fn archived_at(&mut self, position: Position) {
        if self.kept == Kept::Content {
            self.record.archived = Some(Archived {
                time: self.record.visited,
                place: ArchivePlace::Here(position),
            });
        }
    }
}

fn at_helper(time: Time, helper: PeerId) -> Archived {
    Archived {
        time,
        place: ArchivePlace::Peer(helper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::process::PageKind;
    use apoidea_model::{CrawlId, Key, PageUrl, Visit};

    const POSITION: Position = Position {
        file: 1,
        offset: 2,
        length: 3,
    };

    fn domain() -> Domain {
        "a.test".parse().unwrap()
    }

    fn page(content: &[u8], millis: u64, kept: Kept) -> ProcessedPage {
        ProcessedPage {
            links: Vec::new(),
            link_count: 0,
            records: None,
            url: PageUrl::parse("http://a.test/").unwrap(),
            crawl: CrawlId::OPEN,
            visit: Visit::First,
            visited: Some(Visited {
                time: Time::from_millis(millis),
                content: ContentHash::of_body(content),
                validators: Validators::read(Some(b"\"x\""), None),
                kept,
            }),
            helper: None,
            bytes: 0,
            millis: 0,
            kind: PageKind::New,
        }
    }

    fn visit(page: &ProcessedPage, before: Option<PageRecord>) -> VisitedPage {
        VisitedPage::new(&domain(), page, before).unwrap()
    }

    #[test]
    fn a_new_page_is_remembered_where_its_records_lie() {
        let mut first = visit(&page(b"x", 1000, Kept::Content), None);
        assert_eq!(first.record.archived, None);
        first.archived_at(POSITION);
        let archived = first.record.archived.as_ref().unwrap();
        assert_eq!(archived.place, ArchivePlace::Here(POSITION));
        assert_eq!(first.record.history, ChangeHistory::FIRST);
        let previous = first.record.previous_visit();
        assert_eq!(previous.captured, Some(Time::from_millis(1000)));
    }

    #[test]
    fn an_unchanged_page_keeps_its_capture_and_a_changed_one_does_not() {
        let mut first = visit(&page(b"x", 1000, Kept::Content), None);
        first.archived_at(POSITION);
        let before = first.record;
        let mut same = visit(&page(b"x", 9000, Kept::Reference), Some(before.clone()));
        same.archived_at(Position {
            file: 9,
            ..POSITION
        });
        assert_eq!(same.record.archived, before.archived);
        assert_eq!(
            (same.record.history.visits, same.record.history.changes),
            (2, 0)
        );
        let other = visit(&page(b"y", 9000, Kept::Reference), Some(before));
        assert_eq!(other.record.archived, None);
        assert_eq!(other.record.history.changes, 1);
    }

    #[test]
    fn a_page_that_a_helper_fetched_is_in_the_helpers_archive() {
        let helper = PeerId::at(Key::hash("helper"));
        let mut lent = page(b"x", 1000, Kept::Content);
        lent.helper = Some(helper);
        let archived = visit(&lent, None).record.archived.unwrap();
        assert_eq!(archived.place, ArchivePlace::Peer(helper));
    }
}
