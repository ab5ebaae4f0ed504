//! The identity of this peer: an Ed25519 key, made on first start and kept in one file that only
//! the user can read.
//!
//! The file is the key in PKCS#8 form and nothing else. It is written whole or not at all, and
//! never overwritten. If two processes start at once, both end up with the key of the first.

use apoidea_model::PeerId;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::{
    crypto::ring::sign::any_eddsa_type,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    sign::CertifiedKey,
};
use std::{
    fmt, fs, io,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A PKCS#8 Ed25519 key has 85 bytes; a file much larger than that is something else.
const MAX_FILE_BYTES: u64 = 1024;

/// This peer's key pair and the id that follows from it.
#[derive(Clone)]
pub struct Identity {
    id: PeerId,
    key: Arc<CertifiedKey>,
    pair: Arc<Ed25519KeyPair>,
}

/// Why the identity could not be loaded or made.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file system refused.
    #[error("cannot {action} the identity file {path}: {source}")]
    File {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others can read the file, so the key may be known to them.
    #[error(
        "the identity file {path} can be read by others (mode {mode:o}); run `chmod 600` on it, or delete it to start as a new peer"
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file holds something else.
    #[error("{path} does not hold an Ed25519 key in PKCS#8 form; delete it to start as a new peer")]
    NotAKey {
        /// The file.
        path: PathBuf,
    },
    /// The system gave no random bytes.
    #[error("the system's random number generator failed")]
    NoRandomness,
}

impl Identity {
    /// Loads the identity from `path`, or makes one there if there is none.
    pub fn load_or_create(path: &Path) -> Result<Self, IdentityError> {
        match fs::metadata(path) {
            Ok(_) => Self::load(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                store(path, &new_key()?)?;
                Self::load(path)
            }
            Err(source) => Err(IdentityError::File {
                action: "look for",
                path: path.into(),
                source,
            }),
        }
    }

    /// An identity that lives as long as the process.
    pub fn ephemeral() -> Result<Self, IdentityError> {
        Self::from_pkcs8(&new_key()?, Path::new("memory"))
    }

    /// The peer id that belongs to the key.
    pub fn id(&self) -> PeerId {
        self.id
    }

    /// The key as TLS wants it, with the bare public key in the place of a certificate (RFC 7250).
    pub(crate) fn certified_key(&self) -> Arc<CertifiedKey> {
        self.key.clone()
    }

    /// Signs bytes; gives the public key too.
    pub(crate) fn sign(&self, message: &[u8]) -> ([u8; 32], [u8; 64]) {
        let (mut key, mut signature) = ([0; 32], [0; 64]);
        key.copy_from_slice(self.pair.public_key().as_ref());
        signature.copy_from_slice(self.pair.sign(message).as_ref());
        (key, signature)
    }

    fn load(path: &Path) -> Result<Self, IdentityError> {
        let refuse = |source| IdentityError::File {
            action: "read",
            path: path.into(),
            source,
        };
        let file = fs::File::open(path).map_err(refuse)?;
        let metadata = file.metadata().map_err(refuse)?;
        check_permissions(path, &metadata)?;
        if metadata.len() > MAX_FILE_BYTES {
            return Err(IdentityError::NotAKey { path: path.into() });
        }
        Self::from_pkcs8(&fs::read(path).map_err(refuse)?, path)
    }

    fn from_pkcs8(pkcs8: &[u8], path: &Path) -> Result<Self, IdentityError> {
        let not_a_key = || IdentityError::NotAKey { path: path.into() };
        let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8)).map_err(|_| not_a_key())?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).map_err(|_| not_a_key())?;
        let public = key.public_key().ok_or_else(not_a_key)?.to_vec();
        let id = PeerId::of_public_key(&public);
        Ok(Identity {
            id,
            pair: Arc::new(pair),
            key: Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], key)),
        })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.id).finish()
    }
}

fn new_key() -> Result<Vec<u8>, IdentityError> {
    let randomness = ring::rand::SystemRandom::new();
    let document = Ed25519KeyPair::generate_pkcs8(&randomness);
    document
        .map(|document| document.as_ref().to_vec())
        .map_err(|_| IdentityError::NoRandomness)
}

/// Writes a temporary file beside `path`, forces it to disk and gives it its name. If another
/// process was faster, its file stays.
fn store(path: &Path, pkcs8: &[u8]) -> Result<(), IdentityError> {
    let refuse = |source| IdentityError::File {
        action: "write",
        path: path.into(),
        source,
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(refuse)?;
    // On Unix a named temporary file is made with mode 0600; on Windows it inherits the user's
    // private folder.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(refuse)?;
    file.write_all(pkcs8).map_err(refuse)?;
    file.as_file().sync_all().map_err(refuse)?;
    match file.persist_noclobber(path) {
        Ok(_) => sync_folder(folder).map_err(refuse),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(refuse(error.error)),
    }
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn check_permissions(path: &Path, metadata: &fs::Metadata) -> Result<(), IdentityError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        Ok(())
    } else {
        Err(IdentityError::Exposed {
            path: path.into(),
            mode,
        })
    }
}

#[cfg(not(unix))]
fn check_permissions(_: &Path, _: &fs::Metadata) -> Result<(), IdentityError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_file_is_the_same_peer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder/identity");
        let first = Identity::load_or_create(&path).unwrap();
        assert_eq!(Identity::load_or_create(&path).unwrap().id(), first.id());
        assert_ne!(Identity::ephemeral().unwrap().id(), first.id());
        let left_over = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(left_over, 1, "no temporary file stays behind");
    }

    #[test]
    fn the_id_is_the_hash_of_the_public_key() {
        let identity = Identity::ephemeral().unwrap();
        let public = &identity.certified_key().cert[0];
        assert_eq!(
            public.len(),
            44,
            "an Ed25519 SubjectPublicKeyInfo is 12 bytes and the key"
        );
        assert_eq!(PeerId::of_public_key(public), identity.id());
    }

    #[test]
    fn processes_that_start_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity");
        let start = || Identity::load_or_create(&path).unwrap().id();
        let ids = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity");
        Identity::load_or_create(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = Identity::load_or_create(&path).unwrap_err();
        assert!(
            matches!(error, IdentityError::Exposed { mode: 0o644, .. }),
            "{error}"
        );
    }

    #[test]
    fn a_file_with_something_else_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        for content in [&b""[..], b"not a key", &[0; 85], &[7; 5000]] {
            let mut file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
            file.write_all(content).unwrap();
            let error = Identity::load_or_create(file.path()).unwrap_err();
            assert!(matches!(error, IdentityError::NotAKey { .. }), "{error}");
            assert_eq!(fs::read(file.path()).unwrap(), content);
        }
    }
}
