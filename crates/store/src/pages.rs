//! Each domain's pages that were fetched: what the next visit needs, and where the page is
//! archived.
//!
//! A key is domain, zero byte, fingerprint of the URL. The value begins with the time of the next
//! visit ([`crate::due`] orders the pages by it). It leaves out what the key says, and of the URL
//! the scheme and host (`examples/page_records.rs` measures what a page takes). Replicas of a domain
//! have records of the same pages; two records of one page are joined.

use crate::{
    Commit, ReadError, Store,
    archive::Position,
    domains::{after_prefix, domain_prefix, parse_domain},
    due::{read_time, stored_time},
    queue::{Lead, join_url, split_url},
    tables::Table,
    values,
};
use apoidea_model::{
    ChangeHistory, ContentMark, Domain, PageUrl, PeerId, PreviousVisit, Target, Time, UrlHash,
    Validators,
};
use serde::{Deserialize, Serialize};
use std::{ops::Bound, time::Duration};

/// Bytes of a URL's fingerprint at the end of a key.
pub(crate) const HASH_BYTES: usize = 8;
const DUE_BYTES: usize = 4;

/// A page that was fetched at least once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRecord {
    /// The page.
    pub url: PageUrl,
    /// The time of the last fetch that told its content.
    pub visited: Time,
    /// The time of its next visit, to the second; none if there is to be none.
    pub due: Option<Time>,
    /// The validators that came with that content.
    pub validators: Validators,
    /// The content then.
    pub content: ContentMark,
    /// The changes that it was seen to make.
    pub history: ChangeHistory,
    /// The capture that holds this content; `None` if the page is not archived, as when it asks not
    /// to be, or when another page had the same content first.
    pub archived: Option<Archived>,
    /// The page's standing by its last answers.
    pub standing: PageStanding,
    /// Links followed from a seed to the page.
    pub depth: u16,
    /// The kind of document: lists of pages are visited again, too.
    pub target: Target,
}

/// A page's standing by its last answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PageStanding {
    /// It was there.
    There,
    /// It was there, with other content than its validators had; these are kept to see whether its
    /// server still answers for them.
    Outdated,
    /// The last visit did not find it.
    Missing,
    /// The last visit had no answer that tells.
    Untold,
}

/// The capture that holds a page's content in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// The time of the capture.
    pub time: Time,
    /// The archive that it is in.
    pub place: ArchivePlace,
}

/// The archive that a capture is in, as seen from this peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArchivePlace {
    /// This peer's own, at this position.
    Here(Position),
    /// That of the peer that fetched the page for this one.
    Peer(PeerId),
    /// That of a peer which owned the domain then, or of its helper.
    Elsewhere,
}

impl PageRecord {
    /// The last visit, as the next one needs it.
    pub fn previous_visit(&self) -> PreviousVisit {
        PreviousVisit {
            since: self.visited,
            captured: self.archived.as_ref().map(|archived| archived.time),
            validators: self.validators.clone(),
            content: self.content,
        }
    }
}

impl PageRecord {
    /// Joins two records of one page: the later visit counts, and of the history all of both.
    pub fn joined(self, other: PageRecord) -> PageRecord {
        let (mut later, earlier) = match self.visited >= other.visited {
            true => (self, other),
            false => (other, self),
        };
        later.history.join(&earlier.history);
        if later.archived.is_none() && later.content == earlier.content {
            later.archived = earlier.archived;
        }
        later
    }
}

impl Store {
    /// The number of pages that were fetched, of all domains.
    pub fn page_count(&self) -> Result<u64, ReadError> {
        self.counter(values::PAGES)
    }

    /// The first `limit` pages after one, domain by domain; the first of all without.
    pub fn all_pages(
        &self,
        after: Option<(&Domain, UrlHash)>,
        limit: usize,
    ) -> Result<Vec<(Domain, PageRecord)>, ReadError> {
        let start = match after {
            Some((domain, url)) => Bound::Excluded(key(domain, url)),
            None => Bound::Unbounded,
        };
        self.read(|tables| {
            let space = tables.space(Table::Pages);
            let entries = space
                .range::<Vec<u8>, _>((start, Bound::Unbounded))
                .take(limit);
            let page = |entry: fjall::Guard| {
                let (key, value) = entry.into_inner()?;
                let name = key.split_last_chunk::<HASH_BYTES>();
                let name = name.and_then(|(name, _)| name.strip_suffix(&[0]));
                let domain = parse_domain(name.unwrap_or_default())?;
                let record = decode(&domain, &key, &value)?;
                Ok((domain, record))
            };
            entries.map(page).collect()
        })
    }

