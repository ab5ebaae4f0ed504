//! "This content is known": which page had a content hash first (Apoidea §2.2, Seen-Content).
//!
//! Ordered by hash, which is the position on the ring, so that the facts of an arc can be read out
//! when it moves. Whether a fact is new is decided by the caller.

use crate::{Commit, ReadError, Store, tables::Table};
use apoidea_model::{ContentHash, Key, PageUrl, PeerId, Time};
use serde::{Deserialize, Serialize};
use std::ops::Bound;

/// The page that had some content first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// The page.
    pub page: PageUrl,
    /// The time at which it was seen there.
    pub time: Time,
    /// The peer that fetched it and keeps it.
    pub keeper: PeerId,
}

impl Store {
    /// The fact about some content, if it is known.
    pub fn fact(&self, content: &ContentHash) -> Result<Option<Fact>, ReadError> {
        self.read(|tables| {
            let value = tables.space(Table::Facts).get(content.as_bytes())?;
            value
                .map(|value| decode_fact(content.as_bytes(), &value))
                .transpose()
        })
    }

    /// The first `limit` facts of the arc `(from, to]`, clockwise. To read on, pass the last one's
    /// key as `from`; fewer than `limit`, or a last key that is `to`, is the end.
    pub fn facts_in(
        &self,
        from: Key,
        to: Key,
        limit: usize,
    ) -> Result<Vec<(ContentHash, Fact)>, ReadError> {
        let (from, to) = (*from.as_bytes(), *to.as_bytes());
        if from < to {
            return self.facts_between(Bound::Excluded(from), Bound::Included(to), limit);
        }
        let mut facts = self.facts_between(Bound::Excluded(from), Bound::Unbounded, limit)?;
        let rest = limit - facts.len();
        facts.extend(self.facts_between(Bound::Unbounded, Bound::Included(to), rest)?);
        Ok(facts)
    }

    fn facts_between(
        &self,
        from: Bound<[u8; 32]>,
        to: Bound<[u8; 32]>,
        limit: usize,
    ) -> Result<Vec<(ContentHash, Fact)>, ReadError> {
        self.read(|tables| {
            let entries = tables.space(Table::Facts).range((from, to)).take(limit);
            entries.map(|entry| decode(entry.into_inner()?)).collect()
        })
    }
}

impl Commit {
    /// Remembers a fact, in place of what was known about the same content.
    pub fn put_fact(&mut self, content: &ContentHash, fact: Fact) {
        let value = postcard::to_stdvec(&fact).expect("a URL and a number always serialise");
        self.put(Table::Facts, content.as_bytes().into(), value.into());
    }

    /// Forgets a fact, for instance because its arc has moved away.
    pub fn remove_fact(&mut self, content: &ContentHash) {
        self.remove(Table::Facts, content.as_bytes().into());
    }
}

fn decode((key, value): fjall::KvPair) -> Result<(ContentHash, Fact), ReadError> {
    let hash = key[..]
        .try_into()
        .map_err(|_| ReadError::corrupt("content fact", &key))?;
    Ok((ContentHash::from_bytes(hash), decode_fact(&key, &value)?))
}

fn decode_fact(key: &[u8], value: &[u8]) -> Result<Fact, ReadError> {
    postcard::from_bytes(value).map_err(|_| ReadError::corrupt("content fact", key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::open;

    fn content(first: u8) -> ContentHash {
        let mut bytes = [0; 32];
        bytes[0] = first;
        ContentHash::from_bytes(bytes)
    }

    fn fact(page: u64) -> Fact {
        let page_url = PageUrl::parse(&format!("http://a.example/{page}")).unwrap();
        Fact {
            page: page_url,
            time: Time::from_millis(page),
            keeper: PeerId::at(Key::from_bytes([7; 32])),
        }
    }

    #[test]
    fn a_fact_is_found_until_removed() {
        let (_folder, store) = open();
        let mut commit = Commit::new();
        commit.put_fact(&content(1), fact(u64::MAX - 1));
        store.commit(&commit).unwrap();
        assert_eq!(store.fact(&content(1)).unwrap(), Some(fact(u64::MAX - 1)));
        assert_eq!(store.fact(&content(2)).unwrap(), None);
        let mut commit = Commit::new();
        commit.remove_fact(&content(1));
        store.commit(&commit).unwrap();
        assert_eq!(store.fact(&content(1)).unwrap(), None);
    }

    #[test]
    fn an_arc_is_read_clockwise_and_over_zero() {
        let (_folder, store) = open();
        let mut commit = Commit::new();
        for n in [10, 20, 30, 40] {
            commit.put_fact(&content(n), fact(n.into()));
        }
        store.commit(&commit).unwrap();
        let arc = |from: u8, to: u8, limit| -> Vec<u64> {
            let facts = store
                .facts_in(content(from).key(), content(to).key(), limit)
                .unwrap();
            facts
                .iter()
                .map(|(_, fact)| fact.time.as_millis())
                .collect()
        };
        assert_eq!(arc(10, 30, 9), [20, 30]);
        assert_eq!(arc(30, 10, 9), [40, 10]);
        assert_eq!(arc(30, 20, 2), [40, 10]);
        assert_eq!(arc(25, 25, 9), [30, 40, 10, 20]);
    }

    #[test]
    fn damaged_facts_are_errors() {
        assert!(decode(([1; 31].into(), [0; 16].into())).is_err());
        assert!(decode(([1; 32].into(), [5; 15].into())).is_err());
    }
}
