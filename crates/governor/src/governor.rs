//! The decision: preferences, readings and time in, one allowance with one reason out.
//!
//! It pauses at once and resumes late. What the volunteer orders (snooze, preferences, schedule)
//! holds to the second in both directions, and idle time has its own patience; but after a
//! circumstance that comes and goes by itself (power, load, a program) has passed, the crawl waits
//! [`SETTLE`] before it goes on, load is averaged, and levels have to fall well below the mark that
//! they went above.

use crate::{
    Allowance, Moment, Pace, Preferences, Readings, Reason, Run, Snooze, Toward, WhileInUse,
    allowance::limit,
    latch::{Average, Latch},
    readings::{Metering, Power, Screen},
};
use apoidea_model::Time;
use std::time::Duration;

/// How long a circumstance must be over before the crawl goes on. BOINC samples every 10 s.
const SETTLE: Duration = Duration::from_secs(10);
/// Load is averaged over this long: a web page that opens is no reason to pause, a compiler is.
const LOAD_AVERAGE: Duration = Duration::from_secs(20);
/// The load has to fall below this share of its mark.
const LOAD_RELEASE: f64 = 0.7;
/// Memory above this share of its limit pauses; below it, consumers have been told to shrink
/// already.
const MEMORY_PAUSE: f64 = 1.0;
/// Memory has to fall below this share of its limit. Allocators return little, so it is not far
/// below.
const MEMORY_RELEASE: f64 = 0.95;
/// The archive makes room by itself at the volunteer's mark; when less than half of it is left,
/// somebody else fills the disk.
const DISK_PAUSE: f64 = 0.5;

/// Remembers what it needs against flapping, and nothing else. New preferences begin with a new
/// one, so that they hold at once.
#[derive(Debug, Clone, Default)]
pub struct Governor {
    load: Average,
    load_latch: Latch,
    memory_latch: Latch,
    disk_latch: Latch,
    /// The circumstance that paused last, and when it was last seen.
    last: Option<(Reason, Time)>,
}

/// How much is allowed, and why not more.
type Verdict = (Pace, Option<Reason>);

impl Governor {
    /// What may be used from now on.
    pub fn decide(
        &mut self,
        preferences: &Preferences,
        snooze: Option<Snooze>,
        readings: &Readings,
        now: Moment,
    ) -> Allowance {
        let level = self.levels(preferences, readings, now);
        let circumstance = self.settled(circumstance(preferences, readings, level), now);
        let (pace, reason) = ordered(preferences, snooze, readings, now)
            .or_else(|| circumstance.map(paused))
            .unwrap_or_else(|| presence(preferences, readings, now));
        Allowance::new(preferences, pace, reason, now)
    }

    /// Levels that have to fall well below their mark before they stop being a reason.
    fn levels(
        &mut self,
        preferences: &Preferences,
        readings: &Readings,
        now: Moment,
    ) -> Option<Reason> {
        let load = readings
            .other_cpu_percent
            .filter(|load| load.is_finite())
            .unwrap_or(0.0);
        let load = self.load.take(load, now.time, LOAD_AVERAGE);
        let mark = limit(preferences.other_cpu_percent).map(f64::from);
        let is_loaded = self.load_latch.look(load, mark, LOAD_RELEASE);
        let used = readings.memory_bytes.unwrap_or(0);
        let mark = limit(preferences.memory_mib).map(|mib| mib_to_bytes(mib) * MEMORY_PAUSE);
        let is_swollen = self.memory_latch.look(used as f64, mark, MEMORY_RELEASE);
        let taken = readings
            .free_bytes
            .map_or(0.0, |free| 1.0 / (free as f64).max(1.0));
        let mark =
            limit(preferences.keep_free_mib).map(|mib| 1.0 / (mib_to_bytes(mib) * DISK_PAUSE));
        let is_full = self.disk_latch.look(taken, mark, DISK_PAUSE);
        match () {
            () if is_full => Some(Reason::Disk {
                free_mib: readings.free_bytes.unwrap_or(0) >> 20,
            }),
            () if is_swollen => Some(Reason::Memory {
                used_mib: used >> 20,
            }),
            () if is_loaded => Some(Reason::OtherLoad {
                percent: load.clamp(0.0, 100.0) as u8,
            }),
            () => None,
        }
    }