    /// One page of a domain, if it was fetched.
    pub fn page(&self, domain: &Domain, url: UrlHash) -> Result<Option<PageRecord>, ReadError> {
        let key = key(domain, url);
        self.read(|tables| {
            let value = tables.space(Table::Pages).get(&key)?;
            value.map(|value| decode(domain, &key, &value)).transpose()
        })
    }

    /// The first `limit` pages of a domain that come after a fingerprint, in the order of their
    /// fingerprints.
    pub fn pages(
        &self,
        domain: &Domain,
        after: Option<UrlHash>,
        limit: usize,
    ) -> Result<Vec<PageRecord>, ReadError> {
        let prefix = domain_prefix(domain);
        let start = match after {
            Some(url) => Bound::Excluded(key(domain, url)),
            None => Bound::Included(prefix.clone()),
        };
        let end = Bound::Excluded(after_prefix(prefix));
        self.read(|tables| {
            let entries = tables.space(Table::Pages).range((start, end)).take(limit);
            let page = |entry: fjall::Guard| {
                let (key, value) = entry.into_inner()?;
                decode(domain, &key, &value)
            };
            entries.map(page).collect()
        })
    }
}

impl Commit {
    /// Remembers a page that was fetched, in place of what was known of it.
    pub fn put_page(&mut self, domain: &Domain, page: &PageRecord) {
        let key = key(domain, page.url.hash());
        self.put(Table::Pages, key.into(), encode(domain, page).into());
    }

    /// Forgets a page.
    pub fn remove_page(&mut self, domain: &Domain, url: UrlHash) {
        self.remove(Table::Pages, key(domain, url).into());
    }
}

/// The value of a record. The time of the capture is told by its distance from the last visit,
/// which is mostly zero.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    visited: Time,
    standing: PageStanding,
    depth: u16,
    target: Target,
    validators: Validators,
    content: ContentMark,
    history: ChangeHistory,
    archived: Option<(u64, ArchivePlace)>,
    lead: Lead,
    rest: &'a str,
}

fn key(domain: &Domain, url: UrlHash) -> Vec<u8> {
    let mut key = domain_prefix(domain);
    key.extend_from_slice(&url.0.to_be_bytes());
    key
}

fn encode(domain: &Domain, page: &PageRecord) -> Vec<u8> {
    let (lead, rest) = split_url(domain, &page.url);
    let archived = page.archived.as_ref().map(|archived| {
        let age = page.visited.since(archived.time).as_millis();
        (u64::try_from(age).unwrap_or(u64::MAX), archived.place)
    });
    let stored = Stored {
        visited: page.visited,
        standing: page.standing,
        depth: page.depth,
        target: page.target,
        validators: page.validators.clone(),
        content: page.content,
        history: page.history,
        archived,
        lead,
        rest,
    };
    let due = page.due.unwrap_or(Time::NEVER);
    let value = stored_time(due).to_be_bytes().to_vec();
    postcard::to_extend(&stored, value).expect("numbers and text always serialise")
}

/// The time of the next visit in a value, as it is stored.
pub(crate) fn due_of(value: &[u8]) -> Option<u32> {
    let (due, _) = value.split_first_chunk::<DUE_BYTES>()?;
    Some(u32::from_be_bytes(*due))
}

fn decode(domain: &Domain, key: &[u8], value: &[u8]) -> Result<PageRecord, ReadError> {
    decode_value(domain, value).ok_or_else(|| ReadError::corrupt("page", key))
}

