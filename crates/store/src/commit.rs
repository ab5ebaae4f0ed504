//! Everything that changes at once: collected in memory, then applied atomically and made durable
//! with one sync.
//!
//! The other files of this crate add the words of their noun (`put_domain`, `put_pending`…); this
//! one resolves what depends on what is stored already, and writes.

use crate::{
    ReadError,
    domains::{domain_prefix, parse_domain},
    due::DueChanges,
    parked, seen_log, sites,
    tables::{Table, Tables},
    values,
};
use apoidea_model::{Domain, UrlHash};
use fjall::{PersistMode, UserKey, UserValue};
use std::{collections::BTreeMap, io};

/// Changes that belong together. The last word about a key counts.
#[derive(Debug, Default, Clone)]
pub struct Commit {
    changes: [Changes; Table::ALL.len()],
    pub(crate) seen: BTreeMap<Domain, Vec<UrlHash>>,
    pub(crate) forgotten: BTreeMap<Domain, Forget>,
}

/// The part of a domain that a commit forgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Forget {
    /// The parts of a replica.
    Replica,
    /// That, and the pages.
    Everything,
}

/// New values of keys; `None` removes.
pub(crate) type Changes = BTreeMap<UserKey, Option<UserValue>>;

/// Nothing of the commit is visible. It can be committed again as it is: every change in it is
/// idempotent, except that fingerprints may come twice. After a restart it may be found applied,
/// then as a whole.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// No space is left. Later commits work once there is some.
    #[error("the disk is full")]
    Full(#[source] io::Error),
    /// The stored values that the commit depends on could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The disk or the database said no.
    #[error("the database cannot be written: {0}")]
    Database(#[source] fjall::Error),
}

impl Forget {
    /// The tables with several entries for each domain, that a commit can change directly.
    fn tables(self) -> &'static [Table] {
        match self {
            Forget::Replica => &[Table::Queue, Table::Errands],
            Forget::Everything => &[Table::Queue, Table::Errands, Table::Pages, Table::Due],
        }
    }
}

impl Commit {
    /// No changes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether committing it would change nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of changes, a measure of the memory it takes.
    pub fn len(&self) -> usize {
        self.changes.iter().map(BTreeMap::len).sum::<usize>()
            + self.seen.len()
            + self.forgotten.len()
    }

    /// Adds the changes of `other`, which come after these: what it forgets is forgotten here too.
    pub fn absorb(&mut self, other: Commit) {
        for (domain, forget) in other.forgotten {
            self.withdraw(&domain, forget);
            let most = self.forgotten.entry(domain).or_insert(forget);
            *most = forget.max(*most);
        }
        for (changes, others) in self.changes.iter_mut().zip(other.changes) {
            changes.extend(others);
        }
        for (domain, hashes) in other.seen {
            self.append_seen(&domain, &hashes);
        }
    }

    /// Takes back every change to what is forgotten of a domain.
    fn withdraw(&mut self, domain: &Domain, forget: Forget) {
        self.seen.remove(domain);
        let names: &[Table] = match forget {
            Forget::Replica => &[Table::Domains, Table::Wakes],
            Forget::Everything => &[Table::Domains, Table::Wakes, Table::NextDue],
        };
        for &table in names {
            self.changes[table as usize].remove(domain.as_str().as_bytes());
        }
        let prefix = domain_prefix(domain);
        for &table in forget.tables() {
            self.changes[table as usize].retain(|key, _| !key.starts_with(&prefix));
        }
    }

    pub(crate) fn put(&mut self, table: Table, key: UserKey, value: UserValue) {
        self.changes[table as usize].insert(key, Some(value));
    }

    pub(crate) fn remove(&mut self, table: Table, key: UserKey) {
        self.changes[table as usize].insert(key, None);
    }
}

/// The consequences of a commit for what is stored already: the keys of forgotten domains, the
/// order of the parked ones, the hosts of each site, the chunks of seen logs, the counters. No key
/// is in both.
#[derive(Default)]
pub(crate) struct Consequences([Changes; Table::ALL.len()]);

/// Keys that a table gains and loses with a commit.
#[derive(Default)]
struct Turnover {
    gained: Vec<UserKey>,
    lost: Vec<UserKey>,
}

