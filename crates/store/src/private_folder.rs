//! Folders for the eyes of the peer's own user: they tell which sites are crawled and hold what was
//! found there.
//!
//! A folder that is made here can be entered by its owner alone. One that was there before is left
//! as it is, since somebody may have opened it on purpose, but the log says so. Windows keeps the
//! user's folders private by itself.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Makes a folder, and those above it, unless it is there.
pub(crate) fn create(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Says in the log that others can look into a folder, if they can.
pub(crate) fn warn_if_exposed(folder: &Path) {
    if let Some(Exposed { folder, mode }) = exposed(folder) {
        tracing::warn!(
            "other users of this computer can look into {path} (mode {mode:o}); \
             `chmod 700 '{path}'` keeps them out",
            path = folder.display()
        );
    }
}

/// A folder that others can look into.
#[derive(Debug, PartialEq, Eq)]
struct Exposed {
    folder: PathBuf,
    mode: u32,
}

#[cfg(unix)]
fn exposed(folder: &Path) -> Option<Exposed> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(folder).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| Exposed {
        folder: folder.to_owned(),
        mode,
    })
}

#[cfg(not(unix))]
fn exposed(_: &Path) -> Option<Exposed> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_folder_is_its_owners_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("share/apoidea");
        create(&folder).unwrap();
        for made in [folder.parent().unwrap(), &folder] {
            let mode = fs::metadata(made).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", made.display());
        }
        assert_eq!(exposed(&folder), None);
    }

    #[test]
    fn a_wider_folder_is_used_and_told_of() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().to_owned();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
        create(&folder).unwrap();
        assert_eq!(
            exposed(&folder),
            Some(Exposed {
                folder,
                mode: 0o750
            })
        );
    }
}
