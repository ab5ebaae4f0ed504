//! Whether a URL is fetched for the first time or again.

use crate::{ContentMark, Time, Validators};
use serde::{Deserialize, Serialize};

/// The visit that a pending URL waits for.
///
/// The first visit, which is that of most URLs in a queue, takes one byte when encoded. The
/// previous visit is boxed so that it takes no more than a pointer in the windows of the frontier.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Visit {
    /// The page was never fetched, or never with success.
    #[default]
    First,
    /// The page was fetched before and is asked whether it has changed.
    Again(Box<PreviousVisit>),
}

/// The last visit of a page, as far as the next one needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousVisit {
    /// The time of the last fetch.
    pub since: Time,
    /// The time of the capture that holds the content in full, if there is one. A record that says
    /// "unchanged" names this one, never another of its own kind.
    pub captured: Option<Time>,
    /// The conditions for the next request.
    pub validators: Validators,
    /// The content of the page then.
    pub content: ContentMark,
}

impl Visit {
    /// A visit after this one.
    pub fn again(previous: PreviousVisit) -> Self {
        Visit::Again(Box::new(previous))
    }

    /// The visit before this one, if there was one.
    pub fn previous(&self) -> Option<&PreviousVisit> {
        match self {
            Visit::First => None,
            Visit::Again(previous) => Some(previous),
        }
    }

    /// When the page was fetched last; zero if it never was. Of two visits of one URL, the one with
    /// the later time is the later visit.
    pub fn since(&self) -> Time {
        self.previous()
            .map_or(Time::ZERO, |previous| previous.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContentHash;

    #[test]
    fn a_first_visit_takes_one_byte_and_one_pointer() {
        assert_eq!(postcard::to_stdvec(&Visit::First).unwrap(), [0]);
        assert_eq!(size_of::<Visit>(), size_of::<usize>());
    }

    #[test]
    fn a_later_visit_comes_back_as_it_was() {
        let visit = Visit::again(PreviousVisit {
            since: Time::from_millis(1_700_000_000_000),
            captured: None,
            validators: Validators::read(Some(b"\"5f3-61\""), None),
            content: ContentMark::of(&ContentHash::of_body(b"x")),
        });
        let bytes = postcard::to_stdvec(&visit).unwrap();
        // Variant, time, no capture, length and text of the tag, no date, content.
        assert_eq!(bytes.len(), 1 + 6 + 1 + 2 + 8 + 1 + 12);
        assert_eq!(postcard::from_bytes::<Visit>(&bytes).unwrap(), visit);
        assert!(visit.since() > Visit::First.since());
    }
}