impl Consequences {
    pub(crate) fn of(commit: &Commit, tables: &Tables, number: u64) -> Result<Self, ReadError> {
        let mut all = Consequences::default();
        for (domain, forget) in &commit.forgotten {
            all.forget(commit, tables, domain, *forget)?;
        }
        for (domain, hashes) in &commit.seen {
            all.append_seen(commit, tables, (domain, hashes), number)?;
        }
        all.order(commit, tables, Table::Wakes, Table::Parked)?;
        all.order_due(commit, tables)?;
        let domains = all.turnover(commit, tables, Table::Domains)?;
        all.count(tables, &domains, values::DOMAINS)?;
        all.order_by_site(&domains)?;
        let outbox = all.turnover(commit, tables, Table::Outbox)?;
        all.count(tables, &outbox, values::OUTBOX)?;
        let held = all.turnover(commit, tables, Table::Held)?;
        all.count(tables, &held, values::HELD)?;
        all.put(
            Table::Values,
            values::COMMITS.into(),
            number.to_be_bytes().into(),
        );
        Ok(all)
    }

    fn forget(
        &mut self,
        commit: &Commit,
        tables: &Tables,
        domain: &Domain,
        forget: Forget,
    ) -> Result<(), ReadError> {
        let name = || UserKey::from(domain.as_str());
        let mut keys = vec![(Table::Domains, name()), (Table::Wakes, name())];
        if forget == Forget::Everything {
            keys.push((Table::NextDue, name()));
        }
        for &table in forget.tables().iter().chain(&[Table::Seen]) {
            let stored = tables.space(table).prefix(domain_prefix(domain));
            for entry in stored {
                keys.push((table, entry.key()?));
            }
        }
        for (table, key) in keys {
            if !commit.changes[table as usize].contains_key(&key) {
                self.0[table as usize].insert(key, None);
            }
        }
        Ok(())
    }

    fn append_seen(
        &mut self,
        commit: &Commit,
        tables: &Tables,
        (domain, hashes): (&Domain, &[UrlHash]),
        number: u64,
    ) -> Result<(), ReadError> {
        let appended = if commit.forgotten.contains_key(domain) {
            seen_log::begin(domain, hashes, number)
        } else {
            seen_log::append(tables, domain, hashes, number)?
        };
        let seen = &mut self.0[Table::Seen as usize];
        seen.extend(appended.removed.into_iter().map(|key| (key.into(), None)));
        seen.extend(
            appended
                .put
                .into_iter()
                .map(|(key, chunk)| (key.into(), Some(chunk.into()))),
        );
        Ok(())
    }

    /// Keeps an index by time in step with the times by domain.
    fn order(
        &mut self,
        commit: &Commit,
        tables: &Tables,
        times: Table,
        index: Table,
    ) -> Result<(), ReadError> {
        let mut ordered = Changes::new();
        for (domain, time) in self.all_changes(commit, times) {
            if let Some(old) = tables.space(times).get(domain)? {
                ordered.insert(parked::key(domain, &old), None);
            }
            if let Some(time) = time {
                ordered.insert(parked::key(domain, time), Some(UserValue::from([])));
            }
        }
        self.0[index as usize] = ordered;
        Ok(())
    }

    /// Keeps the order of the pages that are due in step with their records.
    fn order_due(&mut self, commit: &Commit, tables: &Tables) -> Result<(), ReadError> {
        let records = self.all_changes(commit, Table::Pages);
        let set = &commit.changes[Table::NextDue as usize];
        let due = DueChanges::of(tables, records, set)?;
        let taken = &commit.changes[Table::Due as usize];
        let entries = due.entries.into_iter();
        self.0[Table::Due as usize].extend(entries.filter(|(key, _)| !taken.contains_key(key)));
        self.0[Table::NextDue as usize].extend(due.next);
        self.order(commit, tables, Table::NextDue, Table::DueDomains)?;
        if due.gained != due.lost {
            let stored = tables.space(Table::Values).get(values::PAGES)?;
            let count = values::decode_counter(values::PAGES, stored.as_deref())?;
            let count = (count + due.gained as u64).saturating_sub(due.lost as u64);
            self.put(
                Table::Values,
                values::PAGES.into(),
                count.to_be_bytes().into(),
            );
        }
        Ok(())
    }

