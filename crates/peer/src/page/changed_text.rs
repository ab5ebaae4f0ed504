//! The text of a watched page that has changed, compared with the version in this peer's archive.

use crate::page::process::{FetchedPage, ProcessedPage};
use apoidea_crawl::{TextDelta, visible_lines};
use apoidea_model::{ContentHash, ContentMark, PageUrl};
use apoidea_store::archive::Reader;
use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;

/// Whether a page's text is compared with that of its last visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scrutiny {
    /// Nobody asks.
    Usual,
    /// Some peer watches the page.
    Watched,
}

/// The text that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangedText {
    /// Compared with the last version.
    Compared(TextDelta),
    /// The beginning of the page: its last version is not in this peer's archive.
    Beginning(TextDelta),
}

/// A page as it is now, to be compared.
pub(crate) struct Version {
    url: PageUrl,
    body: Bytes,
    content_type: Option<String>,
    last: ContentMark,
}

impl Version {
    /// The version that a later visit brought; none on a first visit.
    pub(crate) fn of(page: &FetchedPage) -> Option<Self> {
        let content_type = page.response.headers.get(CONTENT_TYPE);
        Some(Version {
            url: page.pending.url.clone(),
            body: page.body.bytes.clone(),
            content_type: content_type.and_then(|value| Some(value.to_str().ok()?.to_owned())),
            last: page.pending.visit.previous()?.content,
        })
    }

    /// Does it read differently?
    pub(crate) fn is_changed(&self, processed: &ProcessedPage) -> bool {
        let visited = processed.visited.as_ref();
        visited.is_some_and(|visited| !visited.content.reads_like(&self.last))
    }

    /// Compares it with the version before. The disk is read.
    pub(crate) fn compare(&self, archive: Option<&Reader>) -> ChangedText {
        let now = visible_lines(self.content_type.as_deref(), &self.body);
        match archive.and_then(|archive| self.before(archive)) {
            Some(before) => ChangedText::Compared(TextDelta::between(&before, &now)),
            None => ChangedText::Beginning(TextDelta::beginning(&now)),
        }
    }

    /// The text of the version before, if it is in the archive.
    fn before(&self, archive: &Reader) -> Option<String> {
        let captures = archive.find(&self.url).ok()?.into_iter().rev();
        for entry in captures.filter(|entry| !entry.is_revisit()) {
            let page = archive.page(&entry).ok()?;
            let body = page.body?;
            if self.last.is_of(&ContentHash::of_body(&body)) {
                let fields = page.head.headers.iter();
                let mut types =
                    fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
                let content_type = types.next();
                let content_type = content_type.and_then(|(_, value)| str::from_utf8(value).ok());
                return Some(visible_lines(content_type, &body));
            }
        }
        None
    }
}
