//! The tray's menu as keys reach it: what can be chosen, in order. Words and rules are skipped by the arrow keys.

use crate::screen::Screen;

/// The lines of a menu that can be chosen.
const TOP: [&str; 10] = [
    "Pause or Resume",
    "Snooze",
    "Resources",
    "Run",
    "Open dashboard",
    "Show screensaver",
    "Start at login",
    "Notifications",
    "About Apoidea",
    "Quit",
];
const SNOOZE: [&str; 5] = ["15 minutes", "1 hour", "4 hours", "Until tomorrow", "Until I say"];
const RESOURCES: [&str; 6] = ["Gentle", "Balanced", "Generous", "CPU", "Download", "Memory"];
const CPU: [&str; 5] = ["10", "25", "50", "100", "No limit"];
const RUN: [&str; 3] = ["When idle", "Always", "Never"];
/// Tries to open the menu and choose: a busy desktop loses a click now and then.
const TRIES: usize = 5;

/// Opens the menu and chooses, until the effect can be seen.
pub fn choose(screen: &Screen, path: &[&str], mut has_effect: impl FnMut() -> bool) {
    let keys = keys(path);
    for _ in 0..TRIES {
        screen.open_menu();
        screen.press(&keys);
        if has_effect() {
            return;
        }
        screen.press(&["Escape", "Escape", "Escape"]);
    }
    screen.picture("menu-without-effect");
    panic!("choosing {path:?} had no effect in {TRIES} tries");
}

/// Down to each line, right into each submenu, and Return.
fn keys(path: &[&str]) -> Vec<&'static str> {
    let mut lines: &[&str] = &TOP;
    let mut keys = Vec::new();
    for (depth, name) in path.iter().enumerate() {
        let at = lines.iter().position(|line| line == name).unwrap_or_else(|| panic!("no line {name:?}"));
        // Right chooses the first line of a submenu by itself.
        keys.extend(vec!["Down"; if depth == 0 { at + 1 } else { at }]);
        lines = match *name {
            "Snooze" => &SNOOZE,
            "Resources" => &RESOURCES,
            "CPU" => &CPU,
            "Run" => &RUN,
            _ => &[],
        };
        keys.push(if lines.is_empty() { "Return" } else { "Right" });
    }
    keys
}
