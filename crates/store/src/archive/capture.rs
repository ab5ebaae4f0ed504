//! A page as it was fetched: what goes into the archive.

use super::{EncodedRecords, Encoder};
use apoidea_model::{PageUrl, Time};
use bytes::Bytes;
use std::net::IpAddr;

/// One exchange with a web server.
#[derive(Debug, Clone)]
pub struct Capture {
    /// The page.
    pub url: PageUrl,
    /// The time of the fetch.
    pub time: Time,
    /// The server's address.
    pub address: Option<IpAddr>,
    /// The request as it was sent.
    pub request: Head,
    /// The answer, as the server spelled it.
    pub response: Head,
    /// The body with transfer and content encodings undone.
    pub body: Bytes,
    /// SHA-256 of `body`, where it is known already; see
    /// [`ContentHash::with_digest`](apoidea_model::ContentHash).
    pub digest: Option<[u8; 32]>,
    /// The novelty of the content, which decides what is kept.
    pub kind: CaptureKind,
    /// The reason why the body is not whole, if it is not.
    pub truncation: Option<Truncation>,
    /// The links found on the page.
    pub outlinks: Vec<PageUrl>,
    /// Further facts by name, such as `fetchTimeMs` or `Content-Usage`.
    pub metadata: Vec<(String, String)>,
}

/// First line and headers of an HTTP message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// `GET /path HTTP/1.1` or `HTTP/1.1 200 OK`.
    pub first_line: String,
    /// Names and values in their order.
    pub headers: Vec<(String, Vec<u8>)>,
}

/// New content is kept; for known content only the fact that it is there still, or again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureKind {
    /// A response record with the body.
    Response,
    /// A revisit record without it, which names the page that had the content first.
    Revisit {
        /// That page.
        url: PageUrl,
        /// The time of the fetch.
        time: Time,
    },
    /// A revisit record for an answer that says "not modified" and so has no body.
    NotModified {
        /// The time of the page's own capture with the content, if there is one.
        captured: Option<Time>,
    },
}

/// The reason why a body is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    /// It was longer than we keep.
    Length,
    /// It took longer than we wait.
    Time,
    /// The connection ended early.
    Disconnect,
}

impl Capture {
    /// Turns the capture into compressed records, on any thread. Appending them is then only a
    /// write.
    pub fn encode(&self, encoder: &mut Encoder) -> EncodedRecords {
        encoder.encode(self)
    }
}

impl Head {
    /// The first value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let mut headers = self.headers.iter();
        headers
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| &value[..])
    }

    /// The status code in the first line of a response.
    pub fn status(&self) -> Option<u16> {
        self.first_line.split(' ').nth(1)?.parse().ok()
    }

    /// The media type without parameters, in lower case.
    pub fn media_type(&self) -> Option<String> {
        let value = String::from_utf8_lossy(self.header("content-type")?).into_owned();
        let essence = value.split(';').next()?.trim().to_ascii_lowercase();
        let is_token = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
        (!essence.is_empty() && essence.chars().all(is_token)).then_some(essence)
    }
}

impl Truncation {
    /// As in `WARC-Truncated`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Truncation::Length => "length",
            Truncation::Time => "time",
            Truncation::Disconnect => "disconnect",
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn url(text: &str) -> PageUrl {
        PageUrl::parse(text).unwrap()
    }

    pub(crate) fn encoder() -> Encoder {
        Encoder::new([7; 32])
    }

    /// A page as a server might have sent it, compressed and chunked.
    pub(crate) fn page(address: &str, seconds: u64, body: &str) -> Capture {
        let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        let url = url(address);
        Capture {
            time: Time::from_millis((1_700_000_000 + seconds) * 1000),
            address: Some("192.0.2.7".parse().unwrap()),
            request: Head {
                first_line: format!("GET {} HTTP/1.1", url.path_and_query()),
                headers: vec![header("Host", url.host()), header("User-Agent", "Apoidea")],
            },
            response: Head {
                first_line: "HTTP/1.1 200 OK".to_owned(),
                headers: vec![
                    header("Content-Type", "text/HTML; charset=utf-8"),
                    header("Content-Encoding", "gzip"),
                    header("Content-Length", "11"),
                    header("X-Forged", "a\r\nContent-Type: evil"),
                ],
            },
            body: Bytes::copy_from_slice(body.as_bytes()),
            digest: None,
            kind: CaptureKind::Response,
            truncation: None,
            outlinks: vec![url.join("next").unwrap()],
            metadata: vec![("fetchTimeMs".to_owned(), "12".to_owned())],
            url,
        }
    }

    #[test]
    fn a_media_type_that_is_none_is_left_out() {
        let head = |value: &[u8]| Head {
            headers: vec![("content-type".to_owned(), value.to_vec())],
            ..Head::default()
        };
        assert_eq!(
            head(b"Text/HTML ; x=y").media_type().as_deref(),
            Some("text/html")
        );
        for bad in [&b""[..], b"a b", b"\xff", b"\"", b";"] {
            assert_eq!(head(bad).media_type(), None, "{bad:?}");
        }
    }
}
