//! Everything that changes at once: collected in memory, then applied atomically and made durable with one sync.
//!
//! The other files of this crate add the words of their noun (`put_domain`, `put_pending`…); this one resolves what
//! depends on what is stored already, and writes.

use crate::{
    ReadError, parked, queue, seen_log,
    tables::{Table, Tables},
    values,
};
use apoidea_model::{Domain, UrlHash};
use fjall::{PersistMode, UserKey, UserValue};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

/// Changes that belong together. The last word about a key counts.
#[derive(Debug, Default, Clone)]
pub struct Commit {
    changes: [Changes; Table::ALL.len()],
    pub(crate) seen: BTreeMap<Domain, Vec<UrlHash>>,
    pub(crate) forgotten: BTreeSet<Domain>,
}

/// New values of keys; `None` removes.
type Changes = BTreeMap<UserKey, Option<UserValue>>;

/// Nothing of the commit is visible. It can be committed again as it is: every change in it is idempotent, except that
/// fingerprints may come twice. After a restart it may be found applied, then as a whole.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// No space is left. Later commits work once there is some.
    #[error("the disk is full")]
    Full(#[source] io::Error),
    /// What is stored already could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The disk or the database said no.
    #[error("the database cannot be written: {0}")]
    Database(#[source] fjall::Error),
}

impl Commit {
    /// No changes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Would committing it change nothing?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of changes, a measure of the memory it takes.
    pub fn len(&self) -> usize {
        self.changes.iter().map(BTreeMap::len).sum::<usize>() + self.seen.len() + self.forgotten.len()
    }

    /// Adds the changes of `other`, which come after these.
    pub fn absorb(&mut self, other: Commit) {
        for (changes, others) in self.changes.iter_mut().zip(other.changes) {
            changes.extend(others);
        }
        for domain in other.forgotten {
            self.forget_domain(&domain);
        }
        for (domain, hashes) in other.seen {
            self.append_seen(&domain, &hashes);
        }
    }

    pub(crate) fn put(&mut self, table: Table, key: UserKey, value: UserValue) {
        self.changes[table as usize].insert(key, Some(value));
    }

    pub(crate) fn remove(&mut self, table: Table, key: UserKey) {
        self.changes[table as usize].insert(key, None);
    }

    fn remove_unless_put(&mut self, table: Table, key: UserKey) {
        self.changes[table as usize].entry(key).or_insert(None);
    }
}

/// Adds to a commit what follows from it and what is stored: the keys of forgotten domains, the order of the parked
/// ones, the chunks of seen logs, the counters.
pub(crate) fn resolve(commit: &Commit, tables: &Tables, number: u64) -> Result<Commit, ReadError> {
    let mut resolved = commit.clone();
    for domain in &commit.forgotten {
        forget(&mut resolved, tables, domain)?;
    }
    for (domain, hashes) in &commit.seen {
        append_seen(&mut resolved, tables, domain, hashes, number)?;
    }
    order_parked(&mut resolved, tables)?;
    count(&mut resolved, tables, Table::Domains, values::DOMAINS)?;
    count(&mut resolved, tables, Table::Outbox, values::OUTBOX)?;
    resolved.put(Table::Values, values::COMMITS.into(), number.to_be_bytes().into());
    Ok(resolved)
}

fn forget(commit: &mut Commit, tables: &Tables, domain: &Domain) -> Result<(), ReadError> {
    commit.remove_unless_put(Table::Domains, domain.as_str().into());
    commit.remove_unless_put(Table::Wakes, domain.as_str().into());
    for key in queue::keys(tables, domain)? {
        commit.remove_unless_put(Table::Queue, key);
    }
    for key in seen_log::keys(tables, domain)? {
        commit.remove_unless_put(Table::Seen, key);
    }
    Ok(())
}

fn append_seen(
    commit: &mut Commit,
    tables: &Tables,
    domain: &Domain,
    hashes: &[UrlHash],
    number: u64,
) -> Result<(), ReadError> {
    let appended = if commit.forgotten.contains(domain) {
        seen_log::begin(domain, hashes, number)
    } else {
        seen_log::append(tables, domain, hashes, number)?
    };
    for key in appended.removed {
        commit.remove(Table::Seen, key.into());
    }
    for (key, chunk) in appended.put {
        commit.put(Table::Seen, key.into(), chunk.into());
    }
    Ok(())
}

/// Keeps the index by wake time in step with the wake times by domain.
fn order_parked(commit: &mut Commit, tables: &Tables) -> Result<(), ReadError> {
    let mut changes = Changes::new();
    for (domain, wake) in &commit.changes[Table::Wakes as usize] {
        if let Some(old) = tables.space(Table::Wakes).get(domain)? {
            changes.insert(parked::key(domain, &old), None);
        }
        if let Some(wake) = wake {
            changes.insert(parked::key(domain, wake), Some(UserValue::from([])));
        }
    }
    commit.changes[Table::Parked as usize] = changes;
    Ok(())
}

/// Keeps the number of a table's keys.
fn count(commit: &mut Commit, tables: &Tables, table: Table, name: &str) -> Result<(), ReadError> {
    let changes = &commit.changes[table as usize];
    if changes.is_empty() {
        return Ok(());
    }
    let mut count = values::decode_counter(name, tables.space(Table::Values).get(name)?.as_deref())?;
    for (key, value) in changes {
        let existed = tables.space(table).contains_key(key)?;
        match (existed, value.is_some()) {
            (false, true) => count += 1,
            (true, false) => count = count.saturating_sub(1),
            _ => {}
        }
    }
    commit.put(Table::Values, name.into(), count.to_be_bytes().into());
    Ok(())
}

/// When a commit is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// When the call returns.
    Now,
    /// When the next one that is durable now returns.
    Later,
}

/// Writes a resolved commit.
pub(crate) fn write(commit: Commit, tables: &Tables, durability: Durability) -> fjall::Result<()> {
    tables.wait_for_room()?;
    let mode = match durability {
        Durability::Now => PersistMode::SyncData,
        Durability::Later => PersistMode::Buffer,
    };
    let mut batch = tables.db.batch().durability(Some(mode));
    for (table, changes) in Table::ALL.into_iter().zip(commit.changes) {
        let space = tables.space(table);
        for (key, value) in changes {
            match value {
                Some(value) => batch.insert(space, key, value),
                None => batch.remove(space, key),
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
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
