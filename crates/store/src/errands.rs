//! Links of pages that are done, as long as their owners may not have them yet: part of what is
//! known of a domain.
//!
//! Whoever crawls a domain carries its links out of the outbox. The holders of copies keep them
//! here, by the page that had them, so that they are not lost with the peer that found them, and
//! the page need not be fetched again for them.

use crate::{
    Commit, ReadError, Store,
    domains::domain_prefix,
    queue,
    tables::{Table, Tables},
};
use apoidea_model::{Domain, Link, Slot};
use std::ops::Bound;

/// The links of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// Whose page had them.
    pub domain: Domain,
    /// The place that the page had in the domain's queue.
    pub slot: Slot,
    /// What it led to.
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
            Some(Errand { domain, slot, .. }) => Bound::Excluded(queue::key(domain, *slot)),
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
    pub fn put_errand(&mut self, domain: &Domain, slot: Slot, links: &[Link]) {
        let bytes = postcard::to_stdvec(links).expect("URLs and numbers always serialise");
        self.put(
            Table::Errands,
            queue::key(domain, slot).into(),
            bytes.into(),
        );
    }

    /// Drops the links of a page: their owners have them.
    pub fn remove_errand(&mut self, domain: &Domain, slot: Slot) {
        self.remove(Table::Errands, queue::key(domain, slot).into());
    }
}

fn decode((key, value): fjall::KvPair) -> Result<Errand, ReadError> {
    let errand = || {
        let (name, slot) = queue::split_key(&key)?;
        let domain = std::str::from_utf8(name).ok()?.parse().ok()?;
        Some(Errand {
            domain,
            slot,
            links: postcard::from_bytes(&value).ok()?,
        })
    };
    errand().ok_or_else(|| ReadError::corrupt("errand", &key))
}

/// All keys of a domain's errands, for forgetting it.
pub(crate) fn keys(tables: &Tables, domain: &Domain) -> fjall::Result<Vec<fjall::UserKey>> {
    tables
        .space(Table::Errands)
        .prefix(domain_prefix(domain))
        .map(|entry| entry.key())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{domain, open};
    use apoidea_model::{PageUrl, Target};

    fn errand(name: &str, sequence: u64, url: &str) -> Errand {
        let link = Link {
            url: PageUrl::parse(url).unwrap(),
            depth: 2,
            target: Target::Page,
        };
        Errand {
            domain: domain(name),
            slot: Slot { rank: 1, sequence },
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
            .for_each(|errand| commit.put_errand(&errand.domain, errand.slot, &errand.links));
        store.commit(&commit).unwrap();
        assert_eq!(store.errands_of(&domain("a.example")).unwrap(), all[..2]);
        assert_eq!(store.errands(None, 9).unwrap(), all);
        assert_eq!(store.errands(Some(&all[0]), 1).unwrap(), all[1..2]);
        let mut commit = Commit::new();
        commit.remove_errand(&domain("a.example"), all[0].slot);
        store.commit(&commit).unwrap();
        assert_eq!(store.errands_of(&domain("a.example")).unwrap(), all[1..2]);
        let mut commit = Commit::new();
        commit.forget_domain(&domain("a.example"));
        store.commit(&commit).unwrap();
        assert_eq!(store.errands(None, 9).unwrap(), all[2..]);
    }
}
