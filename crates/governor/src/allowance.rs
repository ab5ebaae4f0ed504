//! What may be used right now: the one value that everything that consumes asks.

use crate::{Moment, Preferences, Priority, Profile, Reason};
use apoidea_model::Time;
use serde::{Deserialize, Serialize};

/// How hard the crawl may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// No look-ups and no fetches; the ring is still answered.
    Paused,
    /// The gentle profile.
    Gentle,
    /// The full profile.
    Full,
}

/// What may be used right now. A limit of `None` is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct Allowance {
    /// How hard the crawl may go.
    pub pace: Pace,
    /// Why not harder.
    pub reason: Option<Reason>,
    /// The same as a sentence for people.
    pub sentence: String,
    /// CPU time, in percent of one core.
    pub cpu_percent: Option<u32>,
    /// Bytes received per second.
    pub down_bytes: Option<u64>,
    /// Bytes sent per second.
    pub up_bytes: Option<u64>,
    /// Fetches at the same time.
    pub fetches: Option<u32>,
    /// Resident memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The archive, in bytes; `None` is what the settings of the archive say.
    pub disk_bytes: Option<u64>,
    /// Free space that stays, in bytes; `None` is what the settings of the archive say.
    pub keep_free_bytes: Option<u64>,
    /// How the system's scheduler is to treat the process.
    pub priority: Priority,
}

impl Allowance {
    pub(crate) fn new(
        preferences: &Preferences,
        pace: Pace,
        reason: Option<Reason>,
        now: Moment,
    ) -> Self {
        let profile = match pace {
            Pace::Full => preferences.full,
            Pace::Paused | Pace::Gentle => preferences.gentle.at_most(preferences.full),
        };
        let sentence = reason
            .as_ref()
            .map_or("Crawling".to_owned(), |reason| reason.sentence(pace, now));
        let Profile {
            cpu_percent,
            down_kib,
            up_kib,
            fetches,
        } = profile;
        Allowance {
            pace,
            reason,
            sentence,
            cpu_percent: limit(cpu_percent),
            down_bytes: limit(down_kib).map(|kib| u64::from(kib) << 10),
            up_bytes: limit(up_kib).map(|kib| u64::from(kib) << 10),
            fetches: limit(fetches),
            memory_bytes: limit(preferences.memory_mib).map(|mib| u64::from(mib) << 20),
            disk_bytes: limit(preferences.disk_mib).map(|mib| u64::from(mib) << 20),
            keep_free_bytes: limit(preferences.keep_free_mib).map(|mib| u64::from(mib) << 20),
            priority: preferences.priority,
        }
    }

    /// Whether anything may be fetched.
    pub fn is_paused(&self) -> bool {
        self.pace == Pace::Paused
    }
}

impl Default for Allowance {
    /// Everything, as on a computer without a user.
    fn default() -> Self {
        Allowance::new(
            &Preferences::dedicated(),
            Pace::Full,
            None,
            Moment::new(Time::ZERO, 0),
        )
    }
}

/// In preferences 0 is no limit.
pub(crate) fn limit(value: u32) -> Option<u32> {
    (value > 0).then_some(value)
}
