//! WARC records as they are read back, one gzip member at a time.
//!
//! A file may come from a stranger: heads and blocks are bounded, and whatever does not parse is an
//! error that says where.

use super::{
    ArchiveError, Head,
    index_entry::{IndexEntry, IndexedAs},
    timestamp::Timestamp,
};
use apoidea_model::{PageUrl, Time};
use flate2::bufread::GzDecoder;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// Largest record that is read, uncompressed: eight times the largest body that is kept.
pub const MAX_RECORD_BYTES: u64 = 16 * 1024 * 1024;

/// One record of a WARC file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// `response`, `request`, `metadata`, `revisit`, `warcinfo`…
    pub kind: String,
    /// The time at which it was made, to the second.
    pub time: Time,
    /// The page it is about.
    pub url: Option<PageUrl>,
    /// All fields of its head.
    pub fields: Vec<(String, String)>,
    /// The bytes that the head describes.
    pub block: Vec<u8>,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its compressed size in bytes.
    pub length: u64,
}

/// The state that the end of a file may be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// A torn record is damage.
    Whole,
    /// A torn last record is the end: it is being written, or a crash left it.
    MayBeTorn,
}

/// Iterates over the records of a file.
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
    reader: BufReader<File>,
    offset: u64,
    ending: Ending,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Reading,
    Done,
}

/// The records of a file from its beginning.
pub(super) fn read(path: &Path, ending: Ending) -> Result<Records, ArchiveError> {
    read_from(path, 0, ending)
}

/// The records of a file from an offset that an index gave.
pub(super) fn read_from(path: &Path, offset: u64, ending: Ending) -> Result<Records, ArchiveError> {
    let mut file = File::open(path).map_err(ArchiveError::at(path))?;
    file.seek(SeekFrom::Start(offset))
        .map_err(ArchiveError::at(path))?;
    Ok(Records {
        path: path.to_owned(),
        reader: BufReader::new(file),
        offset,
        ending,
        state: State::Reading,
    })
}

impl Iterator for Records {
    type Item = Result<Record, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done {
            return None;
        }
        let record = self.next_record().transpose();
        if !matches!(record, Some(Ok(_))) {
            self.state = State::Done;
        }
        record
    }
}

impl Records {
    fn next_record(&mut self) -> Result<Option<Record>, ArchiveError> {
        if self
            .reader
            .fill_buf()
            .map_err(ArchiveError::at(&self.path))?
            .is_empty()
        {
            return Ok(None);
        }
        let text = match self.next_member() {
            Ok(text) => text,
            Err(_) if self.ending == Ending::MayBeTorn && self.is_at_end() => return Ok(None),
            Err(_) => return Err(self.damaged("not a whole gzip member")),
        };
        if text.len() as u64 > MAX_RECORD_BYTES {
            return Err(self.damaged("longer than any record we read"));
        }
        let (offset, end) = (self.offset, self.position()?);
        let record = parse(&text, offset, end - offset).map_err(|why| self.damaged(why))?;
        self.offset = end;
        Ok(Some(record))
    }

    /// One byte more than allowed is read, to tell a record of the largest size from one that is
    /// too long.
    fn next_member(&mut self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        GzDecoder::new(&mut self.reader)
            .take(MAX_RECORD_BYTES + 1)
            .read_to_end(&mut text)?;
        Ok(text)
    }

    fn is_at_end(&mut self) -> bool {
        self.reader.fill_buf().is_ok_and(<[u8]>::is_empty)
    }

    fn position(&mut self) -> Result<u64, ArchiveError> {
        self.reader
            .stream_position()
            .map_err(ArchiveError::at(&self.path))
    }

    fn damaged(&self, why: &'static str) -> ArchiveError {
        ArchiveError::damaged(&self.path, self.offset, why)
    }
}

fn parse(text: &[u8], offset: u64, length: u64) -> Result<Record, &'static str> {
    let (head, rest) = split_head(text).ok_or("the head of the record does not end")?;
    let mut lines = head.split("\r\n");
    let version = lines.next().unwrap_or_default();
    if !version.starts_with("WARC/1.") {
        return Err("not a WARC/1 record");
    }
    let fields: Option<Vec<_>> = lines.map(field).collect();
    let fields = fields.ok_or("a field of the head has no name")?;
    let value = |name: &str| field_of(&fields, name);
    let size: usize = value("Content-Length")
        .and_then(|size| size.parse().ok())
        .ok_or("no Content-Length")?;
    let block = rest.get(..size).ok_or("shorter than its Content-Length")?;
    if &rest[size..] != b"\r\n\r\n" {
        return Err("longer than its Content-Length");
    }
    let time = value("WARC-Date")
        .and_then(Timestamp::parse)
        .ok_or("no WARC-Date")?;
    Ok(Record {
        kind: value("WARC-Type").ok_or("no WARC-Type")?.to_owned(),
        time: time.into(),
        url: value("WARC-Target-URI").and_then(|url| PageUrl::parse(url).ok()),
        block: block.to_vec(),
        fields,
        offset,
        length,
    })
}

/// Text up to an empty line, and what follows it.
fn split_head(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 4..]))
}

fn field(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_owned(), value.trim().to_owned()))
}

fn field_of<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields
        .iter()
        .find(|(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

impl Record {
    /// A field of the head, whatever the case of its name.
    pub fn field(&self, name: &str) -> Option<&str> {
        field_of(&self.fields, name)
    }

    /// The HTTP head and body in the block of a response, revisit or request record.
    pub fn http(&self) -> Option<(Head, &[u8])> {
        let end = self
            .block
            .windows(4)
            .position(|window| window == b"\r\n\r\n")?;
        let mut lines = self.block[..end]
            .split(|&byte| byte == b'\n')
            .map(|line| line.trim_ascii_end());
        let first_line = String::from_utf8_lossy(lines.next()?).into_owned();
        let headers = lines.filter_map(header).collect();
        Some((
            Head {
                first_line,
                headers,
            },
            &self.block[end + 4..],
        ))
    }

    /// The index entry for this record, if it belongs there.
    pub(super) fn index_entry(&self, file: &str) -> Option<IndexEntry> {
        if !matches!(self.kind.as_str(), "response" | "revisit") {
            return None;
        }
        let indexed = IndexedAs::of_record(self)?;
        Some(indexed.at(file, self.offset, self.length))
    }
}

fn header(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = String::from_utf8_lossy(&line[..colon]).into_owned();
    Some((name, line[colon + 1..].trim_ascii().to_vec()))
}
