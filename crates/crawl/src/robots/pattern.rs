//! Matching a path with a rule's pattern (RFC 9309 §2.2.2 and §2.2.3).
//!
//! Both sides are first brought into one spelling: bytes that a URL cannot hold are
//! percent-encoded, encoded unreserved characters decoded, hexadecimal digits upper case. `*` and
//! `$` in a path are encoded, which is how a pattern writes them where it means the characters
//! themselves. In a pattern with a query, what follows the `?` is compared with its reserved
//! characters encoded, as in the RFC's example `?baz=https%3A%2F%2Ffoo.bar`; elsewhere an encoded
//! slash differs from a slash.

/// Reserved characters of RFC 3986 and a stray `%`, kept as they are; without `*` and `$`.
const KEPT: &[u8] = b"/:?#[]@!&'()+,;=%";
/// The ones that keep their meaning inside a query.
const KEPT_IN_QUERY: &[u8] = b"&=+;%";

/// A path and query in the spellings that patterns are compared with.
pub(super) struct Path {
    text: String,
    /// With reserved characters of the query encoded; `None` without a query.
    query_encoded: Option<String>,
}

impl Path {
    pub(super) fn new(path_and_query: &str) -> Self {
        let path_and_query = if path_and_query.is_empty() {
            "/"
        } else {
            path_and_query
        };
        let mut text = String::with_capacity(path_and_query.len());
        spell(path_and_query.as_bytes(), KEPT, &mut text);
        let query_encoded = path_and_query.split_once('?').map(|(path, query)| {
            let mut text = String::with_capacity(path_and_query.len());
            spell(path.as_bytes(), KEPT, &mut text);
            text.push('?');
            spell(query.as_bytes(), KEPT_IN_QUERY, &mut text);
            text
        });
        Path {
            text,
            query_encoded,
        }
    }

    /// Whether it matches a canonical pattern.
    pub(super) fn matches(&self, pattern: &str) -> bool {
        if pattern.contains('?') {
            self.query_encoded
                .as_ref()
                .is_some_and(|text| glob(pattern, text))
        } else {
            glob(pattern, &self.text)
        }
    }
}

/// Brings a pattern as written into its one spelling.
pub(super) fn canonical(written: &[u8]) -> Box<str> {
    let (body, anchor) = written
        .strip_suffix(b"$")
        .map_or((written, ""), |body| (body, "$"));
    let question = body
        .iter()
        .position(|&b| b == b'?')
        .map_or(body.len(), |at| at + 1);
    let (path, query) = body.split_at(question);
    let mut out = String::with_capacity(written.len());
    spell_with_stars(path, KEPT, &mut out);
    spell_with_stars(query, KEPT_IN_QUERY, &mut out);
    out.push_str(anchor);
    out.into_boxed_str()
}

fn spell_with_stars(text: &[u8], kept: &[u8], out: &mut String) {
    for (i, piece) in text.split(|&b| b == b'*').enumerate() {
        if i > 0 {
            out.push('*');
        }
        spell(piece, kept, out);
    }
}

/// Appends bytes in their one spelling; the result is ASCII.
fn spell(bytes: &[u8], kept: &[u8], out: &mut String) {
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let escaped = escaped_byte(rest);
        let byte = escaped.unwrap_or(first);
        rest = if escaped.is_some() { &rest[3..] } else { after };
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if unreserved || (escaped.is_none() && kept.contains(&byte)) {
            out.push(char::from(byte));
        } else {
            let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// The byte that a leading `%xx` stands for.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = *text else {
        return None;
    };
    let digit = |b: u8| {
        char::from(b)
            .to_digit(16)
            .and_then(|value| u8::try_from(value).ok())
    };
    Some(digit(high)? << 4 | digit(low)?)
}

/// Matches piece by piece, each at its leftmost place, in time linear in both lengths: a later
/// place never helps, as only the first piece is tied to the start and only the last to the end.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, anchored) = pattern
        .strip_suffix('$')
        .map_or((pattern, false), |pattern| (pattern, true));
    let Some((first, rest)) = pattern.split_once('*') else {
        return if anchored {
            text == pattern
        } else {
            text.starts_with(pattern)
        };
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        let Some(at) = text.find(piece) else {
            return false;
        };
        text = &text[at + piece.len()..];
    }
    if anchored {
        text.ends_with(last)
    } else {
        text.contains(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Path::new(path).matches(&canonical(pattern.as_bytes()))
    }

    #[test]
    fn one_spelling_per_pattern() {
        for (written, expected) in [
            ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
            (
                "/foo/bar?baz=https://foo.bar",
                "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
            ),
            ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
            ("/a b*c$d$", "/a%20b*c%24d$"),
            ("/%2A%24", "/%2A%24"),
            ("/%2fa%zz%4", "/%2Fa%zz%4"),
        ] {
            assert_eq!(&*canonical(written.as_bytes()), expected);
        }
        assert_eq!(
            &*canonical(b"/caf\xe9"),
            "/caf%E9",
            "bytes that are not UTF-8"
        );
    }

    #[test]
    fn stars_and_ends_are_special_only_where_the_rfc_says() {
        for (pattern, path, expected) in [
            ("/*.gif$", "/a/b.gif", true),
            ("/*.gif$", "/a/b.gif?c", false),
            ("/*.gif", "/a/b.gif?c", true),
            ("/$", "/", true),
            ("/$", "/a", false),
            ("/a*$", "/abc", true),
            ("*", "/", true),
            ("/a*b*c", "/a-c-b", false),
            ("/a*b*b$", "/ab", false),
            ("/a*bc$", "/abcbc", true),
            ("/a$b", "/a$b", true),
            ("/a$b", "/a", false),
            ("/%2A", "/*", true),
            ("/%2A", "/b", false),
            ("/x%24", "/x$", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn an_encoded_slash_differs_in_a_path_but_not_in_a_query() {
        assert!(!matches("/a%2Fb", "/a/b"));
        assert!(matches("/a%2fb", "/a%2Fb"));
        assert!(matches("/a?u=http://b", "/a?u=http%3A%2F%2Fb"));
        assert!(matches("/a?u=http%3A%2F%2Fb", "/a?u=http://b"));
        assert!(matches("/*%2Fb", "/a?u=%2fb"));
        assert!(matches("/*/b", "/a?u=/b"));
        assert!(
            !matches("/a?b%26c", "/a?b&c"),
            "an encoded separator separates nothing"
        );
    }
}
