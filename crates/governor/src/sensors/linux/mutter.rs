//! GNOME's compositor says over the session bus how long nobody touched anything, under Wayland and
//! X11 alike.

use super::bus::{Bus, Kind, Place};
use crate::sensors::Blind;

const MONITOR: Place = Place {
    service: "org.gnome.Mutter.IdleMonitor",
    path: "/org/gnome/Mutter/IdleMonitor/Core",
    interface: "org.gnome.Mutter.IdleMonitor",
};

/// Mutter's idle monitor.
pub(super) struct Mutter(Bus);

impl Mutter {
    pub(super) const NAME: &str = "Mutter";

    pub(super) fn new() -> Self {
        Mutter(Bus::new(Kind::Session))
    }

    /// Milliseconds since the last input.
    pub(super) fn idle_ms(&mut self) -> Result<u64, Blind> {
        self.0.call(MONITOR, "GetIdletime")
    }
}
