//! What belongs to the app and not to the peer: whether it tells when something needs attention.

use crate::menu::Switch;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The file in the data folder that is there while notifications are silenced.
const SILENT_FILE: &str = "silent";

/// The app's own switches, kept in the data folder.
#[derive(Debug, Clone)]
pub struct Switches {
    silent: PathBuf,
}

impl Switches {
    /// Those of this data folder.
    pub fn of(folder: &Path) -> Self {
        Switches { silent: folder.join(SILENT_FILE) }
    }

    /// Does the app tell when something needs attention?
    pub fn notifications(&self) -> Switch {
        if self.silent.exists() { Switch::Off } else { Switch::On }
    }

    /// Turns notifications on or off.
    pub fn set_notifications(&self, switch: Switch) -> io::Result<()> {
        match switch {
            Switch::Off => fs::write(&self.silent, ""),
            Switch::On => match fs::remove_file(&self.silent) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_on_until_silenced_and_stay_so() {
        let folder = tempfile::tempdir().unwrap();
        let switches = Switches::of(folder.path());
        assert_eq!(switches.notifications(), Switch::On);
        for switch in [Switch::Off, Switch::Off, Switch::On, Switch::On, Switch::Off] {
            switches.set_notifications(switch).unwrap();
            assert_eq!(Switches::of(folder.path()).notifications(), switch);
        }
    }
}
