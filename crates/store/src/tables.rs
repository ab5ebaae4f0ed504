//! The database's keyspaces and how much memory each may take.
//!
//! A volunteer's peer has 96–256 MiB in all, so the block cache and the write buffers are a few MiB
//! each instead of the database's defaults of 32 and 64 MiB.

use fjall::{
    AbstractTree, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
    compaction::Leveled,
    config::{BlockSizePolicy, CompressionPolicy, FilterPolicy, PartitioningPolicy, PinningPolicy},
};
use std::{
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const MIB: u64 = 1024 * 1024;
/// Least that the database accepts; it also bounds what is replayed after a crash.
const JOURNAL_BYTES: u64 = 64 * MIB;
/// With two, one of them spins while the other compacts: about a tenth of the samples in a profile
/// of a load.
const WORKER_THREADS: usize = 1;
/// Small, so that the only worker is soon back to flush what is committed meanwhile.
const TABLE_FILE_BYTES: u64 = 16 * MIB;
/// Open files, below the 256 that macOS allows a process by default, with room for sockets.
const CACHED_FILES: usize = 96;
/// Blocks of the queue hold neighbours that are read together; larger blocks compress better and
/// need less index.
const BLOCK_BYTES: u32 = 8 * 1024;
/// Commits wait for the disk when this many full write buffers of a table are not yet flushed.
/// Below the 4 at which the database itself would wait, without noticing that its workers have died
/// of a full disk.
const WAITING_BUFFERS: usize = 1;
/// A commit goes through after this long although a buffer is full, which asks for it to be set
/// aside once more.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// The pause before a waiting commit looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// A disk that needs longer for a few MiB is not working; 6 s was the slowest commit measured on a
/// busy machine.
const FLUSH_DEADLINE: Duration = Duration::from_secs(120);

/// The open database.
pub(crate) struct Tables {
    pub(crate) db: Database,
    spaces: [Keyspace; Table::ALL.len()],
}

/// One sorted map of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// Domain → state.
    Domains,
    /// Site, domain → nothing.
    Sites,
    /// Domain, slot → URL.
    Queue,
    /// Wake time, domain → nothing.
    Parked,
    /// Domain → wake time.
    Wakes,
    /// Domain, commit, part → fingerprints.
    Seen,
    /// Sequence → links.
    Outbox,
    /// Sequence → links whose owner cannot be reached.
    Held,
    /// Number → links that their owner has acknowledged lately.
    Sent,
    /// Domain, slot → links.
    Errands,
    /// Domain, URL hash → page that was fetched.
    Pages,
    /// Domain, time, URL hash → nothing: the pages in the order of their next visits.
    Due,
    /// Domain → time of the first of these.
    NextDue,
    /// That time, domain → nothing.
    DueDomains,
    /// Content hash → first page.
    Facts,
    /// Name → value.
    Values,
}

impl Table {
    pub(crate) const ALL: [Table; 16] = [
        Table::Domains,
        Table::Sites,
        Table::Queue,
        Table::Parked,
        Table::Wakes,
        Table::Seen,
        Table::Outbox,
        Table::Held,
        Table::Sent,
        Table::Errands,
        Table::Pages,
        Table::Due,
        Table::NextDue,
        Table::DueDomains,
        Table::Facts,
        Table::Values,
    ];

    fn name(self) -> &'static str {
        match self {
            Table::Domains => "domains",
            Table::Sites => "sites",
            Table::Queue => "queue",
            Table::Parked => "parked",
            Table::Wakes => "wakes",
            Table::Seen => "seen",
            Table::Outbox => "outbox",
            Table::Held => "held",
            Table::Sent => "sent",
            Table::Errands => "errands",
            Table::Pages => "pages",
            Table::Due => "due",
            Table::NextDue => "next_due",
            Table::DueDomains => "due_domains",
            Table::Facts => "facts",
            Table::Values => "values",
        }
    }

    /// Only keys and values count towards it, not the list node and allocations of each entry, so
    /// that buffers of small entries take more memory than this; there may be three of each table.
    fn write_buffer_bytes(self) -> u64 {
        match self {
            Table::Queue => 2 * MIB,
            _ => MIB,
        }
    }

    /// Filters answer "is this key here?"; tables that are only read in order do without.
    fn is_asked_for_single_keys(self) -> bool {
        matches!(
            self,
            Table::Domains
                | Table::Wakes
                | Table::Pages
                | Table::NextDue
                | Table::Facts
                | Table::Values
        )
    }

    fn options(self) -> KeyspaceCreateOptions {
        let options = KeyspaceCreateOptions::default()
            .manual_journal_persist(true)
            .max_memtable_size(self.write_buffer_bytes())
            .compaction_strategy(Arc::new(
                Leveled::default().with_table_target_size(TABLE_FILE_BYTES),
            ))
            .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
            .data_block_compression_policy(CompressionPolicy::all(fjall::CompressionType::Lz4))
            .index_block_partitioning_policy(PartitioningPolicy::all(true))
            .filter_block_partitioning_policy(PartitioningPolicy::all(true))
            .index_block_pinning_policy(PinningPolicy::all(false))
            .filter_block_pinning_policy(PinningPolicy::all(false));
        if self.is_asked_for_single_keys() {
            options
        } else {
            options.filter_policy(FilterPolicy::disabled())
        }
    }
}

impl Tables {
    pub(crate) fn open(folder: &Path, cache_bytes: u64) -> fjall::Result<Self> {
        let db = Database::builder(folder)
            .cache_size(cache_bytes)
            .max_journaling_size(JOURNAL_BYTES)
            .worker_threads(WORKER_THREADS)
            .max_cached_files(Some(CACHED_FILES))
            .manual_journal_persist(true)
            .open()?;
        let mut spaces = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            spaces.push(db.keyspace(table.name(), || table.options())?);
        }
        let spaces = spaces
            .try_into()
            .ok()
            .expect("one keyspace was pushed for each table");
        Ok(Tables { db, spaces })
    }

    pub(crate) fn space(&self, table: Table) -> &Keyspace {
        &self.spaces[table as usize]
    }

    /// Waits until the write buffers have room, or the database says that it is broken.
    ///
    /// A buffer that is full but not yet set aside is waited for too, for a while: every commit to
    /// it asks the worker once more to do that, and a worker whose inbox is full of such wishes
    /// waits for ever to put one of its own there.
    pub(crate) fn wait_for_room(&self) -> fjall::Result<()> {
        let start = Instant::now();
        while self.is_behind() || self.is_full() && start.elapsed() < ASK_AGAIN {
            self.db.persist(PersistMode::Buffer)?;
            if start.elapsed() > FLUSH_DEADLINE {
                return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Whether buffers were set aside and are not on the disk.
    fn is_behind(&self) -> bool {
        self.spaces
            .iter()
            .any(|space| space.sealed_memtable_count() >= WAITING_BUFFERS)
    }

    /// Whether buffers should have been set aside.
    fn is_full(&self) -> bool {
        Table::ALL.into_iter().any(|table| {
            self.space(table).tree.active_memtable().size() > table.write_buffer_bytes()
        })
    }
}
