//! The state of each domain, as opaque bytes: the peer serialises it, the
//! store keeps it.

use crate::{Commit, ReadError, Store, commit::Forget, tables::Table, values};
use apoidea_model::Domain;
use std::ops::Bound;

/// Domains that [`Store::each_domain`] reads at a time: some 50 kB of ordinary states.
const BATCH_DOMAINS: usize = 256;

impl Store {
    /// The state last committed for a domain.
    pub fn domain(&self, domain: &Domain) -> Result<Option<Vec<u8>>, ReadError> {
        self.read(|tables| {
            Ok(tables
                .space(Table::Domains)
                .get(domain.as_str())?
                .map(|state| state.to_vec()))
        })
    }

    /// Domains and their states in the order of their names: those that begin with `prefix` and
    /// come after `after`.
    pub fn domains(
        &self,
        prefix: &str,
        after: Option<&Domain>,
        limit: usize,
    ) -> Result<Vec<(Domain, Vec<u8>)>, ReadError> {
        let start = match after {
            Some(after) if after.as_str() >= prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix),
        };
        self.read(|tables| {
            let mut found = Vec::new();
            for entry in tables
                .space(Table::Domains)
                .range::<&str, _>((start, Bound::Unbounded))
                .take(limit)
            {
                let (key, state) = entry.into_inner()?;
                if !key.starts_with(prefix.as_bytes()) {
                    break;
                }
                found.push((parse_domain(&key)?, state.to_vec()));
            }
            Ok(found)
        })
    }

    /// All domains, in batches of at most `limit`, which bounds the memory and, for a caller that
    /// commits once for each batch, the size of the commit.
    pub fn domain_batches(&self, limit: usize) -> DomainBatches {
        DomainBatches {
            store: self.clone(),
            limit: limit.max(1),
            after: None,
            is_at_end: false,
        }
    }

    /// All domains, one by one, for callers that do nothing with a batch as a whole.
    pub fn each_domain(
        &self,
    ) -> impl Iterator<Item = Result<(Domain, Vec<u8>), ReadError>> + use<> {
        self.domain_batches(BATCH_DOMAINS).flat_map(|batch| {
            let (domains, error) = match batch {
                Ok(domains) => (domains, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            domains.into_iter().map(Ok).chain(error.map(Err))
        })
    }

    /// The number of domains that have a state.
    pub fn domain_count(&self) -> Result<u64, ReadError> {
        self.counter(values::DOMAINS)
    }
}

impl Commit {
    /// Remembers a domain's state.
    pub fn put_domain(&mut self, domain: &Domain, state: Vec<u8>) {
        self.put(Table::Domains, domain.as_str().into(), state.into());
    }

    /// Forgets everything about a domain: state, queue, seen log, wake time, errands, pages. It
    /// takes effect before everything else in this commit, so what is put for the domain in the
    /// same commit stays.
    pub fn forget_domain(&mut self, domain: &Domain) {
        self.forgotten.insert(domain.clone(), Forget::Everything);
    }

    /// Forgets what a replica of a domain consists of, so that another one can take its place. The
    /// pages stay: they are this peer's own.
    pub fn replace_domain(&mut self, domain: &Domain) {
        let forget = self.forgotten.entry(domain.clone());
        forget.or_insert(Forget::Replica);
    }
}

/// The domain that a key names.
pub(crate) fn parse_domain(key: &[u8]) -> Result<Domain, ReadError> {
    let text = std::str::from_utf8(key).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| ReadError::corrupt("domain name", key))
}

/// The beginning of a domain's keys in tables that hold several for each: no name contains a zero
/// byte, so no domain's entries lie between those of another.
pub(crate) fn domain_prefix(domain: &Domain) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(domain.as_str().len() + 11);
    prefix.extend_from_slice(domain.as_str().as_bytes());
    prefix.push(0);
    prefix
}

/// The first key behind all that begin with `prefix`, which ends with the zero byte of
/// [`domain_prefix`].
pub(crate) fn after_prefix(mut prefix: Vec<u8>) -> Vec<u8> {
    prefix.pop();
    prefix.push(1);
    prefix
}

/// All domains and their states in the order of their names, read in batches. At most one batch is
/// in memory, and the database is not held between two of them.
pub struct DomainBatches {
    store: Store,
    limit: usize,
    after: Option<Domain>,
    is_at_end: bool,
}

impl DomainBatches {
    /// Goes on behind a domain that was reached before.
    pub fn after(mut self, domain: Option<Domain>) -> Self {
        self.after = domain;
        self
    }
}

