//! The sensors: what can be seen of the volunteer and the computer, each way of seeing in a file of
//! its own.
//!
//! Systems answer late or not at all (an X server behind Wayland, a bus without a listener), so
//! every sensor has a thread of its own, nobody waits for it, and what it said counts only while it
//! is fresh. A sensor that is missing is named, and what it would have seen is unknown.

mod computer;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
mod macos_path;
mod senses;
mod subject;
#[cfg(windows)]
mod windows;

pub use computer::Computer;
pub use senses::Senses;
pub use subject::Subject;

use crate::{Preferences, Readings};
use std::time::Duration;

/// One way of seeing something.
pub trait Sensor: Send {
    /// What it looks at. It rests while nobody wants to know.
    fn subject(&self) -> Subject;

    /// How often it looks.
    fn period(&self) -> Duration;

    /// Looks, and notes what it sees. May block: it has a thread of its own.
    fn look(&mut self, preferences: &Preferences) -> Result<Readings, Blind>;
}

/// Why nothing can be seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Blind(pub String);

impl Blind {
    /// Nothing can be seen, because of this.
    pub fn because(error: impl std::fmt::Display) -> Self {
        Blind(error.to_string())
    }
}

/// What there is to look with on this system.
pub fn of_this_system() -> Vec<Box<dyn Sensor>> {
    let mut all: Vec<Box<dyn Sensor>> = vec![Box::new(Computer::new())];
    all.extend(desktop());
    all
}

#[cfg(target_os = "linux")]
fn desktop() -> [Box<dyn Sensor>; 3] {
    let activity = linux::UserActivity::new();
    [
        Box::new(activity),
        Box::new(linux::PowerSupply::new()),
        Box::new(linux::Connection::new()),
    ]
}

#[cfg(target_os = "macos")]
fn desktop() -> [Box<dyn Sensor>; 3] {
    [
        Box::new(macos::UserActivity),
        Box::new(macos::PowerSupply),
        Box::new(macos::Connection::default()),
    ]
}

#[cfg(windows)]
fn desktop() -> [Box<dyn Sensor>; 3] {
    [
        Box::new(windows::UserActivity),
        Box::new(windows::PowerSupply),
        Box::new(windows::Connection),
    ]
}

/// Nothing is known about the desktops of other systems.
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn desktop() -> [Box<dyn Sensor>; 0] {
    []
}
