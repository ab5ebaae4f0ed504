//! What the volunteer wants: one struct, the same in the settings file, the API, the command line
//! and the dashboard.
//!
//! Limits are plain numbers in which 0 is no limit, since TOML has no word for nothing. Changes are
//! laid over what is in force, field by field, and are taken whole or refused whole, naming the
//! field and what would be accepted.

use crate::{Desktop, Preset, Schedule, Switch, range};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Everything that a volunteer can choose about the use of their computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(default, deny_unknown_fields)]
pub struct Preferences {
    /// Version of this format.
    pub version: u32,
    /// Which set of values this is.
    pub preset: Preset,
    /// When to crawl.
    pub run: Run,
    /// Seconds without a key or mouse move after which the computer counts as idle. BOINC takes 3
    /// minutes.
    pub idle_seconds: u32,
    /// What happens while the computer is in use, if the crawl waits for idle time.
    pub while_in_use: WhileInUse,
    /// What the crawl may use at most.
    pub full: Profile,
    /// What it may use when it goes gently: while in use, or by schedule. Never more than `full`.
    pub gentle: Profile,
    /// Resident memory at most, in MiB; 0 is no limit.
    pub memory_mib: u32,
    /// The archive at most, in MiB; 0 leaves it to the archive's settings.
    pub disk_mib: u32,
    /// Disk space that stays free, in MiB; 0 leaves it to the archive's settings.
    pub keep_free_mib: u32,
    /// Bytes sent and received in a month at most, in MiB; 0 is no limit.
    pub month_mib: u32,
    /// Pause when other programs use more than this share of the machine's CPU, in percent; 0 never
    /// does.
    pub other_cpu_percent: u32,
    /// What happens on battery.
    pub on_battery: Toward,
    /// What happens on a metered connection.
    pub on_metered: Toward,
    /// What happens while a program fills the screen.
    pub on_full_screen: Toward,
    /// Programs during which the crawl pauses, by the name of their executable.
    pub programs: Vec<String>,
    /// The week, hour by hour.
    pub schedule: Schedule,
    /// How the system's scheduler is to treat the process.
    pub priority: Priority,
    /// Seconds of a pause after which the peer leaves the ring, so that others crawl its domains; 0
    /// is never.
    pub leave_after_seconds: u32,
    /// May peers be looked for, and this one announced, in BitTorrent's public DHT?
    pub rendezvous: Switch,
    /// What concerns the tray app alone.
    pub desktop: Desktop,
}

/// What may be used of CPU and network. 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ts_rs::TS)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// CPU time, in percent of one core.
    pub cpu_percent: u32,
    /// KiB received per second.
    pub down_kib: u32,
    /// KiB sent per second.
    pub up_kib: u32,
    /// Fetches at the same time.
    pub fetches: u32,
}

/// When to crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// Whether or not somebody is there.
    Always,
    /// When nobody is there.
    WhenIdle,
    /// Not at all.
    Never,
}

/// What happens while the computer is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum WhileInUse {
    /// Nothing.
    Off,
    /// The crawl goes on gently.
    Gentle,
}

/// What a circumstance does to the crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum Toward {
    /// It pauses.
    Pause,
    /// It goes on.
    GoOn,
}

/// How the system's scheduler is to treat the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Everything else comes first, on the CPU and on the disk.
    Lowest,
    /// As any program.
    Normal,
}

/// Why preferences were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct PreferenceRefused {
    /// The field, such as `full.cpu_percent`.
    pub field: String,
    /// What is wrong, and what would be accepted.
    pub why: String,
}

impl PreferenceRefused {
    pub(crate) fn new(field: impl Into<String>, why: impl Into<String>) -> Self {
        PreferenceRefused {
            field: field.into(),
            why: why.into(),
        }
    }
}

impl Preferences {
    /// The version of the format that this program writes.
    pub const VERSION: u32 = 1;

