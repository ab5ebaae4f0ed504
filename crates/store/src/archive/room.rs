//! Keeping to the volunteer's disk: the oldest whole files go first, and only ever files of the
//! archive.

use super::{Archive, ArchiveError, Mark, Span, file_name::FileState, folder::remove_if_there};

/// A file that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedFile {
    /// Its name.
    pub file: String,
    /// The bytes it took.
    pub bytes: u64,
    /// The positions that it held.
    pub span: Span,
}

/// Whether there is room for more pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveRoom {
    /// Yes.
    Enough,
    /// No, and no closed file is left to give up: stop archiving until there is.
    None,
}

impl Archive {
    /// Gives up the oldest files until the quota is kept and enough of the disk is free.
    /// `free_bytes` is what the disk has left now. To be called after each commit.
    pub fn make_room(
        &mut self,
        free_bytes: u64,
    ) -> Result<(ArchiveRoom, Vec<RemovedFile>), ArchiveError> {
        let mut free_bytes = free_bytes;
        let mut removed = Vec::new();
        while self.is_short(free_bytes) {
            let Some((_, (name, bytes))) = self.closed.first_key_value() else {
                return Ok((ArchiveRoom::None, removed));
            };
            let (name, bytes) = (name.clone(), *bytes);
            // The file before its index: an index without file is removed below or found to lead
            // nowhere.
            remove_if_there(&name.warc_in(&self.folder, FileState::Closed))?;
            remove_if_there(&name.index_in(&self.folder, FileState::Closed))?;
            self.closed.remove(&name.number);
            free_bytes += bytes;
            removed.push(RemovedFile {
                file: name.warc(),
                bytes,
                span: whole_file(name.number, bytes),
            });
        }
        Ok((ArchiveRoom::Enough, removed))
    }

    /// Changes quota and free space from the next time room is made; `None` is what the options
    /// say.
    pub fn limit(&mut self, quota_bytes: Option<u64>, min_free_bytes: Option<u64>) {
        self.asked = (quota_bytes, min_free_bytes);
    }

    fn is_short(&self, free_bytes: u64) -> bool {
        let quota_bytes = self.asked.0.unwrap_or(self.options.quota_bytes);
        let min_free_bytes = self.asked.1.unwrap_or(self.options.min_free_bytes);
        self.bytes() > quota_bytes || free_bytes < min_free_bytes
    }
}

fn whole_file(file: u64, bytes: u64) -> Span {
    let at = |length| Mark { file, length };
    Span {
        from: at(0),
        to: at(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{
        Reader,
        capture::tests::url,
        folder::tests::{append, open},
    };

    #[test]
    fn the_oldest_files_go_when_the_quota_or_the_disk_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 6000);
        let addresses: Vec<String> = (0..80).map(|n| format!("http://{n}.example/")).collect();
        append(
            &mut archive,
            &addresses.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        archive.sync().unwrap();
        let before = archive.bytes();
        assert!(before > archive.options.quota_bytes);
        let (room, removed) = archive.make_room(u64::MAX / 2).unwrap();
        assert_eq!(room, ArchiveRoom::Enough);
        assert!(archive.bytes() <= archive.options.quota_bytes);
        assert_eq!(
            before - archive.bytes(),
            removed.iter().map(|file| file.bytes).sum::<u64>()
        );
        let reader = Reader::new(folder.path());
        assert!(reader.find(&url("http://0.example/")).unwrap().is_empty());
        assert_eq!(reader.find(&url("http://79.example/")).unwrap().len(), 1);

        archive.options.min_free_bytes = 10_000;
        let (room, removed) = archive.make_room(5_000).unwrap();
        assert_eq!((room, removed.len()), (ArchiveRoom::Enough, 1));
        let (room, _) = archive.make_room(0).unwrap();
        assert_eq!(room, ArchiveRoom::Enough);
        archive.options.min_free_bytes = u64::MAX;
        let (room, removed) = archive.make_room(0).unwrap();
        assert_eq!(room, ArchiveRoom::None);
        assert!(!removed.is_empty());
        assert_eq!(
            reader.find(&url("http://79.example/")).unwrap().len(),
            1,
            "the open file is never given up"
        );
    }
}