fn decode_value(domain: &Domain, value: &[u8]) -> Option<PageRecord> {
    let (due, value) = value.split_first_chunk::<DUE_BYTES>()?;
    let stored: Stored = postcard::from_bytes(value).ok()?;
    let archived = stored.archived.map(|(age, place)| Archived {
        time: stored.visited - Duration::from_millis(age),
        place,
    });
    Some(PageRecord {
        url: join_url(domain, stored.lead, stored.rest)?,
        visited: stored.visited,
        due: read_time(u32::from_be_bytes(*due)),
        standing: stored.standing,
        depth: stored.depth,
        target: stored.target,
        validators: stored.validators,
        content: stored.content,
        history: stored.history,
        archived,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::store::tests::{domain, open};
    use apoidea_model::ContentHash;

    const NOON: Time = Time::from_millis(1_700_000_000_123);

    fn here(file: u64) -> Archived {
        let position = Position {
            file,
            offset: 12_345_678,
            length: 9_876,
        };
        Archived {
            time: NOON,
            place: ArchivePlace::Here(position),
        }
    }

    pub(crate) fn record(url: &str) -> PageRecord {
        PageRecord {
            url: PageUrl::parse(url).unwrap(),
            visited: NOON,
            due: None,
            standing: PageStanding::There,
            depth: 3,
            target: Target::Page,
            validators: Validators::read(Some(b"\"61f-5e0c7a3b1d2c0\""), None),
            content: ContentMark::of(&ContentHash::of_body(url.as_bytes())),
            history: ChangeHistory::FIRST,
            archived: Some(here(3)),
        }
    }

    fn put(store: &Store, domain: &Domain, pages: &[PageRecord]) {
        let mut commit = Commit::new();
        pages.iter().for_each(|page| commit.put_page(domain, page));
        store.commit(&commit).unwrap();
    }

    #[test]
    fn every_page_comes_back_as_it_went_in() {
        let (_folder, store) = open();
        let a = domain("a.example");
        let mut lent = record("http://www.a.example/not/of/this/domain");
        lent.archived = Some(Archived {
            time: NOON - Duration::from_secs(86_400),
            place: ArchivePlace::Peer(PeerId::of_public_key(b"helper")),
        });
        let mut unarchived = record("https://a.example:8443/x?y=z");
        unarchived.archived = None;
        unarchived.validators = Validators::default();
        let pages = [record("http://a.example/"), lent, unarchived];
        put(&store, &a, &pages);
        for page in &pages {
            let found = store.page(&a, page.url.hash()).unwrap();
            assert_eq!(found.as_ref(), Some(page));
        }
        assert_eq!(store.page(&a, UrlHash(7)).unwrap(), None);
        let captured = pages.map(|page| page.previous_visit().captured);
        let day_before = NOON - Duration::from_secs(86_400);
        assert_eq!(captured, [Some(NOON), Some(day_before), None]);
    }

    #[test]
    fn the_pages_of_a_domain_are_read_in_order_and_go_with_it() {
        let (_folder, store) = open();
        let (a, ab) = (domain("a.example"), domain("a.example.org"));
        let urls = (0..5).map(|n| format!("http://a.example/{n}"));
        let mut pages: Vec<_> = urls.map(|url| record(&url)).collect();
        put(&store, &a, &pages);
        put(&store, &ab, &[record("http://a.example.org/")]);
        pages.sort_by_key(|page| page.url.hash());
        assert_eq!(store.pages(&a, None, 9).unwrap(), pages);
        let after = Some(pages[1].url.hash());
        assert_eq!(store.pages(&a, after, 2).unwrap(), pages[2..4]);
        let mut commit = Commit::new();
        commit.remove_page(&a, pages[0].url.hash());
        store.commit(&commit).unwrap();
        assert_eq!(store.pages(&a, None, 9).unwrap(), pages[1..]);
        let mut commit = Commit::new();
        commit.forget_domain(&a);
        store.commit(&commit).unwrap();
        assert_eq!(store.pages(&a, None, 9).unwrap(), []);
        assert_eq!(store.pages(&ab, None, 9).unwrap().len(), 1);
    }

    #[test]
    fn a_replaced_domain_keeps_its_pages() {
        let (_folder, store) = open();
        let a = domain("a.example");
        put(&store, &a, &[record("http://a.example/")]);
        let mut commit = Commit::new();
        commit.put_domain(&a, vec![1]);
        store.commit(&commit).unwrap();
        let mut commit = Commit::new();
        commit.replace_domain(&a);
        store.commit(&commit).unwrap();
        assert_eq!(store.domain(&a).unwrap(), None);
        assert_eq!(store.pages(&a, None, 9).unwrap().len(), 1);
    }

    #[test]
    fn damaged_records_are_errors() {
        let a = domain("a.example");
        let good = record("https://a.example/path");
        let value = encode(&a, &good);
        assert_eq!(decode_value(&a, &value), Some(good));
        for length in 0..value.len() {
            assert_eq!(decode_value(&a, &value[..length]), None, "cut to {length}");
        }
    }
}
