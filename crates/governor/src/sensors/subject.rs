//! What a sensor looks at, on whatever system: its name, and whether anybody wants to know.

use crate::{Preferences, Run, Toward};
use std::fmt;

/// What a sensor looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The volunteer, and what fills the screen.
    UserActivity,
    /// Mains or battery.
    PowerSupply,
    /// What the network connection costs.
    Connection,
    /// Load, and which programs run.
    OtherPrograms,
}

impl Subject {
    /// Whether these preferences depend on it; its sensor rests otherwise.
    pub fn is_wanted(self, preferences: &Preferences) -> bool {
        let pauses = |toward: Toward| toward == Toward::Pause;
        match self {
            Subject::UserActivity => {
                preferences.run == Run::WhenIdle
                    || pauses(preferences.on_full_screen)
                    || preferences.desktop.screensaver_seconds > 0
            }
            Subject::PowerSupply => pauses(preferences.on_battery),
            Subject::Connection => pauses(preferences.on_metered),
            Subject::OtherPrograms => {
                preferences.other_cpu_percent > 0 || !preferences.programs.is_empty()
            }
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Subject::UserActivity => "user activity",
            Subject::PowerSupply => "the power supply",
            Subject::Connection => "whether the connection is metered",
            Subject::OtherPrograms => "other programs",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Desktop;

    #[test]
    fn a_screensaver_that_opens_by_itself_wants_to_see_the_volunteer() {
        let desktop = Desktop {
            screensaver_seconds: 300,
            ..Desktop::default()
        };
        let preferences = Preferences {
            desktop,
            ..Preferences::dedicated()
        };
        assert!(Subject::UserActivity.is_wanted(&preferences));
    }

    #[test]
    fn each_is_wanted_by_the_preferences_that_need_it() {
        let nothing = Preferences::dedicated();
        let all = [
            Subject::UserActivity,
            Subject::PowerSupply,
            Subject::Connection,
            Subject::OtherPrograms,
        ];
        let wanted = |preferences: &Preferences| -> Vec<Subject> {
            all.into_iter()
                .filter(|subject| subject.is_wanted(preferences))
                .collect()
        };
        assert_eq!(wanted(&nothing), []);
        assert_eq!(wanted(&Preferences::default()), all);
        for (preferences, subject) in [
            (
                Preferences {
                    run: Run::WhenIdle,
                    ..nothing.clone()
                },
                Subject::UserActivity,
            ),
            (
                Preferences {
                    on_full_screen: Toward::Pause,
                    ..nothing.clone()
                },
                Subject::UserActivity,
            ),
            (
                Preferences {
                    on_battery: Toward::Pause,
                    ..nothing.clone()
                },
                Subject::PowerSupply,
            ),
            (
                Preferences {
                    on_metered: Toward::Pause,
                    ..nothing.clone()
                },
                Subject::Connection,
            ),
            (
                Preferences {
                    other_cpu_percent: 50,
                    ..nothing.clone()
                },
                Subject::OtherPrograms,
            ),
            (
                Preferences {
                    programs: vec!["doom".to_owned()],
                    ..nothing.clone()
                },
                Subject::OtherPrograms,
            ),
        ] {
            assert_eq!(wanted(&preferences), [subject]);
        }
    }
}
