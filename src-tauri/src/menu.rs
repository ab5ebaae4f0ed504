//! The tray's menu, icon and tooltip as pure functions of how things stand.
//!
//! Nothing here knows Tauri: `tray` draws what these functions say, and the same view always gives
//! the same menu.

use crate::order::Order;
use apoidea_governor::{Preferences, Preset, Run, Switch};
use apoidea_peer::{Attention, NetworkState, State, Status, words};

/// Values of CPU that the menu offers, in percent of one core.
const CPU: [u32; 4] = [10, 25, 50, 100];
/// Values of download that the menu offers, in KiB a second.
const DOWN: [u32; 4] = [256, 1024, 2048, 8192];
/// Values of upload that the menu offers, in KiB a second: home connections give a fraction of what
/// they take.
const UP: [u32; 4] = [64, 256, 512, 2048];
/// Values of memory that the menu offers, in MiB.
const MEMORY: [u32; 4] = [128, 256, 512, 1024];
/// Idle times after which the menu offers to open the screensaver, in seconds.
const SCREENSAVER: [u32; 3] = [300, 600, 1800];

/// What the tray shows, from all that it knows.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// How the peer is doing; `None` while it starts.
    pub status: Option<Report>,
    /// What the volunteer wants.
    pub preferences: Preferences,
    /// What happened to the peer, if it does not run.
    pub crash: Option<String>,
    /// Has the volunteer agreed to take part?
    pub agreement: Agreement,
    /// Are updates this app's own affair?
    pub updates_are_ours: bool,
    /// Is the app on its way out?
    pub leaving: Leaving,
}

impl View {
    /// Before anything is known.
    pub fn starting() -> Self {
        View {
            status: None,
            preferences: Preferences::default(),
            crash: None,
            agreement: Agreement::Given,
            updates_are_ours: false,
            leaving: Leaving::No,
        }
    }
}

/// The part of a status that the tray shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What the peer is doing.
    pub state: State,
    /// The same as a sentence.
    pub reason: String,
    /// Its place in the network.
    pub network: NetworkState,
    /// What needs the volunteer.
    pub attention: Option<Attention>,
    /// Pages a second.
    pub pages_per_second: f64,
}

impl From<Status> for Report {
    fn from(status: Status) -> Self {
        let Status {
            state,
            reason,
            network,
            attention,
            usage,
            ..
        } = status;
        Report {
            state,
            reason,
            network,
            attention,
            pages_per_second: usage.pages_per_second,
        }
    }
}

/// Has the volunteer agreed to take part?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Yes.
    Given,
    /// Not yet: nothing is crawled, and nobody is called.
    Awaited,
}

/// Is the app on its way out?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// No.
    No,
    /// It finishes what is under way and says goodbye to the ring.
    Now,
}

/// How the icon looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// Pages come.
    Crawling,
    /// Nothing is fetched, and that is as wanted.
    Paused,
    /// There is nobody to talk to yet.
    Offline,
    /// Something needs the volunteer.
    Attention,
}

/// A line of the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Words that cannot be chosen.
    Words(String),
    /// Something to choose.
    Choice(String, Order),
    /// Something to choose that is on or off.
    Check(String, Order, Switch),
    /// More of them.
    Submenu(String, Vec<Entry>),
    /// A rule.
    Separator,
}

/// How the icon looks.
pub fn face(view: &View) -> Face {
    match &view.status {
        _ if view.crash.is_some() => Face::Attention,
        None => Face::Offline,
        Some(status) if status.attention.is_some() => Face::Attention,
        Some(status) if matches!(status.state, State::Paused | State::Stopping) => Face::Paused,
        Some(Report {
            network: NetworkState::Joining | NetworkState::Outside,
            ..
        }) => Face::Offline,
        Some(_) => Face::Crawling,
    }
}

