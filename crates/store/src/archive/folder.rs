//! The archive as its writer sees it: append, sync, and begin a new file when one is full.
//!
//! Opening it makes the folder agree with the last commit. What lies behind the mark was never
//! committed and goes; what the mark promises but the disk lost is reported, and the rest saved.

use super::{
    ArchiveError, EncodedRecords, Encoder, Mark, Position, Span,
    file_name::{FileName, FileState},
    index_file,
    open_file::{OpenFile, rename, sync_folder},
};
use crate::private_folder;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

const MIB: u64 = 1024 * 1024;

/// Limits of the archive.
#[derive(Debug, Clone)]
pub struct ArchiveOptions {
    /// Name and version of the program, for the head of each file.
    pub software: String,
    /// A file is closed before it grows beyond this.
    pub file_bytes: u64,
    /// All files together; the oldest go when there are more.
    pub quota_bytes: u64,
    /// So much is left free on the disk.
    pub min_free_bytes: u64,
}

impl Default for ArchiveOptions {
    fn default() -> Self {
        ArchiveOptions {
            software: "apoidea".to_owned(),
            // Archives use 1 GB; a volunteer's quota is two of those, and whole files are what is
            // given up.
            file_bytes: 64 * MIB,
            quota_bytes: 2048 * MIB,
            // Half the quota: the volunteer's own files come first.
            min_free_bytes: 1024 * MIB,
        }
    }
}

/// The archive's one writer.
#[derive(Debug)]
pub struct Archive {
    pub(super) folder: PathBuf,
    pub(super) options: ArchiveOptions,
    /// Quota and free space that the volunteer asks for, instead of those of the options.
    pub(super) asked: (Option<u64>, Option<u64>),
    /// Closed files by number, with their bytes.
    pub(super) closed: BTreeMap<u64, (FileName, u64)>,
    open: Option<OpenFile>,
    next_number: u64,
    encoder: Encoder,
    mark: Mark,
}

impl Archive {
    /// Opens the archive in a folder as of a mark, which is `None` only if nothing was ever
    /// committed. The seed names records, must be random, and is used for nothing else.
    pub fn open(
        folder: &Path,
        mark: Option<Mark>,
        options: ArchiveOptions,
        seed: [u8; 32],
    ) -> Result<Self, ArchiveError> {
        private_folder::create(folder).map_err(ArchiveError::at(folder))?;
        let mut archive = Archive {
            folder: folder.to_owned(),
            options,
            asked: (None, None),
            closed: BTreeMap::new(),
            open: None,
            next_number: mark.unwrap_or_default().file + 1,
            encoder: Encoder::new(seed),
            mark: mark.unwrap_or_default(),
        };
        for (name, state) in FileName::all_in(folder).map_err(ArchiveError::at(folder))? {
            archive.take_over(name, state, mark)?;
        }
        sync_folder(folder)?;
        Ok(archive)
    }

    /// Adds the records of a capture, all or nothing, and gives the position of the response or
    /// revisit among them. They are kept once a mark that lies behind them is committed.
    pub fn append(&mut self, records: &EncodedRecords) -> Result<Position, ArchiveError> {
        let is_full =
            |file: &OpenFile| file.length() + records.len() as u64 > self.options.file_bytes;
        if self.open.as_ref().is_some_and(is_full) {
            self.close()?;
        }
        let file = match &mut self.open {
            Some(file) => file,
            none => none.insert(begin(
                &self.folder,
                &mut self.next_number,
                &mut self.encoder,
                &self.options,
                records,
            )?),
        };
        let offset = file.append(records)?;
        Ok(Position {
            file: file.name.number,
            offset,
            length: records.length,
        })
    }

    /// Makes everything appended so far durable and gives the mark for the commit.
    pub fn sync(&mut self) -> Result<Mark, ArchiveError> {
        if let Some(file) = &mut self.open {
            file.sync()?;
            self.mark = Mark {
                file: file.name.number,
                length: file.length(),
            };
        }
        Ok(self.mark)
    }

