//! Captures to WARC/1.1 records, each one gzip member.
//!
//! Bodies are stored decoded, so the headers that described the encoding are renamed and the length
//! rewritten, as Common Crawl does; a reader then needs nothing but the record. Compression state
//! and buffers are reused, since setting them up costs as much as compressing a small record.

use super::{
    Capture, CaptureKind, Head,
    gzip::{Gzip, KEPT_BYTES},
    index_entry::IndexedAs,
    record_head::RecordHead,
    record_id::{RecordId, RecordIds},
    timestamp::Timestamp,
};
use apoidea_model::Time;
use sha2::{Digest, Sha256};
use std::fmt;

const SAME_DIGEST_PROFILE: &str =
    "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED_PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";
const FORMAT_URL: &str =
    "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/";

/// Makes records; one per thread.
pub struct Encoder {
    ids: RecordIds,
    gzip: Gzip,
    head: Vec<u8>,
    block: Vec<u8>,
    /// The records of the capture at hand, so that what is handed out is no larger than they are.
    records: Vec<u8>,
}

/// The records of one capture, ready to be appended.
#[derive(Debug, Clone)]
pub struct EncodedRecords {
    pub(super) bytes: Vec<u8>,
    pub(super) indexed: IndexedAs,
    /// The offset of the response or revisit record in `bytes`.
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl EncodedRecords {
    /// Bytes that they take in the archive.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never: a capture has at least a request and a response.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("ids", &self.ids)
            .finish_non_exhaustive()
    }
}

impl Encoder {
    /// An encoder whose record names come from `seed`, which must be random and used for no other.
    pub fn new(seed: [u8; 32]) -> Self {
        Encoder {
            ids: RecordIds::new(seed),
            gzip: Gzip::new(),
            head: Vec::new(),
            block: Vec::new(),
            records: Vec::new(),
        }
    }

    pub(super) fn encode(&mut self, capture: &Capture) -> EncodedRecords {
        let digest = capture
            .digest
            .unwrap_or_else(|| Sha256::digest(&capture.body).into());
        let id = self.ids.draw();
        self.records.clear();
        self.add_request(capture, id);
        let offset = self.records.len();
        match &capture.kind {
            CaptureKind::Response => self.add_response(capture, id, &digest),
            CaptureKind::Revisit { url, time } => {
                self.add_revisit(capture, (url.as_str(), *time), id, &digest);
            }
            CaptureKind::NotModified { captured } => self.add_not_modified(capture, *captured, id),
        }
        let length = self.records.len() - offset;
        self.add_metadata(capture, id);
        EncodedRecords {
            bytes: self.taken(),
            indexed: IndexedAs::of(capture, &digest),
            offset: offset as u64,
            length: length as u64,
        }
    }

    /// The record at the head of a file, which says how it was made.
    pub(super) fn warcinfo(&mut self, file: &str, software: &str, time: Time) -> Vec<u8> {
        self.records.clear();
        let head = RecordHead::new("warcinfo", self.ids.draw(), time)
            .field("WARC-Filename", file)
            .field("Content-Type", "application/warc-fields");
        self.block.clear();
        push_field(&mut self.block, "software", software);
        push_field(&mut self.block, "format", "WARC File Format 1.1");
        push_field(&mut self.block, "conformsTo", FORMAT_URL);
        push_field(&mut self.block, "robots", "obey");
        self.add_block(head);
        self.taken()
    }

    fn add_request(&mut self, capture: &Capture, response: RecordId) {
        let head = self.head_of("request", capture, None);
        let head = head
            .field("WARC-Concurrent-To", response)
            .field("Content-Type", "application/http; msgtype=request");
        let head = with_address(head, capture);
        self.block.clear();
        push_head(&mut self.block, &capture.request);
        self.add_block(head);
    }

