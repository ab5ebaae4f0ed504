//! Links on their way out: what was found on each page, kept until the owners of the links have
//! acknowledged them.
//!
//! Records whose owners cannot be reached are *held* beside the others, so that nobody has to look
//! at them again and again. A record is in one of both places.

use crate::{Commit, ReadError, Store, tables::Table, values};
use apoidea_model::{CrawlId, Link};
use std::ops::Bound;

/// The links of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRecord {
    /// Order of discovery, chosen by the peer and unique.
    pub sequence: u64,
    /// The crawl of the page, and so of all its links.
    pub crawl: CrawlId,
    /// Its links.
    pub links: Vec<Link>,
}

impl Store {
    /// The first `limit` records that come after a sequence number.
    pub fn outbox(&self, after: Option<u64>, limit: usize) -> Result<Vec<OutboxRecord>, ReadError> {
        self.records(Table::Outbox, after, limit)
    }

    /// The first `limit` held records that come after a sequence number.
    pub fn held(&self, after: Option<u64>, limit: usize) -> Result<Vec<OutboxRecord>, ReadError> {
        self.records(Table::Held, after, limit)
    }

    fn records(
        &self,
        table: Table,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<OutboxRecord>, ReadError> {
        let start = match after {
            Some(sequence) => Bound::Excluded(sequence.to_be_bytes()),
            None => Bound::Unbounded,
        };
        self.read(|tables| {
            let entries = tables
                .space(table)
                .range((start, Bound::Unbounded))
                .take(limit);
            entries.map(|entry| decode(entry.into_inner()?)).collect()
        })
    }

    /// One record, held or not; none once it was dropped.
    pub fn outbox_record(&self, sequence: u64) -> Result<Option<OutboxRecord>, ReadError> {
        let key = sequence.to_be_bytes();
        self.read(|tables| {
            let mut value = tables.space(Table::Outbox).get(key)?;
            if value.is_none() {
                value = tables.space(Table::Held).get(key)?;
            }
            value.map(|value| decode((key.into(), value))).transpose()
        })
    }

    /// The highest sequence number of a record, held or not.
    pub fn last_in_outbox(&self) -> Result<Option<u64>, ReadError> {
        self.read(|tables| {
            let last = |table| {
                let last = tables.space(table).last_key_value();
                last.map(|entry| decode_sequence(&entry.key()?)).transpose()
            };
            Ok(last(Table::Outbox)?.max(last(Table::Held)?))
        })
    }

    /// The number of records that wait, but for those that are held.
    pub fn outbox_count(&self) -> Result<u64, ReadError> {
        self.counter(values::OUTBOX)
    }

    /// The number of records that are held.
    pub fn held_count(&self) -> Result<u64, ReadError> {
        self.counter(values::HELD)
    }
}

impl Commit {
    /// Keeps the links of a page, or replaces the record when only some of them are left.
    pub fn put_outbox(&mut self, sequence: u64, crawl: CrawlId, links: &[Link]) {
        self.put_record(Table::Outbox, sequence, crawl, links);
    }

    /// Lets a held record wait with the others again.
    pub fn release_outbox(&mut self, record: &OutboxRecord) {
        self.put_outbox(record.sequence, record.crawl, &record.links);
        self.remove(Table::Held, record.sequence.to_be_bytes().into());
    }

    /// Holds a record whose owners cannot be reached, with the links that are left of it.
    pub fn hold_outbox(&mut self, sequence: u64, crawl: CrawlId, links: &[Link]) {
        self.put_record(Table::Held, sequence, crawl, links);
        self.remove(Table::Outbox, sequence.to_be_bytes().into());
    }

    fn put_record(&mut self, table: Table, sequence: u64, crawl: CrawlId, links: &[Link]) {
        let bytes =
            postcard::to_stdvec(&(crawl, links)).expect("URLs and numbers always serialise");
        self.put(table, sequence.to_be_bytes().into(), bytes.into());
    }

