//! The volunteer's return, as the screensaver sees it: by the system's count of idle time, since a
//! window that is never typed into hears no keys.

use apoidea_governor::{
    Preferences,
    sensors::{self, Senses, Subject},
};
use std::{
    thread,
    time::{Duration, Instant},
};

/// Input this soon after the opening is the end of what opened it: a key released, a hand leaving
/// the mouse.
const GRACE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A sensor that sees nothing after this long is blind.
#[cfg(target_os = "linux")]
const SEES_WITHIN: Duration = Duration::from_secs(2);

/// Watches for input.
pub struct Activity {
    senses: Senses,
    since: Instant,
}

impl Activity {
    /// Watches from now on.
    pub fn watch() -> Self {
        let sensors = sensors::of_this_system();
        let of_people = sensors
            .into_iter()
            .filter(|sensor| sensor.subject() == Subject::UserActivity);
        // Preferences with which that sensor does not rest.
        let senses = Senses::start(of_people.collect(), &Preferences::default());
        Activity {
            senses,
            since: Instant::now(),
        }
    }

    /// Watches from now on; none where nothing can see input.
    #[cfg(target_os = "linux")]
    pub fn watch_if_seen() -> Option<Self> {
        let activity = Activity::watch();
        while activity.senses.readings().idle_ms.is_none() {
            if activity.since.elapsed() > SEES_WITHIN {
                return None;
            }
            thread::sleep(LOOK_EVERY / 10);
        }
        Some(activity)
    }

    /// Waits for input; for ever where nothing can see it.
    pub fn wait(&self) {
        while !self
            .senses
            .readings()
            .idle_ms
            .is_some_and(|idle| is_back(idle, self.since.elapsed()))
        {
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Was there input after the grace that follows the opening?
fn is_back(idle_ms: u64, open_for: Duration) -> bool {
    Duration::from_millis(idle_ms) + GRACE < open_for
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_from_before_and_just_after_the_opening_does_not_count() {
        let seconds = Duration::from_secs;
        assert!(!is_back(60_000, seconds(0)));
        assert!(!is_back(65_000, seconds(5)));
        assert!(
            !is_back(4_500, seconds(5)),
            "half a second after the opening"
        );
        assert!(is_back(100, seconds(5)));
        assert!(!is_back(0, GRACE));
    }
}
