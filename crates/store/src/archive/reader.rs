//! Finding pages again, while others are being archived.

use super::{
    ArchiveError, Head, IndexEntry, Position, Record, Records,
    file_name::{FileName, FileState},
    index_file,
    records::{self, Ending},
    surt::surt,
    timestamp::Timestamp,
};
use apoidea_model::{PageUrl, Time};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Reads an archive's folder. It holds no file open between calls and needs no lock.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(super) folder: PathBuf,
}

/// A page as it can be shown again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The page that was asked for.
    pub url: PageUrl,
    /// The time of the fetch.
    pub time: Time,
    /// The server's answer.
    pub head: Head,
    /// The body, decoded. For a revisit it is the original's; `None` if that is on another peer or
    /// gone.
    pub body: Option<Vec<u8>>,
}

impl Reader {
    /// Reads the archive in a folder.
    pub fn new(folder: &Path) -> Self {
        Reader {
            folder: folder.to_owned(),
        }
    }

    /// The WARC files, oldest first.
    pub fn files(&self) -> Result<Vec<PathBuf>, ArchiveError> {
        let files = self.names()?.into_iter();
        Ok(files
            .map(|(name, state)| name.warc_in(&self.folder, state))
            .collect())
    }

    /// All records of a WARC file, of this archive or any other.
    pub fn records(file: &Path) -> Result<Records, ArchiveError> {
        let is_open = file
            .extension()
            .is_some_and(|extension| extension == "open");
        records::read(
            file,
            if is_open {
                Ending::MayBeTorn
            } else {
                Ending::Whole
            },
        )
    }

    /// Every capture of a page, oldest first. Those not yet synced may be missing.
    pub fn find(&self, url: &PageUrl) -> Result<Vec<IndexEntry>, ArchiveError> {
        let key = surt(url);
        let mut found = Vec::new();
        for (name, _) in self.names()? {
            found.extend(self.find_in(&name, &key)?);
        }
        // http and https share a key.
        found.retain(|entry| entry.url == *url);
        found.sort_by_key(|entry| entry.time);
        Ok(found)
    }

    /// The record that an index entry names.
    pub fn record(&self, entry: &IndexEntry) -> Result<Record, ArchiveError> {
        let path = self.path_of(&entry.file)?;
        let record = read_record(&path, entry.offset, entry.length)?;
        if record.url.as_ref() == Some(&entry.url) {
            Ok(record)
        } else {
            let why = "not the record that the index names";
            Err(ArchiveError::damaged(&path, entry.offset, why))
        }
    }

    /// The record at a position.
    pub fn record_at(&self, position: &Position) -> Result<Record, ArchiveError> {
        let names = self.names()?.into_iter();
        let mut names = names.filter(|(name, _)| name.number == position.file);
        let (name, _) = names.next().ok_or_else(|| ArchiveError::Removed {
            file: format!("file {}", position.file),
        })?;
        let path = self.path_of(&name.warc())?;
        read_record(&path, position.offset, position.length)
    }

    /// The page that an index entry names; a revisit leads to its original.
    pub fn page(&self, entry: &IndexEntry) -> Result<Page, ArchiveError> {
        let record = self.record(entry)?;
        let no_http = || ArchiveError::Damaged {
            path: self.folder.join(&entry.file),
            offset: entry.offset,
            why: "the record holds no HTTP message",
        };
        let (head, body) = record.http().ok_or_else(no_http)?;
        let body = match record.kind.as_str() {
            "revisit" => self.original_body(&record)?,
            _ => Some(body.to_vec()),
        };
        Ok(Page {
            url: entry.url.clone(),
            time: entry.time,
            head,
            body,
        })
    }

    /// Only one step: a revisit names a response, and one that names another revisit has no
    /// original here.
    fn original_body(&self, revisit: &Record) -> Result<Option<Vec<u8>>, ArchiveError> {
        let url = revisit
            .field("WARC-Refers-To-Target-URI")
            .and_then(|url| PageUrl::parse(url).ok());
        let time = revisit
            .field("WARC-Refers-To-Date")
            .and_then(Timestamp::parse)
            .map(Time::from);
        let (Some(url), Some(time)) = (url, time) else {
            return Ok(None);
        };
        let mut captures = self.find(&url)?.into_iter();
        let Some(original) = captures.find(|entry| entry.time == time && !entry.is_revisit())
        else {
            return Ok(None);
        };
        let record = match self.record(&original) {
            Err(ArchiveError::Removed { .. }) => return Ok(None),
            record => record?,
        };
        Ok(record.http().map(|(_, body)| body.to_vec()))
    }

    pub(super) fn names(&self) -> Result<Vec<(FileName, FileState)>, ArchiveError> {
        FileName::all_in(&self.folder).map_err(ArchiveError::at(&self.folder))
    }

    /// A file may be closed or removed between listing and reading, so both of its names are tried.
    fn find_in(&self, name: &FileName, key: &str) -> Result<Vec<IndexEntry>, ArchiveError> {
        let closed = index_file::find_sorted(&name.index_in(&self.folder, FileState::Closed), key);
        if !is_missing(&closed) {
            return closed;
        }
        let open = index_file::entries(&name.index_in(&self.folder, FileState::Open));
        if is_missing(&open) {
            return Ok(Vec::new());
        }
        Ok(open?
            .into_iter()
            .filter(|entry| surt(&entry.url) == key)
            .collect())
    }

