//! A host with a quirk: how its name resolves, what its robots.txt says, what each of its few pages
//! answers, and what a crawler must make of each.

use crate::{
    access_log::Visit,
    atlas::{Ports, Scheme},
    dns::{Resolution, TTL_S},
    reply::Reply,
    truth::Fate,
};
use apoidea_model::PageUrl;
use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime},
};

/// How a name resolves.
#[derive(Debug)]
pub(crate) enum Naming {
    /// To one of the web's own addresses.
    Here,
    /// To these addresses.
    To(Vec<IpAddr>),
    /// To the web at first, then to this address: DNS rebinding.
    Rebinding(IpAddr),
    /// Through so many aliases.
    Aliases(u32),
    /// To nothing, in one of several ways.
    Not(Resolution),
}

/// Which certificate the host shows over HTTPS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certificate {
    Good,
    SelfSigned,
    Expired,
    OtherName,
}

/// What a URL answers, the first time and later.
pub(crate) enum Play {
    /// Always the same.
    Always(Reply),
    /// Made when asked for, because it is costly.
    Made(fn() -> Reply),
    /// One thing the first times it is asked, another thing ever after.
    First(u32, Reply, Reply),
    /// Too busy the first times, with a `Retry-After` of so many seconds.
    Busy {
        times: u32,
        status: u16,
        seconds: u32,
        form: RetryAfter,
        then: Reply,
    },
    /// 304 to whoever knows this entity tag or date already.
    Unless {
        etag: &'static str,
        modified: &'static str,
        reply: Reply,
    },
}

/// The two forms of `Retry-After` (RFC 9110 §10.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAfter {
    Seconds,
    Date,
}

impl RetryAfter {
    fn value(self, seconds: u32) -> String {
        match self {
            RetryAfter::Seconds => seconds.to_string(),
            // A date has no fractions: the next full second, so that it is never earlier than
            // promised.
            RetryAfter::Date => httpdate::fmt_http_date(
                SystemTime::now() + Duration::from_secs(u64::from(seconds) + 1),
            ),
        }
    }
}

impl From<Reply> for Play {
    fn from(reply: Reply) -> Self {
        Play::Always(reply)
    }
}

/// One URL of a site.
struct Leaf {
    play: Play,
    asked: AtomicU32,
    fate: Fate,
    /// The document that it shows, where others show the same.
    document: Option<&'static str>,
}

/// An answer for paths that are not listed one by one, such as a trap's.
pub(crate) type Endless = Box<dyn Fn(&str) -> Option<Reply> + Send + Sync>;

/// A host with a quirk.
pub(crate) struct Site {
    name: String,
    origin: String,
    pub(crate) scheme: Scheme,
    pub(crate) certificate: Certificate,
    naming: Naming,
    lookups: AtomicU32,
    leaves: BTreeMap<String, Leaf>,
    endless: Option<Endless>,
}

impl Site {
    /// A host whose home page and robots.txt are still to be said.
    ///
    /// Without a say, robots.txt is missing.
    pub(crate) fn new(name: &str, scheme: Scheme, ports: Ports) -> Self {
        let name = format!("{name}.test");
        let site = Site {
            origin: ports.origin(scheme, &name),
            name,
            scheme,
            certificate: Certificate::Good,
            naming: Naming::Here,
            lookups: AtomicU32::new(0),
            leaves: BTreeMap::new(),
            endless: None,
        };
        site.robots(Reply::error(404))
    }

    pub(crate) fn naming(mut self, naming: Naming) -> Self {
        self.naming = naming;
        self
    }

    pub(crate) fn certificate(mut self, certificate: Certificate) -> Self {
        self.certificate = certificate;
        self
    }

    /// What `/robots.txt` answers.
    pub(crate) fn robots(self, play: impl Into<Play>) -> Self {
        self.page("/robots.txt", Fate::Visit, play)
    }

    /// What a path answers and what must become of it.
    pub(crate) fn page(mut self, path: &str, fate: Fate, play: impl Into<Play>) -> Self {
        let leaf = Leaf {
            play: play.into(),
            asked: AtomicU32::new(0),
            fate,
            document: None,
        };
        self.leaves.insert(path.to_owned(), leaf);
        self
    }

    /// An HTML page unlike any other, with these links.
    pub(crate) fn html(self, path: &str, fate: Fate, links: &[&str]) -> Self {
        let html = self.text(path, links);
        self.page(path, fate, Reply::html(html))
    }

    /// The home page, to be kept, with these links.
    pub(crate) fn home(self, links: &[&str]) -> Self {
        self.html("/", Fate::Keep, links)
    }

    /// Ordinary pages to be kept, which link home.
    pub(crate) fn leaves(self, paths: &[&str]) -> Self {
        paths
            .iter()
            .fold(self, |site, path| site.html(path, Fate::Keep, &["/"]))
    }

    /// Pages that must never be requested.
    pub(crate) fn forbidden(self, paths: &[&str]) -> Self {
        paths
            .iter()
            .fold(self, |site, path| site.html(path, Fate::Never, &["/"]))
    }

