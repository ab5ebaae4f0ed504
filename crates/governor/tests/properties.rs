//! What holds for all preferences and all readings.

use apoidea_governor::{
    Allowance, Governor, Hours, Metering, Moment, Pace, Power, Preferences, Profile, Readings, Run,
    Schedule, Screen, Snooze, SnoozeFor, Toward, WhileInUse,
};
use apoidea_model::Time;
use proptest::prelude::*;
use std::time::Duration;

/// Monday 16 November 2026, 09:30 UTC.
const MORNING: Time = Time::from_millis(1_794_821_400_000);

fn moment(seconds: u64) -> Moment {
    Moment::new(MORNING + Duration::from_secs(seconds), 60)
}

fn profile() -> impl Strategy<Value = Profile> {
    (0..200u32, 0..5000u32, 0..5000u32, 0..64u32).prop_map(
        |(cpu_percent, down_kib, up_kib, fetches)| Profile {
            cpu_percent,
            down_kib,
            up_kib,
            fetches,
        },
    )
}

fn toward() -> impl Strategy<Value = Toward> {
    prop_oneof![Just(Toward::Pause), Just(Toward::GoOn)]
}

fn hours() -> impl Strategy<Value = Hours> {
    prop_oneof![Just(Hours::Off), Just(Hours::Gentle), Just(Hours::Full)]
}

prop_compose! {
    fn preferences()(
        run in prop_oneof![Just(Run::Always), Just(Run::WhenIdle), Just(Run::Never)],
        while_in_use in prop_oneof![Just(WhileInUse::Off), Just(WhileInUse::Gentle)],
        hours in prop_oneof![9 => Just(Hours::Full), 1 => hours()],
        (on_battery, on_metered, on_full_screen) in (toward(), toward(), toward()),
        (full, gentle) in (profile(), profile()),
        (idle_seconds, memory_mib, month_mib, other_cpu_percent) in (1..1000u32, 0..500u32, 0..100u32, 0..100u32),
        is_doom_listed in any::<bool>(),
    ) -> Preferences {
        Preferences {
            run, while_in_use, on_battery, on_metered, on_full_screen, full, gentle, idle_seconds, memory_mib, month_mib,
            other_cpu_percent,
            schedule: Schedule::always(hours),
            programs: if is_doom_listed { vec!["doom".to_owned()] } else { Vec::new() },
            ..Preferences::default()
        }
    }
}

prop_compose! {
    fn readings()(
        idle_ms in proptest::option::weighted(0.9, 0..1_000_000u64),
        power in proptest::option::of(prop_oneof![
            9 => Just(Power::Mains), 1 => (0..=100u8).prop_map(|percent| Power::Battery { percent: Some(percent) })
        ]),
        metering in proptest::option::of(prop_oneof![9 => Just(Metering::Unmetered), 1 => Just(Metering::Metered)]),
        screen in proptest::option::of(prop_oneof![9 => Just(Screen::Shared), 1 => Just(Screen::Full)]),
        program in proptest::option::weighted(0.1, Just("doom".to_owned())),
        other_cpu_percent in proptest::option::of(0.0..100.0f64),
        memory_bytes in proptest::option::of(0..600u64 << 20),
        month_bytes in 0..200u64 << 20,
    ) -> Readings {
        Readings { idle_ms, power, metering, screen, program, other_cpu_percent, memory_bytes, month_bytes, ..Readings::default() }
    }
}

/// The first never allows more than the second.
fn is_within(less: &Allowance, more: &Allowance) -> bool {
    fn within<T: Ord>(less: Option<T>, more: Option<T>) -> bool {
        match (less, more) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(less), Some(more)) => less <= more,
        }
    }
    less.pace <= more.pace
        && (less.pace == Pace::Paused
            || (within(less.cpu_percent, more.cpu_percent)
                && within(less.down_bytes, more.down_bytes)
                && within(less.up_bytes, more.up_bytes)
                && within(less.fetches, more.fetches)
                && within(less.memory_bytes, more.memory_bytes)))
}

