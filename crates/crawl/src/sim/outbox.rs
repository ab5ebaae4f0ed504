//! Links on their way to other owners: each is kept until its owner has acknowledged it.

use apoidea_model::{Link, LinkBatch, UrlHash};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// URLs that are not sent again because they were lately.
const RECENT: usize = 4096;

/// A link and the record that it belongs to.
type Entry = (u64, Link);

/// The links that one peer has for others.
#[derive(Default)]
pub(super) struct Outbox {
    next: u64,
    /// Links of each record that are not with their owners.
    open: BTreeMap<u64, usize>,
    /// Links that were not sent yet, by owner.
    waiting: BTreeMap<usize, Vec<Entry>>,
    /// Batches that were sent and are not acknowledged, each with its receiver.
    sent: BTreeMap<u64, (usize, Vec<Entry>)>,
    recent: (HashSet<UrlHash>, VecDeque<UrlHash>),
}

/// A batch under its number.
pub(super) type Batch = (u64, Vec<Link>);

impl Outbox {
    /// Begins a record.
    pub(super) fn begin(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Adds a link to a record, unless it was sent lately. Gives whether it is the first one for
    /// its owner.
    pub(super) fn post(&mut self, record: u64, owner: usize, link: Link) -> bool {
        let hash = link.url.hash();
        let (known, order) = &mut self.recent;
        if !known.insert(hash) {
            return false;
        }
        order.push_back(hash);
        if order.len() > RECENT
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
        *self.open.entry(record).or_default() += 1;
        self.queue(owner, (record, link))
    }

    fn queue(&mut self, owner: usize, entry: Entry) -> bool {
        let waiting = self.waiting.entry(owner).or_default();
        waiting.push(entry);
        waiting.len() == 1
    }

    /// Takes out the batches for an owner.
    pub(super) fn send(&mut self, owner: usize) -> Vec<Batch> {
        let waiting = self.waiting.remove(&owner).unwrap_or_default();
        let mut batches = Vec::new();
        for entries in waiting.chunks(LinkBatch::MAX_LINKS) {
            let number = self.begin();
            let links = entries.iter().map(|(_, link)| link.clone()).collect();
            self.sent.insert(number, (owner, entries.to_vec()));
            batches.push((number, links));
        }
        batches
    }

    /// A batch is with its owner. Gives the records all of whose links are.
    pub(super) fn acknowledged(&mut self, batch: u64) -> Vec<u64> {
        let (_, entries) = self.sent.remove(&batch).unwrap_or_default();
        let mut delivered = Vec::new();
        for (record, _) in entries {
            let left = self.open.get_mut(&record).map_or(0, |left| {
                *left = left.saturating_sub(1);
                *left
            });
            if left == 0 && self.open.remove(&record).is_some() {
                delivered.push(record);
            }
        }
        delivered
    }

    /// The links of a record that are not with their owners.
    pub(super) fn links(&self, record: u64) -> Vec<Link> {
        if !self.open.contains_key(&record) {
            return Vec::new();
        }
        let sent = self.sent.values().flat_map(|(_, entries)| entries);
        let all = self.waiting.values().flatten().chain(sent);
        all.filter(|(of, _)| *of == record)
            .map(|(_, link)| link.clone())
            .collect()
    }

    /// An owner is gone: takes out everything that it has not acknowledged.
    pub(super) fn take_from(&mut self, owner: usize) -> Vec<Entry> {
        let sent = std::mem::take(&mut self.sent).into_iter();
        let (gone, sent): (BTreeMap<_, _>, _) = sent.partition(|(_, (to, _))| *to == owner);
        self.sent = sent;
        let gone = gone.into_values().flat_map(|(_, entries)| entries);
        let mut entries: Vec<Entry> = gone.collect();
        entries.extend(self.waiting.remove(&owner).unwrap_or_default());
        entries
    }

    /// Such a link goes to another owner. Gives whether it is the first one for that.
    pub(super) fn turn(&mut self, owner: usize, entry: Entry) -> bool {
        self.queue(owner, entry)
    }
}
