//! What changed at a domain, on its way to the holders of its copies.
//!
//! Changes of a few hundred milliseconds travel together and move the copy from one stamp to the next, so that a holder
//! knows whether it has missed one.

use apoidea_crawl::{Stamp, Tenure};
use apoidea_model::{Domain, Pending, Slot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Changes to one domain, as they are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delta {
    pub domain: Domain,
    /// What they apply to.
    pub base: Stamp,
    /// What they lead to.
    pub stamp: Stamp,
    /// URLs that entered the queue, or wait there for another try.
    pub puts: Vec<Pending>,
    /// URLs that left it.
    pub removes: Vec<Slot>,
    /// The domain's state, where more of it changed than follows from the rest.
    pub state: Option<Vec<u8>>,
}

/// Changes that were not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Under which changes are made.
    pub tenure: Tenure,
    by_domain: BTreeMap<Domain, Change>,
    has_puts: bool,
}

/// Changes to one domain.
#[derive(Debug)]
pub(crate) struct Change {
    pub base: Stamp,
    pub stamp: Stamp,
    pub puts: Vec<Pending>,
    pub removes: Vec<Slot>,
    pub state: Extent,
}

/// Does the state travel too?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Its counters follow from the rest, and the clock of a new owner starts anew.
    Queue,
    /// Robots rules, rests or stops have changed.
    State,
}

impl Changes {
    /// None yet, to be made under this tenure.
    pub(crate) fn under(tenure: Tenure) -> Self {
        Changes { tenure, ..Changes::default() }
    }

    /// Notes a change. The first one of a round moves the domain's stamp: `stamp` does that, and tells it before and after.
    pub(crate) fn of<E>(
        &mut self,
        domain: &Domain,
        stamp: impl FnOnce(Tenure) -> Result<(Stamp, Stamp), E>,
    ) -> Result<&mut Change, E> {
        if !self.by_domain.contains_key(domain) {
            let (base, stamp) = stamp(self.tenure)?;
            let change = Change { base, stamp, puts: Vec::new(), removes: Vec::new(), state: Extent::Queue };
            self.by_domain.insert(domain.clone(), change);
        }
        Ok(self.by_domain.get_mut(domain).expect("inserted above if it was not there"))
    }

    /// Notes that URLs entered queues.
    pub(crate) fn note_puts(&mut self) {
        self.has_puts = true;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_domain.is_empty()
    }

    /// Did URLs enter queues?
    pub(crate) fn has_puts(&self) -> bool {
        self.has_puts
    }

    /// Forgets the changes of a domain whose copies will be fetched as a whole.
    pub(crate) fn withdraw(&mut self, domain: &Domain) {
        self.by_domain.remove(domain);
    }

    /// Takes everything out.
    pub(crate) fn take(&mut self) -> BTreeMap<Domain, Change> {
        self.has_puts = false;
        std::mem::take(&mut self.by_domain)
    }
}

impl Change {
    /// As it is sent. A URL that came and went needs no place in the copy's queue, but must be known there as seen: it
    /// is put and removed.
    pub(crate) fn into_delta(self, domain: Domain, state: Option<Vec<u8>>) -> Delta {
        let Change { base, stamp, puts, removes, .. } = self;
        Delta { domain, base, stamp, puts, removes, state }
    }
}
