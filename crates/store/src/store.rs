//! The database in its folder: opening, sharing, and getting over a full disk.
//!
//! The database refuses all writes after one has failed, since it cannot know what reached the
//! disk. The store then opens it again before the next commit, which replays the journal up to the
//! last whole commit. Readers never hold the database for longer than one call, so this needs no
//! one's cooperation.

use crate::{
    Commit, CommitError, ReadError,
    commit::{self, Consequences, Durability, io_error, is_full},
    lock::{FolderLock, LockError},
    private_folder,
    tables::Tables,
    values,
};
use std::{
    fs, io, panic,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

const DATABASE_FOLDER: &str = "db";
const FORMAT_FILE: &str = "format";
/// The text of the format file. A change to any key or value in this crate needs a new number.
const FORMAT: &str = "apoidea store 2";
/// Before a database that failed is opened again, so much must fit on the disk: a journal's tail
/// and one flush.
const ROOM_TO_RECOVER_BYTES: usize = 8 * 1024 * 1024;

/// The store's use of the machine.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Memory for blocks of the database that were read lately.
    pub cache_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        // A small part of the 96 MiB that the smallest peer has; the system's own cache holds the
        // files as well.
        StoreOptions {
            cache_bytes: 8 * 1024 * 1024,
        }
    }
}

/// The database of a peer. Clones share it; all calls block, commits queue up behind each other.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    // Dropped before the lock: the folder is free only when the database is closed.
    tables: RwLock<Option<Tables>>,
    writer: Mutex<Writer>,
    folder: PathBuf,
    options: StoreOptions,
    _lock: FolderLock,
}

struct Writer {
    commits: u64,
    health: Health,
}

enum Health {
    Good,
    FailedToWrite,
}

/// The store cannot be opened. Nothing was deleted or changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another peer is using the folder.
    #[error("{} is in use by another peer{}; stop it first or choose another folder", folder.display(), holder(*pid))]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The process that holds it, where known.
        pid: Option<u32>,
    },
    /// The folder's owner, mode or file system forbids writing.
    #[error("{} cannot be written; make it writable or choose another folder", folder.display())]
    ReadOnly {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No space is left.
    #[error("the disk that holds {} is full; make some room", folder.display())]
    Full {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Written by a version of this program with another format.
    #[error("{} says {found:?} and this version reads {FORMAT:?}; use the version that wrote it", file.display())]
    Format {
        /// The format file.
        file: PathBuf,
        /// The text found there.
        found: String,
    },
    /// The files are there but make no sense.
    #[error(
        "the database in {} is damaged ({why}); nothing was deleted: restore the folder from a backup, or move it away \
         to start afresh",
        folder.display()
    )]
    Damaged {
        /// The database's folder.
        folder: PathBuf,
        /// The database's error.
        why: String,
    },
    /// The system said no for another reason.
    #[error("{} cannot be used: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})"))
        .unwrap_or_default()
}

impl Store {
    /// Opens the store in a folder, creating both if need be, and recovers from whatever ended the
    /// last process.
    pub fn open(folder: &Path, options: StoreOptions) -> Result<Store, OpenError> {
        private_folder::create(folder).map_err(|error| refuse(folder, error))?;
        private_folder::warn_if_exposed(folder);
        let lock = FolderLock::acquire(folder).map_err(|error| match error {
            LockError::Held { by } => OpenError::InUse {
                folder: folder.to_owned(),
                pid: by,
            },
            LockError::Io(error) => refuse(folder, error),
        })?;
        check_format(folder)?;
        let tables = open_tables(folder, &options)?;
        let inner = Inner {
            tables: RwLock::new(Some(tables)),
            writer: Mutex::new(Writer {
                commits: 0,
                health: Health::Good,
            }),
            folder: folder.to_owned(),
            options,
            _lock: lock,
        };
        let store = Store {
            inner: Arc::new(inner),
        };
        let commits = store.counter(values::COMMITS);
        store.writer().commits = commits.map_err(|error| damaged(folder, error.to_string()))?;
        Ok(store)
    }

