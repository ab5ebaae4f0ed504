//! One domain as its owner and its replicas hold it: the part that survives a crash of the owner.

use crate::{DomainChange, Step, Versions};
use apoidea_model::{Link, Pending, Slot, UrlHash};
use std::collections::{BTreeMap, HashSet};

/// What is kept of a domain at its owner, and at the peers that would follow it.
#[derive(Clone, Default)]
pub(super) struct Replica {
    pub versions: Versions,
    /// URLs that are not told to be done.
    pub queue: BTreeMap<Slot, Pending>,
    pub seen: HashSet<UrlHash>,
    /// Links of pages that left the queue, which may not be with their owners.
    pub errands: BTreeMap<Slot, Vec<Link>>,
    /// No URL had this number in its slot yet, nor a greater one.
    pub next_sequence: u64,
}

/// Changes to a replica, and what it contains with them.
pub(super) struct Delta {
    pub change: Option<DomainChange>,
    pub versions: Versions,
}

/// Does a replica contain what it was told?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Held,
    /// It lacks more than this step, and fetches the whole.
    Lacking,
}

impl Replica {
    /// Takes the step that it lacks.
    pub(super) fn take(&mut self, delta: &Delta) -> Fit {
        if self.versions.contain(&delta.versions) {
            return Fit::Held;
        }
        match &delta.change {
            Some(change) if self.lacks_just(change.step, &delta.versions) => {
                self.apply(change);
                self.versions = delta.versions.clone();
                Fit::Held
            }
            _ => Fit::Lacking,
        }
    }

    fn lacks_just(&self, step: Step, versions: &Versions) -> bool {
        self.versions.of(step.tenure) == step.base && self.versions.after(step) == *versions
    }

    fn apply(&mut self, change: &DomainChange) {
        self.put(&change.puts);
        for slot in &change.removes {
            self.queue.remove(slot);
        }
        for errand in &change.errands {
            self.errands.insert(errand.slot, errand.links.clone());
        }
        for slot in &change.delivered {
            self.errands.remove(slot);
        }
    }

    /// URLs enter the queue.
    pub(super) fn put(&mut self, urls: &[Pending]) {
        for pending in urls {
            self.seen.insert(pending.url.hash());
            self.next_sequence = self.next_sequence.max(pending.slot.sequence + 1);
            self.queue.insert(pending.slot, pending.clone());
        }
    }
}
