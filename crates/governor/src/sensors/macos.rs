//! What macOS tells: the time since the last input of any kind, and where the power comes from.
//!
//! Whether a connection is expensive is only told to callbacks of the Network framework; until that is asked, it is
//! reported as not visible here.

use super::{Blind, Sensor};
use crate::{Power, Preferences, Readings, Run, Toward};
use objc2_core_graphics::{CGEventSource, CGEventSourceStateID, CGEventType};
use starship_battery::{Manager, State, units::ratio::percent};
use std::time::Duration;

/// `kCGAnyInputEventType`.
const ANY_INPUT: CGEventType = CGEventType(u32::MAX);

/// Sees the volunteer.
pub(super) struct UserActivity;

/// Sees the power supply.
pub(super) struct PowerSupply;

/// Would see the network connection.
pub(super) struct Connection;

impl Sensor for UserActivity {
    fn subject(&self) -> &'static str {
        "user activity"
    }

    fn is_wanted(&self, preferences: &Preferences) -> bool {
        preferences.run == Run::WhenIdle
    }

    fn period(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
        let source = CGEventSourceStateID::CombinedSessionState;
        let seconds = CGEventSource::seconds_since_last_event_type(source, ANY_INPUT);
        let detector = Some("macOS".to_owned());
        Ok(Readings { idle_ms: Some((seconds * 1000.0) as u64), detector, ..Readings::default() })
    }
}

impl Sensor for PowerSupply {
    fn subject(&self) -> &'static str {
        "the power supply"
    }

    fn is_wanted(&self, preferences: &Preferences) -> bool {
        preferences.on_battery == Toward::Pause
    }

    fn period(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
        let batteries = Manager::new().and_then(|manager| manager.batteries()).map_err(Blind::because)?;
        let draining = batteries.flatten().find(|battery| battery.state() == State::Discharging);
        let power = draining.map_or(Power::Mains, |battery| {
            let full = battery.state_of_charge().get::<percent>();
            Power::Battery { percent: Some(full as u8) }
        });
        Ok(Readings { power: Some(power), ..Readings::default() })
    }
}

impl Sensor for Connection {
    fn subject(&self) -> &'static str {
        "whether the connection is metered"
    }

    fn is_wanted(&self, preferences: &Preferences) -> bool {
        preferences.on_metered == Toward::Pause
    }

    fn period(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
        Err(Blind("macOS tells it only to callbacks, which are not asked yet".to_owned()))
    }
}