    fn add_response(&mut self, capture: &Capture, id: RecordId, digest: &[u8; 32]) {
        let head = self.head_of("response", capture, Some(id));
        let head = head.field("Content-Type", "application/http; msgtype=response");
        let head = with_truncation(with_address(head, capture), capture)
            .digest("WARC-Payload-Digest", digest);
        self.block.clear();
        push_decoded_head(&mut self.block, &capture.response, capture.body.len());
        self.add_record(head, &capture.body);
    }

    fn add_revisit(
        &mut self,
        capture: &Capture,
        original: (&str, Time),
        id: RecordId,
        digest: &[u8; 32],
    ) {
        let head = self.head_of("revisit", capture, Some(id));
        let head = head
            .field("Content-Type", "application/http; msgtype=response")
            .field("WARC-Profile", SAME_DIGEST_PROFILE)
            .field("WARC-Refers-To-Target-URI", original.0)
            .field("WARC-Refers-To-Date", Timestamp::from(original.1));
        let head = with_truncation(with_address(head, capture), capture)
            .digest("WARC-Payload-Digest", digest);
        self.block.clear();
        push_decoded_head(&mut self.block, &capture.response, capture.body.len());
        self.add_block(head);
    }

    /// The digest is left out: it would be that of the missing body.
    fn add_not_modified(&mut self, capture: &Capture, captured: Option<Time>, id: RecordId) {
        let mut head = self
            .head_of("revisit", capture, Some(id))
            .field("Content-Type", "application/http; msgtype=response")
            .field("WARC-Profile", NOT_MODIFIED_PROFILE);
        if let Some(captured) = captured {
            head = head
                .field("WARC-Refers-To-Target-URI", &capture.url)
                .field("WARC-Refers-To-Date", Timestamp::from(captured));
        }
        self.block.clear();
        push_head(&mut self.block, &capture.response);
        self.add_block(with_address(head, capture));
    }

    fn add_metadata(&mut self, capture: &Capture, response: RecordId) {
        if capture.metadata.is_empty() && capture.outlinks.is_empty() {
            return;
        }
        let head = self.head_of("metadata", capture, None);
        let head = head
            .field("WARC-Concurrent-To", response)
            .field("Content-Type", "application/warc-fields");
        self.block.clear();
        for (name, value) in &capture.metadata {
            push_field(&mut self.block, name, value);
        }
        for link in &capture.outlinks {
            push_field(&mut self.block, "outlink", link.as_str());
        }
        self.add_block(head);
    }

    fn head_of(&mut self, kind: &str, capture: &Capture, id: Option<RecordId>) -> RecordHead {
        let id = id.unwrap_or_else(|| self.ids.draw());
        RecordHead::new(kind, id, capture.time).field("WARC-Target-URI", &capture.url)
    }

    /// Compresses a head and `self.block` into one member.
    fn add_block(&mut self, head: RecordHead) {
        let digest = Sha256::digest(&self.block).into();
        self.add_record(head.digest("WARC-Block-Digest", &digest), b"");
    }

    /// The same with a body behind the block. Such a record has no digest of its block: that of the
    /// payload covers all that matters, and hashing every page once more is a twentieth of what a
    /// page costs.
    fn add_record(&mut self, head: RecordHead, body: &[u8]) {
        head.finish(self.block.len() + body.len(), &mut self.head);
        self.gzip.member(
            &[&self.head, &self.block, body, b"\r\n\r\n"],
            &mut self.records,
        );
    }

    /// The records made so far, in memory of exactly their size.
    fn taken(&mut self) -> Vec<u8> {
        let records = self.records.clone();
        self.records.shrink_to(KEPT_BYTES);
        records
    }
}

fn with_address(head: RecordHead, capture: &Capture) -> RecordHead {
    match capture.address {
        Some(address) => head.field("WARC-IP-Address", address),
        None => head,
    }
}

fn with_truncation(head: RecordHead, capture: &Capture) -> RecordHead {
    match capture.truncation {
        Some(truncation) => head.field("WARC-Truncated", truncation.name()),
        None => head,
    }
}

