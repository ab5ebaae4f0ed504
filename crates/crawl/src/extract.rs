//! A page as a crawler reads it: its links, title, language, canonical URL and robots directives.
//!
//! This is the hot path of the program, so the page is not parsed into a tree: one pass over its
//! bytes follows the WHATWG tokenizer ([`scanner`]), and only the values that are wanted are
//! decoded and resolved. [`reference`] gives the same answer by way of a tree; the two are compared
//! on real and on broken pages.
//!
//! A tree builder moves or drops a few elements that are not where they belong; the scanner reports
//! them where they stand: content directly inside a table (moved before it), all but the frames of
//! a `<frameset>` page, and what does not fit a `<template>` that begins with a part of a table
//! (both dropped).

mod attributes;
mod base;
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
use apoidea_model::{PageUrl, TextHash};
use attributes::Found;
use harvest::Harvest;
use name::Name;
use scanner::{Scanner, Token};
use source::Source;

pub use text::{visible_lines, visible_text};

/// Most links that one page contributes. The web's mean is below 100; a page with more than this is
/// a directory or a trap, and is found again by way of other pages.
pub const MAX_LINKS: usize = 2_000;

/// Longest title that is kept, in characters.
pub const MAX_TITLE_CHARS: usize = 300;

/// Longest language tag that is kept, in bytes (RFC 5646 §4.4.1 asks for 35).
pub const MAX_LANGUAGE_BYTES: usize = 35;

/// The findings on a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extracted {
    /// Pages it links to, in order of first occurrence, each once, at most [`MAX_LINKS`]; without
    /// `rel=nofollow`.
    pub links: Vec<PageUrl>,
    /// Text of the first `<title>`, white space collapsed.
    pub title: Option<String>,
    /// The `lang` of `<html>`.
    pub language: Option<String>,
    /// The URL that the page prefers for itself; also among the links.
    pub canonical: Option<PageUrl>,
    /// The permissions in its `<meta>` elements; the caller combines them with the `X-Robots-Tag`
    /// header.
    pub directives: Directives,
}

/// Reads a page that was fetched from `page`. A body that is not HTML has nothing to say.
///
/// Whatever encoding the page is in, the query of a link is encoded as UTF-8; a browser would use
/// the page's own.
pub fn extract(page: &PageUrl, content_type: Option<&str>, body: &[u8]) -> Extracted {
    read(page, content_type, body, |_| {})
}

/// The same, and the fingerprint of the text between the tags, without scripts and styles and
/// without white space around each piece. A body that is not HTML has none.
pub fn extract_with_text(
    page: &PageUrl,
    content_type: Option<&str>,
    body: &[u8],
) -> (Extracted, Option<TextHash>) {
    if !is_html(content_type) {
        return (Extracted::default(), None);
    }
    let mut text = Vec::with_capacity(body.len() / 4);
    let found = read(page, content_type, body, |piece| {
        text.extend_from_slice(piece.trim_ascii());
    });
    (found, Some(TextHash::of(&text)))
}

/// Reads a page, and tells each piece of its text.
fn read(
    page: &PageUrl,
    content_type: Option<&str>,
    body: &[u8],
    mut text: impl FnMut(&[u8]),
) -> Extracted {
    if !is_html(content_type) {
        return Extracted::default();
    }
    let source = Source::new(content_type, body);
    let mut harvest = Harvest::default();
    for token in Scanner::new(source.bytes()) {
        match token {
            Token::Start(tag) if Harvest::wants(tag.name) => {
                harvest.element(
                    tag.name,
                    tag.namespace,
                    &Found::new(&source, tag.attributes),
                );
            }
            Token::Raw(Name::TITLE, title) => {
                text(title);
                harvest.title(&source.text(title));
            }
            Token::Text(piece) => text(piece),
            _ => {}
        }
    }
    harvest.finish(page)
}

