//! Whether the connection is metered, as NetworkManager says over the system bus.

use super::bus::{Bus, Kind, Place};
use crate::{
    Metering, Preferences, Readings,
    sensors::{Blind, Sensor, Subject},
};
use std::time::Duration;

const MANAGER: Place = Place {
    service: "org.freedesktop.NetworkManager",
    path: "/org/freedesktop/NetworkManager",
    interface: "org.freedesktop.NetworkManager",
};
/// `NMMetered`: told so, and guessed so.
const METERED: [u32; 2] = [1, 3];
const UNMETERED: [u32; 2] = [2, 4];

/// Sees the network connection.
pub struct Connection(Bus);

impl Connection {
    pub(crate) fn new() -> Self {
        Connection(Bus::new(Kind::System))
    }
}

impl Sensor for Connection {
    fn subject(&self) -> Subject {
        Subject::Connection
    }

    fn period(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
        let metering = match self.0.property::<u32>(MANAGER, "Metered")? {
            value if METERED.contains(&value) => Some(Metering::Metered),
            value if UNMETERED.contains(&value) => Some(Metering::Unmetered),
            _ => None,
        };
        Ok(Readings {
            metering,
            ..Readings::default()
        })
    }
}