    /// Applies a commit atomically. When this returns `Ok`, it is on the disk, and so is everything
    /// applied before.
    pub fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        self.write(commit, Durability::Now)
    }

    /// Applies a commit atomically and visibly, and leaves it to the next [`Self::commit`] to bring
    /// it to the disk. A crash of the machine may undo it, together with everything that came after
    /// it.
    pub fn apply(&self, commit: &Commit) -> Result<(), CommitError> {
        self.write(commit, Durability::Later)
    }

    fn write(&self, commit: &Commit, durability: Durability) -> Result<(), CommitError> {
        if commit.is_empty() && durability == Durability::Later {
            return Ok(());
        }
        let mut writer = self.writer();
        if matches!(writer.health, Health::FailedToWrite) {
            self.open_again()?;
            writer.health = Health::Good;
        }
        let number = writer.commits + 1;
        let written = self.read(|tables| {
            let consequences = Consequences::of(commit, tables, number)?;
            Ok(commit::write(commit, &consequences, tables, durability))
        })?;
        // The number is used up even by a commit that failed: it may turn up when the journal is
        // replayed.
        writer.commits = number;
        written.map_err(|error| {
            writer.health = Health::FailedToWrite;
            self.explain(error)
        })
    }

    /// Bytes of the database on disk.
    pub fn disk_bytes(&self) -> Result<u64, ReadError> {
        self.read(|tables| Ok(tables.db.disk_space()?))
    }

    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Tables) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let tables = self
            .inner
            .tables
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        read(tables.as_ref().ok_or(ReadError::Closed)?)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.inner
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A background flush that ran out of space shows only as a refusal to write; the disk itself
    /// knows more.
    fn explain(&self, error: fjall::Error) -> CommitError {
        match error {
            fjall::Error::Poisoned => match self.probe_for_room() {
                Err(error) if is_full(&error) => CommitError::Full(error),
                _ => CommitError::Database(fjall::Error::Poisoned),
            },
            error => error.into(),
        }
    }

    fn open_again(&self) -> Result<(), CommitError> {
        self.probe_for_room().map_err(fjall::Error::from)?;
        let mut tables = self
            .inner
            .tables
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // Closed first: the database has a lock of its own.
        *tables = None;
        let folder = self.inner.folder.join(DATABASE_FOLDER);
        *tables = Some(Tables::open(&folder, self.inner.options.cache_bytes)?);
        tracing::info!(folder = %folder.display(), "opened the database again after a failed commit");
        Ok(())
    }

    fn probe_for_room(&self) -> io::Result<()> {
        let probe = self.inner.folder.join("probe");
        let written = fs::write(&probe, vec![0xa5; ROOM_TO_RECOVER_BYTES]);
        fs::remove_file(&probe)?;
        written
    }
}

fn open_tables(folder: &Path, options: &StoreOptions) -> Result<Tables, OpenError> {
    let database = folder.join(DATABASE_FOLDER);
    private_folder::create(&database).map_err(|error| refuse(&database, error))?;
    // The database takes some damage for impossible and panics; nothing of it is left then.
    let opened = panic::catch_unwind(|| Tables::open(&database, options.cache_bytes));
    let Ok(opened) = opened else {
        return Err(damaged(
            &database,
            "its files contradict each other".to_owned(),
        ));
    };
    opened.map_err(|error| match io_error(error) {
        Ok(error) if is_trouble_of_the_system(&error) => refuse(folder, error),
        Ok(error) => damaged(&database, error.to_string()),
        Err(error) => damaged(&database, error.to_string()),
    })
}

/// Everything else that goes wrong while reading a database means that its files are not as they
/// were.
fn is_trouble_of_the_system(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::Other
    )
}

