//! The rules of a site's robots.txt for us (RFC 9309).
//!
//! Only what concerns our own agent is kept, since it is stored and replicated with the domain's
//! state. Nothing that is refused becomes allowed for want of room: what bounds the rules is the
//! part of a file that is read. Where robots.txt is silent or broken it is read as Google's parser
//! reads it, the one that site owners test against. Fetching it, following its redirects and
//! remembering how old it is are left to others; [`Access`] says what a response means.

mod access;
mod line;
mod pattern;

pub use access::Access;

use apoidea_model::PageUrl;
use line::{Field, numbered_lines};
use pattern::Path;
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, fmt, time::Duration};

/// The rules for one agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Robots {
    /// Longest pattern first and Allow before Disallow, so that the first match decides.
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<PageUrl>,
}

/// One Allow or Disallow line, with its pattern in normal form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pattern: Box<str>,
    effect: Effect,
    line: u32,
}

/// The effect of a rule on the paths that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Effect {
    /// They may be fetched. Sorts before [`Effect::Disallow`], over which it wins ties (RFC 9309
    /// §2.2.2).
    Allow,
    /// They must not.
    Disallow,
}

/// The answer for one path, and the line of the file that gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathVerdict<'r> {
    /// Whether it may be fetched.
    pub allowed: bool,
    /// The line that decided; `None` where no line matches.
    pub rule: Option<&'r Rule>,
}

impl Robots {
    /// Bytes of a file that are read: the 500 KiB that RFC 9309 §2.5 asks for at least. A line that
    /// this would cut in two is not read, for half a path is a different rule.
    pub const MAX_BYTES: usize = 500 * 1024;

    /// Most rules that are kept: as many as fit into [`Self::MAX_BYTES`] at the shortest.
    pub const MAX_RULES: usize = Self::MAX_BYTES / "allow:/\n".len();

    /// Most rules with a `*` that are kept as they are; each costs a search of the whole path. Of
    /// further ones, a Disallow is cut off before its `*`, which refuses more than was asked, and
    /// an Allow is left out.
    pub const MAX_WILDCARD_RULES: usize = 2_000;

    /// Longest pattern that is kept: a longer one matches no URL that we would accept.
    pub const MAX_PATTERN_BYTES: usize = PageUrl::MAX_BYTES;

    /// Most sitemaps that are kept. The large sites that list more put them into an index.
    pub const MAX_SITEMAPS: usize = 100;

    /// Longest `Crawl-delay` that is honoured. A site that asks for more gets one page in five
    /// minutes.
    pub const MAX_CRAWL_DELAY: Duration = Duration::from_secs(300);

    /// The time that a robots.txt may be relied upon (RFC 9309 §2.4).
    pub const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

    /// Redirects that must be followed to find the file (RFC 9309 §2.3.1.2).
    pub const MIN_REDIRECTS: usize = 5;

    /// Reads what a file says to `agent`: a product token, or a whole User-Agent header that begins
    /// with one.
    pub fn parse(file: &[u8], agent: &str) -> Self {
        let mut reading = Reading::of(agent);
        for (number, line) in numbered_lines(file) {
            if let Some(field) = Field::read(line) {
                reading.take(field, number);
            }
        }
        reading.finish()
    }

    /// Decides about a path. The longest matching pattern counts; `/robots.txt` is always
    /// allowed.
    pub fn decide(&self, path_and_query: &str) -> PathVerdict<'_> {
        if is_robots_txt(path_and_query) {
            return PathVerdict::ALLOWED;
        }
        let path = Path::new(path_and_query);
        match self.rules.iter().find(|rule| path.matches(&rule.pattern)) {
            Some(rule) => PathVerdict {
                allowed: rule.effect == Effect::Allow,
                rule: Some(rule),
            },
            None => PathVerdict::ALLOWED,
        }
    }

    /// Seconds between requests that the site asks for, at most [`Self::MAX_CRAWL_DELAY`].
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// Sitemaps that the file names, for every agent. They may lie on other hosts: whether to
    /// follow those is the caller's business.
    pub fn sitemaps(&self) -> &[PageUrl] {
        &self.sitemaps
    }

    /// The rules, most specific first.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// About how much memory it takes, for caches that are bounded by size.
    pub fn memory_bytes(&self) -> usize {
        let rules = self
            .rules
            .iter()
            .map(|rule| size_of::<Rule>() + rule.pattern.len());
        let sitemaps = self
            .sitemaps
            .iter()
            .map(|url| size_of::<PageUrl>() + url.as_str().len());
        size_of::<Self>() + rules.sum::<usize>() + sitemaps.sum::<usize>()
    }
}

impl PathVerdict<'_> {
    const ALLOWED: Self = PathVerdict {
        allowed: true,
        rule: None,
    };
    const DISALLOWED: Self = PathVerdict {
        allowed: false,
        rule: None,
    };
}

/// The file itself is implicitly allowed (RFC 9309 §2.2.2).
fn is_robots_txt(path_and_query: &str) -> bool {
    path_and_query == "/robots.txt"
}

