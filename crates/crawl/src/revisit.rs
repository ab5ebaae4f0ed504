//! When a page that was fetched is fetched again, and whether its content is news.
//!
//! A URL enters its queue for two reasons: a link that was never seen is admitted for its first
//! visit ([`crate::Admission`], which drops seen URLs for good), and the rule here asks for another
//! visit when one has ended. Nothing else fetches a page twice on purpose.

use apoidea_model::{ChangeHistory, ContentHash, PageUrl, Time, Visit};

/// The rule about visiting pages again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Revisit {
    /// Every page is fetched once, for ever.
    #[default]
    Once,
}

/// The content of a page, compared with what is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Novelty<Original> {
    /// Nobody had it before: it is archived in full and its links are followed.
    New,
    /// Another page had it first: a revisit record names that page.
    Duplicate(Original),
    /// The page had it at its last visit: a revisit record names that visit.
    Unchanged,
}

impl Revisit {
    /// The time of the next visit of a page that was fetched at `now`; `None` if there is none.
    pub fn next_visit(self, _history: &ChangeHistory, _now: Time) -> Option<Time> {
        match self {
            Revisit::Once => None,
        }
    }
}

impl<Original> Novelty<Original> {
    /// Compares the content that a visit brought with the last visit and with the page that had
    /// this content first, if one had.
    ///
    /// A page that had its content first itself is new unless the last visit brought the same: its
    /// first fetch may have been lost in a crash before it was archived.
    pub fn of(
        page: &PageUrl,
        visit: &Visit,
        content: &ContentHash,
        first: Option<(&PageUrl, Original)>,
    ) -> Self {
        if visit
            .previous()
            .is_some_and(|last| last.content == *content)
        {
            return Novelty::Unchanged;
        }
        match first {
            Some((owner, original)) if owner != page => Novelty::Duplicate(original),
            _ => Novelty::New,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::{PreviousVisit, Validators};

    fn url(text: &str) -> PageUrl {
        PageUrl::parse(text).unwrap()
    }

    fn again(content: &[u8]) -> Visit {
        Visit::again(PreviousVisit {
            since: Time::from_millis(1),
            captured: None,
            validators: Validators::default(),
            content: ContentHash::of_body(content),
        })
    }

    #[test]
    fn every_page_is_fetched_once() {
        let history = ChangeHistory::FIRST;
        assert_eq!(Revisit::default().next_visit(&history, Time::ZERO), None);
    }

    #[test]
    fn content_is_new_a_duplicate_or_unchanged() {
        let (here, there) = (url("http://a.example/"), url("http://b.example/"));
        let content = ContentHash::of_body(b"x");
        let novelty = |visit: &Visit, first| Novelty::of(&here, visit, &content, first);
        assert_eq!(novelty(&Visit::First, None), Novelty::New);
        assert_eq!(novelty(&again(b"y"), None), Novelty::New);
        let duplicate = Novelty::Duplicate(7);
        assert_eq!(novelty(&Visit::First, Some((&there, 7))), duplicate);
        assert_eq!(novelty(&again(b"y"), Some((&there, 7))), duplicate);
        assert_eq!(novelty(&again(b"x"), Some((&there, 7))), Novelty::Unchanged);
        assert_eq!(novelty(&again(b"x"), Some((&here, 7))), Novelty::Unchanged);
    }

    #[test]
    fn a_page_fetched_again_after_a_crash_is_not_its_own_duplicate() {
        let here = url("http://a.example/");
        let content = ContentHash::of_body(b"x");
        let first = Some((&here, ()));
        assert_eq!(
            Novelty::of(&here, &Visit::First, &content, first),
            Novelty::New
        );
    }
}
