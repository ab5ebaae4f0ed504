//! The canonical URL of a page.
//!
//! One page, one spelling: the WHATWG parser settles scheme, case of the host, default ports, dot
//! segments and IDNA; this module adds what it leaves open: no fragment, no user info, no trailing
//! dot of the host, no empty query, and one form of percent-encoding (RFC 3986 §6.2.2: upper-case
//! digits, unreserved characters decoded).

use crate::{
    Key,
    domain::{Domain, canonical_host},
};
use memchr::memchr;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use url::Url;

/// A canonical http or https URL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageUrl(Box<str>);

/// Fingerprint of a URL, by which seen-filters remember it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UrlHash(pub u64);

/// The text is not the URL of a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// It does not parse.
    #[error("not a URL: {0}")]
    Syntax(#[from] url::ParseError),
    /// `mailto:`, `javascript:`, `data:`, `ftp:`…
    #[error("the scheme is {0:?}; only http and https are crawled")]
    Scheme(String),
    /// `http://user:password@host/`.
    #[error("it carries a user name or password")]
    UserInfo,
    /// The host is not one that could exist.
    #[error("the host is not usable: {0}")]
    Host(&'static str),
    /// Longer than [`PageUrl::MAX_BYTES`].
    #[error("it is {0} bytes long; at most {max} are accepted", max = PageUrl::MAX_BYTES)]
    TooLong(usize),
}

impl PageUrl {
    /// Longest URL that is accepted from anyone, in bytes.
    pub const MAX_BYTES: usize = 2048;

    /// Parses and canonicalises an absolute URL.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        check_length(text.len())?;
        Self::from_url(Url::parse(text)?)
    }

    /// Resolves a reference found on this page, such as an `href`.
    pub fn join(&self, reference: &str) -> Result<Self, InvalidUrl> {
        check_length(reference.len())?;
        Self::from_url(self.to_url().join(reference)?)
    }

    /// The result of [`Self::join`], at a fifth of its cost, where it can be told at sight: for a
    /// path of plain characters on this page's own origin. `None` for all else.
    pub fn join_plain(&self, reference: &str) -> Option<Self> {
        let path = reference.strip_prefix(self.origin()).unwrap_or(reference);
        let is_relative = !path.starts_with('/') && path.len() == reference.len();
        let is_rooted = path.starts_with('/') && !path.starts_with("//");
        if path.is_empty() || !(is_relative || is_rooted) || !path.bytes().all(stands_for_itself) {
            return None;
        }
        let mut text = String::with_capacity(self.path_start() + self.path().len() + path.len());
        text.push_str(self.origin());
        text.push('/');
        let root = text.len();
        if is_relative {
            let directory = self.path().rfind('/').map_or(0, |slash| slash + 1);
            text.push_str(self.path().get(1..directory).unwrap_or_default());
        }
        push_segments(&mut text, root, path.strip_prefix('/').unwrap_or(path));
        check_length(text.len()).ok()?;
        Some(PageUrl(text.into_boxed_str()))
    }

    /// Canonicalises a parsed URL.
    pub fn from_url(mut url: Url) -> Result<Self, InvalidUrl> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(InvalidUrl::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidUrl::UserInfo);
        }
        let host = url.host_str().unwrap_or_default();
        let canonical = canonical_host(host).map_err(InvalidUrl::Host)?;
        if canonical.len() != host.len() {
            let canonical = canonical.to_owned();
            url.set_host(Some(&canonical))?;
        }
        url.set_fragment(None);
        if url.query() == Some("") {
            url.set_query(None);
        }
        let text = match normalise_escapes(url.as_str()) {
            // A decoded character can complete a dot segment (`/%2E./` is one already, `/.%2e%41/`
            // is not), so the parser has the last word.
            Some(text) => String::from(Url::parse(&text)?),
            None => String::from(url),
        };
        check_length(text.len())?;
        Ok(PageUrl(text.into_boxed_str()))
    }

    /// The URL as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host, which names the domain.
    pub fn host(&self) -> &str {
        let authority = self.authority();
        let port = authority.rfind(':').filter(|_| !authority.ends_with(']'));
        &authority[..port.unwrap_or(authority.len())]
    }

    /// The domain that this page belongs to.
    pub fn domain(&self) -> Domain {
        Domain::from_canonical(self.host())
    }

    /// Whether it is fetched over TLS.
    pub fn is_https(&self) -> bool {
        self.0.starts_with("https:")
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        let default = if self.is_https() { 443 } else { 80 };
        let explicit = self.authority()[self.host().len()..].strip_prefix(':');
        explicit
            .and_then(|port| port.parse().ok())
            .unwrap_or(default)
    }

    /// Scheme, host and port: what a robots.txt is valid for.
    pub fn origin(&self) -> &str {
        &self.0[..self.path_start()]
    }

    /// Path and query, beginning with `/`.
    pub fn path_and_query(&self) -> &str {
        &self.0[self.path_start()..]
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        let rest = self.path_and_query();
        rest.split_once('?').map_or(rest, |(path, _)| path)
    }

    /// The fingerprint that seen-filters remember, the same on every peer.
    pub fn hash(&self) -> UrlHash {
        let digest = Key::hash(self.as_str());
        let (first, _) = digest
            .as_bytes()
            .split_first_chunk()
            .expect("a key has 32 bytes, more than 8");
        UrlHash(u64::from_be_bytes(*first))
    }

    /// The same value in the `url` crate's form.
    pub fn to_url(&self) -> Url {
        Url::parse(&self.0).expect("a canonical URL parses: it was printed by the same parser")
    }

    fn authority(&self) -> &str {
        &self.0[self.authority_start()..self.path_start()]
    }

    fn authority_start(&self) -> usize {
        if self.is_https() {
            "https://".len()
        } else {
            "http://".len()
        }
    }

    fn path_start(&self) -> usize {
        let start = self.authority_start();
        memchr(b'/', &self.0.as_bytes()[start..]).map_or(self.0.len(), |path| start + path)
    }
}

