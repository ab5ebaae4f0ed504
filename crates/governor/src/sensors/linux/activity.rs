//! How long nobody touched anything: Mutter first, then ext-idle-notify, then X11, and that only
//! outside Wayland.

use super::{mutter::Mutter, wayland::Wayland, x11::X11};
use crate::{
    Preferences, Readings,
    sensors::{Blind, Sensor, Subject},
};
use std::{
    env,
    time::{Duration, Instant},
};

/// When nothing can see, the next attempt waits this long: desktops start after their programs, but
/// seldom.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Sees the volunteer.
pub struct UserActivity {
    way: Option<Way>,
    blind: Option<(Instant, Blind)>,
}

/// A way that works.
enum Way {
    Mutter(Mutter),
    Wayland(Box<Wayland>),
    X11(Box<X11>),
}

impl UserActivity {
    pub(crate) fn new() -> Self {
        UserActivity {
            way: None,
            blind: None,
        }
    }

    fn find(&mut self) -> Result<&mut Way, Blind> {
        if self.way.is_none() {
            if let Some((at, blind)) = &self.blind
                && at.elapsed() < TRY_AGAIN
            {
                return Err(blind.clone());
            }
            let found = Way::find();
            self.blind = found
                .as_ref()
                .err()
                .map(|blind| (Instant::now(), blind.clone()));
            self.way = Some(found?);
        }
        Ok(self.way.as_mut().expect("found above if it was not there"))
    }
}

impl Way {
    fn find() -> Result<Self, Blind> {
        let mut mutter = Mutter::new();
        let no_mutter = match mutter.idle_ms() {
            Ok(_) => return Ok(Way::Mutter(mutter)),
            Err(blind) => blind,
        };
        if is_wayland() {
            let wayland = Wayland::connect();
            return wayland
                .map(|way| Way::Wayland(Box::new(way)))
                .map_err(|blind| {
                    Blind(format!(
                        "neither Mutter ({no_mutter}) nor ext-idle-notify ({blind}) answers"
                    ))
                });
        }
        if env::var_os("DISPLAY").is_none() {
            return Err(Blind("there is no display".to_owned()));
        }
        X11::connect().map(|way| Way::X11(Box::new(way)))
    }

    fn look(&mut self) -> Result<Readings, Blind> {
        let (idle_ms, name, screen) = match self {
            Way::Mutter(way) => (way.idle_ms()?, Mutter::NAME, None),
            Way::Wayland(way) => (way.idle_ms()?, Wayland::NAME, None),
            Way::X11(way) => (way.idle_ms()?, X11::NAME, way.screen()),
        };
        let detector = Some(name.to_owned());
        Ok(Readings {
            idle_ms: Some(idle_ms),
            detector,
            screen,
            ..Readings::default()
        })
    }
}

impl Sensor for UserActivity {
    fn subject(&self) -> Subject {
        Subject::UserActivity
    }

    fn period(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
        let seen = self.find()?.look();
        if seen.is_err() {
            self.way = None;
        }
        seen
    }
}

fn is_wayland() -> bool {
    env::var_os("WAYLAND_DISPLAY").is_some()
        || env::var("XDG_SESSION_TYPE").is_ok_and(|session| session == "wayland")
}
