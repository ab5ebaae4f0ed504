//! The part of the archive that is kept: the promise that joins it to the database.

use serde::{Deserialize, Serialize};

/// A point in the archive. Everything before it is kept; what lies behind it when the archive is
/// opened was never committed and is cut off, since its pages will be fetched again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Mark {
    /// Number of the file; files are numbered from 1.
    pub file: u64,
    /// Bytes of it.
    pub length: u64,
}