fn push_head(block: &mut Vec<u8>, head: &Head) {
    push_line(block, head.first_line.as_bytes());
    for (name, value) in &head.headers {
        push_header(block, name, value);
    }
    block.extend_from_slice(b"\r\n");
}

/// The head as it would have been if the server had sent the body unencoded.
fn push_decoded_head(block: &mut Vec<u8>, head: &Head, body_bytes: usize) {
    push_line(block, head.first_line.as_bytes());
    for (name, value) in &head.headers {
        match name.to_ascii_lowercase().as_str() {
            "content-encoding" => push_header(block, "X-Crawler-Content-Encoding", value),
            "transfer-encoding" => push_header(block, "X-Crawler-Transfer-Encoding", value),
            "content-length" => push_header(block, "X-Crawler-Content-Length", value),
            _ => push_header(block, name, value),
        }
    }
    push_header(block, "Content-Length", body_bytes.to_string().as_bytes());
    block.extend_from_slice(b"\r\n");
}

fn push_header(block: &mut Vec<u8>, name: &str, value: &[u8]) {
    push_without_breaks(block, name.as_bytes());
    block.extend_from_slice(b": ");
    push_line(block, value);
}

fn push_field(block: &mut Vec<u8>, name: &str, value: &str) {
    push_header(block, name, value.as_bytes());
}

fn push_line(block: &mut Vec<u8>, text: &[u8]) {
    push_without_breaks(block, text);
    block.extend_from_slice(b"\r\n");
}

