//! What a peer's archive holds, read back record by record.

use apoidea_model::PageUrl;
use apoidea_peer::ARCHIVE_FOLDER;
use apoidea_store::archive::Reader;
use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// The pages of an archive.
#[derive(Debug, Default)]
pub struct Archived {
    /// How often each page is there with its body.
    pub responses: BTreeMap<PageUrl, usize>,
    /// How often each page is there as a copy of another.
    pub revisits: BTreeMap<PageUrl, usize>,
    files: Vec<PathBuf>,
}

impl Archived {
    /// Reads the archive in a data folder; every record must be readable.
    pub fn of(data: &Path) -> Self {
        let files = Reader::new(&data.join(ARCHIVE_FOLDER)).files().unwrap();
        Self::in_files(files)
    }

    /// Reads WARC files; every record must be readable.
    pub fn in_files(files: Vec<PathBuf>) -> Self {
        let mut archived = Archived {
            files,
            ..Archived::default()
        };
        for file in &archived.files {
            for record in Reader::records(file).unwrap() {
                let record = record.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                let pages = match record.kind.as_str() {
                    "response" => &mut archived.responses,
                    "revisit" => &mut archived.revisits,
                    _ => continue,
                };
                *pages.entry(record.url.unwrap()).or_default() += 1;
            }
        }
        archived
    }

    /// Is the page there, with its body or as a copy?
    pub fn contains(&self, url: &PageUrl) -> bool {
        self.responses.contains_key(url) || self.revisits.contains_key(url)
    }

    /// Lets `warcio check` judge the files, where it is installed: on the path or as
    /// `APOIDEA_WARCIO` names it.
    pub fn check_with_warcio(&self) {
        let warcio = env::var("APOIDEA_WARCIO").unwrap_or_else(|_| "warcio".to_owned());
        if Command::new(&warcio).arg("--version").output().is_err() {
            eprintln!(
                "note: {warcio} is not installed; the archive was read by our own reader only"
            );
            return;
        }
        let output = Command::new(&warcio)
            .arg("check")
            .args(&self.files)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