/// Whether a body with this `Content-Type` is read as HTML. One without is.
pub fn is_html(content_type: Option<&str>) -> bool {
    let essence = content_type
        .and_then(|text| text.split(';').next())
        .map_or("", str::trim);
    ["", "text/html", "application/xhtml+xml"]
        .iter()
        .any(|html| essence.eq_ignore_ascii_case(html))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Permission;

    fn read(content_type: Option<&str>, body: &[u8]) -> Extracted {
        extract(
            &PageUrl::parse("https://example.com/a/b").unwrap(),
            content_type,
            body,
        )
    }

    #[test]
    fn the_text_is_the_same_in_other_markup() {
        let text = |body: &str| {
            let page = PageUrl::parse("https://example.com/").unwrap();
            extract_with_text(&page, None, body.as_bytes()).1
        };
        let plain = text("<title>a</title><p>One</p> <p>two <script>x=1</script>three</p>");
        let marked = "<title>a</title><!-- 7 --><div id=7> <p class=y>One</p></div>\
                      <p>two <script>x=2</script>three</p>";
        assert_eq!(text(marked), plain);
        assert_ne!(text("<title>a</title><p>One</p><p>two</p>"), plain);
        assert_ne!(text("<title>b</title><p>One</p> <p>two three</p>"), plain);
        let page = PageUrl::parse("https://example.com/").unwrap();
        assert_eq!(extract_with_text(&page, Some("text/plain"), b"x").1, None);
    }

    fn links(body: &str) -> Vec<String> {
        read(None, body.as_bytes())
            .links
            .iter()
            .map(PageUrl::to_string)
            .collect()
    }

    #[test]
    fn everything_a_page_says_is_found() {
        let page = read(
            None,
            b"<!doctype html><html lang=en><title> A\n page </title><link rel=canonical href=/c>
              <meta name=robots content=noindex><meta name=apoidea content=noarchive>
              <a href=d>d</a><area href=/e><iframe src=f></iframe><meta http-equiv=refresh content='1;url=g'>",
        );
        let urls: Vec<_> = page.links.iter().map(PageUrl::as_str).collect();
        let expected =
            ["c", "a/d", "e", "a/f", "a/g"].map(|path| format!("https://example.com/{path}"));
        assert_eq!(urls, expected);
        assert_eq!(
            (page.title.as_deref(), page.language.as_deref()),
            (Some("A page"), Some("en"))
        );
        assert_eq!(page.canonical.unwrap().as_str(), expected[0]);
        assert_eq!(page.directives.index, Permission::Forbidden);
        assert_eq!(page.directives.archive, Permission::Forbidden);
        assert_eq!(page.directives.follow, Permission::Allowed);
    }

    #[test]
    fn links_come_once_in_order_and_without_nofollow() {
        let page = "<a href=z><a href=y rel=nofollow><a href=x#1><a href=x#2><a href=./z><a href='&#120;'>";
        assert_eq!(
            links(page),
            ["https://example.com/a/z", "https://example.com/a/x"]
        );
    }

    #[test]
    fn the_first_base_counts_for_all_links() {
        let page =
            "<a href=x><base target=_top><base href=//other.example/c/><base href=/d/><a href=y>";
        assert_eq!(
            links(page),
            ["https://other.example/c/x", "https://other.example/c/y"]
        );
    }

    #[test]
    fn no_page_contributes_more_than_its_share() {
        let page: String = (0..3 * MAX_LINKS)
            .map(|i| format!("<a href={i}>"))
            .collect();
        let links = links(&page);
        assert_eq!(links.len(), MAX_LINKS);
        assert_eq!(
            links[MAX_LINKS - 1],
            format!("https://example.com/a/{}", MAX_LINKS - 1)
        );
        let title = read(None, format!("<title>{}", "é".repeat(10_000)).as_bytes())
            .title
            .unwrap();
        assert_eq!(title.chars().count(), MAX_TITLE_CHARS);
    }

    #[test]
    fn links_are_read_in_the_encoding_of_the_page() {
        let e_acute = ["https://example.com/a/%C3%A9"];
        let urls = |content_type: &str, body: &[u8]| -> Vec<String> {
            read(Some(content_type), body)
                .links
                .iter()
                .map(PageUrl::to_string)
                .collect()
        };
        let utf_16: Vec<u8> = "<a href=é>"
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
        assert_eq!(urls("text/html", "<a href=é>".as_bytes()), e_acute);
        assert_eq!(urls("text/html", b"<a href=\xe9>"), e_acute);
        assert_eq!(urls("text/html; charset=utf-16be", &utf_16), e_acute);
        assert_eq!(
            urls("text/html", b"<meta charset=koi8-r><a href=\xc1>"),
            ["https://example.com/a/%D0%B0"]
        );
    }

    #[test]
    fn only_html_is_read() {
        let page = b"<a href=x>";
        for html in [
            None,
            Some(""),
            Some("TEXT/HTML;charset=utf-8"),
            Some("application/xhtml+xml"),
        ] {
            assert_eq!(read(html, page).links.len(), 1, "{html:?}");
        }
        for other in [
            "text/plain",
            "application/pdf",
            "text/htmlx",
            "image/svg+xml",
        ] {
            assert_eq!(read(Some(other), page), Extracted::default(), "{other}");
        }
    }
}