/// One line about how things stand.
pub fn sentence(view: &View) -> String {
    match (&view.crash, &view.status) {
        _ if view.leaving == Leaving::Now => "Leaving the ring…".to_owned(),
        (Some(_), _) => "Stopped: something went wrong".to_owned(),
        (None, None) => "Starting…".to_owned(),
        _ if view.agreement == Agreement::Awaited => "Not begun: waiting for your word".to_owned(),
        (
            None,
            Some(Report {
                attention: Some(trouble),
                ..
            }),
        ) => format!("Attention: {}", words::attention(trouble)),
        (None, Some(status)) => status.reason.clone(),
    }
}

/// What is shown beside the pointer: the name and how things stand, with the rate while there is
/// one.
pub fn tooltip(view: &View) -> String {
    let rate = view
        .status
        .as_ref()
        .filter(|status| status.state == State::Crawling);
    let rate = rate.map(|status| format!(", {:.1} pages a second", status.pages_per_second));
    format!("Apoidea: {}{}", sentence(view), rate.unwrap_or_default())
}

/// The menu.
pub fn menu(view: &View) -> Vec<Entry> {
    let mut entries = vec![Entry::Words(sentence(view))];
    if view.leaving == Leaving::Now {
        return entries;
    }
    entries.push(Entry::Separator);
    if let Some(crash) = &view.crash {
        entries.extend([
            Entry::Words(shorten(crash)),
            choice("Restart", Order::Restart),
            choice("Show the log", Order::Log),
            Entry::Separator,
        ]);
    } else if view.agreement == Agreement::Awaited {
        entries.extend([
            choice("Begin…", Order::Welcome),
            Entry::Separator,
            choice("Quit", Order::Quit),
        ]);
        return entries;
    } else if view.status.is_some() {
        entries.extend(of_peer(view));
        entries.extend(of_app(view));
    }
    entries.push(choice("Quit", Order::Quit));
    entries
}

/// What concerns the app and not the crawl.
fn of_app(view: &View) -> Vec<Entry> {
    let desktop = view.preferences.desktop;
    let mut entries = vec![
        turn(
            "Start at login",
            Order::StartAtLogin,
            desktop.start_at_login,
        ),
        turn("Notifications", Order::Notifications, desktop.notifications),
    ];
    if view.updates_are_ours {
        entries.push(turn("Install updates", Order::Updates, desktop.updates));
    }
    entries.push(choice("About Apoidea", Order::About));
    entries
}

/// Can one menu become the other by changing words and check marks alone?
pub fn are_alike(one: &[Entry], other: &[Entry]) -> bool {
    let is_alike = |(one, other): (&Entry, &Entry)| match (one, other) {
        (Entry::Words(_), Entry::Words(_)) | (Entry::Separator, Entry::Separator) => true,
        (Entry::Choice(_, one), Entry::Choice(_, other)) => one == other,
        (Entry::Check(_, one, _), Entry::Check(_, other, _)) => one == other,
        (Entry::Submenu(name, one), Entry::Submenu(other_name, other)) => {
            name == other_name && are_alike(one, other)
        }
        _ => false,
    };
    one.len() == other.len() && one.iter().zip(other).all(is_alike)
}

/// What can be asked of a peer that runs.
fn of_peer(view: &View) -> [Entry; 10] {
    let is_paused = view
        .status
        .as_ref()
        .is_some_and(|status| status.state == State::Paused);
    let snoozes = Order::SNOOZES.map(|(name, length)| choice(name, Order::Snooze(length)));
    [
        if is_paused {
            choice("Resume", Order::Resume)
        } else {
            choice("Pause", Order::Pause)
        },
        Entry::Submenu("Snooze".to_owned(), snoozes.into()),
        Entry::Submenu("Resources".to_owned(), resources(&view.preferences)),
        Entry::Submenu("Run".to_owned(), runs(view.preferences.run)),
        Entry::Separator,
        choice("Open dashboard", Order::Dashboard),
        choice("Invite somebody…", Order::Invite),
        choice("Show screensaver", Order::Screensaver),
        Entry::Submenu(
            "Screensaver".to_owned(),
            screensaver(view.preferences.desktop.screensaver_seconds),
        ),
        Entry::Separator,
    ]
}