    /// The HTML of a page unlike any other: its title names the host and the path.
    pub(crate) fn text(&self, path: &str, links: &[&str]) -> String {
        let items = links.iter().map(|link| {
            format!(
                "<li><a href=\"{}\">a link</a></li>\n",
                link.replace('&', "&amp;")
            )
        });
        let (name, items) = (&self.name, items.collect::<String>());
        format!(
            "<!DOCTYPE html>\n<title>{name}{path}</title>\n<h1>{name}</h1>\n<p>This is {path}.</p>\n<ul>\n{items}</ul>\n"
        )
    }

    /// A page that shows the same bytes as every other page of this document.
    pub(crate) fn copy(
        mut self,
        path: &str,
        document: &'static str,
        play: impl Into<Play>,
    ) -> Self {
        self = self.page(path, Fate::Keep, play);
        self.leaves
            .entry(path.to_owned())
            .and_modify(|leaf| leaf.document = Some(document));
        self
    }

    /// Answers every path that is not listed; whether such paths are requested is the crawler's
    /// business.
    pub(crate) fn endless(
        mut self,
        endless: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        self.endless = Some(Box::new(endless));
        self
    }

    /// Gives everything on this site, robots.txt included, one fate.
    pub(crate) fn doomed(mut self, fate: Fate) -> Self {
        self.leaves.values_mut().for_each(|leaf| leaf.fate = fate);
        self
    }

    pub(crate) fn is_rebinding(&self) -> bool {
        matches!(self.naming, Naming::Rebinding(_))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// What must become of a path.
    pub(crate) fn fate(&self, path: &str) -> Fate {
        match (self.leaves.get(path), &self.endless) {
            (Some(leaf), _) => leaf.fate,
            (None, Some(endless)) if endless(path).is_some() => Fate::Either,
            (None, _) if path == "/sitemap.xml" => Fate::Either,
            (None, _) => Fate::Never,
        }
    }

    /// The URLs of some fate, robots.txt excepted.
    pub(crate) fn urls(&self, fate: Fate) -> impl Iterator<Item = PageUrl> + '_ {
        let paths = self
            .leaves
            .iter()
            .filter(move |(path, leaf)| leaf.fate == fate && *path != "/robots.txt");
        paths.filter_map(|(path, _)| self.url(path))
    }

    /// The pages that are copies, with the name of what they are copies of.
    pub(crate) fn copies(&self) -> impl Iterator<Item = (&'static str, PageUrl)> + '_ {
        self.leaves
            .iter()
            .filter_map(|(path, leaf)| Some((leaf.document?, self.url(path)?)))
    }

    fn url(&self, path: &str) -> Option<PageUrl> {
        PageUrl::parse(&format!("{}{path}", self.origin)).ok()
    }

    /// What a canonical path answers.
    pub(crate) fn answer(&self, path: &str, visit: &Visit) -> Reply {
        let endless = || self.endless.as_ref().and_then(|endless| endless(path));
        match self.leaves.get(path) {
            Some(leaf) => leaf.answer(visit),
            None => endless().unwrap_or_else(|| Reply::error(404)),
        }
    }

    /// What the name, or an alias on the way to it, resolves to; `here` is this host's address.
    pub(crate) fn resolve(&self, here: IpAddr, alias: Option<u32>) -> Resolution {
        match &self.naming {
            Naming::Here => Resolution::Addresses(vec![here], TTL_S),
            Naming::To(addresses) => Resolution::Addresses(addresses.clone(), TTL_S),
            Naming::Rebinding(other) => {
                let is_first = self.lookups.fetch_add(1, Ordering::Relaxed) == 0;
                Resolution::Addresses(vec![if is_first { here } else { *other }], 0)
            }
            Naming::Aliases(hops) => match alias.unwrap_or(0) {
                at if at < *hops => Resolution::Alias(format!("alias-{}.{}", at + 1, self.name)),
                _ => Resolution::Addresses(vec![here], TTL_S),
            },
            Naming::Not(resolution) => resolution.clone(),
        }
    }
}

impl Leaf {
    fn is_early(&self, times: u32) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) < times
    }

    fn answer(&self, visit: &Visit) -> Reply {
        match &self.play {
            Play::Always(reply) => reply.clone(),
            Play::Made(make) => make(),
            Play::First(times, reply, _) if self.is_early(*times) => reply.clone(),
            Play::First(_, _, then) => then.clone(),
            Play::Busy {
                times,
                status,
                seconds,
                form,
                ..
            } if self.is_early(*times) => {
                Reply::error(*status).header("Retry-After", form.value(*seconds))
            }
            Play::Busy { then, .. } => then.clone(),
            Play::Unless {
                etag,
                modified,
                reply,
            } => {
                let is_known = match (&visit.if_none_match, &visit.if_modified_since) {
                    (Some(known), _) => &**known == *etag,
                    (None, Some(date)) => &**date == *modified,
                    (None, None) => false,
                };
                let reply = if is_known {
                    Reply::empty(304)
                } else {
                    reply.clone()
                };
                reply
                    .header("ETag", *etag)
                    .header("Last-Modified", *modified)
            }
        }
    }
}
