//! Why the crawl is held back: a stable code for programs, one sentence for people, the same in
//! every face.

use crate::{Moment, Pace};
use apoidea_model::Time;
use serde::{Deserialize, Serialize};

/// Why less than everything is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case", tag = "code")]
pub enum Reason {
    /// The volunteer said pause, until they say otherwise.
    ByYou,
    /// The volunteer said pause, for a while.
    Snoozed {
        /// When it ends.
        until: Time,
    },
    /// The preferences say never.
    Never,
    /// The schedule says so.
    Schedule {
        /// When it allows more, if ever.
        until: Option<Time>,
    },
    /// The computer runs on battery.
    Battery {
        /// How full it is.
        percent: Option<u8>,
    },
    /// Bytes cost money here.
    Metered,
    /// The month's quota is used up.
    Quota {
        /// When the next month begins.
        until: Time,
    },
    /// The disk is nearly full.
    Disk {
        /// What is left.
        free_mib: u64,
    },
    /// More memory is in use than allowed, and giving up caches did not help.
    Memory {
        /// What is in use.
        used_mib: u64,
    },
    /// A listed program runs.
    Program {
        /// Which one.
        name: String,
    },
    /// A program fills the screen.
    FullScreen,
    /// Other programs need the CPU.
    OtherLoad {
        /// How much they use, of the whole machine.
        percent: u8,
    },
    /// The volunteer is at the computer.
    InUse,
    /// Nothing here can tell whether the volunteer is at the computer.
    Unseen,
}

impl Reason {
    /// The code, as in JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::ByYou => "by_you",
            Reason::Snoozed { .. } => "snoozed",
            Reason::Never => "never",
            Reason::Schedule { .. } => "schedule",
            Reason::Battery { .. } => "battery",
            Reason::Metered => "metered",
            Reason::Quota { .. } => "quota",
            Reason::Disk { .. } => "disk",
            Reason::Memory { .. } => "memory",
            Reason::Program { .. } => "program",
            Reason::FullScreen => "full_screen",
            Reason::OtherLoad { .. } => "other_load",
            Reason::InUse => "in_use",
            Reason::Unseen => "unseen",
        }
    }

    /// The sentence that people see.
    pub fn sentence(&self, pace: Pace, now: Moment) -> String {
        let verb = if pace == Pace::Paused {
            "Paused"
        } else {
            "Crawling gently"
        };
        match self {
            Reason::ByYou => format!("{verb} by you"),
            Reason::Snoozed { until } => format!("{verb} by you until {}", now.name(*until)),
            Reason::Never => format!("{verb}: your preferences say never"),
            Reason::Schedule { until: Some(until) } => {
                format!("{verb} until {} by your schedule", now.name(*until))
            }
            Reason::Schedule { until: None } => format!("{verb} by your schedule"),
            Reason::Battery {
                percent: Some(percent),
            } => format!("{verb}: on battery, {percent} %"),
            Reason::Battery { percent: None } => format!("{verb}: on battery"),
            Reason::Metered => format!("{verb}: the connection is metered"),
            Reason::Quota { until } => {
                format!(
                    "{verb} until {}: this month's quota is used up",
                    now.name(*until)
                )
            }
            Reason::Disk { free_mib } => {
                format!("{verb}: the disk is nearly full, {free_mib} MiB are free")
            }
            Reason::Memory { used_mib } => {
                format!("{verb}: {used_mib} MiB of memory are in use, more than allowed")
            }
            Reason::Program { name } => format!("{verb}: {name} is running"),
            Reason::FullScreen => format!("{verb}: a program fills the screen"),
            Reason::OtherLoad { percent } => {
                format!("{verb}: other programs use {percent} % of the CPU")
            }
            Reason::InUse => format!("{verb}: you are using the computer"),
            Reason::Unseen => {
                format!("{verb}: cannot see user activity here, set a schedule or run always")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Monday 16 November 2026, 09:30 UTC.
    const MORNING: Time = Time::from_millis(1_794_821_400_000);

    #[test]
    fn every_reason_has_the_code_that_json_shows_and_one_sentence() {
        let evening = MORNING + Duration::from_secs(8 * 3600 + 1800);
        let table = [
            (Reason::ByYou, "Paused by you"),
            (
                Reason::Snoozed { until: evening },
                "Paused by you until 18:00",
            ),
            (Reason::Never, "Paused: your preferences say never"),
            (
                Reason::Schedule {
                    until: Some(evening),
                },
                "Paused until 18:00 by your schedule",
            ),
            (Reason::Schedule { until: None }, "Paused by your schedule"),
            (
                Reason::Battery { percent: Some(43) },
                "Paused: on battery, 43 %",
            ),
            (Reason::Battery { percent: None }, "Paused: on battery"),
            (Reason::Metered, "Paused: the connection is metered"),
            (
                Reason::Quota { until: evening },
                "Paused until 18:00: this month's quota is used up",
            ),
            (
                Reason::Disk { free_mib: 7 },
                "Paused: the disk is nearly full, 7 MiB are free",
            ),
            (
                Reason::Memory { used_mib: 300 },
                "Paused: 300 MiB of memory are in use, more than allowed",
            ),
            (
                Reason::Program {
                    name: "doom".to_owned(),
                },
                "Paused: doom is running",
            ),
            (Reason::FullScreen, "Paused: a program fills the screen"),
            (
                Reason::OtherLoad { percent: 80 },
                "Paused: other programs use 80 % of the CPU",
            ),
            (Reason::InUse, "Paused: you are using the computer"),
            (
                Reason::Unseen,
                "Paused: cannot see user activity here, set a schedule or run always",
            ),
        ];
        for (reason, sentence) in table {
            assert_eq!(
                reason.sentence(Pace::Paused, Moment::new(MORNING, 0)),
                sentence
            );
            let json = serde_json::to_value(&reason).unwrap();
            assert_eq!(json["code"], reason.code());
            assert_eq!(serde_json::from_value::<Reason>(json).unwrap(), reason);
        }
        let gentle = Reason::InUse.sentence(Pace::Gentle, Moment::new(MORNING, 0));
        assert_eq!(gentle, "Crawling gently: you are using the computer");
    }
}
