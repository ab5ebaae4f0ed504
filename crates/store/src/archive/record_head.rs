//! The named fields at the head of a WARC record, as they are written.

use super::{record_id::RecordId, timestamp::Timestamp};
use apoidea_model::Time;
use std::fmt::{Display, Write};

/// A head under construction.
#[derive(Debug)]
pub(super) struct RecordHead(String);

impl RecordHead {
    pub(super) fn new(kind: &str, id: RecordId, time: Time) -> Self {
        let mut text = String::with_capacity(640);
        text.push_str("WARC/1.1\r\n");
        RecordHead(text)
            .field("WARC-Type", kind)
            .field("WARC-Record-ID", id)
            .field("WARC-Date", Timestamp::from(time))
    }

    pub(super) fn field(mut self, name: &str, value: impl Display) -> Self {
        write!(self.0, "{name}: {value}\r\n").expect("writing to a string does not fail");
        self
    }

    pub(super) fn digest(self, name: &str, digest: &[u8; 32]) -> Self {
        self.field(name, digest_name(digest))
    }

    pub(super) fn finish(self, block_bytes: usize, out: &mut Vec<u8>) {
        let RecordHead(text) = self.field("Content-Length", block_bytes);
        out.clear();
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// A digest as records and indexes spell it. Hexadecimal, so that it can be compared with a content
/// hash by eye.
pub(super) fn digest_name(digest: &[u8; 32]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(71);
    text.push_str("sha256:");
    for byte in digest {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}
