//! Links that their owner has acknowledged, for a while: an owner may turn out to have dropped them.
//!
//! The peer numbers the batches and decides how long they stay.

use crate::{Commit, ReadError, Store, tables::Table};
use apoidea_model::{CrawlId, Link, PeerId};
use std::ops::Bound;

/// The links that one owner acknowledged together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentBatch {
    /// Chosen by the peer, rising and unique.
    pub number: u64,
    /// The owner that has acknowledged them.
    pub owner: PeerId,
    /// The crawl of the links.
    pub crawl: CrawlId,
    /// The links.
    pub links: Vec<Link>,
}

impl Store {
    /// The first `limit` batches that come after a number.
    pub fn sent(&self, after: Option<u64>, limit: usize) -> Result<Vec<SentBatch>, ReadError> {
        let start = match after {
            Some(number) => Bound::Excluded(number.to_be_bytes()),
            None => Bound::Unbounded,
        };
        self.read(|tables| {
            let range = (start, Bound::Unbounded);
            let entries = tables.space(Table::Sent).range(range).take(limit);
            entries.map(|entry| decode(entry.into_inner()?)).collect()
        })
    }

    /// The numbers of all batches.
    pub fn sent_numbers(&self) -> Result<Vec<u64>, ReadError> {
        self.read(|tables| {
            let entries = tables.space(Table::Sent).iter();
            entries.map(|entry| decode_number(&entry.key()?)).collect()
        })
    }
}

impl Commit {
    /// Keeps links that their owner has acknowledged.
    pub fn put_sent(&mut self, batch: &SentBatch) {
        let value = (batch.owner, batch.crawl, &batch.links);
        let bytes = postcard::to_stdvec(&value).expect("URLs and numbers always serialise");
        let key = batch.number.to_be_bytes();
        self.put(Table::Sent, key.into(), bytes.into());
    }

    /// Forgets a batch.
    pub fn remove_sent(&mut self, number: u64) {
        self.remove(Table::Sent, number.to_be_bytes().into());
    }
}

fn decode((key, value): fjall::KvPair) -> Result<SentBatch, ReadError> {
    let (owner, crawl, links) =
        postcard::from_bytes(&value).map_err(|_| ReadError::corrupt("sent batch", &key))?;
    Ok(SentBatch {
        number: decode_number(&key)?,
        owner,
        crawl,
        links,
    })
}

fn decode_number(key: &[u8]) -> Result<u64, ReadError> {
    let bytes = key.try_into();
    let bytes = bytes.map_err(|_| ReadError::corrupt("sent batch", key))?;
    Ok(u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::open;
    use apoidea_model::{Key, PageUrl, Target};

    #[test]
    fn batches_stay_in_order_until_they_are_removed() {
        let (_folder, store) = open();
        let batch = |number| SentBatch {
            number,
            owner: PeerId::at(Key::hash("owner")),
            crawl: CrawlId::OPEN,
            links: vec![Link {
                url: PageUrl::parse(&format!("http://a.example/{number}")).unwrap(),
                depth: 1,
                target: Target::Page,
            }],
        };
        let mut commit = Commit::new();
        [300, 2, 9]
            .map(batch)
            .iter()
            .for_each(|batch| commit.put_sent(batch));
        store.commit(&commit).unwrap();
        assert_eq!(store.sent(None, 2).unwrap(), [2, 9].map(batch));
        assert_eq!(store.sent(Some(9), 2).unwrap(), [300].map(batch));
        let mut commit = Commit::new();
        commit.remove_sent(9);
        store.commit(&commit).unwrap();
        assert_eq!(store.sent_numbers().unwrap(), [2, 300]);
    }

    #[test]
    fn damaged_batches_are_errors() {
        assert!(decode(([0; 8].into(), [0xff; 3].into())).is_err());
        assert!(decode_number(&[0; 7]).is_err());
    }
}
