//! One GET request: where it goes, what is wanted, and the head that is sent and archived.
//!
//! Head and request are made from one list of headers, so that the archive holds what the server
//! got.

use crate::fetcher::USER_AGENT;
use apoidea_crawl::Connection;
use apoidea_model::{PageUrl, Pending, Target, Validators, Visit};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::net::IpAddr;

/// The types that are asked for.
const ACCEPTED: &str = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.1";
/// The encodings that are understood.
const ACCEPTED_ENCODINGS: &str = "gzip, br";

/// A request for one URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebRequest {
    /// The page.
    pub url: PageUrl,
    /// The address to connect to, which has been checked.
    pub address: IpAddr,
    /// The bodies that are worth reading.
    pub wanted: Wanted,
    /// The fate of the connection afterwards.
    pub connection: Connection,
    /// The version that is known already; the server is asked for another one only.
    pub known: Validators,
}

/// The bodies that are worth reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// HTML and what may be HTML.
    Page,
    /// robots.txt, sitemaps: any type.
    Anything,
}

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestHead {
    /// Method, path and version.
    pub first_line: String,
    /// Names and values, in the order in which they are sent.
    pub headers: Vec<(String, Vec<u8>)>,
}

impl WebRequest {
    /// The visit that a pending URL waits for, with the conditions that the last visit left.
    pub fn of_visit(pending: &Pending, address: IpAddr, connection: Connection) -> Self {
        let wanted = match pending.target {
            Target::Page => Wanted::Page,
            Target::Sitemap => Wanted::Anything,
        };
        let known = match &pending.visit {
            Visit::First => Validators::default(),
            Visit::Again(previous) => previous.validators.clone(),
        };
        WebRequest {
            url: pending.url.clone(),
            address,
            wanted,
            connection,
            known,
        }
    }

    /// A request for a file of any type, whatever is known of it.
    pub fn of_file(url: PageUrl, address: IpAddr, connection: Connection) -> Self {
        WebRequest {
            url,
            address,
            wanted: Wanted::Anything,
            connection,
            known: Validators::default(),
        }
    }

    /// The head exactly as it is sent.
    pub fn head(&self) -> RequestHead {
        let headers = self.headers().into_iter();
        RequestHead {
            first_line: format!("GET {} HTTP/1.1", self.url.path_and_query()),
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.into_bytes()))
                .collect(),
        }
    }

    /// The headers as the client takes them. A value that it would not take is left out.
    pub(crate) fn header_map(&self) -> HeaderMap {
        let header = |(name, value): (&str, String)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(&value).ok()?))
        };
        self.headers().into_iter().filter_map(header).collect()
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let origin = self.url.origin();
        let authority = origin.split_once("//").map_or("", |(_, rest)| rest);
        let mut headers = vec![
            ("Host", authority.to_owned()),
            ("User-Agent", USER_AGENT.to_owned()),
            ("Accept", ACCEPTED.to_owned()),
            ("Accept-Encoding", ACCEPTED_ENCODINGS.to_owned()),
        ];
        headers.extend(self.known.condition());
        if self.connection == Connection::Close {
            headers.push(("Connection", "close".to_owned()));
        }
        headers
    }
}

impl RequestHead {
    /// Bytes that the head takes on the wire.
    pub fn bytes(&self) -> u64 {
        let lines = self.headers.iter();
        let lines = lines.map(|(name, value)| name.len() + value.len() + ": \r\n".len());
        (self.first_line.len() + lines.sum::<usize>() + 2 * "\r\n".len()) as u64
    }
}
