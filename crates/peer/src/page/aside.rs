//! Bodies of pages that wait long for the ring's word on their content, on the disk meanwhile
//! (Apoidea §2.2: processing lags downloading, and spills).
//!
//! The files have no name, so whatever ends the process removes them: such a page is still in its
//! queue. That is also why the number of pages that wait stays bounded elsewhere, and only their
//! memory is given back here.

use bytes::Bytes;
use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Most bytes on the disk at a time; whatever would come on top keeps its memory.
const MAX_BYTES: u64 = 256 << 20;
/// Smaller bodies are not worth a file.
const LEAST_BYTES: usize = 4 << 10;

/// Where bodies are put aside.
#[derive(Debug)]
pub(crate) struct Aside {
    folder: PathBuf,
    bytes: Arc<AtomicU64>,
}

/// A body on the disk.
#[derive(Debug)]
pub(crate) struct OnDisk {
    file: File,
    room: Room,
}

/// A part of the bytes that may be on the disk; given back when dropped.
#[derive(Debug)]
struct Room {
    all: Arc<AtomicU64>,
    taken: u64,
}

impl Aside {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Aside {
            folder,
            bytes: Arc::default(),
        }
    }

    /// Writes a body to the disk, where that is worth it and possible.
    pub(crate) fn put(&self, body: &[u8]) -> Option<OnDisk> {
        if body.len() < LEAST_BYTES {
            return None;
        }
        let room = Room::take(&self.bytes, body.len() as u64)?;
        let written = tempfile::tempfile_in(&self.folder).and_then(|mut file| {
            file.write_all(body)?;
            Ok(file)
        });
        match written {
            Ok(file) => Some(OnDisk { file, room }),
            Err(error) => {
                tracing::debug!(%error, "a body that waits stays in memory");
                None
            }
        }
    }
}

impl OnDisk {
    /// Reads the body again.
    pub(crate) fn take(mut self) -> io::Result<Bytes> {
        let mut body = Vec::with_capacity(usize::try_from(self.room.taken).unwrap_or(0));
        self.file.rewind()?;
        self.file.read_to_end(&mut body)?;
        match body.len() as u64 == self.room.taken {
            true => Ok(body.into()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Room {
    fn take(all: &Arc<AtomicU64>, bytes: u64) -> Option<Self> {
        let fits = |taken: u64| (taken + bytes <= MAX_BYTES).then_some(taken + bytes);
        all.fetch_update(Relaxed, Relaxed, fits).ok()?;
        Some(Room {
            all: all.clone(),
            taken: bytes,
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.all.fetch_sub(self.taken, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_body_comes_back_as_it_was_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let aside = Aside::new(folder.path().to_owned());
        let body: Vec<u8> = (0..100_000_u32).map(|i| i as u8).collect();
        let on_disk = aside.put(&body).unwrap();
        assert_eq!(aside.bytes.load(Relaxed), 100_000);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            0,
            "nothing is left by a crash"
        );
        assert_eq!(on_disk.take().unwrap(), body);
        assert_eq!(aside.bytes.load(Relaxed), 0);
    }

    #[test]
    fn what_is_small_or_too_much_or_cannot_be_written_stays_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let aside = Aside::new(folder.path().to_owned());
        assert!(aside.put(&[0; LEAST_BYTES - 1]).is_none());
        let full = Room::take(&aside.bytes, MAX_BYTES - 10).unwrap();
        assert!(aside.put(&[0; LEAST_BYTES]).is_none());
        drop(full);
        assert!(aside.put(&[0; LEAST_BYTES]).is_some());
        let nowhere = Aside::new(folder.path().join("missing"));
        assert!(nowhere.put(&[0; LEAST_BYTES]).is_none());
        assert_eq!(nowhere.bytes.load(Relaxed), 0);
    }
}