    /// The mark of the last [`Archive::sync`].
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// The part of the archive that can be followed now: from the oldest file to the mark of the
    /// last [`Archive::sync`].
    pub fn span(&self) -> Span {
        let open = self.open.as_ref().map(|file| file.name.number);
        let oldest = self.closed.keys().next().copied().or(open);
        let from = oldest.map_or(self.mark, |file| Mark { file, length: 0 });
        Span {
            from,
            to: self.mark,
        }
    }

    /// Closes the file that is being written, with a sorted index. The next append begins a new
    /// one.
    pub fn close(&mut self) -> Result<(), ArchiveError> {
        self.sync()?;
        if let Some(file) = self.open.take() {
            let (name, bytes) = file.close()?;
            self.closed.insert(name.number, (name, bytes));
        }
        Ok(())
    }

    /// Bytes of all WARC files.
    pub fn bytes(&self) -> u64 {
        let closed: u64 = self.closed.values().map(|(_, bytes)| bytes).sum();
        closed + self.open.as_ref().map_or(0, OpenFile::length)
    }

    /// Makes one file agree with the mark.
    fn take_over(
        &mut self,
        name: FileName,
        state: FileState,
        mark: Option<Mark>,
    ) -> Result<(), ArchiveError> {
        let path = name.warc_in(&self.folder, state);
        let bytes = fs::metadata(&path).map_err(ArchiveError::at(&path))?.len();
        self.next_number = self.next_number.max(name.number + 1);
        match mark {
            Some(mark) if name.number > mark.file => self.discard(&name, state),
            Some(mark)
                if name.number == mark.file
                    && (bytes > mark.length || state == FileState::Open) =>
            {
                self.cut(name, state, mark.length.min(bytes))
            }
            _ if state == FileState::Open => self.save(name),
            _ => self.keep(name, bytes),
        }
    }

    /// Nothing in the file was ever committed.
    fn discard(&mut self, name: &FileName, state: FileState) -> Result<(), ArchiveError> {
        let path = name.warc_in(&self.folder, state);
        tracing::info!(file = %path.display(), "removing a file that was never committed");
        for index in [FileState::Open, FileState::Closed] {
            remove_if_there(&name.index_in(&self.folder, index))?;
        }
        remove_if_there(&path)
    }

    /// Only the first bytes of the file were committed; writing goes on behind them, or in a new
    /// file if the disk lost some of them.
    fn cut(&mut self, name: FileName, state: FileState, length: u64) -> Result<(), ArchiveError> {
        let promised = self.mark.length;
        let path = name.warc_in(&self.folder, state);
        let index =
            [FileState::Closed, FileState::Open].map(|state| name.index_in(&self.folder, state));
        let known = index
            .iter()
            .find_map(|index| index_file::entries(index).ok());
        let (mut entries, length) = match known {
            Some(entries) if length == promised => (entries, length),
            _ => {
                let (entries, whole) = index_file::entries_of_warc(&path, &name.warc())?;
                (entries, whole.min(length))
            }
        };
        if length < promised {
            tracing::warn!(file = %path.display(), promised, length, "the disk lost the end of this file");
        }
        entries.retain(|entry| entry.offset + entry.length <= length);
        if state == FileState::Closed {
            rename(&path, &name.warc_in(&self.folder, FileState::Open))?;
        }
        remove_if_there(&index[0])?;
        let file = OpenFile::resume(&self.folder, name, length, &entries)?;
        self.mark = Mark {
            file: file.name.number,
            length,
        };
        self.open = Some(file);
        if length < promised {
            // What follows goes into a new file: a position that was once committed is never used
            // for another record.
            self.close()?;
        }
        Ok(())
    }

