//! The encoding of a page: byte-order mark, then the header, then the page's own `<meta>`,
//! then a guess (WHATWG HTML §13.2.3.2).
//!
//! The guess is UTF-8 if the page is valid UTF-8 and windows-1252 otherwise, which is what most
//! undeclared pages are.

use super::{
    attributes::{Attribute, Attributes},
    name::Name,
};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use memchr::{memchr, memmem};

/// The part of a page in which a declaration is looked for, in bytes (WHATWG HTML §13.2.3.2).
const PRESCAN_BYTES: usize = 1024;

/// The encoding of a body, and the body without its byte-order mark.
pub(super) fn detect<'a>(
    content_type: Option<&str>,
    body: &'a [u8],
) -> (&'static Encoding, &'a [u8]) {
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return (encoding, &body[mark..]);
    }
    let head = &body[..body.len().min(PRESCAN_BYTES)];
    let declared = content_type
        .and_then(from_content_type)
        .or_else(|| prescan(head));
    (declared.unwrap_or_else(|| guess(body)), body)
}

/// The `charset` parameter of a media type.
fn from_content_type(content_type: &str) -> Option<&'static Encoding> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        let is_charset = key.trim().eq_ignore_ascii_case("charset");
        is_charset
            .then(|| Encoding::for_label(value.trim().trim_matches(['"', '\'']).as_bytes()))?
    })
}

fn guess(body: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(body) {
        Err(error) if error.error_len().is_some() => WINDOWS_1252,
        _ => UTF_8,
    }
}

/// Looks for `<meta charset>` or its older form without regard to what kind of text it stands in
/// (§13.2.3.2, "prescan a byte stream").
fn prescan(head: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    while let Some(tag) = memchr(b'<', &head[at..]).map(|tag| at + tag) {
        let rest = &head[tag + 1..];
        if rest.starts_with(b"!--") {
            // The two dashes may also be the first of the end: `<!-->`.
            at = tag + 2 + memmem::find(&rest[1..], b"-->")? + 3;
            continue;
        }
        let name = rest.strip_prefix(b"/").unwrap_or(rest);
        if name.first().is_some_and(u8::is_ascii_alphabetic) {
            let start = head.len() - name.len();
            let length = name
                .iter()
                .position(|&byte| byte.is_ascii_whitespace() || b"/>".contains(&byte))?;
            let attributes = Attributes::new(head, start + length);
            at = attributes.clone().end()?;
            let is_meta = name.len() == rest.len() && Name::of(&name[..length]) == Name::META;
            if is_meta && let Some(encoding) = from_meta(attributes) {
                return Some(encoding);
            }
        } else if rest.first().is_some_and(|byte| b"!/?".contains(byte)) {
            at = tag + memchr(b'>', &head[tag..])?;
        } else {
            at = tag + 1;
        }
    }
    None
}

fn from_meta(attributes: Attributes<'_>) -> Option<&'static Encoding> {
    let (mut charset, mut content, mut is_content_type) = (None, None, false);
    for Attribute { name, value } in attributes {
        match name.to_ascii_lowercase().as_slice() {
            b"charset" if charset.is_none() => charset = Some(value),
            b"content" if content.is_none() => content = Some(value),
            b"http-equiv" => is_content_type |= value.eq_ignore_ascii_case(b"content-type"),
            _ => {}
        }
    }
    let label = charset.or_else(|| {
        content
            .filter(|_| is_content_type)
            .and_then(label_in_content)
    })?;
    Encoding::for_label(label).map(as_declared_in_page)
}

/// The label in `text/html; charset=label` (WHATWG HTML §2.5.5, "extracting a character encoding
/// from a meta element").
fn label_in_content(content: &[u8]) -> Option<&[u8]> {
    let lower = content.to_ascii_lowercase();
    let mut from = 0;
    loop {
        from += memmem::find(&lower[from..], b"charset")? + "charset".len();
        let Some(value) = content[from..].trim_ascii_start().strip_prefix(b"=") else {
            continue;
        };
        let value = value.trim_ascii_start();
        return match value.first()? {
            quote @ (b'"' | b'\'') => Some(&value[1..1 + memchr(*quote, &value[1..])?]),
            _ => value
                .split(|&byte| byte == b';' || byte.is_ascii_whitespace())
                .next(),
        };
    }
}

/// A page whose `<meta>` could be read is not in UTF-16, whatever it says.
fn as_declared_in_page(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == encoding_rs::X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(content_type: Option<&str>, body: &[u8]) -> &'static str {
        detect(content_type, body).0.name()
    }

    #[test]
    fn mark_beats_header_beats_page_beats_guess() {
        let meta = b"<meta charset=koi8-r>";
        assert_eq!(
            name(
                Some("text/html; charset=big5"),
                b"\xef\xbb\xbf<meta charset=koi8-r>"
            ),
            "UTF-8"
        );
        assert_eq!(name(Some("text/html; Charset=\"Big5\""), meta), "Big5");
        assert_eq!(name(Some("text/html; charset=nonsense"), meta), "KOI8-R");
        assert_eq!(name(None, meta), "KOI8-R");
        assert_eq!(name(None, "é".as_bytes()), "UTF-8");
        assert_eq!(name(None, b"\xe9 "), "windows-1252");
        assert_eq!(name(None, b"cut within a character: \xc3"), "UTF-8");
        assert_eq!(detect(None, b"\xff\xfea\0"), (UTF_16LE, &b"a\0"[..]));
    }

    #[test]
    fn declarations_are_found_as_the_standard_says() {
        for (page, expected) in [
            (
                "<!doctype html><html a='<meta charset=big5>'><meta charset='koi8-r'>",
                "KOI8-R",
            ),
            (
                "<!-- <meta charset=big5> --><META CHARSET = koi8-r />",
                "KOI8-R",
            ),
            ("<!--><meta charset=koi8-r>-->", "KOI8-R"),
            (
                "<meta http-equiv=Content-Type content='text/html; charset = koi8-r'>",
                "KOI8-R",
            ),
            (
                "<meta content='text/html; charset=\"koi8-r\"' http-equiv=content-type>",
                "KOI8-R",
            ),
            ("<meta content='text/html; charset=koi8-r'>", "UTF-8"),
            ("<meta charset=utf-16>", "UTF-8"),
            ("<meta charset=x-user-defined>", "windows-1252"),
            ("<?xml?></b><1 <><meta charset=koi8-r>", "KOI8-R"),
            ("<meta charset=nonsense><meta charset=koi8-r>", "KOI8-R"),
            ("<metal charset=koi8-r>", "UTF-8"),
            ("<meta charset=koi8-r", "UTF-8"),
            ("<!-- never closed <meta charset=koi8-r>", "UTF-8"),
            (
                "<meta http-equiv=content-type content='charset charset=",
                "UTF-8",
            ),
        ] {
            assert_eq!(name(None, page.as_bytes()), expected, "{page}");
        }
        let late = format!("{}<meta charset=koi8-r>", " ".repeat(PRESCAN_BYTES));
        assert_eq!(name(None, late.as_bytes()), "UTF-8");
    }
}
