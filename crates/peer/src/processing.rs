//! Pages between their fetch and the disk (Apoidea's Processing-Jobs): still in their queues, not to be fetched again.

use apoidea_model::{Domain, Slot};
use std::collections::{HashMap, HashSet};

/// What is in processing.
#[derive(Debug, Default)]
pub(crate) struct Processing {
    by_domain: HashMap<Domain, HashSet<Slot>>,
    count: usize,
}

impl Processing {
    pub(crate) fn begin(&mut self, domain: &Domain, slot: Slot) {
        self.count += usize::from(self.by_domain.entry(domain.clone()).or_default().insert(slot));
    }

    pub(crate) fn end(&mut self, domain: &Domain, slot: Slot) {
        let Some(slots) = self.by_domain.get_mut(domain) else { return };
        self.count -= usize::from(slots.remove(&slot));
        if slots.is_empty() {
            self.by_domain.remove(domain);
        }
    }

    pub(crate) fn has(&self, domain: &Domain) -> bool {
        self.by_domain.contains_key(domain)
    }

    /// The pages of one domain.
    pub(crate) fn of(&self, domain: &Domain) -> HashSet<Slot> {
        self.by_domain.get(domain).cloned().unwrap_or_default()
    }

    /// The domains of all pages.
    pub(crate) fn domains(&self) -> impl Iterator<Item = &Domain> {
        self.by_domain.keys()
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }
}
