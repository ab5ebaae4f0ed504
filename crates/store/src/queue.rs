//! Each domain's queue of URLs, in the order in which they will be fetched.
//!
//! A key is domain, zero byte, rank, sequence, so that a queue is read in order with one seek. The
//! value leaves out what the key says already: of the URL only the scheme and what follows the
//! host.

use crate::{
    Commit, ReadError, Store,
    domains::{after_prefix, domain_prefix},
    tables::{Table, Tables},
};
use apoidea_model::{CrawlId, Domain, PageUrl, Pending, Slot, Target, Time, Visit};
use serde::{Deserialize, Serialize};
use std::ops::Bound;

const SLOT_BYTES: usize = 10;

impl Store {
    /// The first `limit` URLs of a domain's queue that come after a slot.
    pub fn pending(
        &self,
        domain: &Domain,
        after: Option<Slot>,
        limit: usize,
    ) -> Result<Vec<Pending>, ReadError> {
        let prefix = domain_prefix(domain);
        let start = match after {
            Some(slot) => Bound::Excluded(key(domain, slot)),
            None => Bound::Included(prefix.clone()),
        };
        let end = Bound::Excluded(after_prefix(prefix));
        self.read(|tables| {
            let entries = tables.space(Table::Queue).range((start, end)).take(limit);
            entries.map(|entry| decode(domain, entry)).collect()
        })
    }

    /// The URL at one place of a domain's queue.
    pub fn pending_at(&self, domain: &Domain, slot: Slot) -> Result<Option<Pending>, ReadError> {
        let key = key(domain, slot);
        self.read(|tables| {
            let Some(value) = tables.space(Table::Queue).get(&key)? else {
                return Ok(None);
            };
            let pending = decode_parts(domain, &key, &value);
            let corrupt = || ReadError::corrupt("queued URL", &key);
            pending.map(Some).ok_or_else(corrupt)
        })
    }

    /// The number of URLs that wait in a domain's queue.
    pub fn queue_length(&self, domain: &Domain) -> Result<u64, ReadError> {
        self.read(|tables| Ok(keys(tables, domain)?.len() as u64))
    }

    /// The least important URL of a domain's queue, the first to go when the queue is full.
    pub fn worst(&self, domain: &Domain) -> Result<Option<Pending>, ReadError> {
        self.read(|tables| {
            let last = tables
                .space(Table::Queue)
                .prefix(domain_prefix(domain))
                .next_back();
            last.map(|entry| decode(domain, entry)).transpose()
        })
    }
}

impl Commit {
    /// Puts a URL into a domain's queue, or replaces what is in its slot: a retry that waits.
    pub fn put_pending(&mut self, domain: &Domain, pending: &Pending) {
        self.put(
            Table::Queue,
            key(domain, pending.slot).into(),
            encode(domain, pending).into(),
        );
    }

    /// Takes a URL out of a domain's queue.
    pub fn remove_pending(&mut self, domain: &Domain, slot: Slot) {
        self.remove(Table::Queue, key(domain, slot).into());
    }
}

/// The value of a queued URL: what the key does not say.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    depth: u16,
    target: Target,
    crawl: CrawlId,
    visit: Visit,
    attempts: u8,
    not_before: Time,
    lead: Lead,
    rest: &'a str,
}

/// The part of a URL that is left out before its stored rest.
#[derive(Serialize, Deserialize)]
pub(crate) enum Lead {
    HttpAndDomain,
    HttpsAndDomain,
    Nothing,
}

/// The key of a slot in tables with one entry for each URL of a domain.
pub(crate) fn key(domain: &Domain, slot: Slot) -> Vec<u8> {
    let mut key = domain_prefix(domain);
    key.extend_from_slice(&slot.rank.to_be_bytes());
    key.extend_from_slice(&slot.sequence.to_be_bytes());
    key
}

/// The name of the domain and the slot in a key.
pub(crate) fn split_key(key: &[u8]) -> Option<(&[u8], Slot)> {
    let (name, slot) = key.split_last_chunk::<SLOT_BYTES>()?;
    let (rank, sequence) = slot.split_first_chunk::<2>()?;
    let slot = Slot {
        rank: u16::from_be_bytes(*rank),
        sequence: u64::from_be_bytes(sequence.try_into().ok()?),
    };
    Some((name.strip_suffix(&[0])?, slot))
}

fn encode(domain: &Domain, pending: &Pending) -> Vec<u8> {
    let (lead, rest) = split_url(domain, &pending.url);
    let stored = Stored {
        depth: pending.depth,
        target: pending.target,
        crawl: pending.crawl,
        visit: pending.visit.clone(),
        attempts: pending.attempts,
        not_before: pending.not_before,
        lead,
        rest,
    };
    postcard::to_stdvec(&stored).expect("numbers and text always serialise")
}

/// Takes a URL apart that is stored under a key which names its domain.
pub(crate) fn split_url<'a>(domain: &Domain, url: &'a PageUrl) -> (Lead, &'a str) {
    let text = url.as_str();
    if url.host() != domain.as_str() {
        return (Lead::Nothing, text);
    }
    let (lead, scheme) = if url.is_https() {
        (Lead::HttpsAndDomain, "https://")
    } else {
        (Lead::HttpAndDomain, "http://")
    };
    (lead, &text[scheme.len() + domain.as_str().len()..])
}

