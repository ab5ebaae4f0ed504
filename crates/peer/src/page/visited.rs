//! A visit that told a page's content, as it is remembered for the next one.
//!
//! The record of a page is written in the commit that takes the page out of its queue. Where the
//! page lies in the archive is known only to the writer, which puts it in.

use crate::page::process::ProcessedPage;
use apoidea_model::{ChangeHistory, ContentMark, Domain, PageChange, PeerId, Time, Validators};
use apoidea_store::{ArchivePlace, Archived, PageRecord, PageStanding, archive::Position};
use serde::{Deserialize, Serialize};

/// The facts about one visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Visited {
    /// The time of the fetch.
    pub time: Time,
    /// The page's content.
    pub content: ContentMark,
    /// The validators that came with it.
    pub validators: Validators,
    /// The part of it that the archive records hold.
    pub kept: Kept,
    /// The source of the content.
    pub told: Told,
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

/// The source of a visit's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Told {
    /// The page itself came.
    ByContent,
    /// The server said that it has not changed.
    ByServer,
}

/// A page whose record is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VisitedPage {
    pub domain: Domain,
    pub record: PageRecord,
    /// The change since the visit before; none on the first.
    pub change: Option<PageChange>,
    /// Whether the server was honest about its validators.
    pub honesty: Honesty,
    kept: Kept,
}

/// Whether a server was honest about its validators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Honesty {
    /// As far as this visit tells.
    Honest,
    /// It said "not changed" of a version that it does not show any more, or gave another text the
    /// validators of the last one.
    Lied,
}

