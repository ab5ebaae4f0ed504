//! Names of the archive's files: `apoidea-20260131235959-00000007.warc.gz`, with `.open` behind it
//! while the file is being written, and the index beside it with `.cdxj` in place of `.warc.gz`.

use super::timestamp::Timestamp;
use apoidea_model::Time;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

const PREFIX: &str = "apoidea-";
const WARC: &str = ".warc.gz";
const INDEX: &str = ".cdxj";
const OPEN: &str = ".open";

/// The part that the names of a file and its index have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileName {
    stem: String,
    pub(super) number: u64,
}

/// Whether a file is still being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileState {
    Open,
    Closed,
}

impl FileName {
    pub(super) fn new(time: Time, number: u64) -> Self {
        FileName {
            stem: format!("{PREFIX}{}-{number:08}", Timestamp::from(time).digits()),
            number,
        }
    }

    /// Takes the name of a WARC file apart; `None` for everything else.
    pub(super) fn parse(name: &str) -> Option<(Self, FileState)> {
        let (name, state) = match name.strip_suffix(OPEN) {
            Some(name) => (name, FileState::Open),
            None => (name, FileState::Closed),
        };
        let stem = name.strip_suffix(WARC)?;
        let (time, number) = stem.strip_prefix(PREFIX)?.split_once('-')?;
        Timestamp::parse(time)?;
        let number = number.parse().ok().filter(|&number| number > 0)?;
        Some((
            FileName {
                stem: stem.to_owned(),
                number,
            },
            state,
        ))
    }

    /// The name that the WARC file has when it is closed.
    pub(super) fn warc(&self) -> String {
        format!("{}{WARC}", self.stem)
    }

    pub(super) fn warc_in(&self, folder: &Path, state: FileState) -> PathBuf {
        folder.join(self.warc() + state.suffix())
    }

    pub(super) fn index_in(&self, folder: &Path, state: FileState) -> PathBuf {
        folder.join(format!("{}{INDEX}{}", self.stem, state.suffix()))
    }

    /// All WARC files in a folder, oldest first. Other files there are left alone.
    pub(super) fn all_in(folder: &Path) -> io::Result<Vec<(FileName, FileState)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            if let Some(file) = entry?.file_name().to_str().and_then(FileName::parse) {
                found.push(file);
            }
        }
        found.sort_by_key(|(name, _)| name.number);
        Ok(found)
    }
}

impl FileState {
    fn suffix(self) -> &'static str {
        match self {
            FileState::Open => OPEN,
            FileState::Closed => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_strangers_ignored() {
        let name = FileName::new(Time::from_millis(1_700_000_000_000), 7);
        assert_eq!(name.warc(), "apoidea-20231114221320-00000007.warc.gz");
        assert_eq!(
            FileName::parse(&name.warc()),
            Some((name.clone(), FileState::Closed))
        );
        assert_eq!(
            FileName::parse(&(name.warc() + ".open")),
            Some((name, FileState::Open))
        );
        for other in [
            "x.warc.gz",
            "apoidea-2023-1.warc.gz",
            "apoidea-20231114221320-0.warc.gz",
            ".warc.gz",
        ] {
            assert_eq!(FileName::parse(other), None);
        }
    }
}
