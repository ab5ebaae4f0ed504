//! The parts of a page inside `<svg>` or `<math>`, where `<title>` and `<script>` do not begin
//! raw text and CDATA sections exist (WHATWG HTML §13.2.6.5).
//!
//! Only elements from the outermost `<svg>` or `<math>` inwards are remembered. Outside, which is
//! almost everywhere, tags are merely counted: an end tag that fits nothing inside closes the
//! drawing if such an element seems to be open around it.

use super::{
    attributes::{Attribute, Attributes, SelfClosing},
    name::Name,
};

/// Deepest nesting that is followed; a deeper element is not remembered. An end tag may cost a look
/// at each, so the limit also bounds what a hostile page can cost.
const MAX_DEPTH: usize = 128;

/// Whose rules an element follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespace {
    Html,
    Svg,
    MathMl,
}

/// The open elements, from the outermost foreign one inwards.
pub(super) struct Foreign {
    open: Vec<Open>,
    /// The number of elements that are open outside, by [`Name::slot`].
    outside: [u32; Name::SLOTS],
}

struct Open {
    name: Name,
    namespace: Namespace,
    point: Point,
}

/// Whether HTML may stand inside a foreign element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Point {
    None,
    Html,
    MathMlText,
}

impl Foreign {
    pub(super) fn new() -> Self {
        Foreign {
            open: Vec::new(),
            outside: [0; Name::SLOTS],
        }
    }

    /// Whether the innermost open element is foreign, so that `<![CDATA[` begins a section.
    pub(super) fn allows_cdata(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.namespace != Namespace::Html)
    }

    /// Takes note of a start tag and says whose element it begins.
    #[inline]
    pub(super) fn start(&mut self, name: Name, attributes: &Attributes<'_>) -> Namespace {
        if self.open.is_empty() && name != Name::SVG && name != Name::MATH {
            let open = &mut self.outside[name.slot()];
            *open = open.saturating_add(1);
            return Namespace::Html;
        }
        self.start_inside(name, attributes)
    }

    /// Takes note of an end tag.
    #[inline]
    pub(super) fn end(&mut self, name: Name) {
        if self.open.is_empty() {
            let open = &mut self.outside[name.slot()];
            *open = open.saturating_sub(1);
        } else {
            self.end_inside(name);
        }
    }

    fn start_inside(&mut self, name: Name, attributes: &Attributes<'_>) -> Namespace {
        if !self.follows_html_rules(name) && breaks_out(name, attributes) {
            self.break_out();
        }
        let is_html = self.follows_html_rules(name);
        let namespace = match (is_html, name) {
            (true, Name::SVG) => Namespace::Svg,
            (true, Name::MATH) => Namespace::MathMl,
            (true, _) => Namespace::Html,
            (false, _) => self
                .open
                .last()
                .map_or(Namespace::Html, |open| open.namespace),
        };
        let stays_open = match namespace {
            Namespace::Html => !self.open.is_empty() && has_content(name),
            _ => attributes.clone().self_closing() == SelfClosing::No,
        };
        if stays_open && self.open.len() < MAX_DEPTH {
            self.open.push(Open {
                name,
                namespace,
                point: point(name, namespace, attributes),
            });
        }
        namespace
    }

    /// Whether a start tag with this name is treated as if there were no foreign content.
    fn follows_html_rules(&self, name: Name) -> bool {
        self.open
            .last()
            .is_none_or(|open| match (open.namespace, open.point) {
                (Namespace::Html, _) | (_, Point::Html) => true,
                (_, Point::MathMlText) => name != Name::MGLYPH && name != Name::MALIGNMARK,
                _ => open.name == Name::ANNOTATION_XML && name == Name::SVG,
            })
    }

    /// Leaves foreign content up to the next place where HTML may stand.
    fn break_out(&mut self) {
        while self
            .open
            .last()
            .is_some_and(|open| open.namespace != Namespace::Html && open.point == Point::None)
        {
            self.open.pop();
        }
    }

    fn end_inside(&mut self, name: Name) {
        let is_foreign = self.allows_cdata();
        if is_foreign && (name == Name::P || name == Name::BR) {
            return self.break_out();
        }
        let same_kind = |open: &&Open| (open.namespace != Namespace::Html) == is_foreign;
        let run = self.open.iter().rev().take_while(same_kind).count();
        let first = self.open.len() - run;
        if let Some(found) = self.open[first..]
            .iter()
            .rposition(|open| open.name == name)
        {
            self.close(first + found);
        } else if is_foreign && first > 0 {
            // The rules of HTML apply from the enclosing HTML element on.
            let found = self.open[..first]
                .iter()
                .rposition(|open| open.name == name);
            self.open.truncate(found.unwrap_or(self.open.len()));
        } else if is_foreign && self.outside[name.slot()] > 0 && closes_content(name) {
            self.open.clear();
            self.end(name);
        }
    }

    /// Closes an element and what is inside it; a formatting element leaves its content open.
    fn close(&mut self, at: usize) {
        if self.open[at].namespace == Namespace::Html && is_formatting(self.open[at].name) {
            self.open.remove(at);
        } else {
            self.open.truncate(at);
        }
    }
}

