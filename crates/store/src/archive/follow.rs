//! Reading the archive as a log: every record behind a mark, in the order of writing, and the parts
//! that are gone.
//!
//! An index built over the archive keeps the mark up to which it has read, together with what it
//! made of it, and goes on from there after a crash. It follows only up to a mark that is
//! committed, so it never meets a record that a restart takes back.

use super::{
    ArchiveError, Mark, Position, Reader, Record, Records, Span,
    file_name::{FileName, FileState},
    reader::is_missing,
    records::{self, Ending},
};
use std::fs;

/// The next thing that a follower meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// A record, and where it lies.
    Record(Position, Record),
    /// This part is gone: its files were given up for room, or the disk lost them. It may lie
    /// before the follower's mark, and may be told again.
    Removed(Span),
}

/// Iterates over what lies between two marks. A damaged file is reported once, and the rest of it
/// skipped.
#[derive(Debug)]
pub struct Follow {
    reader: Reader,
    /// Everything before it was told.
    at: Mark,
    until: Mark,
    /// All files before this one are known to be gone.
    gone: Mark,
    file: Option<OpenedFile>,
}

/// The file that is being read, up to `end`.
#[derive(Debug)]
struct OpenedFile {
    records: Records,
    end: Mark,
}

enum Step {
    /// Go on with `Follow::file`.
    Opened,
    Removed(Span),
    End,
}

impl Reader {
    /// Everything from one mark to another, which must be committed. Begin with
    /// [`Mark::default`].
    pub fn follow(&self, from: Mark, until: Mark) -> Follow {
        Follow {
            reader: self.clone(),
            at: from,
            until,
            gone: Mark::default(),
            file: None,
        }
    }
}

impl Follow {
    /// The mark behind all that was told so far, from which another follower would go on.
    pub fn mark(&self) -> Mark {
        self.at
    }

    fn next_record(&mut self) -> Option<Result<Followed, ArchiveError>> {
        let file = self.file.as_mut()?;
        if self.at >= file.end {
            self.leave_file();
            return None;
        }
        let record = match file.records.next() {
            Some(Ok(record)) => record,
            Some(Err(error)) => {
                self.leave_file();
                return Some(Err(error));
            }
            None => {
                self.leave_file();
                return None;
            }
        };
        let position = Position {
            file: self.at.file,
            offset: record.offset,
            length: record.length,
        };
        self.at = position.end();
        Some(Ok(Followed::Record(position, record)))
    }

    /// Goes to the beginning of the next file, unless this is the last one.
    fn leave_file(&mut self) {
        self.file = None;
        self.at = if self.at.file < self.until.file {
            start_of(self.at.file + 1)
        } else {
            self.until
        };
    }

    fn step(&mut self) -> Result<Step, ArchiveError> {
        if self.at > self.until {
            return Ok(self.skip_back());
        }
        let names = self.reader.names()?;
        let oldest = names
            .first()
            .map_or(self.until, |(name, _)| start_of(name.number));
        if oldest.file > 1 && oldest > self.gone {
            self.gone = oldest;
            self.at = self.at.max(oldest);
            let from = Mark::default();
            return Ok(Step::Removed(Span { from, to: oldest }));
        }
        if self.at == self.until {
            return Ok(Step::End);
        }
        let next = names
            .into_iter()
            .find(|(name, _)| name.number >= self.at.file);
        match next {
            Some((name, _)) if name.number <= self.until.file => self.open(&name),
            _ => {
                self.at = self.until;
                Ok(Step::End)
            }
        }
    }

    /// The follower has read what the archive no longer has: the disk lost it.
    fn skip_back(&mut self) -> Step {
        let lost = Span {
            from: self.until,
            to: self.at,
        };
        self.at = self.until;
        Step::Removed(lost)
    }

    fn open(&mut self, name: &FileName) -> Result<Step, ArchiveError> {
        if name.number > self.at.file {
            self.at = start_of(name.number);
        }
        for state in [FileState::Open, FileState::Closed] {
            let path = name.warc_in(&self.reader.folder, state);
            let records = records::read_from(&path, self.at.length, Ending::Whole);
            if is_missing(&records) {
                continue;
            }
            let length = fs::metadata(&path).map_err(ArchiveError::at(&path))?.len();
            return Ok(self.enter(records?, length));
        }
        // Given up since it was listed: the next listing tells.
        Ok(Step::Opened)
    }

