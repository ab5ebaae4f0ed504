//! The API's token in its file, which only the peer's own user can read.

use super::access::random_text;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A shorter text is no token of ours.
const LEAST_TOKEN_CHARS: usize = 32;

/// The token file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the API token in {path}: {source}", path = .path.display())]
pub struct TokenError {
    path: PathBuf,
    source: io::Error,
}

/// The token in a file; a new one, if there is none or others may know it.
pub(super) fn open(path: &Path) -> Result<String, TokenError> {
    let failed = |source| TokenError {
        path: path.to_owned(),
        source,
    };
    match known_token(path).map_err(failed)? {
        Some(token) => Ok(token),
        None => make_token(path).map_err(failed),
    }
}

/// The token of an earlier run, unless it is none or somebody else may have read it.
fn known_token(path: &Path) -> io::Result<Option<String>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !found.is_file() || is_exposed(&found) {
        tracing::warn!(
            "others could read or choose the API token in {}; there is a new one now",
            path.display()
        );
        return Ok(None);
    }
    let token = fs::read_to_string(path)?;
    let token = token.trim();
    Ok((token.len() >= LEAST_TOKEN_CHARS).then(|| token.to_owned()))
}

#[cfg(unix)]
fn is_exposed(file: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o077 != 0
}

#[cfg(not(unix))]
fn is_exposed(_: &fs::Metadata) -> bool {
    false
}

/// Makes a token in the place of whatever is at the path. Its temporary file is a new one with a
/// random name, so that nobody can have opened it before or put a link in its place; on Unix it has
/// mode 0600.
fn make_token(path: &Path) -> io::Result<String> {
    let token = random_text();
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, token.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(token)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const FILE: &str = "api-token";

    fn token_in(folder: &tempfile::TempDir) -> String {
        open(&folder.path().join(FILE)).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_token_is_kept_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let first = token_in(&folder);
        assert_eq!(mode(&folder.path().join(FILE)), 0o600);
        assert_eq!(token_in(&folder), first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_token_that_others_could_read_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let first = token_in(&folder);
        let path = folder.path().join(FILE);
        for wide in [0o640, 0o604, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(wide)).unwrap();
            let next = token_in(&folder);
            assert_ne!(next, first);
            assert_eq!(mode(&path), 0o600);
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_token_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        let theirs = "x".repeat(64);
        fs::write(&elsewhere, &theirs).unwrap();
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).unwrap();
        let path = folder.path().join(FILE);
        symlink(&elsewhere, &path).unwrap();
        let made = token_in(&folder);
        assert_ne!(made, theirs);
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), theirs);
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }
}