    /// A file that was being written when its database was lost: its whole records are kept.
    fn save(&mut self, name: FileName) -> Result<(), ArchiveError> {
        let path = name.warc_in(&self.folder, FileState::Open);
        let (entries, length) = index_file::entries_of_warc(&path, &name.warc())?;
        if length == 0 {
            return self.discard(&name, FileState::Open);
        }
        let (name, bytes) = OpenFile::resume(&self.folder, name, length, &entries)?.close()?;
        self.closed.insert(name.number, (name, bytes));
        Ok(())
    }

    fn keep(&mut self, name: FileName, bytes: u64) -> Result<(), ArchiveError> {
        let index = name.index_in(&self.folder, FileState::Closed);
        if !index.exists() {
            let warc = name.warc_in(&self.folder, FileState::Closed);
            tracing::warn!(index = %index.display(), "making a missing index anew");
            index_file::rebuild(&warc, &name.warc(), &index)?;
        }
        remove_if_there(&name.index_in(&self.folder, FileState::Open))?;
        self.closed.insert(name.number, (name, bytes));
        Ok(())
    }
}

fn begin(
    folder: &Path,
    next_number: &mut u64,
    encoder: &mut Encoder,
    options: &ArchiveOptions,
    records: &EncodedRecords,
) -> Result<OpenFile, ArchiveError> {
    let time = records.indexed.time;
    let name = FileName::new(time, *next_number);
    let warcinfo = encoder.warcinfo(&name.warc(), &options.software, time);
    let file = OpenFile::create(folder, name, &warcinfo)?;
    *next_number += 1;
    Ok(file)
}

