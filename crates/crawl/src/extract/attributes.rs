//! The attributes of a start tag, as the WHATWG tokenizer delimits them (§13.2.5.32–40), and a
//! lookup of the few that matter to a crawler.
//!
//! Values stay raw bytes here; [`super::source`] decodes them.

use super::source::Source;
use memchr::memchr;
use std::borrow::Cow;

/// Iterator over `name=value` pairs, starting behind the tag's name and ending at its `>` or the
/// end of input.
#[derive(Clone)]
pub(super) struct Attributes<'a> {
    input: &'a [u8],
    at: usize,
    /// Position behind the last `/` that stood between attributes.
    after_slash: usize,
}

/// One attribute; the value is empty where there is none.
pub(super) struct Attribute<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
}

/// Whether the tag is written as `<name/>`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SelfClosing {
    Yes,
    No,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(input: &'a [u8], at: usize) -> Self {
        Attributes {
            input,
            at,
            after_slash: 0,
        }
    }

    /// The position of the tag's `>`, if it has one.
    pub(super) fn end(mut self) -> Option<usize> {
        while self.next().is_some() {}
        (self.at < self.input.len()).then_some(self.at)
    }

    pub(super) fn self_closing(mut self) -> SelfClosing {
        while self.next().is_some() {}
        if self.after_slash == self.at {
            SelfClosing::Yes
        } else {
            SelfClosing::No
        }
    }

    /// Whether the tag has an attribute with one of these lower-case names.
    pub(super) fn any_of(mut self, names: &[&[u8]]) -> bool {
        self.any(|attribute| {
            names
                .iter()
                .any(|name| attribute.name.eq_ignore_ascii_case(name))
        })
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// Skips what does not end a value or name, and returns it.
    #[inline]
    fn take_until(&mut self, from: usize, ends: Class) -> &'a [u8] {
        while self.peek().is_some_and(|byte| !ends.contains(byte)) {
            self.at += 1;
        }
        &self.input[from..self.at]
    }

    /// The value behind a `=`.
    #[inline]
    fn value(&mut self) -> &'a [u8] {
        self.skip_space();
        let start = self.at;
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote),
            Some(b'>') | None => &[],
            Some(_) => self.take_until(start, Class::ENDS_UNQUOTED),
        }
    }

    #[inline]
    fn quoted(&mut self, quote: u8) -> &'a [u8] {
        let rest = &self.input[self.at + 1..];
        let length = memchr(quote, rest).unwrap_or(rest.len());
        self.at = (self.at + length + 2).min(self.input.len());
        &rest[..length]
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    #[inline]
    fn next(&mut self) -> Option<Attribute<'a>> {
        loop {
            match self.peek()? {
                b'>' => return None,
                b'/' => self.after_slash = self.at + 1,
                byte if is_space(byte) => {}
                _ => break,
            }
            self.at += 1;
        }
        let start = self.at;
        // Whatever comes first belongs to the name, even a `=`.
        self.at += 1;
        let name = self.take_until(start, Class::ENDS_NAME);
        self.skip_space();
        if self.peek() != Some(b'=') {
            return Some(Attribute { name, value: &[] });
        }
        self.at += 1;
        Some(Attribute {
            name,
            value: self.value(),
        })
    }
}

/// White space between attributes; a carriage return is a line feed by the time the tokenizer sees
/// it.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    Class::SPACE.contains(byte)
}

/// A set of bytes.
#[derive(Clone, Copy)]
pub(super) struct Class(u8);

impl Class {
    const SPACE: Class = Class(1);
    const ENDS_UNQUOTED: Class = Class(2);
    /// Space, `/`, `>` and `=`, which end the name of an attribute.
    const ENDS_NAME: Class = Class(4);
    /// Space, `/` and `>`, which end the name of a tag.
    pub(super) const ENDS_TAG_NAME: Class = Class(8);

    #[inline]
    pub(super) fn contains(self, byte: u8) -> bool {
        CLASSES[byte as usize] & self.0 != 0
    }
}

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    classes[b'\t' as usize] = 15;
    classes[b'\n' as usize] = 15;
    classes[b'\x0c' as usize] = 15;
    classes[b'\r' as usize] = 15;
    classes[b' ' as usize] = 15;
    classes[b'>' as usize] = 14;
    classes[b'/' as usize] = 12;
    classes[b'=' as usize] = 4;
    classes
};

