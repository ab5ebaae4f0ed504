//! The rules of sites that this peer fetches from for others.
//!
//! An owner has read robots.txt before it lends a fetch. A helper does not take its word for it:
//! one hostile owner could send its helpers to pages that a site forbids. So a helper reads the file
//! itself, once a day for each site.

use crate::lock::lock;
use apoidea_crawl::{Access, Origin, Robots};
use apoidea_model::{Domain, PageUrl};
use std::{collections::HashMap, sync::Mutex, time::Duration};
use tokio::time::Instant;

/// Sites that are remembered; the one that was read first makes room.
const MAX_SITES: usize = 1024;
/// A site that could not say is asked again after this.
const CLOSED_FOR: Duration = Duration::from_secs(600);

/// The rules that this peer has read as a helper.
#[derive(Default)]
pub(crate) struct HelperRobots(Mutex<HashMap<Site, Rules>>);

type Site = (Domain, Origin);

struct Rules {
    access: Access,
    read: Instant,
}

/// The rules about one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// The site allows it.
    Allowed,
    /// The site forbids it, or cannot say.
    Forbidden,
    /// Its robots.txt has to be read first.
    Unknown,
}

impl HelperRobots {
    /// The rules about a page, as far as they are known.
    pub(crate) fn ruling(&self, url: &PageUrl) -> Ruling {
        let sites = lock(&self.0);
        match sites.get(&site(url)).filter(|rules| rules.is_valid()) {
            None => Ruling::Unknown,
            Some(rules) if rules.access.decide(url.path_and_query()).allowed => Ruling::Allowed,
            Some(_) => Ruling::Forbidden,
        }
    }

    /// The answer of the page's site.
    pub(crate) fn note(&self, url: &PageUrl, access: Access) {
        let mut sites = lock(&self.0);
        if sites.len() >= MAX_SITES {
            sites.retain(|_, rules| rules.is_valid());
        }
        if sites.len() >= MAX_SITES {
            let first = sites.iter().min_by_key(|(_, rules)| rules.read);
            let first = first.map(|(site, _)| site.clone());
            first.map(|site| sites.remove(&site));
        }
        let read = Instant::now();
        sites.insert(site(url), Rules { access, read });
    }
}

impl Rules {
    fn is_valid(&self) -> bool {
        let valid_for = match self.access {
            Access::Closed => CLOSED_FOR,
            Access::Rules(_) | Access::Open => Robots::MAX_AGE,
        };
        self.read.elapsed() < valid_for
    }
}

fn site(url: &PageUrl) -> Site {
    (url.domain(), Origin::of(url))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time;

    fn url(text: &str) -> PageUrl {
        PageUrl::parse(text).unwrap()
    }

    fn rules() -> Access {
        Access::of_response(200, b"User-agent: *\nDisallow: /private", "Apoidea")
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_is_read_once_a_day_and_decides_about_each_page() {
        let robots = HelperRobots::default();
        assert_eq!(robots.ruling(&url("http://a.test/x")), Ruling::Unknown);
        robots.note(&url("http://a.test/x"), rules());
        assert_eq!(robots.ruling(&url("http://a.test/y")), Ruling::Allowed);
        assert_eq!(
            robots.ruling(&url("http://a.test/private/1")),
            Ruling::Forbidden
        );
        for other in [
            "https://a.test/y",
            "http://a.test:8080/y",
            "http://b.test/y",
        ] {
            assert_eq!(robots.ruling(&url(other)), Ruling::Unknown, "{other}");
        }
        time::advance(Robots::MAX_AGE).await;
        assert_eq!(robots.ruling(&url("http://a.test/y")), Ruling::Unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_that_cannot_say_is_left_alone_for_a_while() {
        let robots = HelperRobots::default();
        robots.note(&url("http://a.test/"), Access::Closed);
        assert_eq!(robots.ruling(&url("http://a.test/")), Ruling::Forbidden);
        time::advance(CLOSED_FOR).await;
        assert_eq!(robots.ruling(&url("http://a.test/")), Ruling::Unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn the_site_that_was_read_first_makes_room() {
        let robots = HelperRobots::default();
        for site in 0..=MAX_SITES {
            robots.note(&url(&format!("http://s{site}.test/")), Access::Open);
            time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(robots.ruling(&url("http://s0.test/")), Ruling::Unknown);
        assert_eq!(robots.ruling(&url("http://s1.test/")), Ruling::Allowed);
        assert_eq!(lock(&robots.0).len(), MAX_SITES);
    }
}