impl Iterator for DomainBatches {
    type Item = Result<Vec<(Domain, Vec<u8>)>, ReadError>;

    /// The next batch, which is never empty. An error ends the iteration.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end {
            return None;
        }
        let batch = self.store.domains("", self.after.as_ref(), self.limit);
        match &batch {
            Ok(batch) => {
                self.is_at_end = batch.len() < self.limit;
                self.after = batch.last().map(|(domain, _)| domain.clone());
                if batch.is_empty() {
                    return None;
                }
            }
            Err(_) => self.is_at_end = true,
        }
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{domain, open};
    use apoidea_model::UrlHash;

    #[test]
    fn domains_are_listed_in_order_and_page_by_page() {
        let (_folder, store) = open();
        let mut commit = Commit::new();
        for name in ["b.example", "a.example", "ab.example", "c.example"] {
            commit.put_domain(&domain(name), name.as_bytes().to_vec());
        }
        store.commit(&commit).unwrap();
        let names = |prefix: &str, after: Option<&Domain>, limit| -> Vec<String> {
            let found = store.domains(prefix, after, limit).unwrap();
            found
                .into_iter()
                .map(|(domain, _)| domain.to_string())
                .collect()
        };
        assert_eq!(names("", None, 2), ["a.example", "ab.example"]);
        assert_eq!(
            names("", Some(&domain("ab.example")), 9),
            ["b.example", "c.example"]
        );
        assert_eq!(names("a", Some(&domain("a.example")), 9), ["ab.example"]);
        assert_eq!(names("b", Some(&domain("a.example")), 9), ["b.example"]);
        assert_eq!(names("zz", None, 9), [""; 0]);
    }

    #[test]
    fn all_domains_are_read_whatever_the_size_of_the_batch() {
        let (_folder, store) = open();
        let mut commit = Commit::new();
        let names: Vec<String> = (0..7).map(|n| format!("{n}.example")).collect();
        for name in &names {
            commit.put_domain(&domain(name), vec![1]);
        }
        store.commit(&commit).unwrap();
        let name = |(domain, _): (Domain, Vec<u8>)| domain.to_string();
        for limit in [1, 3, 7, 8] {
            let batches: Result<Vec<_>, _> = store.domain_batches(limit).collect();
            let batches = batches.unwrap();
            assert!(
                batches
                    .iter()
                    .all(|batch| (1..=limit).contains(&batch.len()))
            );
            let all: Vec<String> = batches.into_iter().flatten().map(name).collect();
            assert_eq!(all, names, "by {limit}");
        }
        let rest = store.domain_batches(9).after(Some(domain("4.example")));
        let rest: Vec<String> = rest.flat_map(Result::unwrap).map(name).collect();
        assert_eq!(rest, names[5..]);
        let each: Vec<String> = store
            .each_domain()
            .map(|entry| name(entry.unwrap()))
            .collect();
        assert_eq!(each, names);
    }

    #[test]
    fn the_count_follows_puts_and_forgets() {
        let (_folder, store) = open();
        let (a, b) = (domain("a.example"), domain("b.example"));
        let mut commit = Commit::new();
        commit.put_domain(&a, vec![1]);
        commit.put_domain(&b, vec![1]);
        store.commit(&commit).unwrap();
        store.commit(&commit).unwrap();
        assert_eq!(store.domain_count().unwrap(), 2);
        let mut commit = Commit::new();
        commit.forget_domain(&a);
        commit.forget_domain(&domain("unknown.example"));
        store.commit(&commit).unwrap();
        assert_eq!(store.domain_count().unwrap(), 1);
        assert_eq!(store.domain(&a).unwrap(), None);
        assert_eq!(store.domain(&b).unwrap(), Some(vec![1]));
    }

    #[test]
    fn what_is_put_with_a_forget_stays() {
        let (_folder, store) = open();
        let a = domain("a.example");
        let mut commit = Commit::new();
        commit.put_domain(&a, vec![1]);
        commit.append_seen(&a, &[UrlHash(1)]);
        store.commit(&commit).unwrap();
        let mut commit = Commit::new();
        commit.put_domain(&a, vec![2]);
        commit.append_seen(&a, &[UrlHash(2)]);
        commit.forget_domain(&a);
        store.commit(&commit).unwrap();
        assert_eq!(store.domain(&a).unwrap(), Some(vec![2]));
        assert_eq!(
            store.seen(&a).collect::<Result<Vec<_>, _>>().unwrap(),
            [UrlHash(2)]
        );
        assert_eq!(store.domain_count().unwrap(), 1);
    }
}
