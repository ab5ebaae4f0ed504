//! One line of a CDXJ index: key, time, and where the record of a page lies.

use super::{
    Capture, CaptureKind, Record, record_head::digest_name, surt::surt, timestamp::Timestamp,
};
use apoidea_model::{PageUrl, Time};
use serde::{Deserialize, Serialize};

const REVISIT_MIME: &str = "warc/revisit";
const UNKNOWN_MIME: &str = "unk";

/// The entry of an index for one capture of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// The page.
    pub url: PageUrl,
    /// The time of the fetch, to the second.
    pub time: Time,
    /// Media type, or `warc/revisit`.
    pub mime: String,
    /// HTTP status; 0 if the server gave none.
    pub status: u16,
    /// Digest of the body, `sha256:` and hexadecimal digits.
    pub digest: String,
    /// The first byte of the response or revisit record in its file.
    pub offset: u64,
    /// Its compressed size in bytes.
    pub length: u64,
    /// The file's name.
    pub file: String,
}

/// The facts about a capture before its place is known.
#[derive(Debug, Clone)]
pub(super) struct IndexedAs {
    pub(super) url: PageUrl,
    pub(super) time: Time,
    mime: String,
    status: u16,
    digest: String,
}

/// The JSON part of a line; numbers are texts there by custom.
#[derive(Serialize, Deserialize)]
struct Fields {
    url: String,
    mime: String,
    status: String,
    digest: String,
    length: String,
    offset: String,
    filename: String,
}

impl IndexedAs {
    pub(super) fn of(capture: &Capture, digest: &[u8; 32]) -> Self {
        let mime = match capture.kind {
            CaptureKind::Response => capture.response.media_type(),
            CaptureKind::Revisit { .. } | CaptureKind::NotModified { .. } => {
                Some(REVISIT_MIME.to_owned())
            }
        };
        let digest = match capture.kind {
            CaptureKind::NotModified { .. } => String::new(),
            CaptureKind::Response | CaptureKind::Revisit { .. } => digest_name(digest),
        };
        IndexedAs {
            url: capture.url.clone(),
            time: capture.time,
            mime: mime.unwrap_or_else(|| UNKNOWN_MIME.to_owned()),
            status: capture.response.status().unwrap_or(0),
            digest,
        }
    }

    /// The same, of a record that was read back.
    pub(super) fn of_record(record: &Record) -> Option<Self> {
        let (head, _) = record.http()?;
        let is_revisit = record.kind == "revisit";
        let mime = if is_revisit {
            Some(REVISIT_MIME.to_owned())
        } else {
            head.media_type()
        };
        Some(IndexedAs {
            url: record.url.clone()?,
            time: record.time,
            mime: mime.unwrap_or_else(|| UNKNOWN_MIME.to_owned()),
            status: head.status().unwrap_or(0),
            digest: record
                .field("WARC-Payload-Digest")
                .unwrap_or_default()
                .to_owned(),
        })
    }

    pub(super) fn at(&self, file: &str, offset: u64, length: u64) -> IndexEntry {
        let IndexedAs {
            url,
            time,
            mime,
            status,
            digest,
        } = self.clone();
        IndexEntry {
            url,
            time,
            mime,
            status,
            digest,
            offset,
            length,
            file: file.to_owned(),
        }
    }
}

impl IndexEntry {
    /// Whether the record has no body and leads to another.
    pub fn is_revisit(&self) -> bool {
        self.mime == REVISIT_MIME
    }

    /// The line without its end.
    pub(super) fn line(&self) -> String {
        let fields = Fields {
            url: self.url.to_string(),
            mime: self.mime.clone(),
            status: self.status.to_string(),
            digest: self.digest.clone(),
            length: self.length.to_string(),
            offset: self.offset.to_string(),
            filename: self.file.clone(),
        };
        let json = serde_json::to_string(&fields).expect("texts always serialise");
        format!(
            "{} {} {json}",
            surt(&self.url),
            Timestamp::from(self.time).digits()
        )
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, ' ');
        let (_, digits, json) = (parts.next()?, parts.next()?, parts.next()?);
        let fields: Fields = serde_json::from_str(json).ok()?;
        Some(IndexEntry {
            url: PageUrl::parse(&fields.url).ok()?,
            time: Timestamp::parse(digits)?.into(),
            mime: fields.mime,
            status: fields.status.parse().ok()?,
            digest: fields.digest,
            offset: fields.offset.parse().ok()?,
            length: fields.length.parse().ok()?,
            file: fields.filename,
        })
    }
}

/// The key that a line is sorted by.
pub(super) fn key_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_back_as_it_was_written() {
        let entry = IndexEntry {
            url: PageUrl::parse("http://example.com/a%20b?\"c").unwrap(),
            time: Time::from_millis(1_700_000_000_000),
            mime: "text/html".to_owned(),
            status: 200,
            digest: "sha256:00".to_owned(),
            offset: 5,
            length: 6,
            file: "x.warc.gz".to_owned(),
        };
        let line = entry.line();
        assert!(
            line.starts_with("com,example)/a%20b?%22c 20231114221320 {\"url\":\"http"),
            "{line}"
        );
        assert_eq!(IndexEntry::parse(&line), Some(entry));
        for end in 0..line.len() {
            assert_eq!(IndexEntry::parse(&line[..end]), None);
        }
    }
}
