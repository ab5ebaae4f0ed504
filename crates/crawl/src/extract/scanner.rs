//! One pass over a page's bytes that finds its tags, as the WHATWG tokenizer does (HTML §13.2.5).
//!
//! The tokenizer depends on the tree builder in two points only, both followed here: which start
//! tags begin raw text ([`super::raw_text`]) and whether the page is inside `<svg>` or `<math>`
//! ([`super::foreign`]).

use super::{
    attributes::{Attributes, Class},
    foreign::{Foreign, Namespace},
    name::Name,
    raw_text::RawText,
};
use memchr::{memchr, memchr_iter, memmem};

/// A piece of a page. Comments and declarations are left out.
pub(super) enum Token<'a> {
    /// Text between tags, not yet decoded; one text can come in several pieces.
    Text(&'a [u8]),
    /// The content of an element that holds no markup.
    Raw(Name, &'a [u8]),
    /// A start tag.
    Start(Tag<'a>),
    /// An end tag.
    End(Name),
}

/// A start tag.
pub(super) struct Tag<'a> {
    pub(super) name: Name,
    pub(super) namespace: Namespace,
    pub(super) attributes: Attributes<'a>,
}

/// Iterator over a page's tokens.
pub(super) struct Scanner<'a> {
    input: &'a [u8],
    at: usize,
    raw: Option<(Name, RawText)>,
    foreign: Foreign,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Scanner {
            input,
            at: 0,
            raw: None,
            foreign: Foreign::new(),
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.input[self.at..]
    }

    /// The token that begins with the `<` at the current position; `None` for one that is left out.
    #[inline]
    fn markup(&mut self) -> Option<Token<'a>> {
        let rest = self.rest();
        match (rest.get(1), rest.get(2)) {
            (Some(byte), _) if byte.is_ascii_alphabetic() => self.start_tag(),
            (Some(b'/'), Some(byte)) if byte.is_ascii_alphabetic() => self.end_tag(),
            (Some(b'/'), Some(_)) | (Some(b'?'), _) => self.skip_past(rest, 1, b">"),
            (Some(b'!'), _) => self.declaration(rest),
            _ => Some(self.text_from_here()),
        }
    }

    /// Text up to the next `<`; one that begins with a `<` begins no tag.
    fn text_from_here(&mut self) -> Token<'a> {
        let rest = self.rest();
        let length = memchr(b'<', &rest[1..]).map_or(rest.len(), |length| length + 1);
        self.at += length;
        Token::Text(&rest[..length])
    }

    fn declaration(&mut self, rest: &'a [u8]) -> Option<Token<'a>> {
        if rest.starts_with(b"<!--") {
            self.at += comment_length(rest);
            None
        } else if rest.starts_with(b"<![CDATA[") && self.foreign.allows_cdata() {
            self.skip_past(rest, 9, b"]]>")
        } else {
            self.skip_past(rest, 2, b">")
        }
    }

    fn skip_past(&mut self, rest: &[u8], from: usize, end: &[u8]) -> Option<Token<'a>> {
        self.at +=
            memmem::find(&rest[from..], end).map_or(rest.len(), |found| from + found + end.len());
        None
    }

    #[inline]
    fn start_tag(&mut self) -> Option<Token<'a>> {
        let (name, attributes) = self.tag(1)?;
        let namespace = self.foreign.start(name, &attributes);
        if namespace == Namespace::Html {
            self.raw = RawText::of(name).map(|raw| (name, raw));
        }
        Some(Token::Start(Tag {
            name,
            namespace,
            attributes,
        }))
    }

    #[inline]
    fn end_tag(&mut self) -> Option<Token<'a>> {
        let (name, _) = self.tag(2)?;
        self.foreign.end(name);
        Some(Token::End(name))
    }

    /// Consumes a tag whose name begins `prefix` bytes from here; one that is cut off consumes the
    /// rest of the page.
    #[inline]
    fn tag(&mut self, prefix: usize) -> Option<(Name, Attributes<'a>)> {
        let start = self.at + prefix;
        let name = &self.input[start..];
        let length = name
            .iter()
            .position(|&byte| Class::ENDS_TAG_NAME.contains(byte))
            .unwrap_or(name.len());
        let attributes = Attributes::new(self.input, start + length);
        let Some(end) = attributes.clone().end() else {
            self.at = self.input.len();
            return None;
        };
        self.at = end + 1;
        Some((Name::of(&name[..length]), attributes))
    }

    /// Consumes the content of the raw text element that was just opened.
    fn raw_text(&mut self, name: Name, raw: RawText) -> Token<'a> {
        let rest = self.rest();
        let content = &rest[..raw.length(rest)];
        self.at += content.len();
        self.skip_end_tag();
        Token::Raw(name, content)
    }

    /// The end tag of raw text closes nothing but that.
    fn skip_end_tag(&mut self) {
        if self.at < self.input.len() {
            self.tag(2);
        }
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Token<'a>;

    #[inline]
    fn next(&mut self) -> Option<Token<'a>> {
        if let Some((name, raw)) = self.raw.take() {
            return Some(self.raw_text(name, raw));
        }
        loop {
            let rest = self.rest();
            match rest.first()? {
                b'<' => {
                    if let Some(token) = self.markup() {
                        return Some(token);
                    }
                }
                _ => return Some(self.text_from_here()),
            }
        }
    }
}

/// Bytes of the comment at the beginning of `rest`. It ends with `-->` or `--!>`; `<!-->` and
/// `<!--->` are complete.
fn comment_length(rest: &[u8]) -> usize {
    for short in [&b"<!-->"[..], b"<!--->"] {
        if rest.starts_with(short) {
            return short.len();
        }
    }
    let ends = |end: &usize| rest[4..*end].ends_with(b"--") || rest[4..*end].ends_with(b"--!");
    memchr_iter(b'>', rest)
        .find(ends)
        .map_or(rest.len(), |end| end + 1)
}