fn point(name: Name, namespace: Namespace, attributes: &Attributes<'_>) -> Point {
    match (namespace, name) {
        (Namespace::Svg, Name::FOREIGN_OBJECT | Name::DESC | Name::TITLE) => Point::Html,
        (Namespace::MathMl, Name::MI | Name::MO | Name::MN | Name::MS | Name::MTEXT) => {
            Point::MathMlText
        }
        (Namespace::MathMl, Name::ANNOTATION_XML) if holds_html(attributes.clone()) => Point::Html,
        _ => Point::None,
    }
}

/// Whether an `<annotation-xml>` declares its content to be HTML.
fn holds_html(mut attributes: Attributes<'_>) -> bool {
    attributes
        .find(|attribute| attribute.name.eq_ignore_ascii_case(b"encoding"))
        .is_some_and(|Attribute { value, .. }| {
            value.eq_ignore_ascii_case(b"text/html")
                || value.eq_ignore_ascii_case(b"application/xhtml+xml")
        })
}

/// Whether a start tag ends foreign content, because it was surely meant as HTML.
fn breaks_out(name: Name, attributes: &Attributes<'_>) -> bool {
    match name {
        Name::B
        | Name::BIG
        | Name::BLOCKQUOTE
        | Name::BODY
        | Name::BR
        | Name::CENTER
        | Name::CODE => true,
        Name::DD | Name::DIV | Name::DL | Name::DT | Name::EM | Name::EMBED => true,
        Name::H1 | Name::H2 | Name::H3 | Name::H4 | Name::H5 | Name::H6 | Name::HEAD | Name::HR => {
            true
        }
        Name::I | Name::IMG | Name::LI | Name::LISTING | Name::MENU | Name::META | Name::NOBR => {
            true
        }
        Name::OL | Name::P | Name::PRE | Name::RUBY | Name::S | Name::SMALL | Name::SPAN => true,
        Name::STRONG | Name::STRIKE | Name::SUB | Name::SUP | Name::TABLE | Name::TT => true,
        Name::U | Name::UL | Name::VAR => true,
        Name::FONT => attributes.clone().any_of(&[b"color", b"face", b"size"]),
        _ => false,
    }
}

/// Whether an HTML element can have content that is scanned as markup.
fn has_content(name: Name) -> bool {
    !matches!(
        name,
        Name::AREA | Name::BASE | Name::BASEFONT | Name::BGSOUND | Name::BR | Name::COL | Name::EMBED | Name::HR
            | Name::IMG | Name::INPUT | Name::LINK | Name::META | Name::PARAM | Name::SOURCE | Name::TRACK
            | Name::WBR
            // Their content is raw text, so they are closed as soon as it ends.
            | Name::IFRAME | Name::NOEMBED | Name::NOFRAMES | Name::NOSCRIPT | Name::PLAINTEXT | Name::SCRIPT
            | Name::STYLE | Name::TEXTAREA | Name::TITLE | Name::XMP
    )
}

/// Whether an end tag closes what is open inside of its element. Those of the page's own parts
/// close nothing: the body has begun, and what follows its end is still part of it.
fn closes_content(name: Name) -> bool {
    has_content(name) && !matches!(name, Name::HEAD | Name::BODY | Name::HTML)
}

fn is_formatting(name: Name) -> bool {
    matches!(
        name,
        Name::A
            | Name::B
            | Name::BIG
            | Name::CODE
            | Name::EM
            | Name::FONT
            | Name::I
            | Name::NOBR
            | Name::S
            | Name::SMALL
            | Name::STRIKE
            | Name::STRONG
            | Name::TT
            | Name::U
    )
}