/// Puts a URL together again.
pub(crate) fn join_url(domain: &Domain, lead: Lead, rest: &str) -> Option<PageUrl> {
    let url = match lead {
        Lead::Nothing => PageUrl::parse(rest),
        Lead::HttpAndDomain => PageUrl::parse(&format!("http://{domain}{rest}")),
        Lead::HttpsAndDomain => PageUrl::parse(&format!("https://{domain}{rest}")),
    };
    url.ok()
}

fn decode(domain: &Domain, entry: fjall::Guard) -> Result<Pending, ReadError> {
    let (key, value) = entry.into_inner()?;
    decode_parts(domain, &key, &value).ok_or_else(|| ReadError::corrupt("queued URL", &key))
}

fn decode_parts(domain: &Domain, key: &[u8], value: &[u8]) -> Option<Pending> {
    let (_, slot) = split_key(key)?;
    let stored: Stored = postcard::from_bytes(value).ok()?;
    Some(Pending {
        slot,
        url: join_url(domain, stored.lead, stored.rest)?,
        depth: stored.depth,
        target: stored.target,
        crawl: stored.crawl,
        visit: stored.visit,
        attempts: stored.attempts,
        not_before: stored.not_before,
    })
}

/// All keys of a domain's queue.
pub(crate) fn keys(tables: &Tables, domain: &Domain) -> fjall::Result<Vec<fjall::UserKey>> {
    tables
        .space(Table::Queue)
        .prefix(domain_prefix(domain))
        .map(|entry| entry.key())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{domain, open, pending};
    use apoidea_model::{ContentHash, ContentMark, PreviousVisit, Validators};

    #[test]
    fn a_queue_is_read_in_order_of_rank_and_arrival() {
        let (_folder, store) = open();
        let (a, ab) = (domain("a.example"), domain("a.example.org"));
        let mut commit = Commit::new();
        for (rank, sequence) in [(1, 300), (0, 5), (1, 2), (700, 1)] {
            commit.put_pending(&a, &pending("http://a.example/x", rank, sequence));
            commit.put_pending(&ab, &pending("http://a.example.org/x", rank, sequence));
        }
        store.commit(&commit).unwrap();
        let slots = |after, limit| -> Vec<(u16, u64)> {
            let found = store.pending(&a, after, limit).unwrap();
            found
                .iter()
                .map(|p| (p.slot.rank, p.slot.sequence))
                .collect()
        };
        assert_eq!(slots(None, 9), [(0, 5), (1, 2), (1, 300), (700, 1)]);
        assert_eq!(
            slots(
                Some(Slot {
                    rank: 1,
                    sequence: 2
                }),
                1
            ),
            [(1, 300)]
        );
        assert_eq!(
            store.worst(&a).unwrap().unwrap().slot,
            Slot {
                rank: 700,
                sequence: 1
            }
        );
        assert_eq!(store.worst(&domain("other.example")).unwrap(), None);
    }

    #[test]
    fn every_url_comes_back_as_it_went_in_with_its_crawl_and_visit() {
        let (_folder, store) = open();
        let a = domain("a.example");
        let urls = [
            "http://a.example/",
            "https://a.example/x?y=z",
            "https://a.example:8443/",
            "http://www.a.example/not/of/this/domain",
        ];
        let mut commit = Commit::new();
        let mut sent: Vec<Pending> = urls
            .iter()
            .zip(0..)
            .map(|(url, n)| pending(url, 0, n))
            .collect();
        sent[1].crawl = CrawlId(0xdead_beef);
        sent[2].visit = Visit::again(PreviousVisit {
            since: Time::from_millis(7),
            captured: Some(Time::from_millis(6)),
            validators: Validators::read(Some(b"\"x\""), None),
            content: ContentMark::of(&ContentHash::of_body(b"x")),
        });
        for pending in &sent {
            commit.put_pending(&a, pending);
        }
        store.commit(&commit).unwrap();
        assert_eq!(store.pending(&a, None, 9).unwrap(), sent);
    }

    #[test]
    fn a_retry_replaces_and_a_settled_url_leaves() {
        let (_folder, store) = open();
        let a = domain("a.example");
        let first = pending("http://a.example/", 0, 1);
        let mut commit = Commit::new();
        commit.put_pending(&a, &first);
        commit.put_pending(&a, &pending("http://a.example/2", 0, 2));
        store.commit(&commit).unwrap();
        let retry = Pending {
            attempts: 2,
            not_before: Time::from_millis(99),
            ..first
        };
        let mut commit = Commit::new();
        commit.put_pending(&a, &retry);
        commit.remove_pending(
            &a,
            Slot {
                rank: 0,
                sequence: 2,
            },
        );
        store.commit(&commit).unwrap();
        assert_eq!(store.pending(&a, None, 9).unwrap(), [retry]);
    }

    #[test]
    fn damaged_values_are_errors() {
        let a = domain("a.example");
        let good = pending("https://a.example/path", 3, 4);
        let (key, value) = (key(&a, good.slot), encode(&a, &good));
        assert_eq!(decode_parts(&a, &key, &value), Some(good));
        for length in 0..value.len() {
            assert_eq!(
                decode_parts(&a, &key, &value[..length]),
                None,
                "cut to {length}"
            );
        }
        assert_eq!(decode_parts(&a, b"short", &value), None);
        let mut wrong = value;
        wrong[6] = 9;
        assert_eq!(decode_parts(&a, &key, &wrong), None);
    }
}