    /// The keys that a table gains and loses.
    fn turnover(
        &self,
        commit: &Commit,
        tables: &Tables,
        table: Table,
    ) -> Result<Turnover, ReadError> {
        let mut turnover = Turnover::default();
        for (key, value) in self.all_changes(commit, table) {
            match (tables.space(table).contains_key(key)?, value.is_some()) {
                (false, true) => turnover.gained.push(key.clone()),
                (true, false) => turnover.lost.push(key.clone()),
                _ => {}
            }
        }
        Ok(turnover)
    }

    /// Keeps the number of a table's keys.
    fn count(&mut self, tables: &Tables, turnover: &Turnover, name: &str) -> Result<(), ReadError> {
        let stored = tables.space(Table::Values).get(name)?;
        let count = values::decode_counter(name, stored.as_deref())?;
        let count = count + turnover.gained.len() as u64;
        let count = count.saturating_sub(turnover.lost.len() as u64);
        self.put(Table::Values, name.into(), count.to_be_bytes().into());
        Ok(())
    }

    /// Keeps the index by site in step with the domains.
    fn order_by_site(&mut self, domains: &Turnover) -> Result<(), ReadError> {
        for key in &domains.gained {
            let entry = sites::key(&parse_domain(key)?);
            self.put(Table::Sites, entry.into(), UserValue::from([]));
        }
        for key in &domains.lost {
            let entry = sites::key(&parse_domain(key)?);
            self.0[Table::Sites as usize].insert(entry.into(), None);
        }
        Ok(())
    }

    fn all_changes<'a>(
        &'a self,
        commit: &'a Commit,
        table: Table,
    ) -> impl Iterator<Item = (&'a UserKey, &'a Option<UserValue>)> {
        commit.changes[table as usize]
            .iter()
            .chain(&self.0[table as usize])
    }

    fn put(&mut self, table: Table, key: UserKey, value: UserValue) {
        self.0[table as usize].insert(key, Some(value));
    }
}

/// The time at which a commit is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// At the return of the call.
    Now,
    /// At the return of the next one that is durable now.
    Later,
}

/// Writes a commit and what follows from it.
pub(crate) fn write(
    commit: &Commit,
    consequences: &Consequences,
    tables: &Tables,
    durability: Durability,
) -> fjall::Result<()> {
    tables.wait_for_room()?;
    let mode = match durability {
        Durability::Now => PersistMode::SyncData,
        Durability::Later => PersistMode::Buffer,
    };
    let mut batch = tables.db.batch().durability(Some(mode));
    for table in Table::ALL {
        let space = tables.space(table);
        for (key, value) in consequences.all_changes(commit, table) {
            match value {
                Some(value) => batch.insert(space, key.clone(), value.clone()),
                None => batch.remove(space, key.clone()),
            }
        }
    }
    batch.commit()
}

impl From<fjall::Error> for CommitError {
    fn from(error: fjall::Error) -> Self {
        match io_error(error) {
            Ok(error) if is_full(&error) => CommitError::Full(error),
            Ok(error) => CommitError::Database(error.into()),
            Err(error) => CommitError::Database(error),
        }
    }
}

/// The I/O error inside a database error, if that is what it is.
pub(crate) fn io_error(error: fjall::Error) -> Result<io::Error, fjall::Error> {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => Ok(error),
        other => Err(other),
    }
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{domain, open, pending};

    #[test]
    fn an_absorbed_commit_has_the_last_word() {
        let (_folder, store) = open();
        let (a, b) = (domain("a.example"), domain("b.example"));
        let mut first = Commit::new();
        for domain in [&a, &b] {
            first.put_domain(domain, vec![1]);
            first.append_seen(domain, &[UrlHash(1)]);
            first.put_pending(domain, &pending(&format!("http://{domain}/"), 0, 1));
        }
        let mut second = Commit::new();
        second.put_domain(&a, vec![2]);
        second.append_seen(&a, &[UrlHash(2)]);
        second.forget_domain(&b);
        first.absorb(second);
        store.commit(&first).unwrap();
        assert_eq!(store.domain(&a).unwrap(), Some(vec![2]));
        assert_eq!(
            store
                .seen(&a)
                .map(|hash| hash.unwrap().0)
                .collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(
            (
                store.pending(&a, None, 9).unwrap().len(),
                store.domain_count().unwrap()
            ),
            (1, 1)
        );
        assert_eq!(store.domain(&b).unwrap(), None);
        assert_eq!(
            (
                store.pending(&b, None, 9).unwrap().len(),
                store.seen(&b).count()
            ),
            (0, 0)
        );
    }
}
