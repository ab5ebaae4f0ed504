//! Watches and changes on the wire.

use crate::swarm::{rights::Right, wire::List};
use apoidea_crawl::{TextDelta, WatchSubject};
use apoidea_model::{Domain, PageUrl, Time};
use apoidea_overlay::Kind;
use serde::{Deserialize, Serialize};

/// "Tell me of changes there, and of those that I have not heard of yet." To the owner of the domain.
pub(crate) const WATCH: Kind = Kind::free(40);
/// "There is something for you at this domain." To a peer that watches it.
pub(crate) const NUDGE: Kind = Kind::free(41);

/// The right that the sender of each kind needs. Anybody may watch anything: the owner bounds how
/// much. A nudge is believed by nobody.
pub(in crate::swarm) const RIGHTS: &[(Kind, Right)] =
    &[(WATCH, Right::Member), (NUDGE, Right::Member)];

/// Changes in one answer: with texts of 4 KiB each they fit into a frame.
pub(crate) const MAX_TELLINGS: usize = 8;

/// A watch that begins, goes on, or ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatchAsk {
    pub domain: Domain,
    pub subject: WatchSubject,
    /// The end; a time that has passed ends it now.
    pub until: Time,
    /// The asker has heard of all changes up to then.
    pub told: Time,
}

/// The owner's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WatchAnswer {
    /// The watch is kept.
    Watched {
        /// The last visit of the page; zero if there was none, or if it is a site.
        visited: Time,
        /// The changes that the asker has not heard of, oldest first.
        tellings: List<Telling, MAX_TELLINGS>,
        /// Whether there are more.
        has_more: bool,
    },
    /// The watch has ended, as the asker wished.
    Ended,
    /// There are as many watches as there may be.
    Full,
    /// The owner knows no page of this domain yet.
    Unknown,
    /// Another peer owns the domain, or this one does not know yet what it owns.
    Elsewhere,
}

/// A change of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Telling {
    /// The time at which the owner noticed, another one for each change.
    pub time: Time,
    pub url: PageUrl,
    pub news: News,
}

/// The change itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum News {
    /// The page reads differently.
    Changed(TextDelta),
    /// The page reads differently; this is how it begins now. The owner has no earlier version.
    ReadsNow(TextDelta),
    /// The page reads differently; the owner that saw it is gone, and its text with it.
    Unseen,
    /// The page is not there any more.
    Gone,
}
