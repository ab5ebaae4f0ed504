//! Links of pages that are done, as long as their owners may not have them yet: part of what is
//! known of a domain.
//!
//! The owner of a domain sends its links out of the outbox. Its replicas keep them here, by the
//! page that had them, so that they are not lost with the peer that found them, and the page need
//! not be fetched again for them.

use crate::{Commit, ReadError, Store, domains::domain_prefix, queue, tables::Table};
use apoidea_model::{CrawlId, Domain, Link, PageId};
use std::ops::Bound;

/// The links of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// The page that had them.
    pub page: PageId,
    /// The crawl of the page, and so of all its links.
    pub crawl: CrawlId,
    /// The page's links.
    pub links: Vec<Link>,
}

impl Store {
    /// The errands of one domain.
    pub fn errands_of(&self, domain: &Domain) -> Result<Vec<Errand>, ReadError> {
        self.read(|tables| {
            let entries = tables.space(Table::Errands).prefix(domain_prefix(domain));
            entries.map(|entry| decode(entry.into_inner()?)).collect()
        })
    }

    /// The first `limit` errands of all domains that come after one.
    pub fn errands(&self, after: Option<&Errand>, limit: usize) -> Result<Vec<Errand>, ReadError> {
        let start = match after {
            Some(Errand { page, .. }) => Bound::Excluded(queue::key(&page.domain, page.slot)),
            None => Bound::Unbounded,
        };
        self.read(|tables| {
            let entries = tables
                .space(Table::Errands)
                .range((start, Bound::Unbounded))
                .take(limit);
            entries.map(|entry| decode(entry.into_inner()?)).collect()
        })
    }
}

impl Commit {
    /// Keeps the links of a page that is done.
    pub fn put_errand(&mut self, page: &PageId, crawl: CrawlId, links: &[Link]) {
        let key = queue::key(&page.domain, page.slot);
        let value =
            postcard::to_stdvec(&(crawl, links)).expect("URLs and numbers always serialise");
        self.put(Table::Errands, key.into(), value.into());
    }

    /// Drops the links of a page: their owners have them.
    pub fn remove_errand(&mut self, page: &PageId) {
        let key = queue::key(&page.domain, page.slot);
        self.remove(Table::Errands, key.into());
    }
}

fn decode((key, value): fjall::KvPair) -> Result<Errand, ReadError> {
    let errand = || {
        let (name, slot) = queue::split_key(&key)?;
        let domain = std::str::from_utf8(name).ok()?.parse().ok()?;
        let (crawl, links) = postcard::from_bytes(&value).ok()?;
        Some(Errand {
            page: PageId::new(domain, slot),
            crawl,
            links,
        })
    };
    errand().ok_or_else(|| ReadError::corrupt("errand", &key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{domain, open};
    use apoidea_model::{PageUrl, Slot, Target};

    fn errand(name: &str, sequence: u64, url: &str) -> Errand {
        let link = Link {
            url: PageUrl::parse(url).unwrap(),
            depth: 2,
            target: Target::Page,
        };
        Errand {
            page: PageId::new(domain(name), Slot { rank: 1, sequence }),
            crawl: CrawlId(sequence),
            links: vec![link],
        }
    }

    #[test]
    fn errands_stay_with_their_domain_until_done_or_forgotten() {
        let (_folder, store) = open();
        let all = [
            errand("a.example", 1, "http://x.example/"),
            errand("a.example", 2, "http://y.example/1"),
            errand("a.example.org", 1, "http://z.example/"),
        ];
        let mut commit = Commit::new();
        all.iter()
            .for_each(|errand| commit.put_errand(&errand.page, errand.crawl, &errand.links));
        store.commit(&commit).unwrap();
        assert_eq!(store.errands_of(&domain("a.example")).unwrap(), all[..2]);
        assert_eq!(store.errands(None, 9).unwrap(), all);
        assert_eq!(store.errands(Some(&all[0]), 1).unwrap(), all[1..2]);
        let mut commit = Commit::new();
        commit.remove_errand(&all[0].page);
        store.commit(&commit).unwrap();
        assert_eq!(store.errands_of(&domain("a.example")).unwrap(), all[1..2]);
        let mut commit = Commit::new();
        commit.forget_domain(&domain("a.example"));
        store.commit(&commit).unwrap();
        assert_eq!(store.errands(None, 9).unwrap(), all[2..]);
    }
}