fn check_length(bytes: usize) -> Result<(), InvalidUrl> {
    if bytes > PageUrl::MAX_BYTES {
        Err(InvalidUrl::TooLong(bytes))
    } else {
        Ok(())
    }
}

/// Whether a character means only itself in a path. Neither `:` nor `%` does.
fn stands_for_itself(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/.-_~+,=@".contains(&byte)
}

/// Appends a path to a text that ends with a slash, resolving dot segments up to the slash before
/// `root`.
fn push_segments(text: &mut String, root: usize, path: &str) {
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." => {}
            ".." => {
                let parent = text[..text.len() - 1]
                    .rfind('/')
                    .map_or(root, |slash| slash + 1);
                text.truncate(parent.max(root));
            }
            _ => {
                text.push_str(segment);
                text.push_str(if segments.peek().is_some() { "/" } else { "" });
            }
        }
    }
}

/// Rewrites `%xx` to upper case and decodes unreserved characters; `None` if nothing changes.
fn normalise_escapes(text: &str) -> Option<String> {
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut from = 0;
    while let Some(at) = memchr(b'%', &text.as_bytes()[from..]).map(|at| from + at) {
        let Some(value) = text.get(at + 1..at + 3).and_then(escaped_byte) else {
            from = at + 1;
            continue;
        };
        from = at + 3;
        let unreserved = value.is_ascii_alphanumeric() || b"-._~".contains(&value);
        let is_canonical =
            !unreserved && !text[at + 1..from].bytes().any(|b| b.is_ascii_lowercase());
        if is_canonical {
            continue;
        }
        let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
        out.push_str(&text[copied..at]);
        if unreserved {
            out.push(char::from(value));
        } else {
            out.push_str(&format!("%{value:02X}"));
        }
        copied = from;
    }
    if let Some(out) = &mut out {
        out.push_str(&text[copied..]);
    }
    out
}

fn escaped_byte(digits: &str) -> Option<u8> {
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hex {
        u8::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

impl FromStr for PageUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        Self::parse(text)
    }
}

impl TryFrom<String> for PageUrl {
    type Error = InvalidUrl;

    fn try_from(text: String) -> Result<Self, InvalidUrl> {
        Self::parse(&text)
    }
}

impl From<PageUrl> for String {
    fn from(url: PageUrl) -> String {
        url.0.into_string()
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        PageUrl::parse(text).unwrap().to_string()
    }

