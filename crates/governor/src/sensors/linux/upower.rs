//! Where the power comes from, as UPower says over the system bus.

use super::bus::{Bus, Kind, Place};
use crate::{
    Power, Preferences, Readings,
    sensors::{Blind, Sensor, Subject},
};
use std::time::Duration;

const DAEMON: Place = Place {
    service: "org.freedesktop.UPower",
    path: "/org/freedesktop/UPower",
    interface: "org.freedesktop.UPower",
};
const BATTERY: Place = Place {
    service: "org.freedesktop.UPower",
    path: "/org/freedesktop/UPower/devices/DisplayDevice",
    interface: "org.freedesktop.UPower.Device",
};

/// Sees the power supply.
pub struct PowerSupply(Bus);

impl PowerSupply {
    pub(crate) fn new() -> Self {
        PowerSupply(Bus::new(Kind::System))
    }
}

impl Sensor for PowerSupply {
    fn subject(&self) -> Subject {
        Subject::PowerSupply
    }

    fn period(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
        let is_on_battery: bool = self.0.property(DAEMON, "OnBattery")?;
        let power = if is_on_battery {
            // A percentage is between 0 and 100; a cast saturates, whatever else is sent.
            let percent = self
                .0
                .property::<f64>(BATTERY, "Percentage")
                .ok()
                .map(|percent| percent as u8);
            Power::Battery { percent }
        } else {
            Power::Mains
        };
        Ok(Readings {
            power: Some(power),
            ..Readings::default()
        })
    }
}
