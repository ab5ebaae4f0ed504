//! The access to a site that follows from the attempt to fetch its robots.txt (RFC 9309 §2.3.1).
//!
//! A site that cannot say what it wants is left alone: rate limits, server errors and silence close
//! it until it answers, with no time after which silence is taken for consent.

use super::{PathVerdict, Robots, is_robots_txt};
use apoidea_model::PageUrl;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The part of a site that may be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// The part that the site's robots.txt allows.
    Rules(Robots),
    /// Everything: the site has no robots.txt.
    Open,
    /// Nothing but robots.txt, until it answers.
    Closed,
}

impl Access {
    /// The meaning of a response. Redirects are the caller's to follow, [`Robots::MIN_REDIRECTS`]
    /// at least, and `304` its to compare; one that leads nowhere counts as a file that is not
    /// there (RFC 9309 §2.3.1.2).
    pub fn of_response(status: u16, body: &[u8], agent: &str) -> Self {
        match status {
            200..=299 => Access::Rules(Robots::parse(body, agent)),
            429 => Access::Closed,
            300..=499 => Access::Open,
            _ => Access::Closed,
        }
    }

    /// The meaning of no response at all: no address, no connection, or no answer in time.
    pub const fn of_failure() -> Self {
        Access::Closed
    }

    /// Decides about a path.
    pub fn decide(&self, path_and_query: &str) -> PathVerdict<'_> {
        match self {
            Access::Rules(robots) => robots.decide(path_and_query),
            Access::Closed if !is_robots_txt(path_and_query) => PathVerdict::DISALLOWED,
            Access::Open | Access::Closed => PathVerdict::ALLOWED,
        }
    }

    /// Time between requests that the site asks for.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.rules().and_then(Robots::crawl_delay)
    }

    /// Sitemaps that the site names.
    pub fn sitemaps(&self) -> &[PageUrl] {
        self.rules().map_or(&[], Robots::sitemaps)
    }

    fn rules(&self) -> Option<&Robots> {
        match self {
            Access::Rules(robots) => Some(robots),
            Access::Open | Access::Closed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] =
        b"User-agent: *\nDisallow: /x\nCrawl-delay: 7\nSitemap: http://a.example/s.xml";

    fn access(status: u16) -> Access {
        Access::of_response(status, FILE, "Apoidea")
    }

    #[test]
    fn only_a_site_that_says_so_or_has_no_file_is_crawled() {
        for status in [200, 206] {
            let access = access(status);
            assert!(
                !access.decide("/x").allowed && access.decide("/y").allowed,
                "{status}"
            );
            assert_eq!(access.crawl_delay(), Some(Duration::from_secs(7)));
            assert_eq!(access.sitemaps().len(), 1);
        }
        for status in [301, 308, 400, 401, 403, 404, 410, 418, 428, 430, 451, 499] {
            assert_eq!(access(status), Access::Open, "{status}");
        }
        for status in [0, 100, 199, 429, 500, 502, 503, 504, 599, 600, 999] {
            assert_eq!(access(status), Access::Closed, "{status}");
        }
    }

    #[test]
    fn a_closed_site_still_lets_us_ask_for_its_rules() {
        let closed = Access::of_failure();
        assert!(!closed.decide("/").allowed);
        assert!(closed.decide("/robots.txt").allowed);
        assert!(Access::Open.decide("/x").allowed);
        assert_eq!(closed.crawl_delay(), None);
    }
}
