//! The list of URLs where a crawl that knows nothing begins. The settings give it; a volunteer may
//! write another, which then counts.
//!
//! The volunteer's own list is a file in the data folder that can be edited by hand, too.

use crate::{
    config::{SeedListError, SeedSource, parse_seeds},
    volunteer::preferences_file::replace,
};
use apoidea_model::PageUrl;
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The volunteer's own list, in the data folder.
pub const START_LIST_FILE: &str = "seeds.txt";

/// The list, wherever it comes from.
#[derive(Debug, Clone)]
pub(crate) struct StartList {
    given: SeedSource,
    file: PathBuf,
}

/// Where a list of seeds comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum SeedOrigin {
    /// It is in the program.
    BuiltIn,
    /// The settings name it.
    Settings,
    /// The volunteer wrote it.
    Volunteer,
}

/// The list of URLs where a crawl that knows nothing begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct StartSeeds {
    /// Where the list comes from.
    pub origin: SeedOrigin,
    /// The URLs, in order.
    pub urls: Vec<PageUrl>,
}

impl StartList {
    pub(crate) fn new(given: SeedSource, folder: &Path) -> Self {
        StartList {
            given,
            file: folder.join(START_LIST_FILE),
        }
    }

    /// The list that counts.
    pub(crate) fn read(&self) -> Result<StartSeeds, SeedListError> {
        if self.file.exists() {
            let own = SeedSource::File(self.file.clone());
            return Ok(StartSeeds {
                origin: SeedOrigin::Volunteer,
                urls: own.urls()?,
            });
        }
        let origin = match self.given {
            SeedSource::BuiltIn => SeedOrigin::BuiltIn,
            SeedSource::File(_) | SeedSource::List(_) => SeedOrigin::Settings,
        };
        let urls = self.given.urls()?;
        Ok(StartSeeds { origin, urls })
    }

    /// Puts the volunteer's list in its place, whole or not at all. The text has one URL a line.
    pub(crate) fn write(&self, text: &str) -> Result<StartSeeds, SeedListError> {
        let urls = parse_seeds(text, "your list")?;
        let lines: String = urls.iter().map(|url| format!("{url}\n")).collect();
        let text =
            format!("# Written by apoidea: where a crawl that knows nothing begins.\n{lines}");
        replace(&self.file, text.as_bytes()).map_err(|source| self.failed(source))?;
        self.read()
    }

    /// Forgets the volunteer's list: that of the settings counts again.
    pub(crate) fn reset(&self) -> Result<StartSeeds, SeedListError> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
            _ => self.read(),
        }
    }

    fn failed(&self, source: io::Error) -> SeedListError {
        SeedListError::Unwritable {
            path: self.file.clone(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volunteers_list_counts_until_it_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let list = StartList::new(SeedSource::BuiltIn, folder.path());
        assert_eq!(list.read().unwrap().origin, SeedOrigin::BuiltIn);
        let own = list.write("# mine\nhttps://a.example\n").unwrap();
        assert_eq!(own.origin, SeedOrigin::Volunteer);
        assert_eq!(own.urls, [PageUrl::parse("https://a.example/").unwrap()]);
        let wrong = list.write("https://b.example/\nnonsense").unwrap_err();
        assert!(wrong.to_string().contains("your list, line 2"), "{wrong}");
        assert_eq!(list.read().unwrap(), own, "taken whole or not at all");
        assert_eq!(list.write("").unwrap().urls, []);
        assert_eq!(list.reset().unwrap().origin, SeedOrigin::BuiltIn);
        assert_eq!(list.reset().unwrap().origin, SeedOrigin::BuiltIn);
    }
}