fn check_format(folder: &Path) -> Result<(), OpenError> {
    let file = folder.join(FORMAT_FILE);
    match fs::read(&file) {
        Ok(text) if text.trim_ascii() == FORMAT.as_bytes() => Ok(()),
        Ok(text) => {
            let found = String::from_utf8_lossy(&text).chars().take(80).collect();
            Err(OpenError::Format { file, found })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => write_format(folder, &file),
        Err(error) => Err(OpenError::Io {
            path: file,
            source: error,
        }),
    }
}

/// Written under another name first: a crash in between must not leave an empty format file.
fn write_format(folder: &Path, file: &Path) -> Result<(), OpenError> {
    let new = folder.join("format.new");
    let written = fs::write(&new, format!("{FORMAT}\n")).and_then(|()| fs::rename(&new, file));
    written.map_err(|error| refuse(folder, error))
}

fn damaged(folder: &Path, why: String) -> OpenError {
    OpenError::Damaged {
        folder: folder.to_owned(),
        why,
    }
}

fn refuse(folder: &Path, error: io::Error) -> OpenError {
    let folder = folder.to_owned();
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            OpenError::ReadOnly {
                folder,
                source: error,
            }
        }
        _ if is_full(&error) => OpenError::Full {
            folder,
            source: error,
        },
        _ => OpenError::Io {
            path: folder,
            source: error,
        },
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use apoidea_model::{CrawlId, Domain, Link, PageUrl, Pending, Slot, Target};

    pub(crate) fn open() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        (folder, store)
    }

    pub(crate) fn domain(name: &str) -> Domain {
        name.parse().unwrap()
    }

    pub(crate) fn pending(url: &str, rank: u16, sequence: u64) -> Pending {
        let link = Link {
            url: PageUrl::parse(url).unwrap(),
            depth: rank,
            target: Target::Page,
        };
        let slot = Slot { rank, sequence };
        Pending {
            attempts: 1,
            ..Pending::admitted(link, slot, CrawlId::OPEN)
        }
    }

    fn refused(folder: &Path) -> OpenError {
        Store::open(folder, StoreOptions::default())
            .err()
            .expect("must not open")
    }

    #[test]
    fn what_was_committed_is_there_after_reopening() {
        let (folder, store) = open();
        let mut commit = Commit::new();
        commit.put_domain(&domain("a.example"), vec![7]);
        commit.set_value("greeting", b"hello");
        store.commit(&commit).unwrap();
        drop(store);
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        assert_eq!(store.domain(&domain("a.example")).unwrap(), Some(vec![7]));
        assert_eq!(store.value("greeting").unwrap(), Some(b"hello".to_vec()));
        assert_eq!(store.domain_count().unwrap(), 1);
    }

    #[test]
    fn a_second_peer_is_told_who_holds_the_folder() {
        let (folder, store) = open();
        let message = refused(folder.path()).to_string();
        assert!(
            message.contains(&folder.path().display().to_string()),
            "{message}"
        );
        assert!(
            message.contains(&std::process::id().to_string()),
            "{message}"
        );
        drop(store);
        assert!(Store::open(folder.path(), StoreOptions::default()).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn other_users_cannot_look_into_a_new_store() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        let _store = Store::open(&folder, StoreOptions::default()).unwrap();
        for made in [folder.clone(), folder.join(DATABASE_FOLDER)] {
            let mode = fs::metadata(&made).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", made.display());
        }
    }

    #[test]
    fn another_format_is_refused() {
        let (folder, store) = open();
        drop(store);
        fs::write(folder.path().join(FORMAT_FILE), "apoidea store 99\n").unwrap();
        assert!(
            matches!(refused(folder.path()), OpenError::Format { found, .. } if found.contains("99"))
        );
    }

    fn files_in(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        entries
            .flat_map(|path| {
                if path.is_dir() {
                    files_in(&path)
                } else {
                    vec![path]
                }
            })
            .collect()
    }

    #[test]
    fn damage_to_any_file_of_the_database_is_an_error_or_harmless() {
        let (folder, store) = open();
        let mut commit = Commit::new();
        commit.put_domain(&domain("a.example"), vec![7; 100]);
        store.commit(&commit).unwrap();
        drop(store);
        let database = folder.path().join(DATABASE_FOLDER);
        let whole: Vec<_> = files_in(&database)
            .into_iter()
            .map(|file| (fs::read(&file).unwrap(), file))
            .collect();
        let mut refusals = 0;
        for (bytes, damaged) in whole.iter().filter(|(bytes, _)| !bytes.is_empty()) {
            fs::remove_dir_all(&database).unwrap();
            for (bytes, file) in &whole {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, bytes).unwrap();
            }
            let mut wrong = bytes.clone();
            wrong[bytes.len().min(100) / 2] ^= 0xff;
            fs::write(damaged, wrong).unwrap();
            if let Err(error) = Store::open(folder.path(), StoreOptions::default()) {
                assert!(
                    matches!(error, OpenError::Damaged { .. }),
                    "{}: {error:?}",
                    damaged.display()
                );
                assert!(damaged.exists(), "nothing is deleted");
                refusals += 1;
            }
        }
        assert!(refusals > 0);
    }

    #[test]
    fn a_file_in_the_way_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(refused(&file).to_string().contains("file"));
    }

    #[test]
    fn readers_read_while_a_writer_commits() {
        let (_folder, store) = open();
        let a = domain("a.example");
        let reader = store.clone();
        let reading = std::thread::spawn({
            let a = a.clone();
            move || {
                let mut last = 0;
                while last < 20 {
                    let state = reader.domain(&a).unwrap().map_or(0, |state| state[0]);
                    assert!(state >= last, "a reader never sees the past");
                    last = state;
                    std::thread::yield_now();
                }
            }
        });
        for state in 1..=20 {
            let mut commit = Commit::new();
            commit.put_domain(&a, vec![state]);
            store.commit(&commit).unwrap();
        }
        reading.join().unwrap();
    }
}
