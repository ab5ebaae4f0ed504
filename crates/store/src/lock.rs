//! One peer per folder: an exclusive lock that names its holder and vanishes with the process,
//! however it ends.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

const LOCK_FILE: &str = "lock";
/// Beside the lock and not in it: on Windows a locked file cannot be read by others.
const HOLDER_FILE: &str = "lock.pid";

/// Held for as long as the folder is in use.
#[derive(Debug)]
pub(crate) struct FolderLock {
    holder: PathBuf,
    _file: File,
}

/// The folder could not be locked.
#[derive(Debug)]
pub(crate) enum LockError {
    Held { by: Option<u32> },
    Io(io::Error),
}

impl FolderLock {
    pub(crate) fn acquire(folder: &Path) -> Result<Self, LockError> {
        let holder = folder.join(HOLDER_FILE);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join(LOCK_FILE));
        let file = file.map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held {
                    by: pid_in(&holder),
                });
            }
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        fs::write(&holder, std::process::id().to_string()).map_err(LockError::Io)?;
        Ok(FolderLock {
            holder,
            _file: file,
        })
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Only a courtesy to a person who looks: without the lock the number means nothing.
        let _ = fs::remove_file(&self.holder);
    }
}

fn pid_in(file: &Path) -> Option<u32> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
