//! The words a reader sees on a page, for an index. Links do not need it, so they do not
//! pay for it.

use super::{
    attributes::SelfClosing,
    foreign::Namespace,
    is_html,
    name::Name,
    scanner::{Scanner, Tag, Token},
    source::Source,
};

/// The visible text of a page: without head, scripts, styles and templates, white space collapsed,
/// and with a space where one block ends and another begins. Plain text is only collapsed; other
/// media types have none.
pub fn visible_text(content_type: Option<&str>, body: &[u8]) -> String {
    let source = Source::new(content_type, body);
    let mut words = Words::default();
    if is_html(content_type) {
        let mut page = Page::default();
        Scanner::new(source.bytes()).for_each(|token| page.token(token, &source, &mut words));
    } else if content_type.is_some_and(|media_type| media_type.trim_start().starts_with("text/")) {
        words.push(&source.whole());
    }
    words.text
}

/// The same with each block on a line of its own, and the title before all others: for comparing two
/// versions of a page.
pub fn visible_lines(content_type: Option<&str>, body: &[u8]) -> String {
    let source = Source::new(content_type, body);
    let mut words = Words {
        blocks: Blocks::Lines,
        ..Words::default()
    };
    if is_html(content_type) {
        let mut page = Page::default();
        for token in Scanner::new(source.bytes()) {
            if let Token::Raw(Name::TITLE, title) = token {
                words.push(&source.text(title));
                words.end_block();
            }
            page.token(token, &source, &mut words);
        }
    } else if content_type.is_some_and(|media_type| media_type.trim_start().starts_with("text/")) {
        for line in source.whole().lines() {
            words.push(line);
            words.end_block();
        }
    }
    words.text
}

/// Text with collapsed white space.
#[derive(Default)]
struct Words {
    text: String,
    gap: bool,
    blocks: Blocks,
    /// Whether a block has ended since the last word.
    is_new_block: bool,
}

/// How blocks are kept apart.
#[derive(Default, PartialEq)]
enum Blocks {
    /// By a space.
    #[default]
    Spaces,
    /// By the end of a line.
    Lines,
}

impl Words {
    fn push(&mut self, text: &str) {
        for piece in text.split_inclusive(char::is_whitespace) {
            let word = piece.trim_end();
            if !word.is_empty() {
                if self.gap && !self.text.is_empty() {
                    let is_line = self.is_new_block && self.blocks == Blocks::Lines;
                    self.text.push(if is_line { '\n' } else { ' ' });
                }
                self.text.push_str(word);
                (self.gap, self.is_new_block) = (false, false);
            }
            self.gap |= word.len() < piece.len();
        }
    }

    /// The next word belongs to another block.
    fn end_block(&mut self) {
        (self.gap, self.is_new_block) = (true, true);
    }
}

/// The text of a page that is shown. Its head needs no attention: all of it is raw text, and any
/// other would begin the body.
#[derive(Default)]
struct Page {
    hidden: Option<Hidden>,
}

/// An element that is not shown, with how often it is nested in itself.
struct Hidden {
    name: Name,
    depth: usize,
}

impl Page {
    fn token(&mut self, token: Token<'_>, source: &Source<'_>, words: &mut Words) {
        match token {
            Token::Start(tag) => {
                self.start(&tag);
                if !is_inline(tag.name) {
                    words.end_block();
                }
            }
            Token::End(name) => {
                self.end(name);
                if !is_inline(name) {
                    words.end_block();
                }
            }
            _ if self.hidden.is_some() => {}
            Token::Text(text) => words.push(&source.text(text)),
            Token::Raw(Name::TEXTAREA, text) => words.push(&source.text(text)),
            Token::Raw(Name::XMP | Name::PLAINTEXT, text) => words.push(&source.verbatim(text)),
            Token::Raw(..) => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match &mut self.hidden {
            Some(hidden) if hidden.name == tag.name => hidden.depth += 1,
            None if is_hidden(tag) => {
                self.hidden = Some(Hidden {
                    name: tag.name,
                    depth: 1,
                })
            }
            _ => {}
        }
    }

    fn end(&mut self, name: Name) {
        if let Some(hidden) = self.hidden.as_mut().filter(|hidden| hidden.name == name) {
            hidden.depth -= 1;
            if hidden.depth == 0 {
                self.hidden = None;
            }
        }
    }
}

/// Whether the content of an element is not shown although it is scanned as markup.
fn is_hidden(tag: &Tag<'_>) -> bool {
    match tag.namespace {
        Namespace::Html => tag.name == Name::TEMPLATE,
        _ => {
            matches!(tag.name, Name::SCRIPT | Name::STYLE | Name::TITLE)
                && tag.attributes.clone().self_closing() == SelfClosing::No
        }
    }
}

/// Whether a word continues across the tags of this element.
fn is_inline(name: Name) -> bool {
    matches!(
        name,
        Name::A
            | Name::ABBR
            | Name::ACRONYM
            | Name::B
            | Name::BDI
            | Name::BDO
            | Name::BIG
            | Name::CITE
            | Name::CODE
            | Name::DATA
            | Name::DEL
            | Name::DFN
            | Name::EM
            | Name::FONT
            | Name::I
            | Name::INS
            | Name::KBD
            | Name::LABEL
            | Name::MARK
            | Name::NOBR
            | Name::Q
            | Name::RUBY
            | Name::S
            | Name::SAMP
            | Name::SCRIPT
            | Name::SMALL
            | Name::SPAN
            | Name::STRIKE
            | Name::STRONG
            | Name::STYLE
            | Name::SUB
            | Name::SUP
            | Name::TEMPLATE
            | Name::TIME
            | Name::TT
            | Name::U
            | Name::VAR
            | Name::WBR
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_words_and_nothing_else() {
        for (page, expected) in [
            ("<head><title>No</title></head><body>Yes</body>", "Yes"),
            ("a<script>no()</script>b <style>no{}</style>c", "ab c"),
            ("<p>one<p>two</p>three<br>four", "one two three four"),
            ("<td>one<td>two", "one two"),
            ("w<b>or</b>d \n\t word", "word word"),
            ("<template>no<template>no</template>no</template>yes", "yes"),
            ("a &lt; b&nbsp;&eacute; &amp;amp;", "a < b é &amp;"),
            (
                "<textarea>a &amp; b</textarea><xmp>&amp;<b></xmp>",
                "a & b &amp;<b>",
            ),
            (
                "<svg><title>no</title><style/><text>yes</text></svg>",
                "yes",
            ),
            ("<noscript>no</noscript><!-- no -->1 < 2<", "1 < 2<"),
            ("", ""),
        ] {
            assert_eq!(visible_text(None, page.as_bytes()), expected, "{page}");
        }
    }

    #[test]
    fn blocks_are_lines_for_a_comparison() {
        let page = "<title>The <b>title</b></title><h1>Head</h1><p>one\ntwo <b>th</b>ree<br>four";
        let lines = "The <b>title</b>\nHead\none two three\nfour";
        assert_eq!(visible_lines(None, page.as_bytes()), lines);
        let plain = visible_lines(Some("text/plain"), b"a  b\n\n c\n");
        assert_eq!(plain, "a b\nc");
        assert_eq!(visible_lines(Some("image/png"), b"abc"), "");
    }

    #[test]
    fn only_text_has_words() {
        assert_eq!(
            visible_text(Some("text/plain; charset=latin1"), b" <b>\n\xe9 "),
            "<b> é"
        );
        assert_eq!(visible_text(Some("image/png"), b"abc"), "");
    }
}
