//! What can be ordered from the tray's menu, and the name that the menu carries for it.

use apoidea_governor::{Preset, Run, SnoozeFor, Switch};
use std::{fmt, str::FromStr, time::Duration};

/// Something that the volunteer chose in the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Start no more fetches.
    Pause,
    /// Go on.
    Resume,
    /// Pause for a while.
    Snooze(SnoozeFor),
    /// Take this set of values.
    Preset(Preset),
    /// CPU at most, in percent of one core; 0 is no limit.
    Cpu(u32),
    /// Download at most, in KiB a second; 0 is no limit.
    Down(u32),
    /// Upload at most, in KiB a second; 0 is no limit.
    Up(u32),
    /// Memory at most, in MiB; 0 is no limit.
    Memory(u32),
    /// When to crawl.
    Run(Run),
    /// Show the page that asks whether it may begin.
    Welcome,
    /// Show the dashboard.
    Dashboard,
    /// Show where somebody can be invited.
    Invite,
    /// Show the screensaver.
    Screensaver,
    /// Open the screensaver after so many seconds without input; 0 is never.
    ScreensaverAfter(u32),
    /// Start with the session, or not any more.
    StartAtLogin(Switch),
    /// Tell when something needs attention, or not any more.
    Notifications(Switch),
    /// Install updates, or not any more.
    Updates(Switch),
    /// Say what this is.
    About,
    /// Begin anew after a crash.
    Restart,
    /// Show what was written down.
    Log,
    /// Leave.
    Quit,
}

/// Not a name of an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an order of the menu")]
pub struct UnknownOrder(String);

const PLAIN: [(&str, Order); 10] = [
    ("pause", Order::Pause),
    ("resume", Order::Resume),
    ("welcome", Order::Welcome),
    ("dashboard", Order::Dashboard),
    ("invite", Order::Invite),
    ("screensaver", Order::Screensaver),
    ("about", Order::About),
    ("restart", Order::Restart),
    ("log", Order::Log),
    ("quit", Order::Quit),
];
const PRESETS: [(&str, Preset); 4] = [
    ("gentle", Preset::Gentle),
    ("balanced", Preset::Balanced),
    ("generous", Preset::Generous),
    ("custom", Preset::Custom),
];
const SWITCHES: [(&str, Switch); 2] = [("on", Switch::On), ("off", Switch::Off)];
const RUNS: [(&str, Run); 3] = [
    ("when_idle", Run::WhenIdle),
    ("always", Run::Always),
    ("never", Run::Never),
];

impl Order {
    /// Snoozes that the menu offers.
    pub const SNOOZES: [(&str, SnoozeFor); 5] = [
        (
            "15 minutes",
            SnoozeFor::Lasting(Duration::from_secs(15 * 60)),
        ),
        ("1 hour", SnoozeFor::Lasting(Duration::from_secs(3600))),
        ("4 hours", SnoozeFor::Lasting(Duration::from_secs(4 * 3600))),
        ("Until tomorrow", SnoozeFor::UntilTomorrow),
        ("Until I say", SnoozeFor::UntilResumed),
    ];