/// An attribute that matters to a crawler.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    Href,
    Rel,
    Src,
    Name,
    Content,
    HttpEquiv,
    Lang,
}

impl Wanted {
    const COUNT: usize = 7;

    fn of(name: &[u8]) -> Option<Self> {
        let (wanted, spelling): (_, &[u8]) = match (name.len(), name[0] | 0x20) {
            (4, b'h') => (Wanted::Href, b"href"),
            (3, b'r') => (Wanted::Rel, b"rel"),
            (3, b's') => (Wanted::Src, b"src"),
            (4, b'n') => (Wanted::Name, b"name"),
            (7, b'c') => (Wanted::Content, b"content"),
            (10, b'h') => (Wanted::HttpEquiv, b"http-equiv"),
            (4, b'l') => (Wanted::Lang, b"lang"),
            _ => return None,
        };
        name.eq_ignore_ascii_case(spelling).then_some(wanted)
    }

    /// The attribute's name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Wanted::Href => "href",
            Wanted::Rel => "rel",
            Wanted::Src => "src",
            Wanted::Name => "name",
            Wanted::Content => "content",
            Wanted::HttpEquiv => "http-equiv",
            Wanted::Lang => "lang",
        }
    }
}

/// Something whose attributes can be asked for: a tag in a byte stream or an element of a tree.
pub(super) trait Lookup<'a> {
    /// The value, decoded.
    fn value(&self, wanted: Wanted) -> Option<Cow<'a, str>>;
}

/// The wanted attributes of one tag, found in one pass; of duplicates the first counts.
pub(super) struct Found<'a> {
    source: &'a Source<'a>,
    values: [Option<&'a [u8]>; Wanted::COUNT],
}

impl<'a> Found<'a> {
    pub(super) fn new(source: &'a Source<'a>, attributes: Attributes<'a>) -> Self {
        let mut values = [None; Wanted::COUNT];
        for attribute in attributes {
            if let Some(wanted) = Wanted::of(attribute.name) {
                values[wanted as usize].get_or_insert(attribute.value);
            }
        }
        Found { source, values }
    }
}

impl<'a> Lookup<'a> for Found<'a> {
    #[inline]
    fn value(&self, wanted: Wanted) -> Option<Cow<'a, str>> {
        self.values[wanted as usize].map(|value| self.source.attribute(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(tag: &str) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Attributes::new(tag.as_bytes(), 0)
            .map(|a| (text(a.name), text(a.value)))
            .collect()
    }

    #[test]
    fn attributes_are_delimited_as_the_standard_says() {
        for (tag, expected) in [
            (
                " a=1 b='2' c=\"3\" d>",
                &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "")][..],
            ),
            (" a = 'x>y' b>", &[("a", "x>y"), ("b", "")]),
            (" a=b=\"c>", &[("a", "b=\"c")]),
            (" =a=b>", &[("=a", "b")]),
            ("/a/b=/c/>", &[("a", ""), ("b", "/c/")]),
            (" a=''b=''>", &[("a", ""), ("b", "")]),
            (" a=>", &[("a", "")]),
            (" a'b\"c>", &[("a'b\"c", "")]),
            (" a\r\n=\t'1'\x0cb>", &[("a", "1"), ("b", "")]),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|(n, v)| (n.to_string(), v.to_string()))
                .collect();
            assert_eq!(pairs(tag), expected, "{tag}");
            assert_eq!(
                Attributes::new(tag.as_bytes(), 0).end(),
                Some(tag.len() - 1),
                "{tag}"
            );
        }
    }

    #[test]
    fn a_tag_that_never_ends_has_no_end() {
        for tag in ["", " ", " a", " a=", " a='", " a='>", " a=\">\" b", "/"] {
            assert_eq!(Attributes::new(tag.as_bytes(), 0).end(), None, "{tag}");
        }
    }

    #[test]
    fn only_a_slash_outside_of_a_value_closes() {
        let closes =
            |tag: &str| Attributes::new(tag.as_bytes(), 0).self_closing() == SelfClosing::Yes;
        assert!(closes("/>") && closes(" a='b'/>") && closes(" a />"));
        assert!(!closes(" a=b/>") && !closes("/ >") && !closes(" a='/'>"));
    }
}
