//! What the sensors saw. Everything may be unknown: a sensor can be missing, or hang.

use serde::{Deserialize, Serialize};

/// What the sensors saw last; `None` where nothing could be seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ts_rs::TS)]
#[serde(default)]
pub struct Readings {
    /// Milliseconds since the last key or mouse move. Unknown counts as in use.
    pub idle_ms: Option<u64>,
    /// Which detector says so, such as "Mutter" or "X11".
    pub detector: Option<String>,
    /// Where the power comes from. Unknown counts as mains.
    pub power: Option<Power>,
    /// Whether bytes cost money. Unknown counts as no.
    pub metering: Option<Metering>,
    /// Whether a program fills the screen. Unknown counts as no.
    pub screen: Option<Screen>,
    /// A listed program that runs.
    pub program: Option<String>,
    /// CPU that other programs use, in percent of the whole machine. Unknown counts as none.
    pub other_cpu_percent: Option<f64>,
    /// Memory that this process uses, in bytes.
    pub memory_bytes: Option<u64>,
    /// Free space where the data folder is, in bytes.
    pub free_bytes: Option<u64>,
    /// Bytes sent and received this month.
    pub month_bytes: u64,
    /// Sensors that cannot see, each with the reason.
    pub missing: Vec<String>,
}

impl Readings {
    /// Adds what another sensor saw.
    pub fn add(&mut self, other: &Readings) {
        fn fill<T: Clone>(own: &mut Option<T>, other: &Option<T>) {
            if other.is_some() {
                own.clone_from(other);
            }
        }
        fill(&mut self.idle_ms, &other.idle_ms);
        fill(&mut self.detector, &other.detector);
        fill(&mut self.power, &other.power);
        fill(&mut self.metering, &other.metering);
        fill(&mut self.screen, &other.screen);
        fill(&mut self.program, &other.program);
        fill(&mut self.other_cpu_percent, &other.other_cpu_percent);
        self.missing.extend_from_slice(&other.missing);
    }
}

/// Where the power comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Power {
    /// The wall.
    Mains,
    /// A battery.
    Battery {
        /// How full it is.
        percent: Option<u8>,
    },
}

/// Whether bytes cost money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum Metering {
    /// They do not.
    Unmetered,
    /// They do, as on a phone's connection.
    Metered,
}

/// What the screen shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum Screen {
    /// Windows, or nothing.
    Shared,
    /// One program fills it: a game, a film, a talk.
    Full,
}
