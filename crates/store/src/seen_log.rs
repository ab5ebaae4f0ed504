//! Fingerprints of every URL that a domain ever admitted, from which its seen-filter is rebuilt.
//!
//! Eight bytes each, packed into chunks. An append writes a new chunk and reads nothing; one append
//! in about [`MERGE_ONE_IN`] also joins the small chunks at the end of the log, so that reading a
//! log of any length takes few seeks. Chunks that are full stay as they are for ever.

use crate::{
    Commit, ReadError, Store,
    domains::domain_prefix,
    tables::{Table, Tables},
};
use apoidea_model::{Domain, UrlHash};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::Bound,
    vec,
};

const HASH_BYTES: usize = 8;
/// Hashes in a full chunk: 16 KiB, two blocks of the database.
const CHUNK_HASHES: usize = 2048;
const CHUNK_BYTES: usize = CHUNK_HASHES * HASH_BYTES;
/// On average so many small chunks lie at the end of a log, and a merge rewrites at most one full
/// chunk for as many appends.
const MERGE_ONE_IN: u64 = 32;

impl Store {
    /// All fingerprints of a domain in the order in which they were appended; some may come twice.
    /// At most one chunk is in memory at a time.
    pub fn seen(&self, domain: &Domain) -> Seen {
        let prefix = domain_prefix(domain);
        Seen {
            store: self.clone(),
            last: prefix.clone(),
            prefix,
            chunk: Vec::new().into_iter(),
        }
    }
}

impl Commit {
    /// Adds fingerprints to a domain's log.
    pub fn append_seen(&mut self, domain: &Domain, hashes: &[UrlHash]) {
        if !hashes.is_empty() {
            self.seen
                .entry(domain.clone())
                .or_default()
                .extend_from_slice(hashes);
        }
    }
}

/// The fingerprints of a domain.
pub struct Seen {
    store: Store,
    prefix: Vec<u8>,
    last: Vec<u8>,
    chunk: vec::IntoIter<UrlHash>,
}

impl Seen {
    fn next_chunk(&mut self) -> Result<bool, ReadError> {
        let found = self.store.read(|tables| {
            let after = (Bound::Excluded(&self.last), Bound::Unbounded);
            let entry = tables.space(Table::Seen).range::<&Vec<u8>, _>(after).next();
            Ok(entry.map(fjall::Guard::into_inner).transpose()?)
        })?;
        let Some((key, value)) = found.filter(|(key, _)| key.starts_with(&self.prefix)) else {
            return Ok(false);
        };
        self.last = key.to_vec();
        self.chunk = unpack(&key, &value)?.into_iter();
        Ok(true)
    }
}

impl Iterator for Seen {
    type Item = Result<UrlHash, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(hash) = self.chunk.next() {
                return Some(Ok(hash));
            }
            match self.next_chunk() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The changes that an append makes to the table.
pub(crate) struct Appended {
    pub(crate) put: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) removed: Vec<Vec<u8>>,
}

/// The first fingerprints of a log, or of one that is forgotten in the same commit.
pub(crate) fn begin(domain: &Domain, hashes: &[UrlHash], commit: u64) -> Appended {
    let prefix = domain_prefix(domain);
    let parts = hashes.chunks(CHUNK_HASHES).enumerate();
    let put = parts
        .map(|(part, chunk)| (key(&prefix, commit, part), pack(chunk)))
        .collect();
    Appended {
        put,
        removed: Vec::new(),
    }
}

/// Decides how fingerprints are added to a log, in the commit with this number.
pub(crate) fn append(
    tables: &Tables,
    domain: &Domain,
    hashes: &[UrlHash],
    commit: u64,
) -> Result<Appended, ReadError> {
    if !is_merged_now(domain, hashes.len(), commit) {
        return Ok(begin(domain, hashes, commit));
    }
    let prefix = domain_prefix(domain);
    let mut tail = small_chunks_at_the_end(tables, &prefix)?;
    tail.reverse();
    let (mut old_keys, old_chunks): (Vec<_>, Vec<_>) = tail.into_iter().unzip();
    let joined = [old_chunks.concat(), hashes.to_vec()].concat();
    let chunks: Vec<_> = joined.chunks(CHUNK_HASHES).map(pack).collect();
    let removed = old_keys.split_off(old_keys.len().min(chunks.len()));
    let new_keys = (0..).map(|part| key(&prefix, commit, part));
    Ok(Appended {
        put: old_keys.into_iter().chain(new_keys).zip(chunks).collect(),
        removed,
    })
}

