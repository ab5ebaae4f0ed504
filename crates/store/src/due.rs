//! The pages that are to be visited again, in the order of their times; nothing of it is in memory.
//!
//! Each domain has its pages in order (domain, time, URL hash), and the domains are in the order of
//! the first of these. Both follow from the records of the pages: every commit that changes a record
//! changes its entry. A page that waits in its domain's queue is taken out until its next visit is
//! over.

use crate::{
    Commit, ReadError, Store,
    commit::Changes,
    domains::{after_prefix, domain_prefix},
    pages::{self, HASH_BYTES},
    parked,
    tables::{Table, Tables},
};
use apoidea_model::{Domain, Time, UrlHash};
use fjall::{UserKey, UserValue};
use std::collections::BTreeMap;

const DUE_BYTES: usize = 4;
/// The time of a page that is not visited again.
const NEVER: u32 = u32::MAX;

impl Store {
    /// The domains whose first page is due first, with its time.
    pub fn due_domains(&self, limit: usize) -> Result<Vec<(Time, Domain)>, ReadError> {
        self.read(|tables| {
            let entries = tables.space(Table::DueDomains).iter().take(limit);
            entries.map(|entry| parked::decode(&entry.key()?)).collect()
        })
    }

    /// Is this page in the order at this time, and not in a queue?
    pub fn is_due(&self, domain: &Domain, due: Time, url: UrlHash) -> Result<bool, ReadError> {
        let key = key(domain_prefix(domain), stored_time(due), url.0.to_be_bytes());
        self.read(|tables| Ok(tables.space(Table::Due).contains_key(&key)?))
    }

    /// The pages of a domain that are due first, with their times.
    pub fn due_pages(
        &self,
        domain: &Domain,
        limit: usize,
    ) -> Result<Vec<(Time, UrlHash)>, ReadError> {
        let prefix = domain_prefix(domain);
        let (start, end) = (prefix.clone(), after_prefix(prefix));
        self.read(|tables| {
            let entries = tables.space(Table::Due).range(start..end).take(limit);
            let page = |entry: fjall::Guard| {
                let key = entry.key()?;
                decode(&key).ok_or_else(|| ReadError::corrupt("page that is due", &key))
            };
            entries.map(page).collect()
        })
    }
}

impl Commit {
    /// Takes a page out of the order, since it waits in its domain's queue now.
    pub fn take_due(&mut self, domain: &Domain, due: Time, url: UrlHash) {
        let key = key(domain_prefix(domain), stored_time(due), url.0.to_be_bytes());
        self.remove(Table::Due, key);
    }

    /// Puts a domain among those with due pages, at this time; `None` takes it out.
    pub fn set_next_due(&mut self, domain: &Domain, due: Option<Time>) {
        let name = domain.as_str().into();
        match due {
            Some(due) => self.put(Table::NextDue, name, due.as_millis().to_be_bytes().into()),
            None => self.remove(Table::NextDue, name),
        }
    }
}

/// The changes of the order that follow from those of the records. Gives the number of records
/// gained and lost, too.
pub(crate) struct DueChanges {
    pub(crate) entries: Changes,
    pub(crate) next: Changes,
    pub(crate) gained: usize,
    pub(crate) lost: usize,
}

impl DueChanges {
    /// `records` are the changes of the records. A time in `next`, that of a domain which the same
    /// commit sets, has the last word.
    pub(crate) fn of<'a>(
        tables: &Tables,
        records: impl Iterator<Item = (&'a UserKey, &'a Option<UserValue>)>,
        next: &Changes,
    ) -> Result<Self, ReadError> {
        let mut all = DueChanges {
            entries: Changes::new(),
            next: Changes::new(),
            gained: 0,
            lost: 0,
        };
        let mut first: BTreeMap<UserKey, u32> = BTreeMap::new();
        for (key, value) in records {
            let Some((prefix, hash)) = key.split_last_chunk::<HASH_BYTES>() else {
                continue;
            };
            let entry = |due| self::key(prefix.to_vec(), due, *hash);
            let old = tables.space(Table::Pages).get(key)?;
            all.gained += usize::from(old.is_none() && value.is_some());
            all.lost += usize::from(old.is_some() && value.is_none());
            if let Some(due) = old.as_deref().and_then(pages::due_of) {
                all.entries.insert(entry(due), None);
            }
            let due = value.as_deref().and_then(pages::due_of);
            if let Some(due) = due.filter(|&due| due != NEVER) {
                all.entries.insert(entry(due), Some(UserValue::from([])));
                let name = UserKey::from(&prefix[..prefix.len().saturating_sub(1)]);
                let least = first.entry(name).or_insert(due);
                *least = due.min(*least);
            }
        }
        for (name, due) in first {
            if next.contains_key(&name) {
                continue;
            }
            let stored = tables.space(Table::NextDue).get(&name)?;
            let due = (u64::from(due) * 1000).to_be_bytes();
            if stored.is_none_or(|stored| stored[..] > due[..]) {
                all.next.insert(name, Some(due.into()));
            }
        }
        Ok(all)
    }
}