    /// Drops a record: all its links are durable elsewhere.
    pub fn remove_outbox(&mut self, sequence: u64) {
        self.remove(Table::Outbox, sequence.to_be_bytes().into());
    }
}

fn decode((key, value): fjall::KvPair) -> Result<OutboxRecord, ReadError> {
    let (crawl, links) =
        postcard::from_bytes(&value).map_err(|_| ReadError::corrupt("outbox record", &key))?;
    Ok(OutboxRecord {
        sequence: decode_sequence(&key)?,
        crawl,
        links,
    })
}

fn decode_sequence(key: &[u8]) -> Result<u64, ReadError> {
    let bytes = key
        .try_into()
        .map_err(|_| ReadError::corrupt("outbox record", key))?;
    Ok(u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::open;
    use apoidea_model::{PageUrl, Target};

    const CRAWL: CrawlId = CrawlId(9);

    fn links(urls: &[&str]) -> Vec<Link> {
        let link = |url: &&str| Link {
            url: PageUrl::parse(url).unwrap(),
            depth: 3,
            target: Target::Page,
        };
        urls.iter().map(link).collect()
    }

    #[test]
    fn records_wait_in_order_until_removed() {
        let (_folder, store) = open();
        let (one, two) = (
            links(&["http://a.example/", "https://b.example/x"]),
            links(&["http://c.example/"]),
        );
        let mut commit = Commit::new();
        commit.put_outbox(300, CRAWL, &two);
        commit.put_outbox(2, CRAWL, &one);
        store.commit(&commit).unwrap();
        let record = |sequence, links: &[Link]| OutboxRecord {
            sequence,
            crawl: CRAWL,
            links: links.to_vec(),
        };
        assert_eq!(
            store.outbox(None, 9).unwrap(),
            [record(2, &one), record(300, &two)]
        );
        assert_eq!(store.outbox(Some(2), 9).unwrap(), [record(300, &two)]);
        assert_eq!(store.outbox_record(2).unwrap(), Some(record(2, &one)));
        assert_eq!(store.outbox_record(3).unwrap(), None);
        assert_eq!(
            (
                store.outbox_count().unwrap(),
                store.last_in_outbox().unwrap()
            ),
            (2, Some(300))
        );
        let mut commit = Commit::new();
        commit.remove_outbox(2);
        commit.remove_outbox(77);
        commit.put_outbox(300, CRAWL, &one[..1]);
        store.commit(&commit).unwrap();
        assert_eq!(store.outbox(None, 9).unwrap(), [record(300, &one[..1])]);
        assert_eq!(store.outbox_count().unwrap(), 1);
    }

    #[test]
    fn a_record_waits_or_is_held_and_never_both() {
        let (_folder, store) = open();
        let links = links(&["http://a.example/"]);
        let mut commit = Commit::new();
        (1..=2).for_each(|sequence| commit.put_outbox(sequence, CRAWL, &links));
        store.commit(&commit).unwrap();
        let mut commit = Commit::new();
        commit.hold_outbox(2, CRAWL, &links);
        store.commit(&commit).unwrap();
        let sequences = |records: Vec<OutboxRecord>| -> Vec<u64> {
            records.iter().map(|record| record.sequence).collect()
        };
        assert_eq!(sequences(store.outbox(None, 9).unwrap()), [1]);
        assert_eq!(sequences(store.held(None, 9).unwrap()), [2]);
        let counts = || (store.outbox_count().unwrap(), store.held_count().unwrap());
        assert_eq!(counts(), (1, 1));
        assert!(store.outbox_record(2).unwrap().is_some());
        assert_eq!(store.last_in_outbox().unwrap(), Some(2));
        let mut commit = Commit::new();
        commit.release_outbox(&store.held(None, 9).unwrap()[0]);
        store.commit(&commit).unwrap();
        assert_eq!(counts(), (2, 0));
    }

    #[test]
    fn damaged_records_are_errors() {
        let bytes = postcard::to_stdvec(&(CRAWL, links(&["http://a.example/"]))).unwrap();
        let key = || fjall::UserKey::from(1u64.to_be_bytes());
        assert!(decode((key(), bytes.clone().into())).is_ok());
        assert!(decode((key(), bytes[..bytes.len() - 1].into())).is_err());
        assert!(decode((key(), [0xff; 9].into())).is_err());
        let not_a_url = postcard::to_stdvec(&(CRAWL, [("mailto:x", 1u16, Target::Page)])).unwrap();
        assert!(decode((key(), not_a_url.into())).is_err());
    }
}