/// A large append always merges, so that no small chunk is left behind before a full one; small
/// ones take turns.
fn is_merged_now(domain: &Domain, hashes: usize, commit: u64) -> bool {
    let mut hasher = DefaultHasher::new();
    (domain, commit).hash(&mut hasher);
    hashes * 2 > CHUNK_HASHES || hasher.finish().is_multiple_of(MERGE_ONE_IN)
}

type Chunk = (Vec<u8>, Vec<UrlHash>);

/// The chunks behind the last full one, last first.
fn small_chunks_at_the_end(tables: &Tables, prefix: &[u8]) -> Result<Vec<Chunk>, ReadError> {
    let mut tail = Vec::new();
    for entry in tables.space(Table::Seen).prefix(prefix).rev() {
        let (key, value) = entry.into_inner()?;
        if value.len() >= CHUNK_BYTES {
            break;
        }
        tail.push((key.to_vec(), unpack(&key, &value)?));
    }
    Ok(tail)
}

fn key(prefix: &[u8], commit: u64, part: usize) -> Vec<u8> {
    let part = u32::try_from(part).expect("a commit of 2^43 fingerprints does not fit into memory");
    [prefix, &commit.to_be_bytes(), &part.to_be_bytes()].concat()
}

fn pack(hashes: &[UrlHash]) -> Vec<u8> {
    hashes
        .iter()
        .flat_map(|hash| hash.0.to_be_bytes())
        .collect()
}

fn unpack(key: &[u8], value: &[u8]) -> Result<Vec<UrlHash>, ReadError> {
    let (hashes, rest) = value.as_chunks::<HASH_BYTES>();
    if !rest.is_empty() {
        return Err(ReadError::corrupt("chunk of the seen log", key));
    }
    Ok(hashes
        .iter()
        .map(|bytes| UrlHash(u64::from_be_bytes(*bytes)))
        .collect())
}

/// All keys of a domain's log.
#[cfg(test)]
fn keys(tables: &Tables, domain: &Domain) -> fjall::Result<Vec<fjall::UserKey>> {
    tables
        .space(Table::Seen)
        .prefix(domain_prefix(domain))
        .map(|entry| entry.key())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{domain, open};

    fn append_one_by_one(
        store: &Store,
        domain: &Domain,
        numbers: std::ops::Range<u64>,
        step: usize,
    ) {
        let hashes: Vec<UrlHash> = numbers.map(UrlHash).collect();
        for hashes in hashes.chunks(step) {
            let mut commit = Commit::new();
            commit.append_seen(domain, hashes);
            store.commit(&commit).unwrap();
        }
    }

    fn numbers(store: &Store, domain: &Domain) -> Vec<u64> {
        store.seen(domain).map(|hash| hash.unwrap().0).collect()
    }

    fn chunks(store: &Store, domain: &Domain) -> usize {
        store
            .read(|tables| Ok(keys(tables, domain)?.len()))
            .unwrap()
    }

    #[test]
    fn the_log_keeps_everything_in_order_and_few_chunks() {
        let (_folder, store) = open();
        let (a, b) = (domain("a.example"), domain("b.example"));
        append_one_by_one(&store, &b, 0..3, 3);
        append_one_by_one(&store, &a, 0..6000, 12);
        append_one_by_one(&store, &a, 6000..30_000, 10_000);
        append_one_by_one(&store, &a, 30_000..30_500, 5);
        assert_eq!(numbers(&store, &a), (0..30_500).collect::<Vec<_>>());
        assert_eq!(numbers(&store, &b), [0, 1, 2]);
        assert!(
            chunks(&store, &a) < 30_500 / CHUNK_HASHES + 250,
            "{}",
            chunks(&store, &a)
        );
    }

    #[test]
    fn a_large_append_leaves_only_full_chunks_and_one_rest() {
        let (_folder, store) = open();
        let a = domain("a.example");
        append_one_by_one(&store, &a, 0..10, 1);
        append_one_by_one(&store, &a, 10..10 + 5 * CHUNK_HASHES as u64, usize::MAX);
        assert_eq!(chunks(&store, &a), 6);
        assert_eq!(numbers(&store, &a).len(), 10 + 5 * CHUNK_HASHES);
    }

    #[test]
    fn a_damaged_chunk_is_an_error() {
        assert!(unpack(b"key", &[0; 16]).is_ok());
        assert!(unpack(b"key", &[0; 15]).is_err());
    }
}
