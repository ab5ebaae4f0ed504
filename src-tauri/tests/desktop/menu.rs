//! The tray's menu as a mouse uses it: where its lines are, and the way to one of them.

use crate::screen::{Menu, SOON, Screen, look};

/// A rule between lines.
const RULE: &str = "-";
/// Above the first line and below the last one together, in pixels of GTK's own theme; a rule is
/// one pixel high.
const EDGES: i32 = 8;
/// What a line of text can be high.
const LINE_HEIGHTS: std::ops::RangeInclusive<i32> = 16..=40;
/// Tries to open the menu and choose: a menu that is built anew while it is open closes.
const TRIES: usize = 6;

/// The menu of a peer that runs.
const RUNNING: [&str; 16] = [
    "how things stand",
    RULE,
    "Pause or Resume",
    "Snooze",
    "Resources",
    "Run",
    RULE,
    "Open dashboard",
    "Invite somebody…",
    "Show screensaver",
    "Screensaver",
    RULE,
    "Start at login",
    "Notifications",
    "About Apoidea",
    "Quit",
];
/// That of a peer whose volunteer has not agreed yet.
pub const NEW: [&str; 5] = ["how things stand", RULE, "Begin…", RULE, "Quit"];
/// That of a peer that does not run.
pub const CRASHED: [&str; 7] = [
    "how things stand",
    RULE,
    "what happened",
    "Restart",
    "Show the log",
    RULE,
    "Quit",
];
const SNOOZE: [&str; 5] = [
    "15 minutes",
    "1 hour",
    "4 hours",
    "Until tomorrow",
    "Until I say",
];
const RESOURCES: [&str; 8] = [
    "Gentle", "Balanced", "Generous", RULE, "CPU", "Download", "Upload", "Memory",
];
const CUSTOM: [&str; 9] = [
    "Gentle", "Balanced", "Generous", "Custom", RULE, "CPU", "Download", "Upload", "Memory",
];
const CPU: [&str; 5] = ["10", "25", "50", "100", "No limit"];
const RUN: [&str; 3] = ["When idle", "Always", "Never"];
const SCREENSAVER: [&str; 4] = [
    "After 5 minutes",
    "After 10 minutes",
    "After 30 minutes",
    "Never by itself",
];

/// Opens the menu of a peer that runs and chooses.
pub fn choose(screen: &Screen, path: &[&str]) {
    choose_in(screen, &RUNNING, path);
}

/// Opens a menu of these lines and chooses.
pub fn choose_in(screen: &Screen, lines: &[&str], path: &[&str]) {
    for _ in 0..TRIES {
        if try_to_choose(screen, lines, path).is_some() {
            return;
        }
        screen.press(&["Escape", "Escape", "Escape"]);
    }
    screen.picture("menu-without-effect");
    panic!("{path:?} could not be chosen in {TRIES} tries");
}

/// Opens the menu; is it one of these lines?
pub fn is_open(screen: &Screen, lines: &[&str]) -> bool {
    let is_it = screen
        .open_menu()
        .is_some_and(|menu| line_height(&menu, lines).is_some());
    if !is_it {
        screen.press(&["Escape"]);
    }
    is_it
}

fn try_to_choose(screen: &Screen, lines: &[&str], path: &[&str]) -> Option<()> {
    let mut menu = screen.open_menu()?;
    let mut lines = lines.to_vec();
    for (depth, name) in path.iter().enumerate() {
        let y = height_of(&menu, &lines, name)?;
        // Across first: on the way down through other lines their submenus would open.
        screen.point(menu.x + menu.width / 2, y);
        let Some(inner) = submenu(name) else { break };
        menu = look(SOON, || {
            screen.menus().into_iter().find(|found| found.x > menu.x)
        })?;
        screen.point(menu.x + 8, y);
        let shapes: Vec<_> = inner
            .iter()
            .filter(|shape| line_height(&menu, shape).is_some())
            .collect();
        lines = shapes.first().map(|shape| shape.to_vec())?;
        assert!(depth < path.len() - 1, "{path:?} ends at a submenu");
    }
    screen.click();
    look(SOON, || screen.menus().is_empty().then_some(()))
}

/// What a line opens, in every shape that it can have.
fn submenu(name: &str) -> Option<Vec<&'static [&'static str]>> {
    match name {
        "Snooze" => Some(vec![&SNOOZE]),
        "Resources" => Some(vec![&RESOURCES, &CUSTOM]),
        "CPU" => Some(vec![&CPU]),
        "Run" => Some(vec![&RUN]),
        "Screensaver" => Some(vec![&SCREENSAVER]),
        _ => None,
    }
}

/// The middle of a line on the screen; none if the menu is another one.
fn height_of(menu: &Menu, lines: &[&str], name: &str) -> Option<i32> {
    let height = line_height(menu, lines)?;
    let mut y = menu.y + EDGES / 2;
    for line in lines {
        if line == &name {
            return Some(y + height / 2);
        }
        y += if *line == RULE { 1 } else { height };
    }
    panic!("there is no line {name:?}");
}

fn line_height(menu: &Menu, lines: &[&str]) -> Option<i32> {
    let rules = lines.iter().filter(|line| **line == RULE).count();
    let (rules, texts) = (
        i32::try_from(rules).unwrap(),
        i32::try_from(lines.len() - rules).unwrap(),
    );
    let room = menu.height - EDGES - rules;
    (room % texts == 0 && LINE_HEIGHTS.contains(&(room / texts))).then_some(room / texts)
}
