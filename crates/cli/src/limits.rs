//! What the volunteer's computer may be used for: shown, explained and set.

use crate::{
    arguments::Place,
    client::Client,
    control::{print_json, print_reason},
};
use apoidea_peer::{
    SnoozeRequest, Status,
    governor::{
        Allowance, Desktop, Metering, Pace, Power, Preferences, Profile, Readings, Schedule,
        Screen, SnoozeFor,
    },
};
use clap::Args;
use indicatif::HumanBytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// What to change; nothing shows what is in force.
#[derive(Debug, Args)]
pub struct LimitOptions {
    /// A set of values to begin from: gentle, balanced or generous
    #[arg(long)]
    preset: Option<String>,
    /// When to crawl: always, when-idle or never
    #[arg(long)]
    run: Option<String>,
    /// Seconds without a key or mouse move after which the computer counts as idle
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u32>,
    /// What happens while the computer is in use: off or gentle
    #[arg(long)]
    while_in_use: Option<String>,
    /// CPU time, in percent of one core; 0 is no limit, here and below
    #[arg(long, value_name = "PERCENT")]
    cpu: Option<u32>,
    /// KiB received per second
    #[arg(long, value_name = "KIB")]
    down: Option<u32>,
    /// KiB sent per second
    #[arg(long, value_name = "KIB")]
    up: Option<u32>,
    /// Fetches at the same time
    #[arg(long, value_name = "COUNT")]
    fetches: Option<u32>,
    /// CPU time when going gently
    #[arg(long, value_name = "PERCENT")]
    gentle_cpu: Option<u32>,
    /// KiB received per second when going gently
    #[arg(long, value_name = "KIB")]
    gentle_down: Option<u32>,
    /// KiB sent per second when going gently
    #[arg(long, value_name = "KIB")]
    gentle_up: Option<u32>,
    /// Fetches at the same time when going gently
    #[arg(long, value_name = "COUNT")]
    gentle_fetches: Option<u32>,
    /// Memory, in MiB
    #[arg(long, value_name = "MIB")]
    memory: Option<u32>,
    /// The archive, in MiB; 0 leaves it to the settings file
    #[arg(long, value_name = "MIB")]
    disk: Option<u32>,
    /// Disk space that stays free, in MiB; 0 leaves it to the settings file
    #[arg(long, value_name = "MIB")]
    keep_free: Option<u32>,
    /// MiB sent and received in a month
    #[arg(long, value_name = "MIB")]
    month: Option<u32>,
    /// Pause when other programs use more than this share of the CPU
    #[arg(long, value_name = "PERCENT")]
    other_cpu: Option<u32>,
    /// On battery: pause or go-on
    #[arg(long)]
    on_battery: Option<String>,
    /// On a metered connection: pause or go-on
    #[arg(long)]
    on_metered: Option<String>,
    /// While a program fills the screen: pause or go-on
    #[arg(long)]
    on_full_screen: Option<String>,
    /// Pause while this program runs; can be repeated, replaces the list; an empty name empties it
    #[arg(long, value_name = "NAME")]
    program: Option<Vec<String>>,
    /// A day's hours as 24 letters, f (full), g (gentle) or - (off): monday=…, weekdays=…,
    /// weekend=… or all=…
    #[arg(long, value_name = "DAY=HOURS")]
    schedule: Vec<String>,
    /// How the system treats the process: lowest or normal (the latter from the next start)
    #[arg(long)]
    priority: Option<String>,
    /// Seconds of a pause after which the peer leaves the ring, so that others crawl its domains; 0
    /// never does
    #[arg(long, value_name = "SECONDS")]
    leave_after: Option<u32>,
    /// Look for peers, and be announced, in BitTorrent's public DHT, if nobody is found otherwise:
    /// on or off
    #[arg(long)]
    rendezvous: Option<String>,
    /// Tray app: seconds without input after which the screensaver opens; 0 never does
    #[arg(long, value_name = "SECONDS")]
    screensaver: Option<u32>,
    /// Tray app: tell when something needs attention: on or off
    #[arg(long)]
    notifications: Option<String>,
    /// Tray app: start with the session: on or off
    #[arg(long)]
    start_at_login: Option<String>,
    /// Tray app: install updates, where no package manager does: on or off
    #[arg(long)]
    updates: Option<String>,
    /// Answer in JSON, for scripts
    #[arg(long)]
    json: bool,
}

pub fn limits(place: &Place, options: &LimitOptions) -> anyhow::Result<ExitCode> {
    let changes = changes(options)?;
    let client = Client::connect(place)?;
    let preferences: Preferences = if changes.is_empty() {
        client.get("/api/preferences")?
    } else {
        client.put("/api/preferences", &changes)?
    };
    if options.json {
        return print_json(&preferences);
    }
    show(&preferences);
    Ok(ExitCode::SUCCESS)
}