fn resources(preferences: &Preferences) -> Vec<Entry> {
    let presets = [
        ("Gentle", Preset::Gentle),
        ("Balanced", Preset::Balanced),
        ("Generous", Preset::Generous),
    ];
    let mut entries: Vec<Entry> = presets
        .map(|(name, preset)| check(name, Order::Preset(preset), preferences.preset == preset))
        .into();
    if preferences.preset == Preset::Custom {
        entries.push(Entry::Words("Custom".to_owned()));
    }
    let full = preferences.full;
    entries.extend([
        Entry::Separator,
        limits("CPU", &CPU, full.cpu_percent, Order::Cpu, |percent| {
            format!("{percent} % of a core")
        }),
        limits("Download", &DOWN, full.down_kib, Order::Down, rate),
        limits("Upload", &UP, full.up_kib, Order::Up, rate),
        limits(
            "Memory",
            &MEMORY,
            preferences.memory_mib,
            Order::Memory,
            |mib| format!("{mib} MiB"),
        ),
    ]);
    entries
}

/// Values to choose from: those offered, none, and the one in force.
fn limits(
    name: &str,
    offered: &[u32],
    in_force: u32,
    order: fn(u32) -> Order,
    words: fn(u32) -> String,
) -> Entry {
    let mut values = offered.to_vec();
    if in_force > 0 && !values.contains(&in_force) {
        values.push(in_force);
        values.sort_unstable();
    }
    let mut entries: Vec<Entry> = values
        .into_iter()
        .map(|value| check(&words(value), order(value), value == in_force))
        .collect();
    entries.push(check("No limit", order(0), in_force == 0));
    Entry::Submenu(name.to_owned(), entries)
}

fn screensaver(in_force: u32) -> Vec<Entry> {
    let words = |seconds: u32| match seconds {
        0 => "Never by itself".to_owned(),
        seconds if seconds.is_multiple_of(60) => format!("After {} minutes", seconds / 60),
        seconds => format!("After {seconds} seconds"),
    };
    let mut values = SCREENSAVER.to_vec();
    if in_force > 0 && !values.contains(&in_force) {
        values.push(in_force);
        values.sort_unstable();
    }
    values.push(0);
    let check = |value| {
        check(
            &words(value),
            Order::ScreensaverAfter(value),
            value == in_force,
        )
    };
    values.into_iter().map(check).collect()
}

fn rate(kib: u32) -> String {
    if kib >= 1024 && kib.is_multiple_of(1024) {
        format!("{} MiB/s", kib / 1024)
    } else {
        format!("{kib} KiB/s")
    }
}

fn runs(in_force: Run) -> Vec<Entry> {
    let runs = [
        ("When idle", Run::WhenIdle),
        ("Always", Run::Always),
        ("Never", Run::Never),
    ];
    runs.map(|(name, run)| check(name, Order::Run(run), run == in_force))
        .into()
}

fn choice(name: &str, order: Order) -> Entry {
    Entry::Choice(name.to_owned(), order)
}

fn check(name: &str, order: Order, is_on: bool) -> Entry {
    Entry::Check(name.to_owned(), order, is_on.into())
}

/// A check mark that turns a switch.
fn turn(name: &str, order: fn(Switch) -> Order, is: Switch) -> Entry {
    Entry::Check(name.to_owned(), order(is.turned()), is)
}

