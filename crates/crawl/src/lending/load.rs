//! The state of a peer at the moment of a choice, as far as it bears on the choice.

use apoidea_model::PeerId;

/// The state of a peer at the moment of a choice.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// Fetches under way for the own frontier, lent ones and the one in question included.
    pub fetching: usize,
    /// Pages in processing, lent ones included.
    pub room: Room,
    /// The peers that may help.
    pub neighbours: &'a [PeerId],
    /// Does the crawl go on?
    pub progress: Progress,
}

/// Pages between their fetch and the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The number of them now.
    pub in_processing: usize,
    /// The number of them that this peer may have; pages at helpers come on top.
    pub most: usize,
    /// The memory that they take.
    pub memory: Memory,
}

/// The memory for pages in processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Another page fits.
    Free,
    /// No other page fits.
    Full,
}

/// Does the crawl go on?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It does.
    Running,
    /// It is paused or comes to rest: nothing new starts.
    Still,
}

impl Room {
    /// Is there no room for another page, if there may be `most`?
    pub(super) fn is_full(&self, most: usize) -> bool {
        self.in_processing >= most || self.memory == Memory::Full
    }
}