pub fn snooze(place: &Place, length: &str) -> anyhow::Result<ExitCode> {
    let length: SnoozeFor = length.parse()?;
    print_reason(Client::connect(place)?.post("/api/snooze", Some(&SnoozeRequest { length }))?)
}

/// What may be used, in one line.
pub fn allowed(allowance: &Allowance) -> String {
    if allowance.pace == Pace::Paused {
        return "nothing now; the ring is still answered".to_owned();
    }
    let rate = |bytes: u64| format!("{}/s", HumanBytes(bytes));
    let parts = [
        allowance
            .cpu_percent
            .map(|percent| format!("{percent} % of one core")),
        allowance
            .down_bytes
            .map(|bytes| format!("{} down", rate(bytes))),
        allowance
            .up_bytes
            .map(|bytes| format!("{} up", rate(bytes))),
        allowance
            .fetches
            .map(|fetches| format!("{fetches} fetches")),
        allowance
            .memory_bytes
            .map(|bytes| format!("{} of memory", HumanBytes(bytes))),
        allowance
            .disk_bytes
            .map(|bytes| format!("{} of disk", HumanBytes(bytes))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "everything".to_owned()
    } else {
        parts.join(", ")
    }
}

/// What is used of that right now, in one line. Memory and archive have lines of their own.
pub fn used(status: &Status) -> String {
    let down = HumanBytes(status.usage.bytes_per_second as u64);
    format!(
        "{:.1} % of one core, {down}/s down, {} fetches",
        status.usage.cpu_percent, status.fetching
    )
}

/// What the sensors see, in one line.
pub fn seen(readings: &Readings) -> String {
    let by = readings.detector.as_deref().unwrap_or("unknown");
    let parts = [
        readings
            .idle_ms
            .map(|idle| format!("no input for {} s (by {by})", idle / 1000)),
        readings.power.map(|power| match power {
            Power::Mains => "mains power".to_owned(),
            Power::Battery {
                percent: Some(percent),
            } => format!("battery at {percent} %"),
            Power::Battery { percent: None } => "battery".to_owned(),
        }),
        readings
            .metering
            .filter(|it| *it == Metering::Metered)
            .map(|_| "a metered connection".to_owned()),
        readings
            .screen
            .filter(|it| *it == Screen::Full)
            .map(|_| "a full screen".to_owned()),
        readings.program.clone(),
        readings
            .other_cpu_percent
            .map(|percent| format!("{percent:.0} % CPU by others")),
        (readings.month_bytes > 0)
            .then(|| format!("{} this month", HumanBytes(readings.month_bytes))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "nothing that matters to the preferences".to_owned()
    } else {
        parts.join(", ")
    }
}

/// The options as changes of fields.
fn changes(options: &LimitOptions) -> anyhow::Result<Map<String, Value>> {
    let word = |text: &Option<String>| text.as_ref().map(|text| json!(text.replace('-', "_")));
    let number = |number: Option<u32>| number.map(|number| json!(number));
    let profile = |cpu, down, up, fetches| {
        let fields = [
            ("cpu_percent", cpu),
            ("down_kib", down),
            ("up_kib", up),
            ("fetches", fetches),
        ]
        .map(named(number));
        object(fields)
    };
    let programs = options.program.as_ref().map(|names| {
        json!(
            names
                .iter()
                .filter(|name| !name.is_empty())
                .collect::<Vec<_>>()
        )
    });
    let desktop = object([
        ("screensaver_seconds", number(options.screensaver)),
        ("notifications", word(&options.notifications)),
        ("start_at_login", word(&options.start_at_login)),
        ("updates", word(&options.updates)),
    ]);
    let fields = [
        ("preset", word(&options.preset)),
        ("run", word(&options.run)),
        ("idle_seconds", number(options.idle)),
        ("while_in_use", word(&options.while_in_use)),
        (
            "full",
            profile(options.cpu, options.down, options.up, options.fetches),
        ),
        (
            "gentle",
            profile(
                options.gentle_cpu,
                options.gentle_down,
                options.gentle_up,
                options.gentle_fetches,
            ),
        ),
        ("memory_mib", number(options.memory)),
        ("disk_mib", number(options.disk)),
        ("keep_free_mib", number(options.keep_free)),
        ("month_mib", number(options.month)),
        ("other_cpu_percent", number(options.other_cpu)),
        ("on_battery", word(&options.on_battery)),
        ("on_metered", word(&options.on_metered)),
        ("on_full_screen", word(&options.on_full_screen)),
        ("programs", programs),
        ("schedule", schedule(&options.schedule)?),
        ("priority", word(&options.priority)),
        ("leave_after_seconds", number(options.leave_after)),
        ("rendezvous", word(&options.rendezvous)),
        ("desktop", desktop),
    ];
    Ok(fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect())
}

fn named<'a, T>(
    value: impl Fn(T) -> Option<Value>,
) -> impl Fn((&'a str, T)) -> (&'a str, Option<Value>) {
    move |(name, given)| (name, value(given))
}

/// An object of what is given; nothing if nothing is.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Option<Value> {
    let given: Map<String, Value> = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    (!given.is_empty()).then_some(Value::Object(given))
}

fn schedule(days: &[String]) -> anyhow::Result<Option<Value>> {
    let mut given = Map::new();
    for day in days {
        let Some((name, hours)) = day.split_once('=') else {
            anyhow::bail!(
                "{day:?} is not a day of the schedule: write monday=ffff…, with 24 letters"
            );
        };
        let names: &[&str] = match name {
            "all" => &DAYS,
            "weekdays" => &DAYS[..5],
            "weekend" => &DAYS[5..],
            name => &[name],
        };
        given.extend(names.iter().map(|name| ((*name).to_owned(), json!(hours))));
    }
    Ok((!given.is_empty()).then_some(Value::Object(given)))
}

fn show(preferences: &Preferences) {
    let Preferences { full, gentle, .. } = preferences;
    let programs = preferences.programs.join(", ");
    let programs = if programs.is_empty() {
        "none".to_owned()
    } else {
        programs
    };
    let rows = [
        ("preset", name(preferences.preset)),
        (
            "run",
            format!(
                "{}, idle after {} s",
                name(preferences.run),
                preferences.idle_seconds
            ),
        ),
        ("while in use", name(preferences.while_in_use)),
        ("full", profile_line(full)),
        ("gentle", profile_line(gentle)),
        ("memory", limit(preferences.memory_mib, "MiB")),
        ("archive", archive_line(preferences)),
        ("month", limit(preferences.month_mib, "MiB")),
        (
            "other CPU",
            limit(preferences.other_cpu_percent, "% pauses"),
        ),
        ("battery", name(preferences.on_battery)),
        ("metered", name(preferences.on_metered)),
        ("full screen", name(preferences.on_full_screen)),
        ("programs", programs),
        ("priority", name(preferences.priority)),
        ("long pause", long_pause_line(preferences)),
        ("rendezvous", name(preferences.rendezvous)),
        ("tray app", desktop_line(&preferences.desktop)),
    ];
    for (name, value) in rows {
        println!("  {name:<13} {value}");
    }
    show_schedule(&preferences.schedule);
}

/// An enum as the word that JSON has for it.
fn name(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().replace('_', " ")
}

fn limit(number: u32, unit: &str) -> String {
    if number == 0 {
        "no limit".to_owned()
    } else {
        format!("{number} {unit}")
    }
}

fn profile_line(profile: &Profile) -> String {
    let limit = |number: u32, unit: &str| (number > 0).then(|| format!("{number} {unit}"));
    let parts = [
        limit(profile.cpu_percent, "% of one core"),
        limit(profile.down_kib, "KiB/s down"),
        limit(profile.up_kib, "KiB/s up"),
        limit(profile.fetches, "fetches"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "no limits".to_owned()
    } else {
        parts.join(", ")
    }
}

fn archive_line(preferences: &Preferences) -> String {
    match (preferences.disk_mib, preferences.keep_free_mib) {
        (0, 0) => "as in the settings file".to_owned(),
        (0, free) => format!("as in the settings file, {free} MiB stay free"),
        (disk, 0) => format!("{disk} MiB"),
        (disk, free) => format!("{disk} MiB, {free} MiB stay free"),
    }
}

fn long_pause_line(preferences: &Preferences) -> String {
    match preferences.leave_after_seconds {
        0 => "stays on the ring".to_owned(),
        seconds => format!("leaves the ring after {seconds} s"),
    }
}

fn desktop_line(desktop: &Desktop) -> String {
    let screensaver = match desktop.screensaver_seconds {
        0 => "never by itself".to_owned(),
        seconds => format!("after {seconds} s"),
    };
    let [notifications, login, updates] = [
        desktop.notifications,
        desktop.start_at_login,
        desktop.updates,
    ]
    .map(name);
    format!(
        "screensaver {screensaver}; notifications {notifications}, at login {login}, updates {updates}"
    )
}

fn show_schedule(schedule: &Schedule) {
    if *schedule == Schedule::default() {
        println!("  {:<13} every hour", "schedule");
        return;
    }
    for (name, day) in DAYS.iter().zip(schedule.days()) {
        println!("  {name:<13} {day:?}");
    }
}
