//! Keeping to the volunteer's disk: the oldest whole files go first, and only ever files of the archive.

use super::{Archive, ArchiveError, file_name::FileState, folder::remove_if_there};

/// A file that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedFile {
    /// Its name.
    pub file: String,
    /// The bytes it took.
    pub bytes: u64,
}

/// Is there room for more pages?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Yes.
    Enough,
    /// No, and no closed file is left to give up: stop archiving until there is.
    None,
}

impl Archive {
    /// Gives up the oldest files until the quota is kept and enough of the disk is free. `free_bytes` is what the disk
    /// has left now. To be called after each commit.
    pub fn make_room(&mut self, free_bytes: u64) -> Result<(Room, Vec<RemovedFile>), ArchiveError> {
        let mut free_bytes = free_bytes;
        let mut removed = Vec::new();
        while self.is_short(free_bytes) {
            let Some((_, (name, bytes))) = self.closed.first_key_value() else {
                return Ok((Room::None, removed));
            };
            let (name, bytes) = (name.clone(), *bytes);
            // The file before its index: an index without file is removed below or found to lead nowhere.
            remove_if_there(&name.warc_in(&self.folder, FileState::Closed))?;
            remove_if_there(&name.index_in(&self.folder, FileState::Closed))?;
            self.closed.remove(&name.number);
            free_bytes += bytes;
            removed.push(RemovedFile { file: name.warc(), bytes });
        }
        Ok((Room::Enough, removed))
    }

    fn is_short(&self, free_bytes: u64) -> bool {
        self.bytes() > self.options.quota_bytes || free_bytes < self.options.min_free_bytes
    }
}