/// A menu is no place for a stack trace.
fn shorten(text: &str) -> String {
    const MOST: usize = 140;
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut line = lines.next().unwrap_or_default().to_owned();
    // A line that ends so is about the cause, which whoever explains at length says last.
    if let Some(cause) = lines.next_back().filter(|_| line.ends_with(':')) {
        line = format!("{line} {}", cause.trim());
    }
    if line.chars().count() <= MOST {
        return line;
    }
    line.chars().take(MOST).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: State, reason: &str) -> Report {
        Report {
            state,
            reason: reason.to_owned(),
            network: NetworkState::Alone,
            attention: None,
            pages_per_second: 3.25,
        }
    }

    fn view(status: Option<Report>) -> View {
        View {
            status,
            ..View::starting()
        }
    }

    /// All that can be chosen, submenus included, and whether it is on.
    fn choices(entries: &[Entry]) -> Vec<(String, Option<Switch>)> {
        let of = |entry: &Entry| match entry {
            Entry::Choice(_, order) => vec![(order.to_string(), None)],
            Entry::Check(_, order, switch) => vec![(order.to_string(), Some(*switch))],
            Entry::Submenu(_, entries) => choices(entries),
            Entry::Words(_) | Entry::Separator => Vec::new(),
        };
        entries.iter().flat_map(of).collect()
    }

    fn has(view: &View, order: Order) -> bool {
        choices(&menu(view))
            .iter()
            .any(|(name, _)| *name == order.to_string())
    }

    fn checked(view: &View) -> Vec<String> {
        let on =
            |(name, switch): (String, Option<Switch>)| (switch == Some(Switch::On)).then_some(name);
        choices(&menu(view)).into_iter().filter_map(on).collect()
    }

    #[test]
    fn the_icon_says_how_things_stand() {
        let mut view = view(None);
        assert_eq!(face(&view), Face::Offline);
        for (state, expected) in [
            (State::Crawling, Face::Crawling),
            (State::Idle, Face::Crawling),
            (State::Paused, Face::Paused),
            (State::Stopping, Face::Paused),
        ] {
            view.status = Some(status(state, "…"));
            assert_eq!(face(&view), expected, "{state:?}");
        }
        let mut joining = status(State::Crawling, "…");
        joining.network = NetworkState::Joining;
        view.status = Some(joining);
        assert_eq!(face(&view), Face::Offline);
        let mut troubled = status(State::Paused, "…");
        troubled.attention = Some(Attention::WriterEnded);
        view.status = Some(troubled);
        assert_eq!(face(&view), Face::Attention);
        view.crash = Some("it fell".to_owned());
        assert_eq!(face(&view), Face::Attention);
    }

    #[test]
    fn the_first_line_is_the_reason() {
        let view = view(Some(status(State::Paused, "Paused: on battery, 80 %")));
        assert_eq!(
            menu(&view)[0],
            Entry::Words("Paused: on battery, 80 %".to_owned())
        );
        assert_eq!(tooltip(&view), "Apoidea: Paused: on battery, 80 %");
    }

    #[test]
    fn the_tooltip_has_the_rate_while_pages_come() {
        let view = view(Some(status(State::Crawling, "Crawling")));
        assert_eq!(tooltip(&view), "Apoidea: Crawling, 3.2 pages a second");
    }

    #[test]
    fn pause_and_resume_take_turns() {
        let (crawling, paused) = (
            view(Some(status(State::Crawling, "Crawling"))),
            view(Some(status(State::Paused, "Paused by you"))),
        );
        assert!(has(&crawling, Order::Pause) && !has(&crawling, Order::Resume));
        assert!(has(&paused, Order::Resume) && !has(&paused, Order::Pause));
    }

    #[test]
    fn what_is_in_force_is_checked() {
        let mut view = view(Some(status(State::Crawling, "Crawling")));
        view.preferences.desktop.start_at_login = Switch::On;
        let expected = [
            "preset:balanced",
            "cpu:25",
            "down:2048",
            "up:256",
            "memory:256",
            "run:when_idle",
        ];
        assert_eq!(checked(&view)[..6], expected);
        let of_app = [
            "screensaver-after:0",
            "start-at-login:off",
            "notifications:off",
        ];
        assert_eq!(
            checked(&view)[6..],
            of_app,
            "to choose what is on turns it off"
        );
        let change = Order::Cpu(33).as_change().unwrap();
        view.preferences = view.preferences.with(&change).unwrap();
        let now = checked(&view);
        assert!(
            now.contains(&"cpu:33".to_owned())
                && !now.iter().any(|name| name.starts_with("preset"))
        );
    }

    #[test]
    fn words_and_check_marks_change_in_an_open_menu() {
        let mut view = view(Some(status(State::Crawling, "Crawling")));
        let before = menu(&view);
        view.status = Some(status(State::Idle, "Everything known is crawled"));
        view.preferences.run = Run::Always;
        let after = menu(&view);
        assert!(before != after && are_alike(&before, &after));
        view.status = Some(status(State::Paused, "Paused by you"));
        assert!(
            !are_alike(&before, &menu(&view)),
            "resume is another order than pause"
        );
        view.preferences.full.cpu_percent = 33;
        assert!(!are_alike(&after, &menu(&view)), "there is one value more");
    }

    #[test]
    fn every_snooze_and_window_can_be_chosen() {
        let view = view(Some(status(State::Crawling, "Crawling")));
        for (_, length) in Order::SNOOZES {
            assert!(has(&view, Order::Snooze(length)));
        }
        for order in [
            Order::Dashboard,
            Order::Invite,
            Order::Screensaver,
            Order::About,
            Order::Quit,
        ] {
            assert!(has(&view, order), "{order}");
        }
    }

    #[test]
    fn updates_can_be_switched_off_where_they_are_our_affair() {
        let mut view = view(Some(status(State::Crawling, "Crawling")));
        let (on, off) = (Order::Updates(Switch::On), Order::Updates(Switch::Off));
        assert!(!has(&view, on) && !has(&view, off));
        view.updates_are_ours = true;
        assert!(has(&view, off) && checked(&view).contains(&off.to_string()));
        view.preferences.desktop.updates = Switch::Off;
        assert!(has(&view, on) && !checked(&view).contains(&on.to_string()));
    }

    #[test]
    fn before_the_volunteer_has_agreed_there_is_only_the_question() {
        let mut view = view(Some(status(State::Paused, "Paused by you")));
        view.agreement = Agreement::Awaited;
        let names: Vec<_> = choices(&menu(&view))
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["welcome", "quit"]);
        assert_eq!(sentence(&view), "Not begun: waiting for your word");
    }

    #[test]
    fn an_idle_time_of_their_own_is_among_the_choices() {
        let mut view = view(Some(status(State::Crawling, "Crawling")));
        view.preferences.desktop.screensaver_seconds = 77;
        assert!(checked(&view).contains(&"screensaver-after:77".to_owned()));
        assert!(has(&view, Order::ScreensaverAfter(0)) && has(&view, Order::ScreensaverAfter(300)));
    }

    #[test]
    fn a_crash_is_told_with_its_cause() {
        let told = shorten(
            "these settings are not usable:\n  |\n1 | crawl = 3\n  |         ^\nexpected a table\n",
        );
        assert_eq!(told, "these settings are not usable: expected a table");
        assert_eq!(shorten("it fell\nat line 7"), "it fell");
    }

    #[test]
    fn a_crash_offers_restart_and_log_and_nothing_of_the_peer() {
        let mut view = view(Some(status(State::Crawling, "Crawling")));
        view.crash = Some(format!("{}\nand a trace", "x".repeat(500)));
        assert!(has(&view, Order::Restart) && has(&view, Order::Log) && has(&view, Order::Quit));
        assert!(!has(&view, Order::Pause) && !has(&view, Order::Dashboard));
        let Entry::Words(words) = &menu(&view)[2] else {
            panic!("no words about the crash")
        };
        assert_eq!(words.chars().count(), 141);
    }

    #[test]
    fn while_leaving_there_is_only_patience() {
        let mut view = view(Some(status(State::Stopping, "Stopping")));
        view.leaving = Leaving::Now;
        assert_eq!(menu(&view), [Entry::Words("Leaving the ring…".to_owned())]);
    }

    #[test]
    fn the_same_view_gives_the_same_menu() {
        let view = view(Some(status(State::Crawling, "Crawling")));
        assert_eq!(menu(&view), menu(&view.clone()));
    }
}
