//! The smallest questions about a page: one fact each.

use super::{Facts, PageFacts, Truth, Via, syntax::quoted};
use apoidea_model::{Domain, PageUrl};
use std::fmt;

/// One question about one fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Atom {
    /// `host under example.org`: the host is this one or lies below it.
    HostUnder(Domain),
    /// `host = www.example.org`.
    Host(Domain),
    /// `site = example.org`: the registrable domain.
    Site(Domain),
    /// `scheme = https`.
    Https,
    /// `scheme = http`.
    Http,
    /// `path under /docs`: this path or one below it.
    PathUnder(String),
    /// `path = /index.html`, and the same of other parts.
    Equals(Part, String),
    /// `path starts /a`.
    Starts(Part, String),
    /// `path ends .pdf`.
    Ends(Part, String),
    /// `path contains word`, whatever the case of the letters.
    Contains(Part, String),
    /// `parameters <= 2`: parameters in the query of the URL.
    Parameters(Comparison, u32),
    /// `depth <= 5`: links followed from a seed.
    Depth(Comparison, u32),
    /// `lang = de`: this language in any of its regions, or `de-at` for one.
    Language(String),
    /// `type = html`.
    Type(MediaKind),
    /// `from same site`: the link was on a page of the same site. So is every seed.
    FromSameSite,
    /// `from same host`.
    FromSameHost,
}

/// A part of a page that is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The whole URL.
    Url,
    /// Its path.
    Path,
    /// Its query without the question mark; empty if there is none.
    Query,
    /// The title.
    Title,
    /// The visible text.
    Text,
}

/// A relation between numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

/// A kind of document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaKind {
    /// `html`: HTML and XHTML.
    Html,
    /// `text`, `image`, `audio`, `video`: every media type that begins so.
    Family(&'static str),
    /// `pdf`, `xml`, `json`: short for one media type, its own and structured suffixes (`+xml`).
    Short(&'static str),
    /// `application/zip`: one media type in full, in lower case.
    Exact(String),
}

/// Families of media types that have a word.
pub(super) const FAMILIES: [&str; 4] = ["text", "image", "audio", "video"];
/// Media types that have a word of their own, below `application`.
pub(super) const SHORT_TYPES: [&str; 3] = ["pdf", "xml", "json"];

impl Atom {
    /// The answer for a page.
    pub fn ask(&self, facts: &Facts<'_>) -> Truth {
        let url = facts.url;
        match self {
            Atom::HostUnder(domain) => is_under(url.host(), domain.as_str()).into(),
            Atom::Host(domain) => (url.host() == domain.as_str()).into(),
            Atom::Site(domain) => (url.domain().site() == domain.as_str()).into(),
            Atom::Https => url.is_https().into(),
            Atom::Http => (!url.is_https()).into(),
            Atom::PathUnder(path) => is_path_under(url.path(), path).into(),
            Atom::Equals(part, wanted) => part.ask(facts, |text| text == wanted),
            Atom::Starts(part, wanted) => part.ask(facts, |text| text.starts_with(wanted)),
            Atom::Ends(part, wanted) => part.ask(facts, |text| text.ends_with(wanted)),
            Atom::Contains(part, wanted) => part.ask(facts, |text| contains(text, wanted)),
            Atom::Parameters(comparison, number) => {
                comparison.holds(parameters(url), *number).into()
            }
            Atom::Depth(comparison, number) => facts.depth.map_or(Truth::Unknown, |depth| {
                comparison.holds(depth.into(), *number).into()
            }),
            Atom::Language(wanted) => of_page(facts, |page| {
                page.language.is_some_and(|tag| speaks(tag, wanted))
            }),
            Atom::Type(kind) => of_page(facts, |page| {
                page.media_type
                    .is_some_and(|media_type| kind.includes(media_type))
            }),
            Atom::FromSameSite => via(facts, |from| from.domain().site() == url.domain().site()),
            Atom::FromSameHost => via(facts, |from| from.host() == url.host()),
        }
    }

    /// Whether the answer needs the visible text of the page.
    pub fn reads_text(&self) -> bool {
        match self {
            Atom::Equals(part, _)
            | Atom::Starts(part, _)
            | Atom::Ends(part, _)
            | Atom::Contains(part, _) => *part == Part::Text,
            _ => false,
        }
    }
}

fn of_page(facts: &Facts<'_>, ask: impl FnOnce(&PageFacts<'_>) -> bool) -> Truth {
    facts
        .page
        .as_ref()
        .map_or(Truth::Unknown, |page| ask(page).into())
}