    /// For a computer without a user, such as a server: always and without limits, until its
    /// operator sets some.
    pub fn dedicated() -> Self {
        Preferences {
            preset: Preset::Custom,
            run: Run::Always,
            full: Profile::default(),
            memory_mib: 0,
            disk_mib: 0,
            keep_free_mib: 0,
            other_cpu_percent: 0,
            on_battery: Toward::GoOn,
            on_metered: Toward::GoOn,
            on_full_screen: Toward::GoOn,
            priority: Priority::Normal,
            ..Preset::Balanced.preferences()
        }
    }

    /// The same with some fields changed. A preset among the changes replaces everything but the
    /// tray app's first.
    pub fn with(&self, changes: &Map<String, Value>) -> Result<Self, PreferenceRefused> {
        let preset = changes
            .get("preset")
            .map(|value| parse::<Preset>(value, "preset"))
            .transpose()?;
        let base = match preset {
            Some(preset) if preset != Preset::Custom => Preferences {
                rendezvous: self.rendezvous,
                desktop: self.desktop,
                ..preset.preferences()
            },
            _ => self.clone(),
        };
        let mut all =
            serde_json::to_value(base).expect("numbers, texts and lists always serialise");
        lay_over(&mut all, changes);
        Preferences::from_value(&all)
    }

    /// Preferences that name every field they mean; missing ones have their defaults.
    pub fn from_value(value: &Value) -> Result<Self, PreferenceRefused> {
        let mut preferences: Preferences = parse(value, "preferences")?;
        range::check(&preferences)?;
        preferences.preset = Preset::of(&preferences);
        Ok(preferences)
    }
}

impl Default for Preferences {
    /// What a volunteer has who installs and never opens the window.
    fn default() -> Self {
        Preset::Balanced.preferences()
    }
}

impl Profile {
    /// The stricter of both in everything.
    pub fn at_most(self, other: Profile) -> Profile {
        Profile {
            cpu_percent: stricter(self.cpu_percent, other.cpu_percent),
            down_kib: stricter(self.down_kib, other.down_kib),
            up_kib: stricter(self.up_kib, other.up_kib),
            fetches: stricter(self.fetches, other.fetches),
        }
    }
}

fn stricter(one: u32, other: u32) -> u32 {
    match (one, other) {
        (0, limit) | (limit, 0) => limit,
        (one, other) => one.min(other),
    }
}

/// Objects are merged, everything else is replaced.
fn lay_over(base: &mut Value, changes: &Map<String, Value>) {
    let Some(base) = base.as_object_mut() else {
        return;
    };
    for (name, change) in changes {
        match (base.get_mut(name), change) {
            (Some(inner @ Value::Object(_)), Value::Object(change)) => lay_over(inner, change),
            _ => drop(base.insert(name.clone(), change.clone())),
        }
    }
}

