//! What each number of the preferences may be: one table for refusals, the command line and the
//! dashboard.

use crate::{Preferences, preferences::PreferenceRefused};
use serde::Serialize;

/// Most programs that can be listed; each is looked for among all processes.
const MAX_PROGRAMS: usize = 64;
/// Longest name of a program.
const MAX_PROGRAM_NAME: usize = 128;

/// What a number may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ts_rs::TS)]
pub struct Range {
    /// The field, such as `full.cpu_percent`.
    pub field: &'static str,
    /// The least.
    pub min: u32,
    /// The greatest.
    pub max: u32,
    /// Whether 0 is accepted too, as no limit.
    pub zero_is_no_limit: bool,
}

impl Range {
    const fn limit(field: &'static str, min: u32, max: u32) -> Self {
        Range {
            field,
            min,
            max,
            zero_is_no_limit: true,
        }
    }

    const fn number(field: &'static str, min: u32, max: u32) -> Self {
        Range {
            field,
            min,
            max,
            zero_is_no_limit: false,
        }
    }

    /// The range in words.
    pub fn accepted(&self) -> String {
        let zero = if self.zero_is_no_limit {
            "0 (no limit) or "
        } else {
            ""
        };
        format!("{zero}{} to {}", self.min, self.max)
    }

    fn accepts(&self, value: u32) -> bool {
        (self.min..=self.max).contains(&value) || (self.zero_is_no_limit && value == 0)
    }
}

/// All numbers of the preferences.
pub fn ranges() -> &'static [Range] {
    &RANGES
}

/// The least memory is what a peer takes with its caches at their smallest; 64 cores and 40 Gbit/s
/// are beyond any volunteer.
const RANGES: [Range; 18] = [
    Range::number("version", Preferences::VERSION, Preferences::VERSION),
    Range::number("idle_seconds", 1, 86_400),
    Range::limit("full.cpu_percent", 1, 6400),
    Range::limit("full.down_kib", 1, 4_194_304),
    Range::limit("full.up_kib", 1, 4_194_304),
    Range::limit("full.fetches", 1, 4096),
    Range::limit("gentle.cpu_percent", 1, 6400),
    Range::limit("gentle.down_kib", 1, 4_194_304),
    Range::limit("gentle.up_kib", 1, 4_194_304),
    Range::limit("gentle.fetches", 1, 4096),
    Range::limit("memory_mib", 96, 1_048_576),
    Range::limit("disk_mib", 16, 100_000_000),
    Range::limit("keep_free_mib", 1, 100_000_000),
    Range::limit("month_mib", 1, 100_000_000),
    Range::limit("other_cpu_percent", 1, 100),
    Range::limit("leave_after_seconds", 1, 2_592_000),
    Range::limit("desktop.screensaver_seconds", 10, 86_400),
    Range::number("programs", 0, MAX_PROGRAMS as u32),
];

pub(crate) fn of(field: &str) -> Option<&'static Range> {
    RANGES.iter().find(|range| range.field == field)
}

pub(crate) fn check(preferences: &Preferences) -> Result<(), PreferenceRefused> {
    for range in &RANGES {
        let value = value(preferences, range.field);
        if !range.accepts(value) {
            let why = format!("{value} is out of range: accepted are {}", range.accepted());
            return Err(PreferenceRefused::new(range.field, why));
        }
    }
    let is_name = |name: &String| (1..=MAX_PROGRAM_NAME).contains(&name.len());
    if !preferences.programs.iter().all(is_name) {
        let why = format!("a program's name has 1 to {MAX_PROGRAM_NAME} bytes");
        return Err(PreferenceRefused::new("programs", why));
    }
    Ok(())
}

fn value(preferences: &Preferences, field: &str) -> u32 {
    let Preferences { full, gentle, .. } = preferences;
    match field {
        "version" => preferences.version,
        "idle_seconds" => preferences.idle_seconds,
        "full.cpu_percent" => full.cpu_percent,
        "full.down_kib" => full.down_kib,
        "full.up_kib" => full.up_kib,
        "full.fetches" => full.fetches,
        "gentle.cpu_percent" => gentle.cpu_percent,
        "gentle.down_kib" => gentle.down_kib,
        "gentle.up_kib" => gentle.up_kib,
        "gentle.fetches" => gentle.fetches,
        "memory_mib" => preferences.memory_mib,
        "disk_mib" => preferences.disk_mib,
        "keep_free_mib" => preferences.keep_free_mib,
        "month_mib" => preferences.month_mib,
        "other_cpu_percent" => preferences.other_cpu_percent,
        "leave_after_seconds" => preferences.leave_after_seconds,
        "desktop.screensaver_seconds" => preferences.desktop.screensaver_seconds,
        _ => u32::try_from(preferences.programs.len()).unwrap_or(u32::MAX),
    }
}