    fn enter(&mut self, records: Records, length: u64) -> Step {
        let end = Mark {
            file: self.at.file,
            length,
        };
        if end < self.at {
            let lost = Span {
                from: end,
                to: self.at,
            };
            self.leave_file();
            return Step::Removed(lost);
        }
        let end = end.min(self.until);
        self.file = Some(OpenedFile { records, end });
        Step::Opened
    }
}

impl Iterator for Follow {
    type Item = Result<Followed, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(told) = self.next_record() {
                return Some(told);
            }
            if self.file.is_some() {
                continue;
            }
            match self.step() {
                Ok(Step::Opened) => {}
                Ok(Step::Removed(span)) => return Some(Ok(Followed::Removed(span))),
                Ok(Step::End) => return None,
                Err(error) => {
                    self.at = self.until;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// The mark before the first byte of a file.
const fn start_of(file: u64) -> Mark {
    Mark { file, length: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{
        Archive, ArchiveRoom,
        folder::tests::{append, open},
    };
    use std::{fs::File, path::Path};

    const SMALL: u64 = 4000;

    /// An archive of several files with the pages 0 to `count`.
    fn archive_of(folder: &Path, count: usize) -> Archive {
        let mut archive = open(folder, None, SMALL);
        let addresses: Vec<String> = (0..count).map(address).collect();
        append(
            &mut archive,
            &addresses.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        archive.sync().unwrap();
        archive
    }

    fn address(number: usize) -> String {
        format!("http://{number}.example/")
    }

    /// The pages that a follower meets, and the removed parts.
    fn followed(folder: &Path, from: Mark, until: Mark) -> (Vec<String>, Vec<Span>) {
        let (mut pages, mut removed) = (Vec::new(), Vec::new());
        let reader = Reader::new(folder);
        let mut follow = reader.follow(from, until);
        for told in &mut follow {
            match told.unwrap() {
                Followed::Record(position, record) => {
                    assert_eq!(reader.record_at(&position).unwrap(), record);
                    if record.kind == "response" {
                        pages.push(record.url.unwrap().to_string());
                    }
                }
                Followed::Removed(span) => removed.push(span),
            }
        }
        assert_eq!(follow.mark(), until);
        (pages, removed)
    }

    #[test]
    fn a_follower_meets_every_record_across_files() {
        let folder = tempfile::tempdir().unwrap();
        let archive = archive_of(folder.path(), 20);
        assert!(archive.mark().file > 2, "several files");
        let (pages, removed) = followed(folder.path(), Mark::default(), archive.mark());
        assert_eq!(pages, (0..20).map(address).collect::<Vec<_>>());
        assert_eq!(removed, []);
    }

    #[test]
    fn a_follower_goes_on_from_any_record_it_has_seen() {
        let folder = tempfile::tempdir().unwrap();
        let archive = archive_of(folder.path(), 12);
        let reader = Reader::new(folder.path());
        let mut seen = 0;
        for told in reader.follow(Mark::default(), archive.mark()) {
            let Followed::Record(position, record) = told.unwrap() else {
                panic!("nothing was removed")
            };
            seen += usize::from(record.kind == "response");
            let (rest, _) = followed(folder.path(), position.end(), archive.mark());
            assert_eq!(rest, (seen..12).map(address).collect::<Vec<_>>());
        }
        let (rest, _) = followed(folder.path(), archive.mark(), archive.mark());
        assert!(rest.is_empty());
    }

    #[test]
    fn records_behind_the_committed_mark_are_not_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = archive_of(folder.path(), 2);
        let committed = archive.mark();
        append(&mut archive, &[&address(2)]);
        archive.sync().unwrap();
        let (pages, _) = followed(folder.path(), Mark::default(), committed);
        assert_eq!(pages, [address(0), address(1)]);
    }

    #[test]
    fn files_given_up_are_told_with_what_they_held() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = archive_of(folder.path(), 20);
        let reader = Reader::new(folder.path());
        let first = reader.follow(Mark::default(), archive.mark()).next();
        let Some(Ok(Followed::Record(first, _))) = first else {
            panic!("the first record is there")
        };
        let (room, removed) = archive.make_room(0).unwrap();
        assert_eq!((room, removed.len()), (ArchiveRoom::Enough, 0));
        archive.limit(Some(archive.bytes() - 1), None);
        let (_, removed) = archive.make_room(u64::MAX / 2).unwrap();
        assert_eq!(removed.len(), 1);
        assert!(removed[0].span.contains(&first));
        assert_eq!(archive.span().from, start_of(2));

        let (pages, told) = followed(folder.path(), first.end(), archive.mark());
        let whole = Span {
            from: Mark::default(),
            to: start_of(2),
        };
        assert_eq!(told, [whole]);
        assert!(whole.contains(&first));
        let left: Vec<String> = (20 - pages.len()..20).map(address).collect();
        assert_eq!(pages, left);
        assert!(matches!(
            reader.record_at(&first),
            Err(ArchiveError::Removed { .. })
        ));
        let (pages, told) = followed(folder.path(), archive.mark(), archive.mark());
        assert_eq!((pages.len(), told), (0, vec![whole]), "told to the end");
    }

    #[test]
    fn an_empty_folder_is_one_removed_part() {
        let folder = tempfile::tempdir().unwrap();
        let until = Mark {
            file: 3,
            length: 70,
        };
        let (pages, removed) = followed(folder.path(), Mark::default(), until);
        let from = Mark::default();
        assert_eq!((pages.len(), removed), (0, vec![Span { from, to: until }]));
        let (_, removed) = followed(folder.path(), Mark::default(), Mark::default());
        assert_eq!(removed, []);
    }

    #[test]
    fn a_restart_takes_back_only_what_no_follower_has_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = archive_of(folder.path(), 1);
        let committed = archive.mark();
        append(&mut archive, &[&address(1)]);
        archive.sync().unwrap();
        drop(archive);
        let mut archive = open(folder.path(), Some(committed), SMALL);
        append(&mut archive, &[&address(2)]);
        let mark = archive.sync().unwrap();
        let (pages, removed) = followed(folder.path(), committed, mark);
        assert_eq!((pages, removed), (vec![address(2)], vec![]));
    }

    #[test]
    fn bytes_that_the_disk_lost_are_told_and_their_places_never_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 1 << 20);
        append(&mut archive, &[&address(0)]);
        let kept = archive.sync().unwrap();
        append(&mut archive, &[&address(1)]);
        let committed = archive.sync().unwrap();
        drop(archive);
        let file = Reader::new(folder.path()).files().unwrap().remove(0);
        let file = File::options().write(true).open(file).unwrap();
        file.set_len(kept.length + 5).unwrap();
        let mut archive = open(folder.path(), Some(committed), 1 << 20);
        let lost = Span {
            from: kept,
            to: committed,
        };
        let (pages, removed) = followed(folder.path(), committed, archive.mark());
        assert_eq!((pages.len(), removed), (0, vec![lost]));
        append(&mut archive, &[&address(2)]);
        let mark = archive.sync().unwrap();
        let (pages, removed) = followed(folder.path(), committed, mark);
        assert_eq!((pages, removed), (vec![address(2)], vec![lost]));
        let (pages, removed) = followed(folder.path(), kept, mark);
        assert_eq!((pages, removed), (vec![address(2)], vec![]));
    }

    #[test]
    fn a_damaged_file_is_reported_and_the_next_ones_followed() {
        let folder = tempfile::tempdir().unwrap();
        let archive = archive_of(folder.path(), 20);
        let file = Reader::new(folder.path()).files().unwrap().remove(0);
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..].fill(0);
        fs::write(&file, bytes).unwrap();
        let mut follow = Reader::new(folder.path()).follow(Mark::default(), archive.mark());
        let told: Vec<_> = (&mut follow).collect();
        let errors = told.iter().filter(|told| told.is_err()).count();
        assert_eq!(errors, 1);
        let last = told.last().unwrap().as_ref().unwrap();
        assert!(matches!(last, Followed::Record(position, _) if position.end() == archive.mark()));
    }
}
