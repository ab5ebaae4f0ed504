//! A page's bytes together with their encoding.
//!
//! In an ASCII-compatible encoding the bytes that delimit markup are never part of another
//! character, so the page is scanned as it is and only the values that are wanted are decoded.
//! Anything else (UTF-16, ISO-2022-JP) is decoded first.

use super::charset;
use encoding_rs::{Encoding, UTF_8};
use memchr::{memchr, memchr2, memchr3};
use std::borrow::Cow;

/// A page that can be scanned byte by byte.
pub(super) struct Source<'a> {
    bytes: Cow<'a, [u8]>,
    encoding: &'static Encoding,
}

impl<'a> Source<'a> {
    /// Finds out the encoding of a body.
    pub(super) fn new(content_type: Option<&str>, body: &'a [u8]) -> Self {
        let (encoding, body) = charset::detect(content_type, body);
        if encoding.is_ascii_compatible() {
            return Source {
                bytes: body.into(),
                encoding,
            };
        }
        let (text, _) = encoding.decode_without_bom_handling(body);
        Source {
            bytes: text.into_owned().into_bytes().into(),
            encoding: UTF_8,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Decodes the value of an attribute.
    #[inline]
    pub(super) fn attribute<'v>(&self, value: &'v [u8]) -> Cow<'v, str> {
        match std::str::from_utf8(value) {
            Ok(text) if is_plain(value) => Cow::Borrowed(text),
            _ => unescape(self.normalised(value), htmlize::unescape_attribute),
        }
    }

    /// Decodes text, or the content of an element in which character references count.
    pub(super) fn text<'v>(&self, text: &'v [u8]) -> Cow<'v, str> {
        unescape(self.normalised(text), htmlize::unescape)
    }

    /// Decodes the content of an element in which character references do not count.
    pub(super) fn verbatim<'v>(&self, text: &'v [u8]) -> Cow<'v, str> {
        self.normalised(text)
    }

    /// The whole page, decoded.
    pub(super) fn whole(&self) -> Cow<'_, str> {
        self.decoded(&self.bytes)
    }

    fn decoded<'v>(&self, bytes: &'v [u8]) -> Cow<'v, str> {
        self.encoding.decode_without_bom_handling(bytes).0
    }

    /// Decodes, and replaces what the standard's input preprocessing and tokenizer replace.
    fn normalised<'v>(&self, bytes: &'v [u8]) -> Cow<'v, str> {
        let text = self.decoded(bytes);
        match memchr2(b'\r', b'\0', text.as_bytes()) {
            Some(_) => text
                .replace("\r\n", "\n")
                .replace('\r', "\n")
                .replace('\0', "\u{fffd}")
                .into(),
            None => text,
        }
    }
}

/// Whether every byte means itself, in every encoding that is scanned and wherever it stands.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    bytes.is_ascii() && memchr3(b'&', b'\r', b'\0', bytes).is_none()
}

fn unescape<'v>(text: Cow<'v, str>, expand: fn(Cow<'v, str>) -> Cow<'v, str>) -> Cow<'v, str> {
    if memchr(b'&', text.as_bytes()).is_some() {
        expand(text)
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_in_the_encoding_of_the_page() {
        let attribute = |charset: &str, bytes: &[u8]| {
            let content_type = format!("text/html; charset={charset}");
            Source::new(Some(&content_type), b"")
                .attribute(bytes)
                .into_owned()
        };
        assert_eq!(attribute("utf-8", "é".as_bytes()), "é");
        assert_eq!(attribute("latin1", b"\xe9\x80"), "é€");
        assert_eq!(
            attribute("shift_jis", b"\x83\x5c"),
            "ソ",
            "the second byte is a backslash in ASCII"
        );
        assert_eq!(attribute("utf-8", b"a\xff"), "a\u{fffd}");
        assert_eq!(attribute("utf-8", b"a\r\nb\rc\0"), "a\nb\nc\u{fffd}");
    }

    #[test]
    fn references_in_attributes_keep_their_ampersand_where_a_query_follows() {
        let source = Source::new(None, b"");
        for (raw, expected) in [
            ("?a=1&amp;b=2", "?a=1&b=2"),
            ("?a=1&copy=2", "?a=1&copy=2"),
            ("?a=1&copyx", "?a=1&copyx"),
            ("?a=1&copy", "?a=1©"),
            ("?a=1&copy;=2", "?a=1©=2"),
            (
                "&#x41;&#66&#0;&#x80;&#xD800;&#x110000;",
                "AB\u{fffd}€\u{fffd}\u{fffd}",
            ),
            ("&NotEqualTilde;&nosuch;&;&", "≂̸&nosuch;&;&"),
        ] {
            assert_eq!(source.attribute(raw.as_bytes()), expected, "{raw}");
        }
        assert_eq!(source.text(b"&copyx &notit;"), "©x ¬it;");
    }

    #[test]
    fn pages_in_utf_16_are_decoded_as_a_whole() {
        let body: Vec<u8> = "<p>é".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let source = Source::new(Some("text/html; charset=utf-16le"), &body);
        assert_eq!(source.bytes(), "<p>é".as_bytes());
    }
}
