//! What macOS tells: the time since the last input of any kind, where the power comes from, and
//! whether the network's path is expensive.

use super::{Blind, Sensor, Subject, macos_path::PathMonitor};
use crate::{Power, Preferences, Readings};
use objc2_core_graphics::{CGEventSource, CGEventSourceStateID, CGEventType};
use starship_battery::{Manager, State, units::ratio::percent};
use std::time::Duration;

/// `kCGAnyInputEventType`.
const ANY_INPUT: CGEventType = CGEventType(u32::MAX);

/// Sees the volunteer.
pub(super) struct UserActivity;

/// Sees the power supply.
pub(super) struct PowerSupply;

/// Sees the network connection, once it was asked for.
#[derive(Default)]
pub(super) struct Connection(Option<PathMonitor>);

impl Sensor for UserActivity {
    fn subject(&self) -> Subject {
        Subject::UserActivity
    }

    fn period(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
        let source = CGEventSourceStateID::CombinedSessionState;
        let seconds = CGEventSource::seconds_since_last_event_type(source, ANY_INPUT);
        let detector = Some("macOS".to_owned());
        Ok(Readings {
            idle_ms: Some((seconds * 1000.0) as u64),
            detector,
            ..Readings::default()
        })
    }
}

impl Sensor for PowerSupply {
    fn subject(&self) -> Subject {
        Subject::PowerSupply
    }

    fn period(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
        let batteries = Manager::new()
            .and_then(|manager| manager.batteries())
            .map_err(Blind::because)?;
        let draining = batteries
            .flatten()
            .find(|battery| battery.state() == State::Discharging);
        let power = draining.map_or(Power::Mains, |battery| {
            let full = battery.state_of_charge().get::<percent>();
            Power::Battery {
                percent: Some(full as u8),
            }
        });
        Ok(Readings {
            power: Some(power),
            ..Readings::default()
        })
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
        if self.0.is_none() {
            self.0 = PathMonitor::start();
        }
        let monitor = self
            .0
            .as_ref()
            .ok_or(Blind("the system gives no path monitor".to_owned()))?;
        Ok(Readings {
            metering: monitor.metering(),
            ..Readings::default()
        })
    }
}
