//! What changed at a domain, on its way to the holders of its copies.
//!
//! Changes of a few hundred milliseconds travel together as one step of the owner's tenure, so that
//! a holder knows whether it has missed one.

use apoidea_crawl::{Step, Tenure, Versions};
use apoidea_model::{Domain, Link, Pending, Slot};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

/// Changes to one domain, as they are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delta {
    pub domain: Domain,
    /// What they are.
    pub step: Step,
    /// What the sender's copy contains with them.
    pub versions: Versions,
    /// URLs that entered the queue, or wait there for another try.
    pub puts: Vec<Pending>,
    /// URLs that left it.
    pub removes: Vec<Slot>,
    /// Links of pages that left it, which are not with their owners yet.
    pub errands: Vec<(Slot, Vec<Link>)>,
    /// Pages whose links are with their owners now.
    pub delivered: Vec<Slot>,
    /// The domain's state, where more of it changed than follows from the rest.
    pub state: Option<Vec<u8>>,
}

impl Delta {
    /// Says no more than what the sender's copy contains: whoever lacks something fetches it.
    pub(crate) fn announcement(domain: Domain, versions: Versions) -> Self {
        let tenure = versions.latest();
        let version = versions.of(tenure);
        Delta {
            domain,
            step: Step {
                tenure,
                base: version,
                version,
            },
            versions,
            puts: Vec::new(),
            removes: Vec::new(),
            errands: Vec::new(),
            delivered: Vec::new(),
            state: None,
        }
    }
}

/// Changes that were not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Under which changes are made.
    pub tenure: Tenure,
    by_domain: BTreeMap<Domain, Change>,
    /// Domains whose copies have to be fetched as a whole.
    joined: BTreeSet<Domain>,
}

/// Changes to one domain.
#[derive(Debug)]
pub(crate) struct Change {
    pub step: Step,
    pub puts: Vec<Pending>,
    pub removes: Vec<Slot>,
    pub errands: Vec<(Slot, Vec<Link>)>,
    pub delivered: Vec<Slot>,
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
        Changes {
            tenure,
            ..Changes::default()
        }
    }

    /// Notes a change. Each is counted at once by `advance`: somebody may fetch the copy in the
    /// middle of a round, and must be seen to lack what changes afterwards.
    pub(crate) fn of<E>(
        &mut self,
        domain: &Domain,
        advance: impl FnOnce(Tenure) -> Result<Step, E>,
    ) -> Result<&mut Change, E> {
        match self.by_domain.entry(domain.clone()) {
            Entry::Occupied(entry) => {
                let change = entry.into_mut();
                change.step.version = advance(change.step.tenure)?.version;
                Ok(change)
            }
            Entry::Vacant(entry) => Ok(entry.insert(Change {
                step: advance(self.tenure)?,
                puts: Vec::new(),
                removes: Vec::new(),
                errands: Vec::new(),
                delivered: Vec::new(),
                state: Extent::Queue,
            })),
        }
    }

    /// A domain was joined with what others knew: its changes are announced, and the copies fetched
    /// as a whole.
    pub(crate) fn note_joined(&mut self, domain: &Domain) {
        self.by_domain.remove(domain);
        self.joined.insert(domain.clone());
    }

    /// Nobody has the changes of a domain that were sent: they are fetched as a whole.
    pub(crate) fn announce(&mut self, domain: &Domain) {
        self.joined.insert(domain.clone());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_domain.is_empty() && self.joined.is_empty()
    }

    /// Has this domain changed?
    pub(crate) fn has(&self, domain: &Domain) -> bool {
        self.by_domain.contains_key(domain)
    }

    /// Takes everything out: what changed by itself, and what was joined.
    pub(crate) fn take(&mut self) -> (BTreeMap<Domain, Change>, BTreeSet<Domain>) {
        (
            std::mem::take(&mut self.by_domain),
            std::mem::take(&mut self.joined),
        )
    }
}

impl Change {
    /// As it is sent. A URL that came and went needs no place in the copy's queue, but must be
    /// known there as seen: it is put and removed.
    pub(crate) fn into_delta(
        self,
        domain: Domain,
        versions: Versions,
        state: Option<Vec<u8>>,
    ) -> Delta {
        let Change {
            step,
            puts,
            removes,
            errands,
            delivered,
            ..
        } = self;
        Delta {
            domain,
            step,
            versions,
            puts,
            removes,
            errands,
            delivered,
            state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn whoever_fetches_a_copy_between_two_changes_is_seen_to_lack_the_second() {
        let (mut changes, mut versions) = (Changes::default(), Versions::default());
        let domain: Domain = "a.test".parse().unwrap();
        let mut change = |versions: &mut Versions| {
            let advance = |tenure| Ok::<_, Infallible>(versions.advance(tenure));
            changes.of(&domain, advance).unwrap().step
        };
        let first = change(&mut versions);
        let fetched = versions.clone();
        let both = change(&mut versions);
        assert_eq!(
            (first.base, first.version, both.base, both.version),
            (0, 1, 0, 2)
        );
        assert!(!fetched.contain(&versions) && fetched.after(both) == versions);
    }
}
