//! A crawl that somebody asks for: where it begins, which pages it goes through and keeps, and when
//! it ends.

use super::{Expression, Size, Span};
use crate::{ContactRefused, Contactable};
use apoidea_model::{CrawlId, Key, PageUrl};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most seeds of one crawl. A longer list is a page of links, and so a seed itself.
pub const MAX_SEEDS: usize = 256;
/// Most pages that one crawl may ask for.
pub const MAX_PAGES: u64 = 1_000_000;
/// Longest time of a crawl.
pub const MAX_UNTIL: Duration = Duration::from_secs(30 * 86_400);
/// Longest purpose, in characters: some sentences.
pub const MAX_PURPOSE_CHARS: usize = 500;
/// Largest file that is read as a crawl. The longest valid one is not half of it.
pub const MAX_SPEC_BYTES: u64 = 1_000_000;

/// A crawl as it is asked for. Nothing in it can touch robots.txt, the pace of the contract, ports
/// or networks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrawlSpec {
    /// The pages where it begins. They are visited whatever `follow` says.
    pub seeds: Vec<PageUrl>,
    /// Links are followed to pages of which this may be true, and on from pages of which it is.
    pub follow: Expression,
    /// Visited pages of which this is true are the result.
    pub keep: Expression,
    /// Links from a seed at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u16>,
    /// It ends after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// It ends when so many pages were fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// It ends when so many bytes of pages were fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// The reason for it, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub purpose: String,
}

/// A crawl that cannot be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    /// It begins nowhere.
    #[error("a crawl begins somewhere: name a seed, such as https://example.org/")]
    NoSeeds,
    /// It begins at too many places.
    #[error("{0} seeds; at most {max} are taken. A page that links to all of them is one seed", max = MAX_SEEDS)]
    TooManySeeds(usize),
    /// A seed must not be contacted.
    #[error("the seed {url} cannot be crawled: {why}")]
    Seed {
        /// The seed.
        url: PageUrl,
        /// The reason.
        why: ContactRefused,
    },
    /// It asks for no page, or for too many.
    #[error("{0} pages; accepted are 1 to {max}", max = MAX_PAGES)]
    Pages(u64),
    /// It takes too long.
    #[error("{0} is longer than a crawl may take; at most 30d are accepted")]
    Until(Span),
    /// It says too much about itself.
    #[error("the purpose has {0} characters; at most {max} are taken", max = MAX_PURPOSE_CHARS)]
    Purpose(usize),
}

impl CrawlSpec {
    /// Refuses a crawl that cannot be asked for.
    pub fn check(&self, contactable: &Contactable) -> Result<(), InvalidSpec> {
        match self.seeds.len() {
            0 => return Err(InvalidSpec::NoSeeds),
            count if count > MAX_SEEDS => return Err(InvalidSpec::TooManySeeds(count)),
            _ => {}
        }
        for url in &self.seeds {
            let address = match url.domain().ip() {
                Some(address) => contactable.check_address(address),
                None => Ok(()),
            };
            let checked = address.and_then(|()| contactable.check_url(url));
            checked.map_err(|why| InvalidSpec::Seed {
                url: url.clone(),
                why,
            })?;
        }
        if let Some(pages) = self.pages
            && !(1..=MAX_PAGES).contains(&pages)
        {
            return Err(InvalidSpec::Pages(pages));
        }
        if let Some(until) = self.until
            && until.duration() > MAX_UNTIL
        {
            return Err(InvalidSpec::Until(until));
        }
        match self.purpose.chars().count() {
            count if count > MAX_PURPOSE_CHARS => Err(InvalidSpec::Purpose(count)),
            _ => Ok(()),
        }
    }

    /// Its name: the first bytes of its hash. The open crawl's is not among them.
    pub fn id(&self) -> CrawlId {
        let text = postcard::to_stdvec(&(
            (&self.seeds, &self.follow, &self.keep),
            (self.depth, self.until, self.pages, self.bytes),
            &self.purpose,
        ));
        let hash = Key::hash(text.expect("texts and numbers always serialise"));
        let (first, _) = hash
            .as_bytes()
            .split_first_chunk()
            .expect("a key has 32 bytes, more than 8");
        CrawlId(u64::from_be_bytes(*first).max(CrawlId::OPEN.0 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> CrawlSpec {
        CrawlSpec {
            seeds: vec![PageUrl::parse("https://example.org/").unwrap()],
            follow: "host under example.org".parse().unwrap(),
            pages: Some(100),
            ..CrawlSpec::default()
        }
    }

    fn check(change: impl FnOnce(&mut CrawlSpec)) -> Result<(), InvalidSpec> {
        let mut spec = spec();
        change(&mut spec);
        spec.check(&Contactable::new(vec![80, 443], Vec::new()))
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused_with_what_would_be_right() {
        let seed = |url: &str| vec![PageUrl::parse(url).unwrap()];
        assert_eq!(check(|_| {}), Ok(()));
        assert_eq!(check(|spec| spec.seeds.clear()), Err(InvalidSpec::NoSeeds));
        let many = check(|spec| spec.seeds = vec![spec.seeds[0].clone(); MAX_SEEDS + 1]);
        assert_eq!(many, Err(InvalidSpec::TooManySeeds(257)));
        for private in ["http://10.0.0.1/", "http://[::1]/", "http://a.example:25/"] {
            let refused = check(|spec| spec.seeds = seed(private));
            assert!(
                matches!(refused, Err(InvalidSpec::Seed { .. })),
                "{private}"
            );
        }
        assert_eq!(
            check(|spec| spec.pages = Some(0)),
            Err(InvalidSpec::Pages(0))
        );
        let error = check(|spec| spec.pages = Some(2_000_000)).unwrap_err();
        assert!(error.to_string().contains("1 to 1000000"), "{error}");
        let error = check(|spec| spec.until = Some("31d".parse().unwrap())).unwrap_err();
        assert!(error.to_string().contains("31d"), "{error}");
        assert!(check(|spec| spec.purpose = "x".repeat(501)).is_err());
    }

    #[test]
    fn another_crawl_has_another_name() {
        let id = spec().id();
        assert_eq!(id, spec().id());
        assert_ne!(id, CrawlId::OPEN);
        let mut other = spec();
        other.keep = "lang = de".parse().unwrap();
        assert_ne!(other.id(), id);
    }
}
