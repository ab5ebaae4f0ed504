//! What Windows tells: last input, power, what fills the screen, and what the connection costs.

// The calls into the system below are the only way to ask; each is one line with its reason.
#![allow(unsafe_code)]

use super::{Blind, Sensor, Subject};
use crate::{Metering, Power, Preferences, Readings, Screen};
use std::time::Duration;
use windows::{
    Networking::Connectivity::{NetworkCostType, NetworkInformation},
    Win32::{
        System::{
            Power::{GetSystemPowerStatus, SYSTEM_POWER_STATUS},
            SystemInformation::GetTickCount,
        },
        UI::{
            Input::KeyboardAndMouse::{GetLastInputInfo, LASTINPUTINFO},
            Shell::{
                QUNS_BUSY, QUNS_PRESENTATION_MODE, QUNS_RUNNING_D3D_FULL_SCREEN,
                SHQueryUserNotificationState,
            },
        },
    },
};

/// `SYSTEM_POWER_STATUS`: on battery, and a percentage that is not known.
const OFFLINE: u8 = 0;
const UNKNOWN_PERCENT: u8 = 255;

/// Sees the volunteer and the screen.
pub(super) struct UserActivity;

/// Sees the power supply.
pub(super) struct PowerSupply;

/// Sees the network connection.
pub(super) struct Connection;

impl Sensor for UserActivity {
    fn subject(&self) -> Subject {
        Subject::UserActivity
    }

    fn period(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
        let detector = Some("Windows".to_owned());
        Ok(Readings {
            idle_ms: Some(idle_ms()?),
            detector,
            screen: screen(),
            ..Readings::default()
        })
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
        let mut status = SYSTEM_POWER_STATUS::default();
        // SAFETY: the pointer is to a value of the right type that outlives the call.
        unsafe { GetSystemPowerStatus(&mut status) }.map_err(Blind::because)?;
        let percent = Some(status.BatteryLifePercent).filter(|percent| *percent != UNKNOWN_PERCENT);
        let power = if status.ACLineStatus == OFFLINE {
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

impl Sensor for Connection {
    fn subject(&self) -> Subject {
        Subject::Connection
    }

    fn period(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
        let profile = NetworkInformation::GetInternetConnectionProfile().map_err(Blind::because)?;
        let cost = profile.GetConnectionCost().map_err(Blind::because)?;
        let metering = match cost.NetworkCostType().map_err(Blind::because)? {
            NetworkCostType::Fixed | NetworkCostType::Variable => Some(Metering::Metered),
            NetworkCostType::Unrestricted => Some(Metering::Unmetered),
            _ => None,
        };
        Ok(Readings {
            metering,
            ..Readings::default()
        })
    }
}

/// Milliseconds since the last input; both clocks are 32 bits wide and go round together.
fn idle_ms() -> Result<u64, Blind> {
    let mut last = LASTINPUTINFO {
        cbSize: size_of::<LASTINPUTINFO>() as u32,
        dwTime: 0,
    };
    // SAFETY: the pointer is to a value that says its own size and outlives the call.
    if !unsafe { GetLastInputInfo(&mut last) }.as_bool() {
        return Err(Blind("the system does not tell".to_owned()));
    }
    // SAFETY: takes nothing and returns a number.
    let now = unsafe { GetTickCount() };
    Ok(u64::from(now.wrapping_sub(last.dwTime)))
}

/// Whether a program fills the screen or shows a talk.
fn screen() -> Option<Screen> {
    // SAFETY: takes nothing and returns a number.
    let state = unsafe { SHQueryUserNotificationState() }.ok()?;
    let full = [
        QUNS_BUSY,
        QUNS_PRESENTATION_MODE,
        QUNS_RUNNING_D3D_FULL_SCREEN,
    ];
    Some(if full.contains(&state) {
        Screen::Full
    } else {
        Screen::Shared
    })
}
