//! Errors of reading and writing the archive.

use std::{io, path::Path, path::PathBuf};

/// Reading or writing the archive failed. Nothing was deleted.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// No space is left. What was being appended is not there; appending works again once there is
    /// some.
    #[error("the disk that holds {} is full", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system said no for another reason.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} is damaged at byte {offset}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first byte of the record or line.
        offset: u64,
        /// The fault.
        why: &'static str,
    },
    /// The index names a file that is gone: its space was needed.
    #[error("{file} is no longer in the archive")]
    Removed {
        /// The file's name.
        file: String,
    },
}

impl ArchiveError {
    /// For `map_err`: says which file an I/O error is about.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.to_owned();
            if crate::commit::is_full(&source) {
                ArchiveError::Full { path, source }
            } else {
                ArchiveError::Io { path, source }
            }
        }
    }

    pub(super) fn damaged(path: &Path, offset: u64, why: &'static str) -> Self {
        ArchiveError::Damaged {
            path: path.to_owned(),
            offset,
            why,
        }
    }
}
