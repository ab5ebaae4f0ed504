//! The processing of one page: its links and its archive records. Pure work on bytes, on any thread.

use crate::lock::lock;
use crate::page::{
    changed_text::ChangedText,
    content::Verdict,
    recent_links::RecentLinks,
    visited::{Kept, Told, Visited},
};
use apoidea_crawl::{Directives, Extracted, Permission, Sitemap, extract_with_text};
use apoidea_fetch::{
    RequestHead, Response,
    body::{Body, Extent},
};
use apoidea_model::{
    ContentHash, ContentMark, CrawlId, Link, PageUrl, PeerId, Pending, Target, Time, Validators,
    Visit,
};
use apoidea_store::archive::{Capture, CaptureKind, EncodedRecords, Encoder, Head, Truncation};
use reqwest::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED};
use serde::{Deserialize, Serialize};
use std::{ops::BitAnd, sync::Mutex, time::Duration};

/// Changes that one reading of a list tells at most.
const MAX_HINTS: usize = 5_000;
const DAY: Duration = Duration::from_secs(86_400);

/// A page that was fetched and decoded.
#[derive(Debug)]
pub(crate) struct FetchedPage {
    pub pending: Pending,
    pub response: Response,
    pub body: Body,
    /// The hash of its content.
    pub content: ContentHash,
    /// SHA-256 of the body, where it is known.
    pub digest: Option<[u8; 32]>,
    pub time: Time,
}

/// The result of processing a page.
#[derive(Debug)]
pub(crate) struct ProcessedPage {
    /// Links to be considered, without those looked at lately.
    pub links: Vec<Link>,
    /// Links found in all.
    pub link_count: u64,
    /// Archive records, if the page may be kept.
    pub records: Option<EncodedRecords>,
    /// The page.
    pub url: PageUrl,
    /// Links followed from a seed to it.
    pub depth: u16,
    /// The kind of document that it is.
    pub target: Target,
    /// The crawl of the page, and so of all its links.
    pub crawl: CrawlId,
    /// The visit that this was.
    pub visit: Visit,
    /// The facts for the next visit.
    pub visited: Option<Visited>,
    /// Pages that a list says have changed, with the time that it names.
    pub hints: Vec<(PageUrl, Time)>,
    /// The text of a watched page that has changed.
    pub changed: Option<ChangedText>,
    /// The peer that fetched it, if it was not this one.
    pub helper: Option<PeerId>,
    /// Bytes of its body.
    pub bytes: u64,
    /// Milliseconds that the fetch took.
    pub millis: u64,
    /// Its kind.
    pub kind: PageKind,
}

