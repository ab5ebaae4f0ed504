//! A web whose changes are known: pages, and the times at which each of them changed.

use flate2::read::GzDecoder;
use std::io::Read;

/// Largest history that is read, in bytes of text.
const MAX_BYTES: u64 = 1 << 30;
const DAY_SECONDS: f64 = 86_400.0;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The life of one page, in days since the first page began.
#[derive(Debug, Clone, PartialEq)]
pub struct PageLife {
    /// The first time that is known of it.
    pub born: f64,
    /// Its changes after that, in order.
    pub changes: Vec<f64>,
}

/// The lives of many pages of one site.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeRecord {
    /// The pages.
    pub pages: Vec<PageLife>,
    /// The last change of any, in days.
    pub end: f64,
}

/// The text is not a history of changes.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRecord {
    /// It cannot be unpacked.
    #[error("the file cannot be unpacked: {0}")]
    Packed(#[from] std::io::Error),
    /// A line has another form.
    #[error(
        "line {line} is not a page, a tab, and Unix times that rise, separated by commas: \
         such as `guide/<tab>1660578783,1661498746`"
    )]
    Line {
        /// The line, from 1.
        line: usize,
    },
    /// There are no pages, or nothing happens.
    #[error("the file names no two different times")]
    Empty,
}

impl ChangeRecord {
    /// Reads lines of a page, a tab, and the Unix times of its changes; packed with gzip or not.
    /// The first time of a page is taken for its beginning.
    pub fn read(bytes: &[u8]) -> Result<Self, InvalidRecord> {
        let mut text = String::new();
        match bytes.starts_with(&GZIP) {
            true => GzDecoder::new(bytes)
                .take(MAX_BYTES)
                .read_to_string(&mut text)?,
            false => bytes.take(MAX_BYTES).read_to_string(&mut text)?,
        };
        let mut lives: Vec<Vec<u64>> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let invalid = InvalidRecord::Line { line: index + 1 };
            let Some(times) = times_of(line) else {
                return Err(invalid);
            };
            lives.push(times);
        }
        let first = lives.iter().map(|times| times[0]).min();
        let last = lives.iter().filter_map(|times| times.last()).max();
        let (Some(first), Some(last)) = (first, last) else {
            return Err(InvalidRecord::Empty);
        };
        if first == *last {
            return Err(InvalidRecord::Empty);
        }
        let day = |time: u64| (time - first) as f64 / DAY_SECONDS;
        let end = day(*last);
        let life = |times: &Vec<u64>| PageLife {
            born: day(times[0]),
            changes: times[1..].iter().map(|&time| day(time)).collect(),
        };
        Ok(ChangeRecord {
            pages: lives.iter().map(life).collect(),
            end,
        })
    }

    /// Changes of all pages.
    pub fn changes(&self) -> usize {
        self.pages.iter().map(|page| page.changes.len()).sum()
    }
}

/// At least one time, in rising order.
fn times_of(line: &str) -> Option<Vec<u64>> {
    let (page, times) = line.split_once('\t')?;
    let times: Vec<u64> = times
        .split(',')
        .map(|time| time.trim().parse().ok())
        .collect::<Option<_>>()?;
    (!page.is_empty() && times.is_sorted()).then_some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_of_a_page_is_its_beginning() {
        let record = ChangeRecord::read(b"a\t86400,172800\nb\t259200\n").unwrap();
        assert_eq!(record.end, 2.0);
        assert_eq!(record.pages[0].changes, [1.0]);
        assert_eq!((record.pages[1].born, record.changes()), (2.0, 1));
    }

    #[test]
    fn a_line_of_another_form_is_named() {
        for bad in ["a", "a\t", "\t1", "a\t2,1", "a\tyesterday"] {
            let text = format!("ok\t1,2\n{bad}\n");
            let error = ChangeRecord::read(text.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with("line 2 "), "{bad:?}: {error}");
        }
        assert!(matches!(ChangeRecord::read(b""), Err(InvalidRecord::Empty)));
        assert!(matches!(
            ChangeRecord::read(b"a\t5"),
            Err(InvalidRecord::Empty)
        ));
        assert!(ChangeRecord::read(&[0x1f, 0x8b, 1]).is_err());
    }
}