/// A line break inside a stranger's header would let it forge the headers that follow.
fn push_without_breaks(block: &mut Vec<u8>, text: &[u8]) {
    let replaced = text.iter().map(|&byte| {
        if matches!(byte, b'\r' | b'\n' | 0) {
            b' '
        } else {
            byte
        }
    });
    block.extend(replaced);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::archive::{
        Reader, Record, Truncation,
        capture::tests::{encoder, page, url},
        record_head::digest_name,
    };
    use std::{env, fs, path::Path, process::Command};

    /// The checks of `warcio check`, and `warcio check` itself where `APOIDEA_WARCIO` names it.
    pub(crate) fn check(file: &Path) -> Vec<Record> {
        let records: Vec<Record> = Reader::records(file).unwrap().map(Result::unwrap).collect();
        assert_eq!(records[0].kind, "warcinfo");
        records.iter().for_each(check_digests);
        if let Some(warcio) = env::var_os("APOIDEA_WARCIO") {
            let output = Command::new(warcio)
                .arg("check")
                .arg("-v")
                .arg(file)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{text}");
            assert_eq!(text.matches("  offset ").count(), records.len(), "{text}");
        }
        records
    }

    fn check_digests(record: &Record) {
        let digest = |bytes: &[u8]| digest_name(&Sha256::digest(bytes).into());
        let (field, bytes) = match record.kind.as_str() {
            "response" => ("WARC-Payload-Digest", record.http().unwrap().1),
            _ => ("WARC-Block-Digest", &record.block[..]),
        };
        assert_eq!(record.field(field), Some(digest(bytes).as_str()));
    }

    fn records_of(capture: &Capture) -> Vec<Record> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.warc.gz");
        let mut encoder = encoder();
        let mut bytes = encoder.warcinfo("x.warc.gz", "test", capture.time);
        bytes.extend(capture.encode(&mut encoder).bytes);
        fs::write(&file, bytes).unwrap();
        check(&file).split_off(1)
    }

    #[test]
    fn a_page_becomes_request_response_and_metadata() {
        let capture = page("https://a.example/x?y", 0, "<p>hello</p>");
        let records = records_of(&capture);
        let kinds: Vec<&str> = records.iter().map(|record| record.kind.as_str()).collect();
        assert_eq!(kinds, ["request", "response", "metadata"]);
        for record in &records {
            assert_eq!(
                (record.url.as_ref(), record.time),
                (Some(&capture.url), capture.time)
            );
        }
        let response = &records[1];
        assert_eq!(response.field("warc-ip-address"), Some("192.0.2.7"));
        for other in [&records[0], &records[2]] {
            assert_eq!(
                other.field("WARC-Concurrent-To"),
                response.field("WARC-Record-ID")
            );
            assert_ne!(
                other.field("WARC-Record-ID"),
                response.field("WARC-Record-ID")
            );
        }
        assert_eq!(
            records[2].block,
            b"fetchTimeMs: 12\r\noutlink: https://a.example/next\r\n"
        );
    }

    #[test]
    fn the_head_describes_the_decoded_body_and_cannot_be_forged() {
        let records = records_of(&page("http://a.example/", 0, "<p>hello</p>"));
        let (head, body) = records[1].http().unwrap();
        assert_eq!(body, b"<p>hello</p>");
        assert_eq!(head.status(), Some(200));
        assert_eq!(head.header("content-length"), Some(&b"12"[..]));
        assert_eq!(head.header("content-encoding"), None);
        assert_eq!(
            head.header("x-crawler-content-encoding"),
            Some(&b"gzip"[..])
        );
        assert_eq!(head.header("x-forged"), Some(&b"a  Content-Type: evil"[..]));
    }

    #[test]
    fn known_content_becomes_a_revisit_without_body() {
        let mut capture = page("http://a.example/copy", 9, "<p>hello</p>");
        let original = url("http://b.example/");
        capture.kind = CaptureKind::Revisit {
            url: original,
            time: Time::from_millis(0),
        };
        let revisit = records_of(&capture).swap_remove(1);
        assert_eq!(revisit.kind, "revisit");
        assert_eq!(
            revisit.field("WARC-Refers-To-Target-URI"),
            Some("http://b.example/")
        );
        assert_eq!(
            revisit.field("WARC-Refers-To-Date"),
            Some("1970-01-01T00:00:00Z")
        );
        assert!(revisit.block.ends_with(b"\r\n\r\n"));
    }

    #[test]
    fn an_answer_without_body_becomes_a_revisit_of_the_same_page() {
        let mut capture = page("http://a.example/", 9, "");
        capture.response.first_line = "HTTP/1.1 304 Not Modified".to_owned();
        let not_modified = |captured| {
            let mut capture = capture.clone();
            capture.kind = CaptureKind::NotModified { captured };
            records_of(&capture).swap_remove(1)
        };
        let revisit = not_modified(Some(Time::from_millis(0)));
        assert_eq!(revisit.kind, "revisit");
        assert_eq!(revisit.field("WARC-Profile"), Some(NOT_MODIFIED_PROFILE));
        assert_eq!(revisit.field("WARC-Payload-Digest"), None);
        let target = revisit.field("WARC-Refers-To-Target-URI");
        assert_eq!(target, Some("http://a.example/"));
        let date = revisit.field("WARC-Refers-To-Date");
        assert_eq!(date, Some("1970-01-01T00:00:00Z"));
        let (head, body) = revisit.http().unwrap();
        assert_eq!((head.status(), body), (Some(304), &b""[..]));
        assert_eq!(not_modified(None).field("WARC-Refers-To-Date"), None);
    }

    #[test]
    fn a_cut_body_says_so_and_a_known_digest_is_taken() {
        let mut capture = page("http://a.example/", 0, "");
        capture.truncation = Some(Truncation::Length);
        capture.digest = Some(Sha256::digest(b"").into());
        let response = records_of(&capture).swap_remove(1);
        assert_eq!(response.field("WARC-Truncated"), Some("length"));
    }

    #[test]
    fn large_and_incompressible_bodies_survive() {
        let mut seed = 1u64;
        let noise: Vec<u8> = (0..2_000_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 56) as u8
            })
            .collect();
        let mut capture = page("http://a.example/", 0, "");
        capture.body = noise.clone().into();
        assert_eq!(records_of(&capture)[1].http().unwrap().1, noise);
    }
}
