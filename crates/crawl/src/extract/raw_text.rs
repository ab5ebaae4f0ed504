//! Elements whose content is not markup, and where that content ends (WHATWG HTML §13.2.5.2–31).

use super::{attributes::Class, name::Name};
use memchr::{memchr, memchr2};

/// The way in which the content of an element is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RawText {
    /// Up to the end tag with this name.
    Until(&'static [u8]),
    /// As above, but a comment can hide end tags.
    Script,
    /// There is no end.
    Plain,
}

impl RawText {
    /// Of an HTML element; `<noscript>` counts, as in a browser that runs scripts.
    #[inline]
    pub(super) fn of(name: Name) -> Option<Self> {
        match name {
            Name::SCRIPT => Some(RawText::Script),
            Name::STYLE => Some(RawText::Until(b"style")),
            Name::TITLE => Some(RawText::Until(b"title")),
            Name::TEXTAREA => Some(RawText::Until(b"textarea")),
            Name::NOSCRIPT => Some(RawText::Until(b"noscript")),
            Name::IFRAME => Some(RawText::Until(b"iframe")),
            Name::XMP => Some(RawText::Until(b"xmp")),
            Name::NOEMBED => Some(RawText::Until(b"noembed")),
            Name::NOFRAMES => Some(RawText::Until(b"noframes")),
            Name::PLAINTEXT => Some(RawText::Plain),
            _ => None,
        }
    }

    /// The number of bytes of `rest` that are content.
    pub(super) fn length(self, rest: &[u8]) -> usize {
        match self {
            RawText::Until(name) => until_end_tag(rest, name),
            RawText::Script => until_end_of_script(rest),
            RawText::Plain => rest.len(),
        }
    }
}

fn until_end_tag(rest: &[u8], name: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr(b'<', &rest[at..]) {
        at += found;
        if is_end_tag(&rest[at..], name) {
            return at;
        }
        at += 1;
    }
    rest.len()
}

/// Inside of a comment in a script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    /// After `<!--`.
    Comment,
    /// After `<script` in a comment: the next end tag is part of the script.
    Script,
}

fn until_end_of_script(rest: &[u8]) -> usize {
    let mut escape = Escape::None;
    let mut at = 0;
    while let Some(found) = next_of_interest(&rest[at..], escape) {
        at += found;
        let here = &rest[at..];
        match escape {
            Escape::None | Escape::Comment if is_end_tag(here, b"script") => return at,
            Escape::None if here.starts_with(b"<!--") => {
                escape = Escape::Comment;
                // The dashes may also be the first of the end, as in `<!-->`.
                at += 1;
            }
            Escape::Comment | Escape::Script if here.starts_with(b"-->") => escape = Escape::None,
            Escape::Comment if is_tag(here, b"<", b"script") => escape = Escape::Script,
            Escape::Script if is_end_tag(here, b"script") => escape = Escape::Comment,
            _ => {}
        }
        at += 1;
    }
    rest.len()
}

fn next_of_interest(rest: &[u8], escape: Escape) -> Option<usize> {
    if escape == Escape::None {
        memchr(b'<', rest)
    } else {
        memchr2(b'<', b'-', rest)
    }
}

fn is_end_tag(here: &[u8], name: &[u8]) -> bool {
    is_tag(here, b"</", name)
}

fn is_tag(here: &[u8], opening: &[u8], name: &[u8]) -> bool {
    let Some(rest) = here.strip_prefix(opening) else {
        return false;
    };
    rest.len() > name.len()
        && rest[..name.len()].eq_ignore_ascii_case(name)
        && Class::ENDS_TAG_NAME.contains(rest[name.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_end_where_the_standard_says() {
        for (script, rest) in [
            ("a</b></script>", "</script>"),
            ("</SCRIPT >", "</SCRIPT >"),
            ("</scripts></script/>", "</script/>"),
            ("<!-- </script>", "</script>"),
            ("<!-- <script> </script> --></script>", "</script>"),
            ("<!-- <script> </script> </script>", "</script>"),
            ("<!-- <script> --> </script>", "</script>"),
            ("<!--><script></script>", "</script>"),
            ("<!---><script></script>", "</script>"),
            ("<!-- <scripty> </script>", "</script>"),
            ("<!-- <script> </script>", ""),
            ("<!-- <script>", ""),
            ("</script", ""),
        ] {
            let length = RawText::Script.length(script.as_bytes());
            assert_eq!(&script[length..], rest, "{script}");
        }
    }

    #[test]
    fn other_raw_text_ends_at_its_own_end_tag() {
        assert_eq!(RawText::Until(b"style").length(b"<!--</style>"), 4);
        assert_eq!(RawText::Until(b"style").length(b"</styles></title>"), 17);
        assert_eq!(RawText::Plain.length(b"</plaintext>"), 12);
    }
}