    /// A circumstance goes on being one for a while.
    fn settled(&mut self, present: Option<Reason>, now: Moment) -> Option<Reason> {
        if let Some(reason) = present {
            self.last = Some((reason, now.time));
        }
        // A clock that is set back must not prolong anything.
        self.last = self
            .last
            .take()
            .filter(|(_, seen)| *seen <= now.time && now.time.since(*seen) < SETTLE);
        self.last.as_ref().map(|(reason, _)| reason.clone())
    }
}

/// What the volunteer ordered, to the second.
fn ordered(
    preferences: &Preferences,
    snooze: Option<Snooze>,
    readings: &Readings,
    now: Moment,
) -> Option<Verdict> {
    match snooze {
        Some(Snooze::UntilResumed) => return Some(paused(Reason::ByYou)),
        Some(Snooze::Until(until)) if !Snooze::Until(until).is_over(now.time) => {
            return Some(paused(Reason::Snoozed { until }));
        }
        _ => {}
    }
    let schedule = &preferences.schedule;
    let quota = limit(preferences.month_mib).map(|mib| u64::from(mib) << 20);
    match () {
        () if preferences.run == Run::Never => Some(paused(Reason::Never)),
        () if schedule.at(now).pace() == Pace::Paused => Some(paused(Reason::Schedule {
            until: schedule.changes(now),
        })),
        () if quota.is_some_and(|quota| readings.month_bytes >= quota) => {
            Some(paused(Reason::Quota {
                until: now.next_month(),
            }))
        }
        () => None,
    }
}

/// What comes and goes by itself.
fn circumstance(
    preferences: &Preferences,
    readings: &Readings,
    level: Option<Reason>,
) -> Option<Reason> {
    let pauses = |toward: Toward| toward == Toward::Pause;
    match (
        &readings.power,
        &readings.metering,
        &readings.screen,
        &readings.program,
    ) {
        (Some(Power::Battery { percent }), ..) if pauses(preferences.on_battery) => {
            Some(Reason::Battery { percent: *percent })
        }
        (_, Some(Metering::Metered), ..) if pauses(preferences.on_metered) => Some(Reason::Metered),
        (_, _, _, Some(name)) if preferences.programs.contains(name) => {
            Some(Reason::Program { name: name.clone() })
        }
        (_, _, Some(Screen::Full), _) if pauses(preferences.on_full_screen) => {
            Some(Reason::FullScreen)
        }
        _ => level,
    }
}

/// What is left to decide is whether somebody is there, and whether the hour is a gentle one.
fn presence(preferences: &Preferences, readings: &Readings, now: Moment) -> Verdict {
    let is_idle = readings
        .idle_ms
        .is_some_and(|idle| idle >= u64::from(preferences.idle_seconds) * 1000);
    if preferences.run == Run::WhenIdle && !is_idle {
        let reason = if readings.idle_ms.is_some() {
            Reason::InUse
        } else {
            Reason::Unseen
        };
        let pace = match preferences.while_in_use {
            WhileInUse::Off => Pace::Paused,
            WhileInUse::Gentle => Pace::Gentle,
        };
        return (pace, Some(reason));
    }
    match preferences.schedule.at(now).pace() {
        Pace::Full => (Pace::Full, None),
        pace => (
            pace,
            Some(Reason::Schedule {
                until: preferences.schedule.changes(now),
            }),
        ),
    }
}

fn paused(reason: Reason) -> Verdict {
    (Pace::Paused, Some(reason))
}

