//! What a perfect crawler does with each URL of a toy web, known from the web's own structure
//! without crawling it.

use crate::{atlas::Atlas, site::Site};
use apoidea_model::PageUrl;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// What must become of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It must be requested, and what it answers is a page to keep.
    Keep,
    /// It must be requested, but nothing needs to be kept: a redirect, an error, a page that asks
    /// not to be kept.
    Visit,
    /// As [`Fate::Keep`], but only after the host recovered, and how long to wait is the crawler's
    /// business.
    Later,
    /// It may be requested or not: a crawler's limits, patience or taste decide.
    Either,
    /// It must never be requested.
    Never,
}

/// The right answers about a web.
pub struct Truth {
    atlas: Arc<Atlas>,
    sites: Arc<HashMap<String, Site>>,
}

impl Truth {
    pub(crate) fn new(atlas: Arc<Atlas>, sites: Arc<HashMap<String, Site>>) -> Self {
        Truth { atlas, sites }
    }

    /// What must become of a URL. A URL of no host of this web must never be requested.
    pub fn fate(&self, url: &PageUrl) -> Fate {
        if let Some(site) = self.sites.get(url.host()) {
            return if url.origin() == site.origin() {
                site.fate(url.path_and_query())
            } else {
                Fate::Never
            };
        }
        let Some(host) = self.atlas.host(url.host()) else {
            return Fate::Never;
        };
        if url.origin() != self.atlas.origin(host) {
            return Fate::Never;
        }
        match url.path_and_query() {
            "/robots.txt" => Fate::Visit,
            path if self.atlas.page(host, path).is_some() => Fate::Keep,
            path if path.starts_with("/img/") || path == "/sitemap.xml" => Fate::Either,
            _ => Fate::Never,
        }
    }

    /// Every URL that must be requested, robots.txt excepted, each once.
    pub fn must_fetch(&self) -> impl Iterator<Item = PageUrl> + '_ {
        self.ordinary_pages()
            .map(|(host, page)| self.atlas.url(host, page))
            .chain(self.special(Fate::Visit))
            .chain(self.special(Fate::Keep))
    }

    /// Every URL whose page must be kept, each once; copies are listed under every URL they have.
    pub fn must_keep(&self) -> impl Iterator<Item = PageUrl> + '_ {
        self.ordinary_pages()
            .map(|(host, page)| self.atlas.url(host, page))
            .chain(self.special(Fate::Keep))
    }

    /// The URLs of hosts with quirks that have some fate.
    pub fn special(&self, fate: Fate) -> impl Iterator<Item = PageUrl> + '_ {
        let mut sites: Vec<&Site> = self.sites.values().collect();
        sites.sort_by_key(|site| site.origin());
        sites.into_iter().flat_map(move |site| site.urls(fate))
    }

    /// Must this URL be requested?
    pub fn must_fetch_contains(&self, url: &PageUrl) -> bool {
        matches!(self.fate(url), Fate::Keep | Fate::Visit)
    }

    /// Must this URL never be requested?
    pub fn must_not_fetch(&self, url: &PageUrl) -> bool {
        self.fate(url) == Fate::Never
    }

    /// How many URLs [`Self::must_fetch`] yields.
    pub fn expected_total(&self) -> u64 {
        let special = self.special(Fate::Visit).count() + self.special(Fate::Keep).count();
        u64::from(self.atlas.shape.pages) + special as u64
    }

    /// Groups of URLs that show the same content, each group two or more. Walks over all pages.
    pub fn copies(&self) -> Vec<Vec<PageUrl>> {
        let mut groups = BTreeMap::<u32, Vec<PageUrl>>::new();
        for (host, page) in self.ordinary_pages() {
            if let Some(document) = self.atlas.copy(host, page) {
                groups
                    .entry(document)
                    .or_default()
                    .push(self.atlas.url(host, page));
            }
        }
        let mut shared = BTreeMap::<&str, Vec<PageUrl>>::new();
        for (document, url) in self.sites.values().flat_map(Site::copies) {
            shared.entry(document).or_default().push(url);
        }
        groups
            .into_values()
            .chain(shared.into_values())
            .filter(|group| group.len() > 1)
            .collect()
    }

    /// Ordinary hosts by name, with the number of their pages.
    pub fn hosts(&self) -> impl Iterator<Item = (String, u32)> + '_ {
        (0..self.atlas.hosts()).map(|host| (self.atlas.name(host), self.atlas.size(host)))
    }

    fn ordinary_pages(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.atlas.hosts())
            .flat_map(|host| (0..self.atlas.size(host)).map(move |page| (host, page)))
    }
}
