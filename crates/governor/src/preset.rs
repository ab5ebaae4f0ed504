//! Three sets of values that fit most people, and "custom" for everybody else.

use crate::{Desktop, Preferences, Priority, Profile, Run, Schedule, Switch, Toward, WhileInUse};
use serde::{Deserialize, Serialize};

/// A set of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// For old computers and thin lines.
    Gentle,
    /// What nobody notices.
    Balanced,
    /// For those who want to give more, also while they work.
    Generous,
    /// The volunteer's own.
    Custom,
}

impl Preset {
    /// Its values; those of "custom" are the balanced ones to begin with.
    pub fn preferences(self) -> Preferences {
        let balanced = balanced();
        match self {
            Preset::Balanced | Preset::Custom => Preferences {
                preset: self,
                ..balanced
            },
            Preset::Gentle => Preferences {
                preset: self,
                idle_seconds: 600,
                full: Profile {
                    cpu_percent: 10,
                    down_kib: 128,
                    up_kib: 32,
                    fetches: 4,
                },
                memory_mib: 128,
                disk_mib: 512,
                keep_free_mib: 4096,
                other_cpu_percent: 25,
                ..balanced
            },
            Preset::Generous => Preferences {
                preset: self,
                idle_seconds: 60,
                while_in_use: WhileInUse::Gentle,
                full: Profile {
                    cpu_percent: 100,
                    down_kib: 8192,
                    up_kib: 1024,
                    fetches: 64,
                },
                gentle: Profile {
                    cpu_percent: 25,
                    down_kib: 1024,
                    up_kib: 256,
                    fetches: 16,
                },
                memory_mib: 512,
                disk_mib: 16_384,
                other_cpu_percent: 75,
                ..balanced
            },
        }
    }

    /// The preset that these preferences are, whatever they call themselves.
    pub fn of(preferences: &Preferences) -> Preset {
        let named = [Preset::Gentle, Preset::Balanced, Preset::Generous];
        let is_it = |preset: &Preset| {
            let named = Preferences {
                preset: *preset,
                rendezvous: Switch::On,
                desktop: Desktop::default(),
                ..preferences.clone()
            };
            named == preset.preferences()
        };
        named.into_iter().find(is_it).unwrap_or(Preset::Custom)
    }
}

fn balanced() -> Preferences {
    Preferences {
        version: Preferences::VERSION,
        preset: Preset::Balanced,
        run: Run::WhenIdle,
        // BOINC's value: long enough to read a page, short enough for a lunch break.
        idle_seconds: 180,
        while_in_use: WhileInUse::Off,
        // A quarter of one core is a few hundred pages a second, far more than politeness lets a
        // home line fetch; 2 MiB/s is a fifth of a usual one.
        full: Profile {
            cpu_percent: 25,
            down_kib: 2048,
            up_kib: 256,
            fetches: 32,
        },
        gentle: Profile {
            cpu_percent: 5,
            down_kib: 256,
            up_kib: 64,
            fetches: 4,
        },
        memory_mib: 256,
        disk_mib: 2048,
        keep_free_mib: 1024,
        month_mib: 0,
        // BOINC's 25 % pauses for a browser in the background.
        other_cpu_percent: 50,
        on_battery: Toward::Pause,
        on_metered: Toward::Pause,
        on_full_screen: Toward::Pause,
        programs: Vec::new(),
        schedule: Schedule::default(),
        priority: Priority::Lowest,
        // A meal or a meeting moves nothing; an afternoon at the computer does not stall what is
        // here.
        leave_after_seconds: 1800,
        rendezvous: Switch::On,
        desktop: Desktop::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_recognised_by_its_values() {
        let named = [Preset::Gentle, Preset::Balanced, Preset::Generous];
        for preset in named {
            let mut preferences = preset.preferences();
            preferences.preset = Preset::Custom;
            assert_eq!(Preset::of(&preferences), preset);
            preferences.idle_seconds += 1;
            assert_eq!(Preset::of(&preferences), Preset::Custom);
        }
        assert_eq!(Preset::of(&Preferences::dedicated()), Preset::Custom);
    }

    #[test]
    fn each_preset_uses_more_than_the_one_before() {
        let [gentle, balanced, generous] =
            [Preset::Gentle, Preset::Balanced, Preset::Generous].map(Preset::preferences);
        for (less, more) in [(gentle, balanced.clone()), (balanced, generous)] {
            assert!(less.full.cpu_percent < more.full.cpu_percent);
            assert!(less.full.down_kib < more.full.down_kib);
            assert!(less.memory_mib < more.memory_mib);
            assert!(less.idle_seconds > more.idle_seconds);
        }
    }
}
