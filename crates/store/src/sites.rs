//! The hosts of each site, as an index of the domains: a site's hosts do not stand together there,
//! since their names begin with what differs.

use crate::{ReadError, Store, domains::parse_domain, tables::Table};
use apoidea_model::Domain;

impl Store {
    /// Domains of a site that have a state, in the order of their names.
    pub fn hosts_of(&self, site: &str, limit: usize) -> Result<Vec<Domain>, ReadError> {
        let prefix = prefix(site);
        self.read(|tables| {
            let entries = tables.space(Table::Sites).prefix(&prefix).take(limit);
            let hosts = entries.map(|entry| parse_domain(&entry.key()?[prefix.len()..]));
            hosts.collect()
        })
    }
}

/// The key of a domain in the index.
pub(crate) fn key(domain: &Domain) -> Vec<u8> {
    let mut key = prefix(domain.site());
    key.extend_from_slice(domain.as_str().as_bytes());
    key
}

/// The beginning of all keys of a site: no name contains a zero byte.
fn prefix(site: &str) -> Vec<u8> {
    [site.as_bytes(), &[0]].concat()
}

#[cfg(test)]
mod tests {
    use crate::{
        Commit,
        store::tests::{domain, open},
    };

    #[test]
    fn the_hosts_of_a_site_are_those_that_have_a_state() {
        let (_folder, store) = open();
        let names = ["b.a.example", "a.example", "b.example", "c.a.example"];
        let mut commit = Commit::new();
        for name in names {
            commit.put_domain(&domain(name), vec![1]);
        }
        store.commit(&commit).unwrap();
        let hosts = |limit| store.hosts_of("a.example", limit).unwrap();
        let all = ["a.example", "b.a.example", "c.a.example"].map(domain);
        assert_eq!((hosts(9), hosts(2)), (all.to_vec(), all[..2].to_vec()));
        let mut commit = Commit::new();
        commit.forget_domain(&all[0]);
        commit.replace_domain(&all[1]);
        commit.put_domain(&all[1], vec![2]);
        store.apply(&commit).unwrap();
        assert_eq!(hosts(9), all[1..]);
        let mut commit = Commit::new();
        commit.replace_domain(&all[2]);
        store.apply(&commit).unwrap();
        assert_eq!(hosts(9), [all[1].clone()]);
        assert_eq!(store.hosts_of("example", 9).unwrap(), []);
    }
}