    /// What a change of this kind is to the preferences, if it is one.
    pub fn as_change(self) -> Option<serde_json::Map<String, serde_json::Value>> {
        let change = match self {
            Order::Preset(preset) => serde_json::json!({ "preset": preset }),
            Order::Run(run) => serde_json::json!({ "run": run }),
            Order::Cpu(percent) => serde_json::json!({ "full": { "cpu_percent": percent } }),
            Order::Down(kib) => serde_json::json!({ "full": { "down_kib": kib } }),
            Order::Up(kib) => serde_json::json!({ "full": { "up_kib": kib } }),
            Order::Memory(mib) => serde_json::json!({ "memory_mib": mib }),
            Order::ScreensaverAfter(seconds) => {
                serde_json::json!({ "desktop": { "screensaver_seconds": seconds } })
            }
            Order::StartAtLogin(switch) => {
                serde_json::json!({ "desktop": { "start_at_login": switch } })
            }
            Order::Notifications(switch) => {
                serde_json::json!({ "desktop": { "notifications": switch } })
            }
            Order::Updates(switch) => serde_json::json!({ "desktop": { "updates": switch } }),
            _ => return None,
        };
        change.as_object().cloned()
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Snooze(length) => write!(f, "snooze:{}", String::from(*length)),
            Order::Preset(preset) => write!(f, "preset:{}", name_in(&PRESETS, preset)),
            Order::Run(run) => write!(f, "run:{}", name_in(&RUNS, run)),
            Order::Cpu(percent) => write!(f, "cpu:{percent}"),
            Order::Down(kib) => write!(f, "down:{kib}"),
            Order::Up(kib) => write!(f, "up:{kib}"),
            Order::Memory(mib) => write!(f, "memory:{mib}"),
            Order::ScreensaverAfter(seconds) => write!(f, "screensaver-after:{seconds}"),
            Order::StartAtLogin(switch) => {
                write!(f, "start-at-login:{}", name_in(&SWITCHES, switch))
            }
            Order::Notifications(switch) => {
                write!(f, "notifications:{}", name_in(&SWITCHES, switch))
            }
            Order::Updates(switch) => write!(f, "updates:{}", name_in(&SWITCHES, switch)),
            plain => f.write_str(name_in(&PLAIN, plain)),
        }
    }
}

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(text: &str) -> Result<Self, UnknownOrder> {
        let found = match text.split_once(':') {
            None => value_in(&PLAIN, text),
            Some(("snooze", length)) => length.parse().ok().map(Order::Snooze),
            Some(("preset", name)) => value_in(&PRESETS, name).map(Order::Preset),
            Some(("run", name)) => value_in(&RUNS, name).map(Order::Run),
            Some(("cpu", percent)) => percent.parse().ok().map(Order::Cpu),
            Some(("down", kib)) => kib.parse().ok().map(Order::Down),
            Some(("up", kib)) => kib.parse().ok().map(Order::Up),
            Some(("memory", mib)) => mib.parse().ok().map(Order::Memory),
            Some(("screensaver-after", seconds)) => {
                seconds.parse().ok().map(Order::ScreensaverAfter)
            }
            Some(("start-at-login", name)) => value_in(&SWITCHES, name).map(Order::StartAtLogin),
            Some(("notifications", name)) => value_in(&SWITCHES, name).map(Order::Notifications),
            Some(("updates", name)) => value_in(&SWITCHES, name).map(Order::Updates),
            Some(_) => None,
        };
        found.ok_or_else(|| UnknownOrder(text.to_owned()))
    }
}

fn name_in<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table
        .iter()
        .find(|(_, known)| known == value)
        .map_or("unknown", |(name, _)| name)
}

fn value_in<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_back_from_its_name() {
        let mut orders: Vec<Order> = PLAIN.iter().map(|(_, order)| *order).collect();
        orders.extend(Order::SNOOZES.map(|(_, length)| Order::Snooze(length)));
        orders.extend(PRESETS.map(|(_, preset)| Order::Preset(preset)));
        orders.extend(RUNS.map(|(_, run)| Order::Run(run)));
        orders.extend([
            Order::Cpu(25),
            Order::Down(0),
            Order::Up(512),
            Order::Memory(256),
        ]);
        orders.push(Order::ScreensaverAfter(300));
        for switch in [Switch::On, Switch::Off] {
            orders.extend([
                Order::StartAtLogin(switch),
                Order::Notifications(switch),
                Order::Updates(switch),
            ]);
        }
        for order in orders {
            assert_eq!(order.to_string().parse(), Ok(order), "{order}");
        }
        for bad in [
            "",
            "nothing",
            "cpu:",
            "cpu:-1",
            "preset:greedy",
            "updates:maybe",
            "snooze:soon",
            "x:y",
        ] {
            assert!(bad.parse::<Order>().is_err(), "{bad}");
        }
    }

    #[test]
    fn changes_name_only_what_they_change() {
        let change = Order::Cpu(50).as_change().unwrap();
        assert_eq!(
            serde_json::to_string(&change).unwrap(),
            r#"{"full":{"cpu_percent":50}}"#
        );
        assert_eq!(Order::Quit.as_change(), None);
    }
}
