//! What is made of a page: its content hash, its links, its archive records. Pure work on bytes, on
//! any thread.

use crate::{
    body::{Body, Extent},
    content::Verdict,
    fetch::{self, Response},
    recent_links::RecentLinks,
};
use apoidea_crawl::{Directives, Extracted, Permission, Sitemap, extract};
use apoidea_model::{Link, PageUrl, Pending, Target, Time};
use apoidea_store::archive::{Capture, CaptureKind, EncodedRecords, Encoder, Head, Truncation};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use std::{
    ops::BitAnd,
    sync::{Mutex, PoisonError},
};

/// A page that was fetched and decoded.
#[derive(Debug)]
pub(crate) struct FetchedPage {
    pub pending: Pending,
    pub response: Response,
    pub body: Body,
    /// SHA-256 of the body, where it is known.
    pub digest: Option<[u8; 32]>,
    pub time: Time,
}

/// What a page came to.
#[derive(Debug)]
pub(crate) struct ProcessedPage {
    /// Links to be considered, without those settled lately.
    pub links: Vec<Link>,
    /// Links found in all.
    pub link_count: u64,
    /// Archive records, if the page may be kept.
    pub records: Option<EncodedRecords>,
    /// The page.
    pub url: PageUrl,
    /// Bytes of its body.
    pub bytes: u64,
    /// Milliseconds that the fetch took.
    pub millis: u64,
}

/// Does the work.
pub(crate) struct Processor {
    archive: Option<Encoders>,
    recent: RecentLinks,
}

impl Processor {
    pub(crate) fn new(keep_archive: bool) -> Self {
        Processor {
            archive: keep_archive.then(Encoders::default),
            recent: RecentLinks::new(),
        }
    }

    /// The links settled lately.
    pub(crate) fn recent(&self) -> &RecentLinks {
        &self.recent
    }

    /// A new page is read and kept; of a known one, only that it was seen.
    pub(crate) fn process(&self, page: &FetchedPage, verdict: &Verdict) -> ProcessedPage {
        let headers = &page.response.headers;
        let content_type = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let found = match verdict {
            Verdict::New => extract(&page.pending.url, content_type, &page.body.bytes),
            Verdict::Known(_) => Extracted::default(),
        };
        let directives = header_directives(headers) & found.directives;
        let may_follow = directives.follow == Permission::Allowed;
        let links = if may_follow {
            self.new_links(&found.links, page.pending.depth)
        } else {
            Vec::new()
        };
        let may_keep =
            directives.index == Permission::Allowed && directives.archive == Permission::Allowed;
        let link_count = found.links.len();
        let encoders = self.archive.as_ref().filter(|_| may_keep);
        let records = encoders.map(|encoders| encoders.encode(&capture(page, found, verdict)));
        ProcessedPage::new(page, links, link_count, records)
    }

    /// The URLs that a sitemap lists, of its own site only (sitemaps.org: no one speaks for another
    /// host).
    pub(crate) fn read_sitemap(&self, page: &FetchedPage) -> ProcessedPage {
        let links = self.listed(&page.pending.url, page.pending.depth, &page.body);
        let count = links.len();
        ProcessedPage::new(page, links, count, None)
    }

    fn listed(&self, sitemap: &PageUrl, depth: u16, body: &Body) -> Vec<Link> {
        let listed = Sitemap::parse(&body.bytes);
        let site = sitemap.domain();
        let is_own = |url: &PageUrl| url.domain().site() == site.site();
        let pages = listed.pages.into_iter().map(|url| (url, Target::Page));
        let sitemaps = listed
            .sitemaps
            .into_iter()
            .map(|url| (url, Target::Sitemap));
        let own = pages
            .chain(sitemaps)
            .filter(|(url, _)| is_own(url) && !self.recent.contains(url));
        own.map(|(url, target)| Link {
            url,
            depth: depth + 1,
            target,
        })
        .collect()
    }

    fn new_links(&self, found: &[PageUrl], depth: u16) -> Vec<Link> {
        let new = found.iter().filter(|url| !self.recent.contains(url));
        new.map(|url| Link {
            url: url.clone(),
            depth: depth + 1,
            target: Target::Page,
        })
        .collect()
    }
}

impl ProcessedPage {
    fn new(
        page: &FetchedPage,
        links: Vec<Link>,
        link_count: usize,
        records: Option<EncodedRecords>,
    ) -> Self {
        ProcessedPage {
            links,
            link_count: link_count as u64,
            records,
            url: page.pending.url.clone(),
            bytes: page.body.bytes.len() as u64,
            millis: u64::try_from(page.response.elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// `X-Robots-Tag` of every header line.
fn header_directives(headers: &HeaderMap) -> Directives {
    let values = headers
        .get_all("x-robots-tag")
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .map(Directives::from_header)
        .fold(Directives::default(), BitAnd::bitand)
}

fn capture(page: &FetchedPage, found: Extracted, verdict: &Verdict) -> Capture {
    let Response {
        status,
        headers,
        address,
        elapsed,
        ..
    } = &page.response;
    let mut metadata = vec![("fetchTimeMs".to_owned(), elapsed.as_millis().to_string())];
    metadata.extend(found.title.map(|title| ("title".to_owned(), title)));
    metadata.extend(
        found
            .language
            .map(|language| ("language".to_owned(), language)),
    );
    let usage = headers
        .get("content-usage")
        .and_then(|value| value.to_str().ok());
    metadata.extend(usage.map(|usage| ("Content-Usage".to_owned(), usage.to_owned())));
    let reason = reqwest::StatusCode::from_u16(*status)
        .ok()
        .and_then(|status| status.canonical_reason());
    let first_line = format!("HTTP/1.1 {status} {}", reason.unwrap_or_default());
    let kind = match verdict {
        Verdict::New => CaptureKind::Response,
        Verdict::Known(fact) => CaptureKind::Revisit {
            url: fact.page.clone(),
            time: fact.time,
        },
    };
    Capture {
        url: page.pending.url.clone(),
        time: page.time,
        address: Some(*address),
        request: fetch::request_head(&page.pending.url),
        response: Head {
            first_line,
            headers: headers.iter().map(header).collect(),
        },
        digest: page.digest,
        body: page.body.bytes.clone(),
        kind,
        truncation: (page.body.extent == Extent::Truncated).then_some(Truncation::Length),
        outlinks: found.links,
        metadata,
    }
}

/// Names as servers usually spell them; the client only knows them in lower case.
fn header((name, value): (&HeaderName, &reqwest::header::HeaderValue)) -> (String, Vec<u8>) {
    let mut spelled = name.as_str().to_owned();
    let mut upper = true;
    // Header names are ASCII, so bytes and characters agree.
    let capitals = spelled
        .char_indices()
        .filter(|&(_, c)| std::mem::replace(&mut upper, c == '-'));
    let capitals: Vec<usize> = capitals.map(|(at, _)| at).collect();
    capitals
        .iter()
        .for_each(|&at| spelled[at..=at].make_ascii_uppercase());
    (spelled, value.as_bytes().to_vec())
}

/// Encoders that are not in use; as many as threads ever encoded at once.
#[derive(Default)]
struct Encoders(Mutex<Vec<Encoder>>);

impl Encoders {
    fn encode(&self, capture: &Capture) -> EncodedRecords {
        let mut encoder = self
            .idle()
            .pop()
            .unwrap_or_else(|| Encoder::new(rand::random()));
        let records = capture.encode(&mut encoder);
        self.idle().push(encoder);
        records
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Encoder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