fn mib_to_bytes(mib: u32) -> f64 {
    f64::from(mib) * f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hours, Profile, Schedule};

    /// Monday 16 November 2026, 09:30 UTC.
    const MORNING: Time = Time::from_millis(1_794_821_400_000);

    fn after(seconds: u64) -> Moment {
        Moment::new(MORNING + Duration::from_secs(seconds), 0)
    }

    /// Nobody there, mains, nothing going on.
    fn quiet() -> Readings {
        Readings {
            idle_ms: Some(3_600_000),
            power: Some(Power::Mains),
            metering: Some(Metering::Unmetered),
            screen: Some(Screen::Shared),
            other_cpu_percent: Some(1.0),
            memory_bytes: Some(100 << 20),
            free_bytes: Some(100 << 30),
            ..Readings::default()
        }
    }

    fn decide(preferences: &Preferences, readings: &Readings) -> Allowance {
        Governor::default().decide(preferences, None, readings, after(0))
    }

    fn code(allowance: &Allowance) -> &'static str {
        allowance.reason.as_ref().map_or("none", Reason::code)
    }

    /// What a change of the preferences and of the readings leads to.
    fn outcome(
        preferences: impl Fn(&mut Preferences),
        readings: impl Fn(&mut Readings),
    ) -> (Pace, &'static str) {
        let (mut wanted, mut seen) = (Preferences::default(), quiet());
        preferences(&mut wanted);
        readings(&mut seen);
        let allowance = decide(&wanted, &seen);
        (allowance.pace, code(&allowance))
    }

    #[test]
    fn every_preference_meets_its_circumstance() {
        let battery = |r: &mut Readings| r.power = Some(Power::Battery { percent: Some(43) });
        let metered = |r: &mut Readings| r.metering = Some(Metering::Metered);
        let full_screen = |r: &mut Readings| r.screen = Some(Screen::Full);
        let doom = |r: &mut Readings| r.program = Some("doom".to_owned());
        let loaded = |r: &mut Readings| r.other_cpu_percent = Some(90.0);
        let swollen = |r: &mut Readings| r.memory_bytes = Some(300 << 20);
        let filled = |r: &mut Readings| r.free_bytes = Some(400 << 20);
        let busy = |r: &mut Readings| r.idle_ms = Some(179_999);
        let blind = |r: &mut Readings| r.idle_ms = None;
        let month = |r: &mut Readings| r.month_bytes = 10 << 20;
        let as_is = |_: &mut Preferences| {};
        let (paused, gentle, full) = (Pace::Paused, Pace::Gentle, Pace::Full);
        assert_eq!(outcome(as_is, |_| {}), (full, "none"));
        assert_eq!(outcome(|p| p.run = Run::Never, |_| {}), (paused, "never"));
        assert_eq!(outcome(as_is, busy), (paused, "in_use"));
        assert_eq!(outcome(|p| p.idle_seconds = 179, busy), (full, "none"));
        assert_eq!(
            outcome(|p| p.while_in_use = WhileInUse::Gentle, busy),
            (gentle, "in_use")
        );
        assert_eq!(outcome(|p| p.run = Run::Always, busy), (full, "none"));
        assert_eq!(outcome(as_is, blind), (paused, "unseen"));
        assert_eq!(outcome(|p| p.run = Run::Always, blind), (full, "none"));
        assert_eq!(outcome(as_is, battery), (paused, "battery"));
        assert_eq!(
            outcome(|p| p.on_battery = Toward::GoOn, battery),
            (full, "none")
        );
        assert_eq!(outcome(as_is, metered), (paused, "metered"));
        assert_eq!(
            outcome(|p| p.on_metered = Toward::GoOn, metered),
            (full, "none")
        );
        assert_eq!(outcome(as_is, full_screen), (paused, "full_screen"));
        assert_eq!(
            outcome(|p| p.on_full_screen = Toward::GoOn, full_screen),
            (full, "none")
        );
        assert_eq!(outcome(as_is, doom), (full, "none"));
        assert_eq!(
            outcome(|p| p.programs = vec!["doom".to_owned()], doom),
            (paused, "program")
        );
        assert_eq!(outcome(as_is, loaded), (paused, "other_load"));
        assert_eq!(outcome(|p| p.other_cpu_percent = 0, loaded), (full, "none"));
        assert_eq!(outcome(as_is, swollen), (paused, "memory"));
        assert_eq!(outcome(|p| p.memory_mib = 0, swollen), (full, "none"));
        assert_eq!(outcome(as_is, filled), (paused, "disk"));
        assert_eq!(outcome(|p| p.keep_free_mib = 100, filled), (full, "none"));
        assert_eq!(outcome(as_is, month), (full, "none"));
        assert_eq!(outcome(|p| p.month_mib = 10, month), (paused, "quota"));
        assert_eq!(
            outcome(|p| p.schedule = Schedule::always(Hours::Off), |_| {}),
            (paused, "schedule")
        );
        assert_eq!(
            outcome(|p| p.schedule = Schedule::always(Hours::Gentle), |_| {}),
            (gentle, "schedule")
        );
    }

    #[test]
    fn what_the_volunteer_said_is_the_reason_before_anything_else() {
        let mut readings = quiet();
        readings.power = Some(Power::Battery { percent: None });
        let mut governor = Governor::default();
        let never = Preferences {
            run: Run::Never,
            ..Preferences::default()
        };
        let snoozed = governor.decide(&never, Some(Snooze::UntilResumed), &readings, after(0));
        assert_eq!(snoozed.sentence, "Paused by you");
        let until = Some(Snooze::Until(after(3600).time));
        assert_eq!(
            governor.decide(&never, until, &readings, after(0)).sentence,
            "Paused by you until 10:30"
        );
        assert_eq!(
            code(&governor.decide(&never, until, &readings, after(3600))),
            "never"
        );
    }

    #[test]
    fn limits_come_from_the_profile_in_force() {
        let preferences = Preferences {
            full: Profile {
                cpu_percent: 50,
                down_kib: 0,
                up_kib: 2,
                fetches: 9,
            },
            gentle: Profile {
                cpu_percent: 80,
                down_kib: 1,
                up_kib: 0,
                fetches: 3,
            },
            while_in_use: WhileInUse::Gentle,
            ..Preferences::default()
        };
        let full = decide(&preferences, &quiet());
        assert_eq!(
            (
                full.cpu_percent,
                full.down_bytes,
                full.up_bytes,
                full.fetches
            ),
            (Some(50), None, Some(2048), Some(9))
        );
        assert_eq!(
            (full.memory_bytes, full.sentence.as_str()),
            (Some(256 << 20), "Crawling")
        );
        let gentle = decide(
            &preferences,
            &Readings {
                idle_ms: Some(0),
                ..quiet()
            },
        );
        assert_eq!(
            (gentle.cpu_percent, gentle.down_bytes),
            (Some(50), Some(1024))
        );
        assert_eq!((gentle.up_bytes, gentle.fetches), (Some(2048), Some(3)));
    }

    #[test]
    fn a_circumstance_pauses_at_once_and_lingers() {
        let (mut governor, preferences) = (Governor::default(), Preferences::default());
        let battery = Readings {
            power: Some(Power::Battery { percent: Some(9) }),
            ..quiet()
        };
        let mut pace = |readings: &Readings, at| {
            governor
                .decide(&preferences, None, readings, after(at))
                .pace
        };
        assert_eq!(pace(&quiet(), 0), Pace::Full);
        assert_eq!(pace(&battery, 1), Pace::Paused);
        assert_eq!(pace(&quiet(), 2), Pace::Paused);
        assert_eq!(pace(&quiet(), 10), Pace::Paused);
        assert_eq!(pace(&quiet(), 11), Pace::Full);
    }

    #[test]
    fn a_load_that_swings_around_its_mark_does_not_flap() {
        let (mut governor, preferences) = (Governor::default(), Preferences::default());
        let mut changes = 0;
        let mut last = Pace::Full;
        for second in 0..1200 {
            let load = 50.0
                + 30.0 * f64::from(second as u32 % 20 - (second as u32 % 20) % 10) / 10.0
                - 14.0;
            let readings = Readings {
                other_cpu_percent: Some(load),
                ..quiet()
            };
            let pace = governor
                .decide(&preferences, None, &readings, after(second))
                .pace;
            changes += u32::from(pace != last);
            last = pace;
        }
        assert!(changes <= 1, "{changes} changes in twenty minutes");
    }

    #[test]
    fn a_short_peak_of_load_is_no_reason_and_a_long_one_is() {
        let (mut governor, preferences) = (Governor::default(), Preferences::default());
        let mut pace = |load, at| {
            let readings = Readings {
                other_cpu_percent: Some(load),
                ..quiet()
            };
            governor
                .decide(&preferences, None, &readings, after(at))
                .pace
        };
        assert_eq!(pace(0.0, 0), Pace::Full);
        assert!((1..=5).all(|at| pace(100.0, at) == Pace::Full));
        assert!((6..=20).any(|at| pace(100.0, at) == Pace::Paused));
        assert!(
            (21..=30).all(|at| pace(45.0, at) == Pace::Paused),
            "not far enough below its mark"
        );
        assert!((31..=120).any(|at| pace(5.0, at) == Pace::Full));
    }

    #[test]
    fn somebody_who_comes_back_pauses_it_at_once_and_who_leaves_resumes_it_after_the_idle_time() {
        let (mut governor, preferences) = (Governor::default(), Preferences::default());
        let mut pace = |idle_ms, at| {
            let readings = Readings {
                idle_ms: Some(idle_ms),
                ..quiet()
            };
            governor
                .decide(&preferences, None, &readings, after(at))
                .pace
        };
        assert_eq!(pace(180_000, 0), Pace::Full);
        assert_eq!(pace(0, 1), Pace::Paused);
        assert_eq!(pace(179_000, 180), Pace::Paused);
        assert_eq!(pace(180_000, 181), Pace::Full);
    }
}
