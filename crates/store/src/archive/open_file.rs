//! The one WARC file that is being written, with its index.
//!
//! Appended bytes wait in memory until there are enough of them for one write, or the file is
//! synced. A write that fails half-way leaves bytes behind what was written whole, which are cut
//! off before it is tried again.

use super::{
    ArchiveError, EncodedRecords,
    file_name::{FileName, FileState},
    index_entry::IndexEntry,
    index_file,
};
use std::{
    fs::{self, File},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// Appended bytes that wait for a write at most; a record larger than this is written by itself.
const WAITING_BYTES: usize = 256 << 10;

/// A file that grows.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) name: FileName,
    folder: PathBuf,
    warc: Growing,
    index: Growing,
}

impl OpenFile {
    /// Begins a file with its first record.
    pub(super) fn create(
        folder: &Path,
        name: FileName,
        warcinfo: &[u8],
    ) -> Result<Self, ArchiveError> {
        let warc = Growing::create(name.warc_in(folder, FileState::Open))?;
        let index = Growing::create(name.index_in(folder, FileState::Open))?;
        let mut file = OpenFile {
            name,
            folder: folder.to_owned(),
            warc,
            index,
        };
        file.warc.append(warcinfo)?;
        sync_folder(folder)?;
        Ok(file)
    }

    /// Takes up a file where the last process left it, with exactly these index entries.
    pub(super) fn resume(
        folder: &Path,
        name: FileName,
        length: u64,
        entries: &[IndexEntry],
    ) -> Result<Self, ArchiveError> {
        let warc = Growing::resume(name.warc_in(folder, FileState::Open), length)?;
        let index = Growing::create(name.index_in(folder, FileState::Open))?;
        let mut file = OpenFile {
            name,
            folder: folder.to_owned(),
            warc,
            index,
        };
        entries
            .iter()
            .for_each(|entry| file.index.append_line(entry));
        file.sync()?;
        Ok(file)
    }

    pub(super) fn length(&self) -> u64 {
        self.warc.length()
    }

    /// Adds records, all or nothing, and says where the response record begins.
    pub(super) fn append(&mut self, records: &EncodedRecords) -> Result<u64, ArchiveError> {
        let offset = self.warc.length() + records.offset;
        self.warc.append(&records.bytes)?;
        self.index.append_line(
            &records
                .indexed
                .at(&self.name.warc(), offset, records.length),
        );
        Ok(offset)
    }

    /// Makes everything appended so far durable.
    pub(super) fn sync(&mut self) -> Result<(), ArchiveError> {
        self.warc.sync()?;
        self.index.sync()
    }

    /// Syncs, sorts the index, and gives both files their final names: the index first, so that a
    /// closed WARC file without index means that someone removed it.
    pub(super) fn close(mut self) -> Result<(FileName, u64), ArchiveError> {
        self.sync()?;
        let (open, closed) = (FileState::Open, FileState::Closed);
        index_file::sort(
            &self.name.index_in(&self.folder, open),
            &self.name.index_in(&self.folder, closed),
        )?;
        rename(
            &self.name.warc_in(&self.folder, open),
            &self.name.warc_in(&self.folder, closed),
        )?;
        let leftover = self.name.index_in(&self.folder, open);
        fs::remove_file(&leftover).map_err(ArchiveError::at(&leftover))?;
        sync_folder(&self.folder)?;
        Ok((self.name, self.warc.written))
    }
}

/// A file with a length that is known to be whole, and what is to follow.
#[derive(Debug)]
struct Growing {
    path: PathBuf,
    file: File,
    written: u64,
    waiting: Vec<u8>,
    tail: Tail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    Clean,
    HalfWritten,
}

impl Growing {
    fn create(path: PathBuf) -> Result<Self, ArchiveError> {
        let file = File::create(&path).map_err(ArchiveError::at(&path))?;
        Ok(Growing {
            path,
            file,
            written: 0,
            waiting: Vec::new(),
            tail: Tail::Clean,
        })
    }

    fn resume(path: PathBuf, length: u64) -> Result<Self, ArchiveError> {
        let file = File::options()
            .write(true)
            .open(&path)
            .map_err(ArchiveError::at(&path))?;
        Ok(Growing {
            path,
            file,
            written: length,
            waiting: Vec::new(),
            tail: Tail::HalfWritten,
        })
    }

    /// Bytes of the file once everything is written.
    fn length(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    /// Adds bytes, all or nothing.
    fn append(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        if self.waiting.len() + bytes.len() > WAITING_BYTES {
            self.write_waiting()?;
        }
        self.waiting.extend_from_slice(bytes);
        Ok(())
    }

    /// Lines wait for the next sync however many they are: adding one to records that were added
    /// cannot fail.
    fn append_line(&mut self, entry: &IndexEntry) {
        self.waiting.extend_from_slice(entry.line().as_bytes());
        self.waiting.push(b'\n');
    }

    fn write_waiting(&mut self) -> Result<(), ArchiveError> {
        self.try_write_waiting()
            .map_err(ArchiveError::at(&self.path))
    }

    fn try_write_waiting(&mut self) -> io::Result<()> {
        if self.tail == Tail::HalfWritten {
            self.file.set_len(self.written)?;
        }
        self.tail = Tail::HalfWritten;
        self.file.seek(SeekFrom::Start(self.written))?;
        self.file.write_all(&self.waiting)?;
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
        self.waiting.shrink_to(WAITING_BYTES);
        self.tail = Tail::Clean;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), ArchiveError> {
        self.write_waiting()?;
        self.file.sync_data().map_err(ArchiveError::at(&self.path))
    }
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<(), ArchiveError> {
    fs::rename(from, to).map_err(ArchiveError::at(from))
}

/// Makes new, renamed and removed names durable. Only Unix knows this step; elsewhere it happens by
/// itself.
pub(super) fn sync_folder(folder: &Path) -> Result<(), ArchiveError> {
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(ArchiveError::at(folder))?;
    }
    Ok(())
}