impl VisitedPage {
    /// The record of a page after a visit, without the time of the next one. `before` is the record
    /// of the visit before this one.
    pub(crate) fn new(
        domain: &Domain,
        page: &ProcessedPage,
        before: Option<PageRecord>,
    ) -> Option<Self> {
        let visited = page.visited.clone()?;
        let honesty = match &before {
            Some(before) => honesty(before, &visited),
            None => Honesty::Honest,
        };
        let is_other = |before: &PageRecord| !before.content.reads_like(&visited.content);
        let change = before.as_ref().map(|before| match is_other(before) {
            true => PageChange::Changed,
            false => PageChange::Unchanged,
        });
        let history = before.as_ref().map_or(ChangeHistory::FIRST, |before| {
            let mut history = before.history;
            let change = change.unwrap_or(PageChange::Unchanged);
            history.note(change, before.visited, visited.time);
            history
        });
        // A probe without conditions has found other content: the next visit asks for the old
        // version once more, which an honest server does not have.
        let is_probe = |before: &PageRecord| {
            let asked = page.visit.previous();
            change == Some(PageChange::Changed)
                && before.standing == PageStanding::There
                && asked.is_some_and(|asked| asked.validators.is_empty())
                && before.validators.condition() != visited.validators.condition()
                && !before.validators.is_empty()
        };
        let outdated = before.as_ref().filter(|before| is_probe(before));
        let (standing, validators) = match (outdated, honesty) {
            (_, Honesty::Lied) => (PageStanding::There, Validators::default()),
            (Some(before), _) => (PageStanding::Outdated, before.validators.clone()),
            (None, _) => (PageStanding::There, visited.validators.clone()),
        };
        let archived = match (visited.kept, page.helper) {
            (Kept::Content, Some(helper)) => Some(at_helper(visited.time, helper)),
            // The writer knows the position.
            (Kept::Content, None) => None,
            (Kept::Reference | Kept::Nothing, _) => before
                .filter(|before| before.content == visited.content)
                .and_then(|before| before.archived),
        };
        let record = PageRecord {
            url: page.url.clone(),
            visited: visited.time,
            due: None,
            validators,
            content: visited.content,
            history,
            archived,
            standing,
            depth: page.depth,
            target: page.target,
        };
        Some(VisitedPage {
            domain: domain.clone(),
            record,
            change,
            honesty,
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

fn honesty(before: &PageRecord, visited: &Visited) -> Honesty {
    let is_same = before.content.reads_like(&visited.content);
    let named = before.validators.condition();
    let has_lied = match visited.told {
        Told::ByServer => before.standing == PageStanding::Outdated,
        Told::ByContent => {
            before.standing == PageStanding::There
                && !is_same
                && named.is_some()
                && named == visited.validators.condition()
        }
    };
    match has_lied {
        true => Honesty::Lied,
        false => Honesty::Honest,
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
    use apoidea_model::{ContentHash, CrawlId, Key, PageUrl, Target, Visit};

    const POSITION: Position = Position {
        file: 1,
        offset: 2,
        length: 3,
    };

    fn domain() -> Domain {
        "a.test".parse().unwrap()
    }

    fn tag(tag: &str) -> Validators {
        Validators::read(Some(tag.as_bytes()), None)
    }

    fn page(content: &[u8], millis: u64, kept: Kept) -> ProcessedPage {
        ProcessedPage {
            links: Vec::new(),
            link_count: 0,
            records: None,
            url: PageUrl::parse("http://a.test/").unwrap(),
            depth: 2,
            target: Target::Page,
            crawl: CrawlId::OPEN,
            visit: Visit::First,
            visited: Some(Visited {
                time: Time::from_millis(millis),
                content: ContentMark::of(&ContentHash::of_body(content)),
                validators: tag("\"x\""),
                kept,
                told: Told::ByContent,
            }),
            hints: Vec::new(),
            changed: None,
            helper: None,
            bytes: 0,
            millis: 0,
            kind: PageKind::New,
        }
    }

    fn visit(page: &ProcessedPage, before: Option<PageRecord>) -> VisitedPage {
        VisitedPage::new(&domain(), page, before).unwrap()
    }

    /// The page at its next visit, asked with these validators, and with these in the answer.
    fn again(content: &[u8], asked: &str, answered: &str, before: &PageRecord) -> VisitedPage {
        let mut page = page(content, 9000, Kept::Reference);
        let mut previous = before.previous_visit();
        previous.validators = tag(asked);
        page.visit = Visit::again(previous);
        let visited = page.visited.as_mut().unwrap();
        visited.validators = tag(answered);
        visit(&page, Some(before.clone()))
    }

    #[test]
    fn a_new_page_is_remembered_where_its_records_lie() {
        let mut first = visit(&page(b"x", 1000, Kept::Content), None);
        assert_eq!((&first.record.archived, first.change), (&None, None));
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

    #[test]
    fn other_text_with_the_same_validators_is_a_lie() {
        let before = visit(&page(b"x", 1000, Kept::Content), None).record;
        let lied = again(b"y", "\"x\"", "\"x\"", &before);
        assert_eq!(lied.honesty, Honesty::Lied);
        assert!(lied.record.validators.is_empty());
        let honest = again(b"y", "\"x\"", "\"y\"", &before);
        assert_eq!(honest.honesty, Honesty::Honest);
        assert_eq!(honest.record.validators, tag("\"y\""));
        assert_eq!(
            again(b"x", "\"x\"", "\"x\"", &before).honesty,
            Honesty::Honest
        );
    }

    #[test]
    fn a_server_that_answers_for_a_version_it_has_not_any_more_has_lied() {
        let before = visit(&page(b"x", 1000, Kept::Content), None).record;
        let probed = again(b"y", "", "\"y\"", &before).record;
        assert_eq!(probed.standing, PageStanding::Outdated);
        assert_eq!(
            probed.validators,
            tag("\"x\""),
            "the next visit asks for the old one"
        );
        let mut not_modified = page(b"y", 9500, Kept::Reference);
        not_modified.visit = Visit::again(probed.previous_visit());
        not_modified.visited.as_mut().unwrap().told = Told::ByServer;
        let lied = visit(&not_modified, Some(probed.clone()));
        assert_eq!(lied.honesty, Honesty::Lied);
        let honest = again(b"y", "\"x\"", "\"y\"", &probed);
        assert_eq!(honest.honesty, Honesty::Honest);
        assert_eq!(honest.record.standing, PageStanding::There);
        assert_eq!(honest.record.validators, tag("\"y\""));
    }
}
