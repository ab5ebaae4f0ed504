//! What belongs to the app and not to the peer: whether it tells when something needs
//! attention, and whether it installs updates.

use crate::menu::Switch;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The file in the data folder that is there while notifications are silenced.
const SILENT_FILE: &str = "silent";
/// The file in the data folder that is there while no updates are wanted.
const NO_UPDATES_FILE: &str = "no-updates";

/// The app's own switches, kept in the data folder: each is on unless its file says otherwise.
#[derive(Debug, Clone)]
pub struct Switches {
    folder: PathBuf,
}

impl Switches {
    /// Those of this data folder.
    pub fn of(folder: &Path) -> Self {
        Switches { folder: folder.to_owned() }
    }

    /// Does the app tell when something needs attention?
    pub fn notifications(&self) -> Switch {
        self.read(SILENT_FILE)
    }

    /// Turns notifications on or off.
    pub fn set_notifications(&self, switch: Switch) -> io::Result<()> {
        self.write(SILENT_FILE, switch)
    }

    /// Does the app install updates?
    pub fn updates(&self) -> Switch {
        self.read(NO_UPDATES_FILE)
    }

    /// Turns updates on or off.
    pub fn set_updates(&self, switch: Switch) -> io::Result<()> {
        self.write(NO_UPDATES_FILE, switch)
    }

    fn read(&self, name: &str) -> Switch {
        if self.folder.join(name).exists() { Switch::Off } else { Switch::On }
    }

    fn write(&self, name: &str, switch: Switch) -> io::Result<()> {
        let file = self.folder.join(name);
        match switch {
            Switch::Off => fs::write(file, ""),
            Switch::On => match fs::remove_file(file) {
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
    fn a_switch_is_on_until_turned_off_and_stays_so() {
        let folder = tempfile::tempdir().unwrap();
        let switches = Switches::of(folder.path());
        assert_eq!((switches.notifications(), switches.updates()), (Switch::On, Switch::On));
        for switch in [Switch::Off, Switch::Off, Switch::On, Switch::On, Switch::Off] {
            switches.set_notifications(switch).unwrap();
            assert_eq!(Switches::of(folder.path()).notifications(), switch);
            assert_eq!(Switches::of(folder.path()).updates(), Switch::On);
        }
        switches.set_updates(Switch::Off).unwrap();
        assert_eq!(Switches::of(folder.path()).updates(), Switch::Off);
    }
}