    #[test]
    fn one_spelling_per_page() {
        for (text, expected) in [
            ("HTTP://Example.COM", "http://example.com/"),
            ("http://example.com:80/", "http://example.com/"),
            ("https://example.com:443/a", "https://example.com/a"),
            ("https://example.com:80/a", "https://example.com:80/a"),
            ("http://example.com/a/./b/../c", "http://example.com/a/c"),
            ("http://example.com/a/%2e%2E/c", "http://example.com/c"),
            ("http://example.com/a#b", "http://example.com/a"),
            ("http://example.com/?", "http://example.com/"),
            ("http://example.com./x", "http://example.com/x"),
            ("http://example.com.:8080/x", "http://example.com:8080/x"),
            ("http://bücher.example/", "http://xn--bcher-kva.example/"),
            (
                "http://example.com/%7euser/%c3%A9",
                "http://example.com/~user/%C3%A9",
            ),
            (
                "http://example.com/é ü",
                "http://example.com/%C3%A9%20%C3%BC",
            ),
            (
                "http://example.com/a%2Fb%zz%4",
                "http://example.com/a%2Fb%zz%4",
            ),
            ("http://example.com/?q=%41%26", "http://example.com/?q=A%26"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://[0:0::1]/", "http://[::1]/"),
            ("  http://example.com/\n", "http://example.com/"),
            ("http:\\\\example.com\\a", "http://example.com/a"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
            assert_eq!(
                canonical(expected),
                expected,
                "canonical means unchanged by a second pass"
            );
        }
    }

    #[test]
    fn what_is_not_a_page_is_refused_with_its_reason() {
        let refused = |text: &str| PageUrl::parse(text).unwrap_err();
        for text in [
            "javascript:alert(1)",
            "mailto:a@b.example",
            "data:text/html,x",
            "ftp://example.com/",
        ] {
            assert!(matches!(refused(text), InvalidUrl::Scheme(_)), "{text}");
        }
        assert_eq!(refused("http://user@example.com/"), InvalidUrl::UserInfo);
        assert!(matches!(refused("/relative"), InvalidUrl::Syntax(_)));
        assert!(matches!(refused("http://a..b/"), InvalidUrl::Host(_)));
        assert!(matches!(
            refused(&format!("http://a/{}", "x".repeat(2048))),
            InvalidUrl::TooLong(_)
        ));
        assert!(matches!(
            refused(&format!("http://a/{}", "é".repeat(700))),
            InvalidUrl::TooLong(_)
        ));
    }

    #[test]
    fn parts_are_where_the_text_says() {
        let url = PageUrl::parse("https://[::1]:8443/a/b?c=/d").unwrap();
        assert_eq!(
            (url.host(), url.port(), url.is_https()),
            ("[::1]", 8443, true)
        );
        assert_eq!(url.origin(), "https://[::1]:8443");
        assert_eq!((url.path(), url.path_and_query()), ("/a/b", "/a/b?c=/d"));
        let url = PageUrl::parse("http://example.com").unwrap();
        assert_eq!(
            (url.host(), url.port(), url.path_and_query()),
            ("example.com", 80, "/")
        );
        assert_eq!(url.domain().as_str(), "example.com");
    }

    #[test]
    fn what_is_told_at_sight_is_what_the_parser_says() {
        const PIECES: [&str; 20] = [
            "",
            " ",
            "#",
            "a",
            "/",
            "?",
            "\t",
            "//h.example",
            "http:",
            "\\",
            "é",
            "%2e",
            "..",
            ".",
            ":",
            "mailto:",
            "~=@",
            "https://e.example",
            "B+,",
            "_-",
        ];
        let mut told = 0;
        for page in [
            "https://e.example/a/b?c/d",
            "https://e.example/",
            "https://e.example/%7Eé//x/",
        ] {
            let page = PageUrl::parse(page).unwrap();
            for number in 0..PIECES.len().pow(4) {
                let piece = |place: u32| PIECES[number / PIECES.len().pow(place) % PIECES.len()];
                let reference = [piece(3), piece(2), piece(1), piece(0)].concat();
                if let Some(at_sight) = page.join_plain(&reference) {
                    assert_eq!(
                        Ok(at_sight),
                        page.join(&reference),
                        "{reference:?} on {page}"
                    );
                    told += 1;
                }
            }
        }
        assert!(told > 10_000, "{told}");
        let page = PageUrl::parse("https://e.example/").unwrap();
        assert_eq!(page.join_plain(&"a".repeat(PageUrl::MAX_BYTES)), None);
    }

    #[test]
    fn references_resolve_against_the_page() {
        let page = PageUrl::parse("http://example.com/a/b").unwrap();
        assert_eq!(
            page.join("../c#x").unwrap().as_str(),
            "http://example.com/c"
        );
        assert_eq!(
            page.join("//other.example").unwrap().as_str(),
            "http://other.example/"
        );
        assert!(page.join("mailto:x").is_err());
    }
}
