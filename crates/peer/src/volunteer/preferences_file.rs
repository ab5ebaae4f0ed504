//! What the governor remembers between two runs: the volunteer's preferences, and what is under
//! way.
//!
//! Preferences are a TOML file that can be edited by hand while the peer does not run; the rest (a
//! snooze, the bytes of the month) is the program's own. Both are replaced in one step, so that a
//! crash leaves the old or the new.

use apoidea_governor::{MonthlyUsage, PreferenceRefused, Preferences, Snooze};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The volunteer's preferences, in the data folder.
pub const PREFERENCES_FILE: &str = "preferences.toml";
/// What is under way, in the data folder.
const STATE_FILE: &str = "governor.json";

/// Where both are.
#[derive(Debug, Clone)]
pub(crate) struct PreferencesFile {
    folder: PathBuf,
}

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct UnderWay {
    pub snooze: Option<Snooze>,
    pub usage: MonthlyUsage,
}

/// Why preferences cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PreferencesError {
    /// A value is not right.
    #[error("the preferences in {place} are not usable: {refused}")]
    Refused {
        /// Which file or section.
        place: String,
        /// The field, and what would be accepted.
        refused: PreferenceRefused,
    },
    /// The file is not TOML.
    #[error("the preferences in {} are not usable:\n{source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where, and what.
        source: Box<toml::de::Error>,
    },
    /// The file cannot be read or written.
    #[error("cannot use the preferences in {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl PreferencesFile {
    pub(crate) fn new(folder: &Path) -> Self {
        PreferencesFile {
            folder: folder.to_owned(),
        }
    }

    /// What the volunteer set last; if they never did, the section of the settings file over
    /// `base`.
    pub(crate) fn load(
        &self,
        base: Preferences,
        section: &toml::Table,
    ) -> Result<Preferences, PreferencesError> {
        let path = self.folder.join(PREFERENCES_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return in_section(&base, section);
            }
            Err(source) => return Err(PreferencesError::Io { path, source }),
        };
        let malformed = |source| PreferencesError::Malformed {
            path: path.clone(),
            source: Box::new(source),
        };
        let table: toml::Table = toml::from_str(&text).map_err(malformed)?;
        let refused = |refused| PreferencesError::Refused {
            place: path.display().to_string(),
            refused,
        };
        Preferences::from_value(&Value::Object(to_json(&table))).map_err(refused)
    }

    /// Keeps preferences.
    pub(crate) fn save(&self, preferences: &Preferences) -> Result<(), PreferencesError> {
        let text = toml::to_string(preferences).expect("numbers, texts and lists always serialise");
        let path = self.folder.join(PREFERENCES_FILE);
        let text = format!("# Written by apoidea; `apoidea limits` explains each field.\n{text}");
        replace(&path, text.as_bytes()).map_err(|source| PreferencesError::Io { path, source })
    }

    /// What was under way. A file that cannot be read is as good as none: nothing in it is worth
    /// refusing to start.
    pub(crate) fn under_way(&self) -> UnderWay {
        let bytes = fs::read(self.folder.join(STATE_FILE)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Keeps what is under way.
    pub(crate) fn save_under_way(&self, under_way: &UnderWay) -> Result<(), PreferencesError> {
        let path = self.folder.join(STATE_FILE);
        let bytes = serde_json::to_vec(under_way).expect("numbers always serialise");
        replace(&path, &bytes).map_err(|source| PreferencesError::Io { path, source })
    }
}

fn in_section(base: &Preferences, section: &toml::Table) -> Result<Preferences, PreferencesError> {
    let refused = |refused| PreferencesError::Refused {
        place: "the settings' [preferences]".to_owned(),
        refused,
    };
    base.with(&to_json(section)).map_err(refused)
}

fn to_json(table: &toml::Table) -> Map<String, Value> {
    match serde_json::to_value(table) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Replaces a file in one step.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_governor::{Preset, Run};

    fn section(text: &str) -> toml::Table {
        text.parse().unwrap()
    }

    #[test]
    fn the_settings_file_counts_until_the_volunteer_sets_something() {
        let folder = tempfile::tempdir().unwrap();
        let file = PreferencesFile::new(folder.path());
        let settings = section("preset = \"gentle\"\nidle_seconds = 5");
        let loaded = file.load(Preferences::dedicated(), &settings).unwrap();
        assert_eq!((loaded.run, loaded.idle_seconds), (Run::WhenIdle, 5));
        assert_eq!(loaded.memory_mib, Preset::Gentle.preferences().memory_mib);
        let own = Preferences {
            idle_seconds: 9,
            preset: Preset::Custom,
            ..Preferences::default()
        };
        file.save(&own).unwrap();
        assert_eq!(file.load(Preferences::dedicated(), &settings).unwrap(), own);
    }

    #[test]
    fn a_bad_file_is_refused_with_place_field_and_range() {
        let folder = tempfile::tempdir().unwrap();
        let file = PreferencesFile::new(folder.path());
        let refused = file.load(
            Preferences::dedicated(),
            &section("full = { cpu_percent = 99999 }"),
        );
        let words = refused.unwrap_err().to_string();
        assert!(
            words.contains("full.cpu_percent") && words.contains("1 to 6400"),
            "{words}"
        );
        for (text, part) in [
            ("idle_seconds = 0", "1 to 86400"),
            ("idle_seconds = ", "line 1"),
            ("x = 1", "`x`"),
        ] {
            fs::write(folder.path().join(PREFERENCES_FILE), text).unwrap();
            let words = file
                .load(Preferences::dedicated(), &toml::Table::new())
                .unwrap_err()
                .to_string();
            assert!(
                words.contains(PREFERENCES_FILE) && words.contains(part),
                "{words}"
            );
        }
    }

    #[test]
    fn what_is_under_way_survives_and_a_damaged_file_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let file = PreferencesFile::new(folder.path());
        assert_eq!(file.under_way(), UnderWay::default());
        let under_way = UnderWay {
            snooze: Some(Snooze::UntilResumed),
            ..UnderWay::default()
        };
        file.save_under_way(&under_way).unwrap();
        assert_eq!(file.under_way(), under_way);
        fs::write(folder.path().join(STATE_FILE), b"{").unwrap();
        assert_eq!(file.under_way(), UnderWay::default());
    }
}