/// The kind of a processed page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PageKind {
    /// A page whose content nobody had shown before.
    New,
    /// A page whose content another page had first.
    Duplicate,
    /// A page with the content of its last visit.
    Unchanged,
    /// No page, but a list of pages.
    Sitemap,
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

    /// Whether pages are kept at all.
    pub(crate) fn keeps(&self) -> bool {
        self.archive.is_some()
    }

    /// The links looked at lately.
    pub(crate) fn recent(&self) -> &RecentLinks {
        &self.recent
    }

    /// A new page is read and kept; of a known one, only that it was seen.
    pub(crate) fn process(&self, page: &FetchedPage, verdict: &Verdict) -> ProcessedPage {
        let headers = &page.response.headers;
        let content_type = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let (found, text) = match verdict {
            // Links of known content are read all the same: that it is known is another peer's word.
            Verdict::New | Verdict::Duplicate(_) => {
                extract_with_text(&page.pending.url, content_type, &page.body.bytes)
            }
            Verdict::Unchanged => (Extracted::default(), None),
        };
        let last = page.pending.visit.previous().map(|last| last.content);
        let content = match (text, last) {
            (Some(text), _) => ContentMark::new(&page.content, text),
            (None, Some(last)) if last.is_of(&page.content) => last,
            (None, _) => ContentMark::of(&page.content),
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
        let kind = capture_kind(page, verdict);
        let kept = match (&encoders, &kind) {
            (None, _) => Kept::Nothing,
            (Some(_), CaptureKind::Response) => Kept::Content,
            (Some(_), _) => Kept::Reference,
        };
        let records = encoders.map(|encoders| encoders.encode(&capture(page, found, kind)));
        let visited = Visited {
            time: page.time,
            content,
            validators: validators(headers),
            kept,
            told: Told::ByContent,
        };
        let kind = match verdict {
            Verdict::New => PageKind::New,
            Verdict::Duplicate(_) => PageKind::Duplicate,
            Verdict::Unchanged => PageKind::Unchanged,
        };
        ProcessedPage {
            visited: Some(visited),
            ..ProcessedPage::new(page, links, link_count, records, kind)
        }
    }

    /// A page that has not changed by its server's word: only that it was asked is kept, and the
    /// validators of the last visit unless there are new ones. `None` on a first visit, when there
    /// is nothing to compare with.
    pub(crate) fn not_modified(&self, page: &FetchedPage) -> Option<ProcessedPage> {
        let previous = page.pending.visit.previous()?;
        let kind = CaptureKind::NotModified {
            captured: previous.captured,
        };
        let encode = |encoders: &Encoders| {
            encoders.encode(&capture(page, Extracted::default(), kind.clone()))
        };
        let encoders = self.archive.as_ref();
        // Without a capture there is nothing to refer to: the page asked not to be archived, or
        // another page has its content.
        let records = encoders.filter(|_| previous.captured.is_some()).map(encode);
        let kind = match page.pending.target {
            Target::Page => PageKind::Unchanged,
            Target::Sitemap => PageKind::Sitemap,
        };
        let renewed = validators(&page.response.headers);
        let visited = Visited {
            time: page.time,
            content: previous.content,
            validators: if renewed.is_empty() {
                previous.validators.clone()
            } else {
                renewed
            },
            kept: Kept::Reference,
            told: Told::ByServer,
        };
        Some(ProcessedPage {
            visited: Some(visited),
            ..ProcessedPage::new(page, Vec::new(), 0, records, kind)
        })
    }

    /// The URLs that a sitemap lists, of its own site only (sitemaps.org: no one speaks for another
    /// host).
    pub(crate) fn read_sitemap(&self, page: &FetchedPage) -> ProcessedPage {
        let listed = Sitemap::parse(&page.body.bytes);
        let domain = page.pending.url.domain();
        // The owner of this host knows the pages of this host.
        let is_here = |(url, _): &&(PageUrl, Time)| url.host() == domain.as_str();
        // A date without a time is that of the day's beginning.
        let since = page.pending.visit.since();
        let is_news = |(_, changed): &&(PageUrl, Time)| *changed + DAY > since;
        let hints = match page.pending.visit {
            Visit::First => Vec::new(),
            Visit::Again(_) => {
                let news = listed.dated.iter().filter(is_here).filter(is_news);
                news.take(MAX_HINTS).cloned().collect()
            }
        };
        let links = self.listed(&page.pending.url, page.pending.depth, listed);
        let count = links.len();
        let visited = Visited {
            time: page.time,
            content: ContentMark::of(&page.content),
            validators: validators(&page.response.headers),
            kept: Kept::Nothing,
            told: Told::ByContent,
        };
        ProcessedPage {
            visited: Some(visited),
            hints,
            ..ProcessedPage::new(page, links, count, None, PageKind::Sitemap)
        }
    }

    fn listed(&self, sitemap: &PageUrl, depth: u16, listed: Sitemap) -> Vec<Link> {
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
            depth: depth.saturating_add(1),
            target,
        })
        .collect()
    }

    fn new_links(&self, found: &[PageUrl], depth: u16) -> Vec<Link> {
        let new = found.iter().filter(|url| !self.recent.contains(url));
        new.map(|url| Link {
            url: url.clone(),
            depth: depth.saturating_add(1),
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
        kind: PageKind,
    ) -> Self {
        ProcessedPage {
            links,
            link_count: link_count as u64,
            records,
            url: page.pending.url.clone(),
            depth: page.pending.depth,
            target: page.pending.target,
            crawl: page.pending.crawl,
            visit: page.pending.visit.clone(),
            visited: None,
            hints: Vec::new(),
            changed: None,
            helper: None,
            bytes: page.body.bytes.len() as u64,
            millis: u64::try_from(page.response.elapsed.as_millis()).unwrap_or(u64::MAX),
            kind,
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

/// The validators that an answer carries.
fn validators(headers: &HeaderMap) -> Validators {
    let value = |name| {
        headers
            .get(name)
            .map(|value: &HeaderValue| value.as_bytes())
    };
    Validators::read(value(ETAG), value(LAST_MODIFIED))
}

/// New content is kept, and for known content a reference to the page that has it.
fn capture_kind(page: &FetchedPage, verdict: &Verdict) -> CaptureKind {
    let previous = page.pending.visit.previous();
    match (verdict, previous.and_then(|previous| previous.captured)) {
        (Verdict::Duplicate(fact), _) => CaptureKind::Revisit {
            url: fact.page.clone(),
            time: fact.time,
        },
        (Verdict::Unchanged, Some(time)) => CaptureKind::Revisit {
            url: page.pending.url.clone(),
            time,
        },
        (Verdict::New, _) | (Verdict::Unchanged, None) => CaptureKind::Response,
    }
}

fn capture(page: &FetchedPage, found: Extracted, kind: CaptureKind) -> Capture {
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
    Capture {
        url: page.pending.url.clone(),
        time: page.time,
        address: Some(*address),
        request: archived(&page.response.request),
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
fn header((name, value): (&HeaderName, &HeaderValue)) -> (String, Vec<u8>) {
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
        lock(&self.0)
    }
}

/// The request head as the archive keeps it.
fn archived(head: &RequestHead) -> Head {
    Head {
        first_line: head.first_line.clone(),
        headers: head.headers.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_fetch::{BodyMemory, Wanted};
    use apoidea_model::{PreviousVisit, Slot};
    use apoidea_store::archive::{self, Archive, Followed, Mark, Reader, Record};
    use bytes::Bytes;
    use futures::FutureExt;
    use std::sync::Arc;

    const YESTERDAY: Time = Time::from_millis(1_700_000_000_000);
    const NOW: Time = Time::from_millis(1_700_086_400_000);

    fn again(body: &[u8], captured: Option<Time>) -> Visit {
        Visit::again(PreviousVisit {
            since: YESTERDAY,
            captured,
            validators: Validators::read(Some(b"\"old\""), None),
            content: ContentMark::of(&ContentHash::of_body(body)),
        })
    }

    fn fetched(
        status: u16,
        tag: Option<&'static str>,
        body: &'static [u8],
        visit: Visit,
    ) -> FetchedPage {
        let link = Link {
            url: PageUrl::parse("http://a.test/").unwrap(),
            depth: 0,
            target: Target::Page,
        };
        let slot = Slot {
            rank: 0,
            sequence: 1,
        };
        let memory = Arc::<BodyMemory>::default();
        let response = Response {
            status,
            headers: tag
                .map(|tag| (ETAG, HeaderValue::from_static(tag)))
                .into_iter()
                .collect(),
            raw_body: Bytes::from_static(body),
            extent: Extent::Whole,
            address: [127, 0, 0, 1].into(),
            elapsed: Duration::ZERO,
            request: RequestHead::default(),
            holding: memory.enter(Wanted::Page).now_or_never().unwrap(),
        };
        FetchedPage {
            pending: Pending {
                visit,
                ..Pending::admitted(link, slot, CrawlId::OPEN)
            },
            response,
            body: Body {
                bytes: Bytes::from_static(body),
                extent: Extent::Whole,
            },
            content: ContentHash::of_body(body),
            digest: None,
            time: NOW,
        }
    }

    /// The response or revisit record that the archive gets.
    fn archived_record(page: &ProcessedPage) -> Record {
        let folder = tempfile::tempdir().unwrap();
        let options = archive::ArchiveOptions::default();
        let mut archive = Archive::open(folder.path(), None, options, [1; 32]).unwrap();
        let position = archive.append(page.records.as_ref().unwrap()).unwrap();
        let mark = archive.sync().unwrap();
        let mut all = Reader::new(folder.path()).follow(Mark::default(), mark);
        let found = all.find_map(|told| match told.unwrap() {
            Followed::Record(at, record) if at == position => Some(record),
            _ => None,
        });
        found.unwrap()
    }

    #[test]
    fn a_304_leaves_a_revisit_record_and_renews_the_validators() {
        let processor = Processor::new(true);
        let visit = again(b"x", Some(YESTERDAY));
        let page = fetched(304, Some("\"new\""), b"", visit.clone());
        let processed = processor.not_modified(&page).unwrap();
        let record = archived_record(&processed);
        assert_eq!(record.kind, "revisit");
        let profile = record.field("WARC-Profile").unwrap();
        assert!(profile.ends_with("server-not-modified"), "{profile}");
        let date = record.field("WARC-Refers-To-Date");
        assert_eq!(date, Some("2023-11-14T22:13:20Z"));
        let visited = processed.visited.unwrap();
        assert_eq!(
            visited.content,
            ContentMark::of(&ContentHash::of_body(b"x"))
        );
        assert_eq!(visited.validators.etag.unwrap().as_str(), "\"new\"");

        let silent = processor.not_modified(&fetched(304, None, b"", visit));
        let validators = silent.unwrap().visited.unwrap().validators;
        assert_eq!(validators.etag.unwrap().as_str(), "\"old\"");
        let first = fetched(304, None, b"", Visit::First);
        assert!(processor.not_modified(&first).is_none());
    }

    #[test]
    fn an_unchanged_page_is_a_revisit_of_its_own_capture() {
        let page = fetched(
            200,
            None,
            b"<a href=/x>x</a>",
            again(b"<a href=/x>x</a>", Some(YESTERDAY)),
        );
        let processed = Processor::new(true).process(&page, &Verdict::Unchanged);
        let record = archived_record(&processed);
        assert_eq!(record.kind, "revisit");
        let original = record.field("WARC-Refers-To-Target-URI");
        assert_eq!(original, Some("http://a.test/"));
        assert_eq!(processed.visited.unwrap().kept, Kept::Reference);
        assert!(processed.links.is_empty());
    }

    #[test]
    fn a_changed_page_is_kept_whole_with_its_validators() {
        let page = fetched(200, Some("\"b\""), b"new", again(b"old", Some(YESTERDAY)));
        let processed = Processor::new(true).process(&page, &Verdict::New);
        assert_eq!(archived_record(&processed).kind, "response");
        let visited = processed.visited.unwrap();
        assert_eq!(visited.kept, Kept::Content);
        assert_eq!(visited.validators.etag.unwrap().as_str(), "\"b\"");
        let unkept = Processor::new(false).process(&page, &Verdict::New);
        assert_eq!(unkept.visited.unwrap().kept, Kept::Nothing);
    }
}
