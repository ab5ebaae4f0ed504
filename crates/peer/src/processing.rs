//! Pages between their fetch and the disk (Apoidea's Processing-Jobs): still in their queues, not
//! to be fetched again.
//!
//! Their number and the memory they take are bounded: beyond that no fetch starts. Those that wait
//! for the ring's word on their content give their memory back ([`crate::aside`]); those that wait
//! for the disk cannot.

use apoidea_model::{Domain, Slot};
use std::collections::{HashMap, HashSet, hash_map::Entry};

/// Most bytes of bodies and records in processing: a few seconds of a fast connection, and a
/// quarter of what the smallest peer may take.
const MAX_BYTES: u64 = 24 << 20;

/// What is in processing.
#[derive(Debug, Default)]
pub(crate) struct Processing {
    /// What each page weighs, once its server has answered.
    by_domain: HashMap<Domain, HashMap<Slot, Option<u64>>>,
    pages: usize,
    answered: usize,
    bytes: u64,
}

impl Processing {
    /// Most pages in processing, unless there may be more fetches than that.
    pub(crate) const MAX_PAGES: usize = 1024;

    /// Most pages in processing where others repeat them after a crash: enough that every fetch has
    /// three pages on their way to the disk behind it, and that few fetches do not wait for their
    /// pages' way.
    pub(crate) fn pages_among_others(fetches: usize) -> usize {
        (4 * fetches).max(64)
    }

    pub(crate) fn begin(&mut self, domain: &Domain, slot: Slot) {
        let slots = self.by_domain.entry(domain.clone()).or_default();
        if let Entry::Vacant(vacant) = slots.entry(slot) {
            vacant.insert(None);
            self.pages += 1;
        }
    }

    /// Takes note of the memory that a page takes now, and so that it was answered.
    pub(crate) fn weigh(&mut self, domain: &Domain, slot: Slot, bytes: u64) {
        let Some(known) = self
            .by_domain
            .get_mut(domain)
            .and_then(|slots| slots.get_mut(&slot))
        else {
            return;
        };
        let before = known.replace(bytes);
        self.answered += usize::from(before.is_none());
        self.bytes = self.bytes - before.unwrap_or(0) + bytes;
    }

    pub(crate) fn end(&mut self, domain: &Domain, slot: Slot) {
        let Some(slots) = self.by_domain.get_mut(domain) else {
            return;
        };
        if let Some(weight) = slots.remove(&slot) {
            self.pages -= 1;
            self.answered -= usize::from(weight.is_some());
            self.bytes -= weight.unwrap_or(0);
        }
        if slots.is_empty() {
            self.by_domain.remove(domain);
        }
    }

    pub(crate) fn has(&self, domain: &Domain) -> bool {
        self.by_domain.contains_key(domain)
    }

    /// The pages of one domain.
    pub(crate) fn of(&self, domain: &Domain) -> HashSet<Slot> {
        self.by_domain
            .get(domain)
            .map(|slots| slots.keys().copied().collect())
            .unwrap_or_default()
    }

    /// The domains of all pages.
    pub(crate) fn domains(&self) -> impl Iterator<Item = &Domain> {
        self.by_domain.keys()
    }

    pub(crate) fn len(&self) -> usize {
        self.pages
    }

    /// Pages that their servers have answered.
    pub(crate) fn answered(&self) -> usize {
        self.answered
    }

    /// Is there no room for another page, if there may be so many?
    pub(crate) fn is_full(&self, max_pages: usize) -> bool {
        self.pages >= max_pages || self.bytes >= MAX_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pages_fill_it_until_they_shrink_or_go() {
        let mut processing = Processing::default();
        let domain: Domain = "a.test".parse().unwrap();
        let slot = |sequence| Slot { rank: 0, sequence };
        for sequence in 0..12 {
            processing.begin(&domain, slot(sequence));
            processing.weigh(&domain, slot(sequence), 2 << 20);
        }
        assert!(processing.is_full(Processing::MAX_PAGES));
        processing.weigh(&domain, slot(3), 1 << 20);
        assert!(!processing.is_full(Processing::MAX_PAGES));
        processing.weigh(&domain, slot(3), 2 << 20);
        processing.end(&domain, slot(4));
        processing.end(&domain, slot(4));
        assert!(!processing.is_full(Processing::MAX_PAGES));
        (0..12).for_each(|sequence| processing.end(&domain, slot(sequence)));
        assert!(processing.len() == 0 && !processing.has(&domain));
        (0..Processing::MAX_PAGES as u64)
            .for_each(|sequence| processing.begin(&domain, slot(sequence)));
        assert!(processing.is_full(Processing::MAX_PAGES));
    }

    #[test]
    fn a_page_counts_as_answered_from_its_weight_to_its_end() {
        let mut processing = Processing::default();
        let domain: Domain = "a.test".parse().unwrap();
        let slot = |sequence| Slot { rank: 0, sequence };
        (0..3).for_each(|sequence| processing.begin(&domain, slot(sequence)));
        assert_eq!(processing.answered(), 0);
        processing.weigh(&domain, slot(0), 0);
        processing.weigh(&domain, slot(0), 5);
        processing.weigh(&domain, slot(1), 7);
        processing.begin(&domain, slot(1));
        assert_eq!((processing.answered(), processing.len()), (2, 3));
        (0..3).for_each(|sequence| processing.end(&domain, slot(sequence)));
        assert_eq!((processing.answered(), processing.len()), (0, 0));
    }
}
