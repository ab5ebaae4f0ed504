//! Domains of others that this peer fetched from, with their owners.
//!
//! A helper keeps neither queue nor state of such a domain, so this is all that it can show its
//! volunteer. Each entry is written in the same commit as the page that changed it.

use crate::lock::lock;
use crate::swarm::lending::message::{LoanAnswer, LoanResult};
use apoidea_crawl::Outcome;
use apoidea_model::{Domain, PeerId, Time};
use apoidea_store::{Commit, ReadError, Store};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard},
};

/// Domains remembered, some hundred bytes each; the one not visited for longest goes first.
const MAX_HELPED: usize = 4096;
const NAME_PREFIX: &str = "helped ";

/// The work of this peer for the owner of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct Help {
    /// The owner, the last time.
    pub owner: PeerId,
    /// Pages fetched, and kept here.
    pub pages: u64,
    /// Fetches that brought no page.
    pub failed: u64,
    /// Bytes received.
    pub bytes: u64,
    /// When this peer asked the domain last.
    pub visited: Time,
}

/// The domains that a running peer helped with; clones are the same list.
#[derive(Debug, Clone, Default)]
pub(crate) struct BorrowedDomains {
    domains: Arc<Mutex<BTreeMap<Domain, Help>>>,
}

impl BorrowedDomains {
    /// The domains of earlier runs.
    pub(crate) fn open(store: &Store) -> Result<Self, ReadError> {
        let stored = store.values(NAME_PREFIX, MAX_HELPED)?;
        let entry = |(name, value): (String, Vec<u8>)| {
            let domain = name.strip_prefix(NAME_PREFIX)?.parse().ok()?;
            Some((domain, postcard::from_bytes(&value).ok()?))
        };
        let domains = stored.into_iter().filter_map(entry).collect();
        Ok(BorrowedDomains {
            domains: Arc::new(Mutex::new(domains)),
        })
    }

    /// Counts the result of a fetch for another peer.
    pub(crate) fn note(&self, owner: PeerId, result: &LoanResult, now: Time, commit: &mut Commit) {
        let (pages, failed, bytes) = match &result.answer {
            LoanAnswer::Page {
                page: Some(page), ..
            } => (1, 0, page.bytes),
            LoanAnswer::Page {
                outcome: Outcome::Redirect(_),
                ..
            }
            | LoanAnswer::Robots(_) => (0, 0, 0),
            LoanAnswer::Page { .. } => (0, 1, 0),
            // Nothing was asked for.
            LoanAnswer::Unsent => return,
        };
        let mut domains = self.lock();
        if !domains.contains_key(result.fetch.domain()) && domains.len() >= MAX_HELPED {
            forget_oldest(&mut domains, commit);
        }
        let new = Help {
            owner,
            pages: 0,
            failed: 0,
            bytes: 0,
            visited: now,
        };
        let help = domains.entry(result.fetch.domain().clone()).or_insert(new);
        help.pages += pages;
        help.failed += failed;
        help.bytes = help.bytes.saturating_add(bytes);
        (help.owner, help.visited) = (owner, now);
        let value = postcard::to_stdvec(help).expect("numbers and a key always serialise");
        commit.set_value(&name(result.fetch.domain()), &value);
    }

    /// The work for a domain's owner, if there was any.
    pub(crate) fn of(&self, domain: &Domain) -> Option<Help> {
        self.lock().get(domain).copied()
    }

    /// In the order of their names, those that begin with `prefix` and come after `after`.
    pub(crate) fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<(Domain, Help)> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let domains = self.lock();
        let found = domains
            .range::<str, _>((start, Bound::Unbounded))
            .take(limit);
        let found = found.take_while(|(domain, _)| domain.as_str().starts_with(prefix));
        found
            .map(|(domain, help)| (domain.clone(), *help))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Domain, Help>> {
        lock(&self.domains)
    }
}

fn forget_oldest(domains: &mut BTreeMap<Domain, Help>, commit: &mut Commit) {
    let oldest = domains
        .iter()
        .min_by_key(|(_, help)| help.visited)
        .map(|(domain, _)| domain.clone());
    if let Some(oldest) = oldest {
        domains.remove(&oldest);
        commit.remove_value(&name(&oldest));
    }
}

