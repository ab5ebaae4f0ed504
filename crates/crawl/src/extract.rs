//! What a page says to a crawler: its links, title, language, canonical URL and robots directives.
//!
//! This is the hot path of the program, so the page is not parsed into a tree: one pass over its bytes follows the
//! WHATWG tokenizer ([`scanner`]), and only the values that are wanted are decoded and resolved. [`reference`] gives
//! the same answer by way of a tree; the two are compared on real and on broken pages.
//!
//! A tree builder moves or drops a few elements that were never where they belong: content directly inside a table
//! is moved before it, and `<frameset>` pages lose everything else. The scanner reports them where they stand.

mod attributes;
mod charset;
mod foreign;
mod harvest;
mod name;
mod raw_text;
pub mod reference;
mod references;
mod refresh;
mod scanner;
mod source;
mod text;

use crate::Directives;
use apoidea_model::PageUrl;
use attributes::Found;
use harvest::Harvest;
use name::Name;
use scanner::{Scanner, Token};
use source::Source;

pub use text::visible_text;

/// Most links that one page contributes. The web's mean is below 100; whoever has more than this is a directory or a
/// trap, and is found again by way of other pages.
pub const MAX_LINKS: usize = 2_000;

/// Longest title that is kept, in characters.
pub const MAX_TITLE_CHARS: usize = 300;

/// Longest language tag that is kept, in bytes (RFC 5646 §4.4.1 asks for 35).
pub const MAX_LANGUAGE_BYTES: usize = 35;

/// What was found on a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extracted {
    /// Pages it links to, in order of first occurrence, each once, at most [`MAX_LINKS`]; without `rel=nofollow`.
    pub links: Vec<PageUrl>,
    /// Text of the first `<title>`, white space collapsed.
    pub title: Option<String>,
    /// The `lang` of `<html>`.
    pub language: Option<String>,
    /// The URL that the page prefers for itself; also among the links.
    pub canonical: Option<PageUrl>,
    /// What its `<meta>` elements allow; the caller combines them with the `X-Robots-Tag` header.
    pub directives: Directives,
}

/// Reads a page that was fetched from `page`. A body that is not HTML has nothing to say.
///
/// Whatever encoding the page is in, the query of a link is encoded as UTF-8; a browser would use the page's own.
pub fn extract(page: &PageUrl, content_type: Option<&str>, body: &[u8]) -> Extracted {
    if !is_html(content_type) {
        return Extracted::default();
    }
    let source = Source::new(content_type, body);
    let mut harvest = Harvest::default();
    for token in Scanner::new(source.bytes()) {
        match token {
            Token::Start(tag) if Harvest::wants(tag.name) => {
                harvest.element(tag.name, tag.namespace, &Found::new(&source, tag.attributes));
            }
            Token::Raw(Name::TITLE, text) => harvest.title(&source.text(text)),
            _ => {}
        }
    }
    harvest.finish(page)
}

/// Is a body with this `Content-Type` read as HTML? One without is.
pub fn is_html(content_type: Option<&str>) -> bool {
    let essence = content_type.and_then(|text| text.split(';').next()).map_or("", str::trim);
    ["", "text/html", "application/xhtml+xml"].iter().any(|html| essence.eq_ignore_ascii_case(html))
}