/// The same preferences with one thing made stricter.
fn stricter(mut preferences: Preferences, which: usize) -> Preferences {
    let tighten = |limit: &mut u32| {
        *limit = if *limit == 0 {
            100
        } else {
            (*limit / 2).max(1)
        }
    };
    match which {
        0 => {
            preferences.run = if preferences.run == Run::Always {
                Run::WhenIdle
            } else {
                Run::Never
            }
        }
        1 => preferences.while_in_use = WhileInUse::Off,
        2 => preferences.on_battery = Toward::Pause,
        3 => preferences.on_metered = Toward::Pause,
        4 => preferences.on_full_screen = Toward::Pause,
        5 => preferences.programs = vec!["doom".to_owned()],
        6 if preferences.schedule == Schedule::always(Hours::Full) => {
            preferences.schedule = Schedule::always(Hours::Gentle);
        }
        6 => {}
        7 => preferences.schedule = Schedule::always(Hours::Off),
        8 => tighten(&mut preferences.full.cpu_percent),
        9 => tighten(&mut preferences.full.down_kib),
        10 => tighten(&mut preferences.gentle.up_kib),
        11 => tighten(&mut preferences.full.fetches),
        12 => tighten(&mut preferences.memory_mib),
        13 => tighten(&mut preferences.month_mib),
        14 => tighten(&mut preferences.other_cpu_percent),
        _ => preferences.idle_seconds *= 2,
    }
    preferences
}

proptest! {
    #[test]
    fn it_never_runs_when_told_never(preferences in preferences(), seen in prop::collection::vec(readings(), 1..20)) {
        let never = Preferences { run: Run::Never, ..preferences };
        let mut governor = Governor::default();
        for (second, readings) in seen.iter().enumerate() {
            prop_assert!(governor.decide(&never, None, readings, moment(second as u64)).is_paused());
        }
    }

    #[test]
    fn it_never_runs_while_snoozed_and_a_snooze_always_ends(
        preferences in preferences(),
        readings in readings(),
        length in 1..7 * 24 * 3600u64,
        set_back in 0..10_000_000u64,
    ) {
        let start = moment(20_000_000);
        let snooze = Snooze::begin(SnoozeFor::Lasting(Duration::from_secs(length)), start);
        let decide = |at: Moment| Governor::default().decide(&preferences, Some(snooze), &readings, at);
        prop_assert!(decide(start).is_paused());
        prop_assert!(decide(moment(20_000_000 + length - 1)).is_paused());
        let unsnoozed = Governor::default().decide(&preferences, None, &readings, moment(20_000_000 + length));
        prop_assert_eq!(decide(moment(20_000_000 + length)), unsnoozed);
        // Whatever is done to the clock, the end is never further away than the longest snooze.
        let wrong = moment(20_000_000 - set_back);
        let end = snooze.is_over(wrong.time + Duration::from_secs(7 * 24 * 3600));
        prop_assert!(end || snooze.is_over(wrong.time));
    }

    #[test]
    fn stricter_preferences_never_allow_more(
        preferences in preferences(),
        which in 0..16usize,
        seen in prop::collection::vec((readings(), 0..30u64), 1..40),
    ) {
        let strict = stricter(preferences.clone(), which);
        let (mut free_governor, mut strict_governor) = (Governor::default(), Governor::default());
        let mut second = 0;
        for (readings, passed) in &seen {
            second += passed;
            let free = free_governor.decide(&preferences, None, readings, moment(second));
            let less = strict_governor.decide(&strict, None, readings, moment(second));
            prop_assert!(is_within(&less, &free), "{:?} exceeds {:?}", less, free);
        }
    }

    #[test]
    fn a_pause_always_has_a_reason_and_a_sentence(preferences in preferences(), readings in readings()) {
        let allowance = Governor::default().decide(&preferences, None, &readings, moment(0));
        prop_assert_eq!(allowance.reason.is_none(), allowance.pace == Pace::Full);
        prop_assert!(!allowance.sentence.is_empty());
        if allowance.is_paused() {
            prop_assert!(allowance.sentence.starts_with("Paused"));
        }
    }

    #[test]
    fn preferences_from_strangers_are_read_or_refused(text in "[\\x00-\\x7f]{0,200}") {
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
            let _ = Preferences::from_value(&value);
        }
    }
}