fn name(domain: &Domain) -> String {
    format!("{NAME_PREFIX}{}", domain.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{page::process::PageKind, swarm::lending::message::LentPage};
    use apoidea_crawl::{Effort, Failure, lending::FetchId};
    use apoidea_model::Key;
    use std::time::Duration;

    const NOON: Time = Time::from_millis(1_800_000_000_000);
    const MINUTE: Duration = Duration::from_secs(60);

    fn peer(number: u8) -> PeerId {
        PeerId::at(Key::from_bytes([number; 32]))
    }

    fn result(name: &str, answer: LoanAnswer) -> LoanResult {
        LoanResult {
            fetch: FetchId::Robots(name.parse().unwrap()),
            answer,
        }
    }

    fn fetched(name: &str, outcome: Outcome) -> LoanResult {
        let effort = Effort {
            took: Duration::ZERO,
            bytes: 0,
        };
        let page = LentPage {
            kind: PageKind::New,
            links: Vec::new(),
            link_count: 0,
            visited: None,
            hints: Vec::new(),
            bytes: 500,
            millis: 9,
        };
        let page = (outcome == Outcome::Page).then_some(page);
        result(
            name,
            LoanAnswer::Page {
                outcome,
                effort,
                page,
            },
        )
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        (folder, store)
    }

    fn names(helped: &BorrowedDomains) -> Vec<String> {
        helped
            .list("", None, usize::MAX)
            .into_iter()
            .map(|(domain, _)| domain.to_string())
            .collect()
    }

    #[test]
    fn what_was_done_for_an_owner_is_there_after_a_restart() {
        let (_folder, store) = store();
        let helped = BorrowedDomains::open(&store).unwrap();
        let mut commit = Commit::new();
        helped.note(
            peer(1),
            &fetched("a.example", Outcome::Page),
            NOON,
            &mut commit,
        );
        helped.note(
            peer(1),
            &fetched("a.example", Outcome::Page),
            NOON + MINUTE,
            &mut commit,
        );
        let failure = Outcome::Failed(Failure::Timeout);
        helped.note(
            peer(2),
            &fetched("a.example", failure),
            NOON + 2 * MINUTE,
            &mut commit,
        );
        store.commit(&commit).unwrap();
        let known = BorrowedDomains::open(&store)
            .unwrap()
            .of(&"a.example".parse().unwrap());
        let visited = NOON + 2 * MINUTE;
        assert_eq!(
            known,
            Some(Help {
                owner: peer(2),
                pages: 2,
                failed: 1,
                bytes: 1000,
                visited
            })
        );
    }

    #[test]
    fn a_fetch_that_a_pause_held_back_is_no_help() {
        let helped = BorrowedDomains::default();
        let mut commit = Commit::new();
        helped.note(
            peer(1),
            &result("a.example", LoanAnswer::Unsent),
            NOON,
            &mut commit,
        );
        assert!(commit.is_empty() && names(&helped).is_empty());
    }

    #[test]
    fn the_domain_not_visited_for_longest_is_forgotten_first() {
        let (_folder, store) = store();
        let helped = BorrowedDomains::default();
        let mut commit = Commit::new();
        for number in 0..MAX_HELPED {
            let at = NOON + MINUTE * u32::try_from(number).unwrap();
            helped.note(
                peer(1),
                &fetched(&format!("d{number}.example"), Outcome::Page),
                at,
                &mut commit,
            );
        }
        let later = NOON + MINUTE * 10_000;
        helped.note(
            peer(1),
            &fetched("d0.example", Outcome::Page),
            later,
            &mut commit,
        );
        helped.note(
            peer(1),
            &fetched("new.example", Outcome::Page),
            later,
            &mut commit,
        );
        store.commit(&commit).unwrap();
        let helped = BorrowedDomains::open(&store).unwrap();
        assert_eq!(names(&helped).len(), MAX_HELPED);
        assert!(helped.of(&"d0.example".parse().unwrap()).is_some());
        assert_eq!(helped.of(&"d1.example".parse().unwrap()), None);
    }

    #[test]
    fn they_are_listed_in_order_and_page_by_page() {
        let helped = BorrowedDomains::default();
        for name in ["b.example", "a.example", "ab.example"] {
            helped.note(
                peer(1),
                &fetched(name, Outcome::Page),
                NOON,
                &mut Commit::new(),
            );
        }
        let list = |prefix, after, limit| -> Vec<String> {
            let found = helped.list(prefix, after, limit).into_iter();
            found.map(|(domain, _)| domain.to_string()).collect()
        };
        assert_eq!(list("", None, 2), ["a.example", "ab.example"]);
        assert_eq!(list("", Some("ab.example"), 9), ["b.example"]);
        assert_eq!(list("a", Some("a.example"), 9), ["ab.example"]);
        assert_eq!(list("zz", None, 9), [""; 0]);
    }
}