pub(super) fn remove_if_there(path: &Path) -> Result<(), ArchiveError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ArchiveError::at(path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::archive::{
        Reader,
        capture::tests::{encoder, page, url},
        encoder::tests::check,
    };
    use std::fs::File;

    pub(crate) fn open(folder: &Path, mark: Option<Mark>, file_bytes: u64) -> Archive {
        let options = ArchiveOptions {
            file_bytes,
            quota_bytes: 50_000,
            min_free_bytes: 0,
            ..ArchiveOptions::default()
        };
        Archive::open(folder, mark, options, [3; 32]).unwrap()
    }

    pub(crate) fn append(archive: &mut Archive, addresses: &[&str]) {
        let mut encoder = encoder();
        for address in addresses {
            let body = format!("<p>this is {address}</p>");
            archive
                .append(&page(address, 0, &body).encode(&mut encoder))
                .unwrap();
        }
    }

    /// The pages that can be read back, after checking every file.
    fn pages(folder: &Path) -> Vec<String> {
        let reader = Reader::new(folder);
        let records = reader
            .files()
            .unwrap()
            .into_iter()
            .flat_map(|file| check(&file));
        let urls = records
            .filter(|record| record.kind == "response")
            .map(|record| record.url.unwrap());
        let check_replay = |url: apoidea_model::PageUrl| {
            let entries = reader.find(&url).unwrap();
            assert_eq!(entries.len(), 1, "{url} is in the index once");
            let body = reader.page(&entries[0]).unwrap().body.unwrap();
            assert_eq!(
                String::from_utf8(body).unwrap(),
                format!("<p>this is {url}</p>")
            );
            url.to_string()
        };
        urls.map(check_replay).collect()
    }

    const A: &str = "http://a.example/";
    const B: &str = "http://b.example/";
    const C: &str = "http://c.example/";

    #[test]
    fn what_was_committed_stays_wherever_the_last_append_was_torn() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 1 << 20);
        append(&mut archive, &[A]);
        let mark = archive.sync().unwrap();
        append(&mut archive, &[B]);
        archive.sync().unwrap();
        drop(archive);
        let file = Reader::new(folder.path()).files().unwrap().remove(0);
        let index = file.with_file_name(
            file.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .replace("warc.gz", "cdxj"),
        );
        let (whole, lines) = (fs::read(&file).unwrap(), fs::read(&index).unwrap());
        for end in mark.length as usize..=whole.len() {
            fs::write(&file, &whole[..end]).unwrap();
            fs::write(
                &index,
                &lines[..lines.len() - (whole.len() - end).min(lines.len() / 3)],
            )
            .unwrap();
            let archive = open(folder.path(), Some(mark), 1 << 20);
            assert_eq!(
                (archive.mark(), archive.bytes()),
                (mark, mark.length),
                "torn at {end}"
            );
        }
        assert_eq!(pages(folder.path()), [A]);
        append(&mut open(folder.path(), Some(mark), 1 << 20), &[C]);
        let mut archive = open(folder.path(), Some(mark), 1 << 20);
        append(&mut archive, &[B, C]);
        archive.sync().unwrap();
        assert_eq!(pages(folder.path()), [A, B, C]);
    }

    #[test]
    fn whole_records_are_saved_when_the_disk_lost_committed_ones() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 1 << 20);
        append(&mut archive, &[A]);
        let first = archive.sync().unwrap();
        append(&mut archive, &[B]);
        let mark = archive.sync().unwrap();
        drop(archive);
        let file = Reader::new(folder.path()).files().unwrap().remove(0);
        File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(first.length + 5)
            .unwrap();
        let mut archive = open(folder.path(), Some(mark), 1 << 20);
        assert_eq!(archive.mark(), first);
        append(&mut archive, &[C]);
        archive.sync().unwrap();
        assert_eq!(pages(folder.path()), [A, C]);
    }

    #[test]
    fn files_begun_after_the_last_commit_are_undone() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 4000);
        append(&mut archive, &[A]);
        let mark = archive.sync().unwrap();
        append(
            &mut archive,
            &[
                B,
                C,
                "http://d.example/",
                "http://e.example/",
                "http://f.example/",
            ],
        );
        archive.sync().unwrap();
        drop(archive);
        assert!(Reader::new(folder.path()).files().unwrap().len() > 1);
        let mut archive = open(folder.path(), Some(mark), 4000);
        assert_eq!(archive.mark(), mark);
        assert_eq!(pages(folder.path()), [A]);
        append(&mut archive, &[B]);
        archive.close().unwrap();
        assert_eq!(pages(folder.path()), [A, B]);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "one file and its index"
        );
    }

    #[test]
    fn full_files_are_closed_with_a_sorted_index() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 6000);
        let addresses: Vec<String> = (0..40)
            .map(|n| format!("http://{}.example/", (n * 7) % 40))
            .collect();
        append(
            &mut archive,
            &addresses.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        archive.close().unwrap();
        let mark = archive.mark();
        drop(archive);
        assert_eq!(pages(folder.path()), addresses);
        assert_eq!(
            Reader::new(folder.path())
                .find(&url("http://x.example/"))
                .unwrap(),
            []
        );
        let files = FileName::all_in(folder.path()).unwrap();
        assert!(files.len() > 3);
        for (name, state) in files {
            assert_eq!(state, FileState::Closed);
            let index = fs::read_to_string(name.index_in(folder.path(), state)).unwrap();
            assert!(index.lines().is_sorted());
            fs::remove_file(name.index_in(folder.path(), state)).unwrap();
        }
        drop(open(folder.path(), Some(mark), 6000));
        assert_eq!(pages(folder.path()), addresses, "a lost index is made anew");
    }

    #[test]
    fn without_a_mark_the_whole_records_of_an_open_file_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 1 << 20);
        append(&mut archive, &[A]);
        archive.sync().unwrap();
        let length = archive.mark().length;
        append(&mut archive, &[B]);
        drop(archive);
        let file = Reader::new(folder.path()).files().unwrap().remove(0);
        File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(length + 9)
            .unwrap();
        let mut archive = open(folder.path(), None, 1 << 20);
        append(&mut archive, &[C]);
        archive.sync().unwrap();
        assert_eq!(pages(folder.path()), [A, C]);
    }
}