/// Reads a value; what is wrong with it is told with the path of the field.
fn parse<T: serde::de::DeserializeOwned>(
    value: &Value,
    name: &str,
) -> Result<T, PreferenceRefused> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { name.to_owned() } else { path };
        let accepted =
            range::of(&field).map(|range| format!("; accepted are {}", range.accepted()));
        PreferenceRefused::new(
            field,
            format!("{}{}", error.into_inner(), accepted.unwrap_or_default()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(changes: Value) -> Result<Preferences, PreferenceRefused> {
        Preferences::default().with(changes.as_object().unwrap())
    }

    #[test]
    fn a_change_leaves_everything_else_as_it_was() {
        let changed = change(json!({ "full": { "cpu_percent": 10 }, "run": "always" })).unwrap();
        let balanced = Preferences::default();
        let full = Profile {
            cpu_percent: 10,
            ..balanced.full
        };
        assert_eq!(
            changed,
            Preferences {
                full,
                run: Run::Always,
                preset: Preset::Custom,
                ..balanced
            }
        );
    }

    #[test]
    fn a_preset_replaces_everything_and_other_changes_are_laid_over_it() {
        let custom = change(json!({ "memory_mib": 999 })).unwrap();
        let gentle = custom
            .with(json!({ "preset": "gentle" }).as_object().unwrap())
            .unwrap();
        assert_eq!(gentle, Preset::Gentle.preferences());
        let changed = custom
            .with(
                json!({ "preset": "gentle", "idle_seconds": 7 })
                    .as_object()
                    .unwrap(),
            )
            .unwrap();
        assert_eq!((changed.preset, changed.idle_seconds), (Preset::Custom, 7));
        assert_eq!(changed.memory_mib, gentle.memory_mib);
    }

    #[test]
    fn a_preset_leaves_the_tray_app_alone() {
        let silent = change(json!({ "desktop": { "notifications": "off" } })).unwrap();
        assert_eq!(silent.preset, Preset::Balanced);
        let gentle = silent
            .with(json!({ "preset": "gentle" }).as_object().unwrap())
            .unwrap();
        assert_eq!(
            (gentle.preset, gentle.desktop.notifications),
            (Preset::Gentle, Switch::Off)
        );
    }

    #[test]
    fn a_bad_value_is_refused_with_its_field_and_what_is_accepted() {
        for (changes, field, accepted) in [
            (
                json!({ "full": { "cpu_percent": 100_000 } }),
                "full.cpu_percent",
                "0 (no limit) or 1 to 6400",
            ),
            (
                json!({ "gentle": { "down_kib": -1 } }),
                "gentle.down_kib",
                "0 (no limit) or 1 to",
            ),
            (json!({ "idle_seconds": 0 }), "idle_seconds", "1 to 86400"),
            (
                json!({ "idle_seconds": "long" }),
                "idle_seconds",
                "1 to 86400",
            ),
            (
                json!({ "memory_mib": 3 }),
                "memory_mib",
                "0 (no limit) or 96 to",
            ),
            (
                json!({ "run": "sometimes" }),
                "run",
                "`always`, `when_idle`, `never`",
            ),
            (
                json!({ "preset": "wild" }),
                "preset",
                "`gentle`, `balanced`, `generous`, `custom`",
            ),
            (
                json!({ "schedule": { "monday": "fff" } }),
                "schedule.monday",
                "24 letters",
            ),
            (json!({ "schedule": 3 }), "schedule", "Schedule"),
            (json!({ "programs": vec!["x"; 65] }), "programs", "64"),
            (json!({ "programs": [""] }), "programs", "1 to 128"),
            (json!({ "version": 2 }), "version", "1 to 1"),
            (
                json!({ "desktop": { "screensaver_seconds": 3 } }),
                "desktop.screensaver_seconds",
                "10 to 86400",
            ),
            (
                json!({ "desktop": { "updates": "maybe" } }),
                "desktop.updates",
                "`on` or `off`",
            ),
            (json!({ "colour": "red" }), "colour", "unknown field"),
        ] {
            let refused = change(changes).unwrap_err();
            assert_eq!(refused.field, field, "{refused}");
            assert!(refused.to_string().contains(accepted), "{refused}");
        }
    }

    #[test]
    fn every_preset_survives_json() {
        for preferences in [Preset::Gentle, Preset::Balanced, Preset::Generous]
            .map(Preset::preferences)
            .into_iter()
            .chain([Preferences::dedicated()])
        {
            let value = serde_json::to_value(&preferences).unwrap();
            assert_eq!(Preferences::from_value(&value).unwrap(), preferences);
        }
    }

    #[test]
    fn the_gentle_profile_is_never_more_than_the_full_one() {
        let full = Profile {
            cpu_percent: 20,
            down_kib: 0,
            up_kib: 5,
            fetches: 0,
        };
        let gentle = Profile {
            cpu_percent: 50,
            down_kib: 9,
            up_kib: 0,
            fetches: 0,
        };
        let expected = Profile {
            cpu_percent: 20,
            down_kib: 9,
            up_kib: 5,
            fetches: 0,
        };
        assert_eq!(gentle.at_most(full), expected);
    }
}
