//! What is known about each domain, as opaque bytes: the peer serialises its domain state, the
//! store keeps it.

use crate::{Commit, ReadError, Store, tables::Table, values};
use apoidea_model::Domain;
use std::ops::Bound;

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

    /// How many domains have a state.
    pub fn domain_count(&self) -> Result<u64, ReadError> {
        self.counter(values::DOMAINS)
    }
}

impl Commit {
    /// Remembers a domain's state.
    pub fn put_domain(&mut self, domain: &Domain, state: Vec<u8>) {
        self.put(Table::Domains, domain.as_str().into(), state.into());
    }

    /// Forgets everything about a domain: state, queue, seen log, wake time. It takes effect before
    /// everything else in this commit, so what is put for the domain in the same commit stays.
    pub fn forget_domain(&mut self, domain: &Domain) {
        self.forgotten.insert(domain.clone());
    }
}

/// The domain that a key names.
pub(crate) fn parse_domain(key: &[u8]) -> Result<Domain, ReadError> {
    let text = std::str::from_utf8(key).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| ReadError::corrupt("domain name", key))
}

/// Where a domain's entries begin in tables that hold several for each: no name contains a zero
/// byte, so no domain's entries lie between those of another.
pub(crate) fn domain_prefix(domain: &Domain) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(domain.as_str().len() + 11);
    prefix.extend_from_slice(domain.as_str().as_bytes());
    prefix.push(0);
    prefix
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