impl Rule {
    /// Orders rules so that the first match decides; equal ones say the same.
    fn precedence(&self) -> (Reverse<usize>, Effect, &str) {
        (Reverse(self.pattern.len()), self.effect, &self.pattern)
    }

    /// Number of the line in the file, beginning with 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Its effect.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// The paths that it is about, in normal form: `*` is any text, a final `$` the end.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }
}

/// The line as it would be written in normal form.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.effect, self.pattern)
    }
}

/// The part of a User-Agent that robots.txt refers to: its leading letters, `_` and `-` (RFC 9309
/// §2.2.1).
fn product_token(agent: &str) -> &str {
    let end = agent.find(|c: char| !(c.is_ascii_alphabetic() || c == '_' || c == '-'));
    &agent[..end.unwrap_or(agent.len())]
}

/// Whom a `User-agent` line addresses, as seen by one agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    Us,
    Everyone,
    Others,
}

/// The rules of all groups with the same audience.
#[derive(Default)]
struct Group {
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
    wildcards: usize,
}

impl Group {
    fn add(&mut self, effect: Effect, mut pattern: Box<str>, line: u32) {
        if let Some(star) = pattern.find('*') {
            self.wildcards += 1;
            if self.wildcards > Robots::MAX_WILDCARD_RULES {
                match effect {
                    Effect::Allow => return,
                    Effect::Disallow => pattern = pattern[..star].into(),
                }
            }
        }
        if self.rules.len() < Robots::MAX_RULES {
            self.rules.push(Rule {
                pattern,
                effect,
                line,
            });
        }
    }
}

/// A file being read, line by line.
struct Reading<'a> {
    agent: &'a str,
    /// The group of lines that we are in addresses us by name.
    is_ours: bool,
    /// The group of lines that we are in addresses everyone.
    is_everyones: bool,
    /// No rule of the group was seen yet, so another `User-agent` line extends it.
    in_header: bool,
    /// Present as soon as we are addressed by name, though without rules.
    ours: Option<Group>,
    everyones: Group,
    sitemaps: Vec<PageUrl>,
}

impl<'a> Reading<'a> {
    fn of(agent: &'a str) -> Self {
        Reading {
            agent: product_token(agent),
            is_ours: false,
            is_everyones: false,
            in_header: false,
            ours: None,
            everyones: Group::default(),
            sitemaps: Vec::new(),
        }
    }

    fn take(&mut self, field: Field<'_>, number: u32) {
        match field {
            Field::UserAgent(value) => self.enter(self.audience(value)),
            Field::Rule(effect, path) => {
                self.in_header = false;
                self.add_rule(effect, path, number);
            }
            Field::CrawlDelay(delay) => {
                if let Some(group) = self.group() {
                    let delay = delay.min(Robots::MAX_CRAWL_DELAY);
                    group.crawl_delay = group.crawl_delay.max(Some(delay));
                }
            }
            Field::Sitemap(url) => self.add_sitemap(url),
        }
    }

    fn audience(&self, value: &str) -> Audience {
        let is_star = value
            .strip_prefix('*')
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        if is_star {
            return Audience::Everyone;
        }
        let is_us = !self.agent.is_empty() && product_token(value).eq_ignore_ascii_case(self.agent);
        if is_us {
            Audience::Us
        } else {
            Audience::Others
        }
    }

    fn enter(&mut self, audience: Audience) {
        if !self.in_header {
            (self.is_ours, self.is_everyones, self.in_header) = (false, false, true);
        }
        match audience {
            Audience::Us => {
                self.is_ours = true;
                self.ours.get_or_insert_default();
            }
            Audience::Everyone => self.is_everyones = true,
            Audience::Others => {}
        }
    }

    /// The group that the current lines belong to, if they matter: once we are addressed by name,
    /// the lines for everyone do not.
    fn group(&mut self) -> Option<&mut Group> {
        match &mut self.ours {
            Some(ours) => self.is_ours.then_some(ours),
            None => self.is_everyones.then_some(&mut self.everyones),
        }
    }

    fn add_rule(&mut self, effect: Effect, path: &[u8], line: u32) {
        let can_match = path.starts_with(b"/") || path.starts_with(b"*");
        if !can_match || path.len() > Robots::MAX_PATTERN_BYTES {
            return;
        }
        if let Some(group) = self.group() {
            group.add(effect, pattern::canonical(path), line);
        }
    }

    fn add_sitemap(&mut self, url: &str) {
        if self.sitemaps.len() >= Robots::MAX_SITEMAPS {
            return;
        }
        if let Some(url) = PageUrl::parse(url)
            .ok()
            .filter(|url| !self.sitemaps.contains(url))
        {
            self.sitemaps.push(url);
        }
    }

    fn finish(self) -> Robots {
        let Group {
            mut rules,
            crawl_delay,
            ..
        } = self.ours.unwrap_or(self.everyones);
        rules.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
        rules.dedup_by(|later, first| later.precedence() == first.precedence());
        rules.shrink_to_fit();
        Robots {
            rules,
            crawl_delay,
            sitemaps: self.sitemaps,
        }
    }
}
