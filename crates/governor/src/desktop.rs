//! What concerns the tray app alone. A peer without it keeps these preferences and follows none of
//! them.

use serde::{Deserialize, Serialize};

/// Preferences of the tray app. Presets leave them as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(default, deny_unknown_fields)]
pub struct Desktop {
    /// Seconds without input after which the screensaver opens by itself; 0 is never.
    pub screensaver_seconds: u32,
    /// Does the app tell when something needs attention?
    pub notifications: Switch,
    /// Does the app start with the session?
    pub start_at_login: Switch,
    /// Does the app install updates, where that is its own affair?
    pub updates: Switch,
}

impl Default for Desktop {
    /// Nothing happens by itself that a volunteer did not ask for, but trouble is told and holes
    /// are mended.
    fn default() -> Self {
        Desktop {
            screensaver_seconds: 0,
            notifications: Switch::On,
            start_at_login: Switch::Off,
            updates: Switch::On,
        }
    }
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

impl Switch {
    /// The other one.
    pub fn turned(self) -> Self {
        match self {
            Switch::On => Switch::Off,
            Switch::Off => Switch::On,
        }
    }
}

impl From<bool> for Switch {
    fn from(is_on: bool) -> Self {
        if is_on { Switch::On } else { Switch::Off }
    }
}
