//! A visit of a page as the replicas of its domain learn it.
//!
//! The replicas have the URL in their queue, so a note names it by the place of its slot among those
//! that leave the queue with the same change.

use apoidea_model::{ChangeHistory, ContentMark, Time, Validators};
use serde::{Deserialize, Serialize};

/// News of one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageNote {
    /// The number of its slot among those that the same change removes.
    pub place: u32,
    /// What is known of it now; none if it is not there any more.
    pub known: Option<KnownPage>,
}

/// A page that was fetched, as another peer learns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPage {
    /// The last fetch that told its content.
    pub visited: Time,
    /// Seconds from then to its next visit; none if there is to be none.
    pub due_after: Option<u32>,
    /// Its standing by its last answers: 0 there, 1 outdated, 2 missing, 3 untold.
    pub standing: u8,
    /// The validators that came with its content.
    pub validators: Validators,
    /// The content.
    pub content: ContentMark,
    /// The changes that it was seen to make.
    pub history: ChangeHistory,
    /// Milliseconds from the capture that holds the content to the last visit; none without one.
    pub captured: Option<u64>,
}
