//! Scheme and port of a URL whose host is known already: what one robots.txt is valid for (RFC 9309
//! §2.3).
//!
//! A domain's state keeps one robots.txt per origin; without the host an origin takes three bytes
//! instead of a text.

use apoidea_model::{Domain, PageUrl};
use serde::{Deserialize, Serialize};

/// Scheme and port within a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// `http`, at this port.
    Http(u16),
    /// `https`, at this port.
    Https(u16),
}

impl Origin {
    /// The origin that a page is part of.
    pub fn of(url: &PageUrl) -> Self {
        if url.is_https() {
            Origin::Https(url.port())
        } else {
            Origin::Http(url.port())
        }
    }

    /// The URL of the rules of this origin of `domain`.
    pub fn robots_url(self, domain: &Domain) -> PageUrl {
        let (scheme, port) = match self {
            Origin::Http(port) => ("http", port),
            Origin::Https(port) => ("https", port),
        };
        PageUrl::parse(&format!("{scheme}://{domain}:{port}/robots.txt"))
            .expect("a canonical host with a port makes a valid URL")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_a_page_are_at_the_root_of_its_origin() {
        for (page, robots) in [
            ("http://a.example/x/y?z", "http://a.example/robots.txt"),
            ("https://a.example/x", "https://a.example/robots.txt"),
            (
                "https://a.example:8443/x",
                "https://a.example:8443/robots.txt",
            ),
            ("http://[::1]:8080/", "http://[::1]:8080/robots.txt"),
        ] {
            let page = PageUrl::parse(page).unwrap();
            assert_eq!(
                Origin::of(&page).robots_url(&page.domain()).as_str(),
                robots
            );
        }
    }
}