fn via(facts: &Facts<'_>, ask: impl FnOnce(&PageUrl) -> bool) -> Truth {
    match facts.via {
        Via::Unknown => Truth::Unknown,
        Via::Seed => Truth::Yes,
        Via::Link(from) => ask(from).into(),
    }
}

/// Whether a host is the domain or lies below it.
fn is_under(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether a path is another or lies below it, by whole segments.
fn is_path_under(path: &str, upper: &str) -> bool {
    let upper = upper.strip_suffix('/').unwrap_or(upper);
    path.strip_prefix(upper)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `wanted` is in lower case already.
fn contains(text: &str, wanted: &str) -> bool {
    text.to_lowercase().contains(wanted)
}

fn parameters(url: &PageUrl) -> u32 {
    let count = |query: &str| query.split('&').filter(|part| !part.is_empty()).count();
    u32::try_from(count(query(url))).unwrap_or(u32::MAX)
}

fn query(url: &PageUrl) -> &str {
    let rest = url.path_and_query();
    rest.split_once('?').map_or("", |(_, query)| query)
}

/// Whether a language tag is the wanted one or a region of it.
fn speaks(tag: &str, wanted: &str) -> bool {
    let tag = tag.trim().replace('_', "-").to_ascii_lowercase();
    tag.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

impl Part {
    fn ask(self, facts: &Facts<'_>, ask: impl FnOnce(&str) -> bool) -> Truth {
        match self {
            Part::Url => ask(facts.url.as_str()).into(),
            Part::Path => ask(facts.url.path()).into(),
            Part::Query => ask(query(facts.url)).into(),
            Part::Title => of_page(facts, |page| ask(page.title.unwrap_or_default())),
            Part::Text => facts
                .page
                .and_then(|page| page.text)
                .map_or(Truth::Unknown, |text| ask(text).into()),
        }
    }

    /// Its word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Part::Url => "url",
            Part::Path => "path",
            Part::Query => "query",
            Part::Title => "title",
            Part::Text => "text",
        }
    }
}

impl Comparison {
    fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Comparison::Less => left < right,
            Comparison::AtMost => left <= right,
            Comparison::Equal => left == right,
            Comparison::AtLeast => left >= right,
            Comparison::More => left > right,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
            Comparison::Equal => "=",
            Comparison::AtLeast => ">=",
            Comparison::More => ">",
        }
    }
}

impl MediaKind {
    fn includes(&self, media_type: &str) -> bool {
        let media_type = media_type.to_ascii_lowercase();
        match self {
            MediaKind::Html => matches!(&*media_type, "text/html" | "application/xhtml+xml"),
            MediaKind::Family(family) => media_type
                .strip_prefix(family)
                .is_some_and(|rest| rest.starts_with('/')),
            MediaKind::Short(name) => {
                let (_, subtype) = media_type.split_once('/').unwrap_or_default();
                subtype == *name
                    || subtype
                        .rsplit_once('+')
                        .is_some_and(|(_, tail)| tail == *name)
            }
            MediaKind::Exact(wanted) => media_type == *wanted,
        }
    }
}

impl fmt::Display for MediaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MediaKind::Html => f.write_str("html"),
            MediaKind::Family(name) | MediaKind::Short(name) => f.write_str(name),
            MediaKind::Exact(media_type) => write!(f, "{}", quoted(media_type)),
        }
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::HostUnder(domain) => write!(f, "host under {}", quoted(domain.as_str())),
            Atom::Host(domain) => write!(f, "host = {}", quoted(domain.as_str())),
            Atom::Site(domain) => write!(f, "site = {}", quoted(domain.as_str())),
            Atom::Https => f.write_str("scheme = https"),
            Atom::Http => f.write_str("scheme = http"),
            Atom::PathUnder(path) => write!(f, "path under {}", quoted(path)),
            Atom::Equals(part, text) => write!(f, "{} = {}", part.word(), quoted(text)),
            Atom::Starts(part, text) => write!(f, "{} starts {}", part.word(), quoted(text)),
            Atom::Ends(part, text) => write!(f, "{} ends {}", part.word(), quoted(text)),
            Atom::Contains(part, text) => write!(f, "{} contains {}", part.word(), quoted(text)),
            Atom::Parameters(comparison, number) => {
                write!(f, "parameters {} {number}", comparison.sign())
            }
            Atom::Depth(comparison, number) => write!(f, "depth {} {number}", comparison.sign()),
            Atom::Language(tag) => write!(f, "lang = {}", quoted(tag)),
            Atom::Type(kind) => write!(f, "type = {kind}"),
            Atom::FromSameSite => f.write_str("from same site"),
            Atom::FromSameHost => f.write_str("from same host"),
        }
    }
}