/// A time to the second, as it is kept; the last one stands for never.
pub(crate) fn stored_time(due: Time) -> u32 {
    u32::try_from(due.as_millis().div_ceil(1000)).unwrap_or(NEVER)
}

/// The time that is kept; none if the page is not visited again.
pub(crate) fn read_time(seconds: u32) -> Option<Time> {
    (seconds != NEVER).then(|| Time::from_millis(u64::from(seconds) * 1000))
}

fn key(mut prefix: Vec<u8>, due: u32, hash: [u8; HASH_BYTES]) -> UserKey {
    prefix.extend_from_slice(&due.to_be_bytes());
    prefix.extend_from_slice(&hash);
    prefix.into()
}

fn decode(key: &[u8]) -> Option<(Time, UrlHash)> {
    let (rest, hash) = key.split_last_chunk::<HASH_BYTES>()?;
    let (_, due) = rest.split_last_chunk::<DUE_BYTES>()?;
    let time = read_time(u32::from_be_bytes(*due))?;
    Some((time, UrlHash(u64::from_be_bytes(*hash))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        PageRecord,
        pages::tests::record,
        store::tests::{domain, open},
    };

    fn seconds(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn put(store: &Store, domain: &Domain, page: &PageRecord) {
        let mut commit = Commit::new();
        commit.put_page(domain, page);
        store.commit(&commit).unwrap();
    }

    fn due(store: &Store, domain: &Domain) -> Vec<(Time, UrlHash)> {
        store.due_pages(domain, 9).unwrap()
    }

    #[test]
    fn pages_and_domains_come_in_the_order_of_their_times_and_a_move_leaves_nothing_behind() {
        let (_folder, store) = open();
        let (a, b) = (domain("a.example"), domain("b.example"));
        let mut early = record("http://a.example/early");
        let mut late = record("http://a.example/late");
        let mut other = record("http://b.example/");
        (early.due, late.due) = (Some(seconds(100)), Some(seconds(300)));
        other.due = Some(seconds(200));
        put(&store, &a, &late);
        assert_eq!(store.due_domains(9).unwrap(), [(seconds(300), a.clone())]);
        put(&store, &a, &early);
        put(&store, &b, &other);
        let order = [(seconds(100), a.clone()), (seconds(200), b.clone())];
        assert_eq!(store.due_domains(9).unwrap(), order);
        early.due = Some(seconds(400));
        put(&store, &a, &early);
        let pages = [
            (seconds(300), late.url.hash()),
            (seconds(400), early.url.hash()),
        ];
        assert_eq!(due(&store, &a), pages);
        let mut commit = Commit::new();
        commit.set_next_due(&a, Some(seconds(300)));
        commit.take_due(&a, seconds(300), late.url.hash());
        store.commit(&commit).unwrap();
        assert_eq!(due(&store, &a), pages[1..]);
        assert_eq!(store.due_domains(1).unwrap(), [(seconds(200), b.clone())]);
        late.due = None;
        put(&store, &a, &late);
        assert_eq!(due(&store, &a), pages[1..]);
        assert_eq!(store.page_count().unwrap(), 3);
        let mut commit = Commit::new();
        commit.forget_domain(&a);
        commit.remove_page(&b, other.url.hash());
        commit.set_next_due(&b, None);
        store.commit(&commit).unwrap();
        assert_eq!((due(&store, &a), due(&store, &b)), (vec![], vec![]));
        assert_eq!(store.due_domains(9).unwrap(), []);
        assert_eq!(store.page_count().unwrap(), 0);
    }

    #[test]
    fn the_time_that_a_commit_sets_for_a_domain_has_the_last_word() {
        let (_folder, store) = open();
        let a = domain("a.example");
        let mut page = record("http://a.example/");
        page.due = Some(seconds(100));
        let mut commit = Commit::new();
        commit.put_page(&a, &page);
        commit.set_next_due(&a, Some(seconds(500)));
        store.commit(&commit).unwrap();
        assert_eq!(store.due_domains(9).unwrap(), [(seconds(500), a)]);
    }
}
