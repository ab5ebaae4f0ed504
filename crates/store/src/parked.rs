//! Domains that have work but are not in memory, in the order in which they want to be woken.

use crate::{Commit, ReadError, Store, domains::parse_domain, tables::Table};
use apoidea_model::{Domain, Time};

const TIME_BYTES: usize = 8;

impl Store {
    /// The domains that want to be woken first, with their times.
    pub fn parked(&self, limit: usize) -> Result<Vec<(Time, Domain)>, ReadError> {
        self.read(|tables| {
            let entries = tables.space(Table::Parked).iter().take(limit);
            entries.map(|entry| decode(&entry.key()?)).collect()
        })
    }

    /// The domains that are parked until `wake` or later, in that order.
    pub fn parked_from(&self, wake: Time) -> Result<Vec<(Time, Domain)>, ReadError> {
        self.read(|tables| {
            let entries = tables
                .space(Table::Parked)
                .range(wake.as_millis().to_be_bytes()..);
            entries.map(|entry| decode(&entry.key()?)).collect()
        })
    }

    /// The time at which a parked domain wakes; none if it is not parked.
    pub fn wake(&self, domain: &Domain) -> Result<Option<Time>, ReadError> {
        self.read(|tables| {
            let stored = tables.space(Table::Wakes).get(domain.as_str())?;
            let corrupt = |_| ReadError::corrupt("wake time", domain.as_str().as_bytes());
            let wake =
                stored.map(|wake| wake[..].try_into().map(u64::from_be_bytes).map_err(corrupt));
            Ok(wake.transpose()?.map(Time::from_millis))
        })
    }
}

impl Commit {
    /// Parks a domain until `wake`, or moves it there if it is parked already.
    pub fn park(&mut self, domain: &Domain, wake: Time) {
        self.put(
            Table::Wakes,
            domain.as_str().into(),
            wake.as_millis().to_be_bytes().into(),
        );
    }

    /// Takes a domain out of the index, because it is in memory or has no work.
    pub fn unpark(&mut self, domain: &Domain) {
        self.remove(Table::Wakes, domain.as_str().into());
    }
}

/// The key of an entry of the index, from one of the table of wake times.
pub(crate) fn key(domain: &[u8], wake: &[u8]) -> fjall::UserKey {
    [wake, domain].concat().into()
}

pub(crate) fn decode(key: &[u8]) -> Result<(Time, Domain), ReadError> {
    let (wake, domain) = key
        .split_first_chunk::<TIME_BYTES>()
        .ok_or_else(|| ReadError::corrupt("parked domain", key))?;
    Ok((
        Time::from_millis(u64::from_be_bytes(*wake)),
        parse_domain(domain)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{domain, open};

    fn wakes(store: &Store) -> Vec<(u64, String)> {
        let parked = store.parked(9).unwrap();
        parked
            .into_iter()
            .map(|(wake, domain)| (wake.as_millis(), domain.to_string()))
            .collect()
    }

    #[test]
    fn the_earliest_comes_first_and_a_move_leaves_nothing_behind() {
        let (_folder, store) = open();
        let (a, b) = (domain("a.example"), domain("b.example"));
        let mut commit = Commit::new();
        commit.park(&a, Time::from_millis(300));
        commit.park(&b, Time::from_millis(200));
        store.commit(&commit).unwrap();
        assert_eq!(
            wakes(&store),
            [(200, "b.example".to_owned()), (300, "a.example".to_owned())]
        );
        let mut commit = Commit::new();
        commit.unpark(&a);
        commit.park(&a, Time::from_millis(1));
        commit.park(&a, Time::from_millis(100));
        store.commit(&commit).unwrap();
        store.commit(&commit).unwrap();
        assert_eq!(
            wakes(&store),
            [(100, "a.example".to_owned()), (200, "b.example".to_owned())]
        );
        assert_eq!(
            store.parked_from(Time::from_millis(101)).unwrap(),
            [(Time::from_millis(200), b.clone())]
        );
        let mut commit = Commit::new();
        commit.unpark(&a);
        commit.forget_domain(&b);
        store.commit(&commit).unwrap();
        assert_eq!(wakes(&store), []);
    }
}
