//! The proof that this peer's identity has cost some work, kept in a file beside the identity.
//!
//! The work is done once, about a second of one core. A file that is missing, or that proves nothing
//! for this identity, costs that second again and no more.

use apoidea_chord::{Effort, Toil};
use apoidea_model::PeerId;
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

/// Tries between two looks at the clock of the one who waits: about ten milliseconds.
const TRIES: u64 = 1 << 14;

/// The file with the proof.
#[derive(Debug, Clone)]
pub struct ToilFile(PathBuf);

impl ToilFile {
    /// The file beside this identity file.
    pub fn beside(identity: &Path) -> Self {
        ToilFile(identity.with_extension("toil"))
    }

    /// The proof for an identity, from the file or by doing the work now. Only for a thread that may
    /// be busy for a while. None if it is told to stop.
    pub fn load_or_do(
        &self,
        id: PeerId,
        effort: Effort,
        is_stopped: impl Fn() -> bool,
    ) -> Option<Toil> {
        if let Some(toil) = self.load().filter(|toil| toil.proves(id, effort)) {
            return Some(toil);
        }
        let mut start = 0;
        let toil = loop {
            if is_stopped() {
                return None;
            }
            match Toil::find(id, effort, start, TRIES) {
                Some(toil) => break toil,
                None => start += TRIES,
            }
        };
        if let Err(error) = self.store(toil) {
            tracing::info!(%error, "the proof of work is not kept, and is made again next time");
        }
        Some(toil)
    }

    fn load(&self) -> Option<Toil> {
        let text = fs::read_to_string(&self.0).ok()?;
        text.trim().parse().ok().map(Toil)
    }

    fn store(&self, toil: Toil) -> std::io::Result<()> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        writeln!(file, "{}", toil.0)?;
        file.as_file().sync_all()?;
        file.persist(&self.0)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    #[test]
    fn the_work_is_done_once_for_each_identity() {
        let folder = tempfile::tempdir().unwrap();
        let file = ToilFile::beside(&folder.path().join("identity"));
        let (id, other) = (PeerId::at(Key::hash("a")), PeerId::at(Key::hash("b")));
        let effort = Effort(10);
        let toil = file.load_or_do(id, effort, || false).unwrap();
        assert!(toil.proves(id, effort));
        assert_eq!(file.load_or_do(id, effort, || true), Some(toil), "kept");
        assert_eq!(file.load_or_do(other, effort, || true), None, "another's");
        fs::write(&file.0, "nonsense").unwrap();
        assert_eq!(file.load_or_do(id, effort, || false), Some(toil));
    }
}