    fn path_of(&self, file: &str) -> Result<PathBuf, ArchiveError> {
        let removed = || ArchiveError::Removed {
            file: file.to_owned(),
        };
        let (name, _) = FileName::parse(file).ok_or_else(removed)?;
        let paths =
            [FileState::Open, FileState::Closed].map(|state| name.warc_in(&self.folder, state));
        paths
            .into_iter()
            .find(|path| path.exists())
            .ok_or_else(removed)
    }
}

fn read_record(path: &Path, offset: u64, length: u64) -> Result<Record, ArchiveError> {
    let damaged = |why| ArchiveError::damaged(path, offset, why);
    let mut records = records::read_from(path, offset, Ending::Whole)?;
    let record = records.next();
    let record = record.ok_or_else(|| damaged("the file ends before the record"))??;
    if record.length == length {
        Ok(record)
    } else {
        Err(damaged("not a record of this length"))
    }
}

pub(super) fn is_missing<T>(result: &Result<T, ArchiveError>) -> bool {
    matches!(result, Err(ArchiveError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{
        CaptureKind,
        capture::tests::{encoder, page, url},
        folder::tests::{append, open},
    };
    use std::fs;

    #[test]
    fn a_revisit_leads_to_its_original() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 1 << 20);
        let mut encoder = encoder();
        let original = page("http://a.example/", 0, "<p>same</p>");
        let mut duplicate = page("http://b.example/", 60, "<p>same</p>");
        duplicate.kind = CaptureKind::Revisit {
            url: original.url.clone(),
            time: original.time,
        };
        let mut orphan = page("http://c.example/", 60, "<p>same</p>");
        orphan.kind = CaptureKind::Revisit {
            url: url("http://elsewhere.example/"),
            time: original.time,
        };
        for capture in [&original, &duplicate, &orphan] {
            archive.append(&capture.encode(&mut encoder)).unwrap();
        }
        archive.sync().unwrap();
        let reader = Reader::new(folder.path());
        let page_of = |url: &PageUrl| reader.page(&reader.find(url).unwrap()[0]).unwrap();
        assert_eq!(
            page_of(&duplicate.url).body.as_deref(),
            Some(&b"<p>same</p>"[..])
        );
        assert_eq!(page_of(&duplicate.url).time, duplicate.time);
        assert_eq!(page_of(&orphan.url).body, None);
    }

    #[test]
    fn captures_of_a_page_come_in_order_and_the_scheme_matters() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 1 << 20);
        let mut encoder = encoder();
        for (address, seconds) in [
            ("http://a.example/", 60),
            ("https://a.example/", 0),
            ("http://a.example/", 30),
        ] {
            archive
                .append(&page(address, seconds, "x").encode(&mut encoder))
                .unwrap();
        }
        archive.close().unwrap();
        let found = Reader::new(folder.path())
            .find(&url("http://a.example/"))
            .unwrap();
        let times: Vec<u64> = found
            .iter()
            .map(|entry| entry.time.as_millis() / 1000 - 1_700_000_000)
            .collect();
        assert_eq!(times, [30, 60]);
    }

    #[test]
    fn no_damage_goes_unnoticed_or_panics() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 1 << 20);
        append(&mut archive, &["http://a.example/", "http://b.example/"]);
        archive.close().unwrap();
        let reader = Reader::new(folder.path());
        let entry = reader.find(&url("http://a.example/")).unwrap().remove(0);
        let good = reader.record(&entry).unwrap();
        let file = reader.files().unwrap().remove(0);
        let whole = fs::read(&file).unwrap();
        for at in entry.offset as usize..(entry.offset + entry.length) as usize {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            fs::write(&file, &damaged).unwrap();
            match reader.record(&entry) {
                // Time, flags and operating system in the gzip head do not matter.
                Ok(record) => {
                    assert_eq!(
                        (record.block, at - (entry.offset as usize) < 10),
                        (good.block.clone(), true)
                    )
                }
                Err(error) => assert!(error.to_string().contains("apoidea-"), "{error}"),
            }
        }
        fs::write(&file, &whole[..entry.offset as usize + 9]).unwrap();
        assert!(matches!(
            reader.record(&entry),
            Err(ArchiveError::Damaged { .. })
        ));
        fs::remove_file(&file).unwrap();
        assert!(matches!(
            reader.record(&entry),
            Err(ArchiveError::Removed { .. })
        ));
    }

    #[test]
    fn a_damaged_index_is_an_error_that_names_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 1 << 20);
        append(&mut archive, &["http://a.example/"]);
        archive.close().unwrap();
        let reader = Reader::new(folder.path());
        let index = reader.names().unwrap()[0]
            .0
            .index_in(folder.path(), FileState::Closed);
        fs::write(&index, "example,a)/ 2023 nonsense\n").unwrap();
        let error = reader.find(&url("http://a.example/")).unwrap_err();
        assert!(
            matches!(error, ArchiveError::Damaged { offset: 0, .. }),
            "{error}"
        );
        fs::write(&index, vec![b'x'; 100_000]).unwrap();
        assert!(
            reader
                .find(&url("http://a.example/"))
                .is_ok_and(|found| found.is_empty())
        );
    }
}
