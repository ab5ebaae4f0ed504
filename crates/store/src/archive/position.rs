//! Places in the archive, in the order in which they were written: the archive as a log.
//!
//! A position is never used for two records. A start cuts off what was never committed, which no
//! follower has read; and when the disk has lost committed bytes, writing goes on in a new file.

use super::Mark;
use serde::{Deserialize, Serialize};

/// The place of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Number of the file.
    pub file: u64,
    /// First byte of the record.
    pub offset: u64,
    /// Its compressed size in bytes.
    pub length: u64,
}

/// A part of the archive, from one mark up to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Span {
    /// The first place that is part of it.
    pub from: Mark,
    /// The first place behind it.
    pub to: Mark,
}

impl Position {
    /// The mark before the record.
    pub const fn start(&self) -> Mark {
        Mark {
            file: self.file,
            length: self.offset,
        }
    }

    /// The mark behind the record, from which a follower that has it goes on.
    pub const fn end(&self) -> Mark {
        Mark {
            file: self.file,
            length: self.offset + self.length,
        }
    }
}

impl Span {
    /// Whether a record lies in this part.
    pub fn contains(&self, position: &Position) -> bool {
        self.from <= position.start() && position.end() <= self.to
    }
}
