//! The CDXJ index beside each WARC file: in order of arrival while the file is open, sorted once it
//! is closed.

use super::{
    ArchiveError,
    index_entry::{IndexEntry, key_of},
    open_file::rename,
    records::{self, Ending},
};
use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

/// Longest line that is read: a URL of 2 KiB appears twice, the rest is short.
const MAX_LINE_BYTES: u64 = 16 * 1024;

/// Writes the lines of one file into another, sorted. The result appears all at once.
pub(super) fn sort(from: &Path, to: &Path) -> Result<(), ArchiveError> {
    let text = fs::read_to_string(from).map_err(ArchiveError::at(from))?;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    write(lines.iter().copied(), to)
}

/// Makes an index anew from its WARC file.
pub(super) fn rebuild(warc: &Path, file: &str, to: &Path) -> Result<(), ArchiveError> {
    let mut lines: Vec<String> = entries_of_warc(warc, file)?
        .0
        .iter()
        .map(IndexEntry::line)
        .collect();
    lines.sort_unstable();
    write(lines.iter().map(String::as_str), to)
}

fn write<'a>(lines: impl Iterator<Item = &'a str>, to: &Path) -> Result<(), ArchiveError> {
    let new = to.with_extension("new");
    let written = File::create(&new).and_then(|file| {
        let mut out = io::BufWriter::new(file);
        lines
            .into_iter()
            .try_for_each(|line| writeln!(out, "{line}"))?;
        out.into_inner()?.sync_all()
    });
    written.map_err(ArchiveError::at(&new))?;
    rename(&new, to)
}

/// The entries for an index of this WARC file, and the number of its bytes that are whole records.
pub(super) fn entries_of_warc(
    warc: &Path,
    file: &str,
) -> Result<(Vec<IndexEntry>, u64), ArchiveError> {
    let mut entries = Vec::new();
    let mut whole = 0;
    for record in records::read(warc, Ending::MayBeTorn)? {
        let record = record?;
        whole = record.offset + record.length;
        entries.extend(record.index_entry(file));
    }
    Ok((entries, whole))
}

/// The entries of an index in the file's order; a last line without its end was never synced and is
/// left out.
pub(super) fn entries(index: &Path) -> Result<Vec<IndexEntry>, ArchiveError> {
    let file = File::open(index).map_err(ArchiveError::at(index))?;
    let mut lines = Lines::new(file, 0);
    let mut entries = Vec::new();
    while let Some((offset, line)) = lines.next_line().map_err(ArchiveError::at(index))? {
        let entry = std::str::from_utf8(&line).ok().and_then(IndexEntry::parse);
        entries.push(
            entry.ok_or_else(|| ArchiveError::damaged(index, offset, "not a line of an index"))?,
        );
    }
    Ok(entries)
}

/// The entries of a sorted index that have a key, found by bisection.
pub(super) fn find_sorted(index: &Path, key: &str) -> Result<Vec<IndexEntry>, ArchiveError> {
    let file = File::open(index).map_err(ArchiveError::at(index))?;
    let start = first_not_before(&file, key).map_err(ArchiveError::at(index))?;
    let mut lines = Lines::new(file, start);
    let mut found = Vec::new();
    while let Some((offset, line)) = lines.next_line().map_err(ArchiveError::at(index))? {
        let damaged = || ArchiveError::damaged(index, offset, "not a line of an index");
        let line = std::str::from_utf8(&line).map_err(|_| damaged())?;
        if key_of(line) != key {
            break;
        }
        found.push(IndexEntry::parse(line).ok_or_else(damaged)?);
    }
    Ok(found)
}

/// The beginning of the first line whose key is not smaller than `key`.
fn first_not_before(file: &File, key: &str) -> io::Result<u64> {
    let (mut low, mut high) = (0, file.metadata()?.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let mut lines = Lines::new(file, line_start_after(file, middle)?);
        match lines.next_line()? {
            Some((start, line)) if start < high && key_bytes(&line) < key.as_bytes() => {
                low = start + line.len() as u64 + 1;
            }
            _ => high = middle,
        }
    }
    line_start_after(file, low)
}

/// The first line start at or after a position.
fn line_start_after(mut file: &File, position: u64) -> io::Result<u64> {
    let Some(before) = position.checked_sub(1) else {
        return Ok(0);
    };
    file.seek(SeekFrom::Start(before))?;
    let mut skipped = Vec::new();
    BufReader::new(file)
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', &mut skipped)?;
    Ok(before + skipped.len() as u64)
}

fn key_bytes(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b' ').next().unwrap_or_default()
}

/// Lines with their offsets, never more than [`MAX_LINE_BYTES`] of one in memory.
struct Lines<R> {
    reader: BufReader<R>,
    offset: u64,
}

impl<R: Read + Seek> Lines<R> {
    fn new(mut inner: R, offset: u64) -> Self {
        // A failed seek shows again at the first read.
        let _ = inner.seek(SeekFrom::Start(offset));
        Lines {
            reader: BufReader::new(inner),
            offset,
        }
    }

    fn next_line(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        let mut line = Vec::new();
        let read = self
            .reader
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)?;
        let start = self.offset;
        self.offset += read as u64;
        if read as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
            return Ok(Some((start, line)));
        }
        Ok(line.ends_with(b"\n").then(|| {
            line.pop();
            (start, line)
        }))
    }
}
