//! One volunteer's evening: they see the welcome, agree, use the menu with the mouse, and quit.

use crate::{
    app::{self, App},
    family,
    menu::{self, choose},
    screen::{Screen, wait},
};
use serde_json::Value;

fn preferences(app: &App, what: &str, is_so: impl Fn(&Value) -> bool) {
    app.wait_for(what, "/api/preferences", is_so);
}

fn is_paused(status: &Value) -> bool {
    status["state"] == "paused"
}

fn is_snoozed(status: &Value) -> bool {
    status["allowance"]["reason"]["code"] == "snoozed"
}

/// Waits until a window is closed with all that showed it.
fn wait_for_no_viewer(app: &App) {
    wait("the window's processes to end", || {
        family::names(app.id()).is_empty().then_some(())
    });
}

#[test]
fn a_volunteer_can_do_everything_from_the_tray() {
    let Some(screen) = Screen::start() else {
        eprintln!("there is no X server here: nothing was tested");
        return;
    };
    let mut app = App::start(&screen);

    // The first start asks before it begins.
    app.wait("the peer to wait for consent", is_paused);
    screen.picture_of_page("welcome", &screen.wait_for_window("Apoidea"));
    assert_eq!(app.ask("GET", "/api/peers")["standing"]["kind"], "outside");
    screen.close_window("Apoidea");
    menu::choose_in(&screen, &menu::NEW, &["Begin…"]);
    screen.wait_for_window("Apoidea");
    app.ask("POST", "/api/resume");
    app.wait("the crawl to begin", |status| !is_paused(status));
    wait("the consent to be kept", || {
        app.home().join("data/welcomed").exists().then_some(())
    });
    app.wait_for("the peer to set out", "/api/peers", |peers| {
        peers["standing"]["kind"] == "alone"
    });
    screen.close_window("Apoidea");
    wait_for_no_viewer(&app);

    screen.open_menu().unwrap();
    screen.picture("menu");
    screen.press(&["Escape"]);
    choose(&screen, &["Pause or Resume"]);
    app.wait("the pause", is_paused);
    choose(&screen, &["Pause or Resume"]);
    app.wait("the pause to end", |status| !is_paused(status));
    choose(&screen, &["Resources", "Gentle"]);
    preferences(&app, "the preset", |all| all["preset"] == "gentle");
    choose(&screen, &["Resources", "CPU", "50"]);
    preferences(&app, "the CPU share", |all| {
        all["full"]["cpu_percent"] == 50
    });
    choose(&screen, &["Run", "Always"]);
    preferences(&app, "always", |all| all["run"] == "always");
    choose(&screen, &["Snooze", "1 hour"]);
    app.wait("the snooze", is_snoozed);
    choose(&screen, &["Pause or Resume"]);
    // The preset lets it pause for other reasons.
    app.wait("the snooze to end", |status| !is_snoozed(status));
    choose(&screen, &["Screensaver", "After 10 minutes"]);
    preferences(&app, "the screensaver's time", |all| {
        all["desktop"]["screensaver_seconds"] == 600
    });
    choose(&screen, &["Notifications"]);
    preferences(&app, "silence", |all| {
        all["desktop"]["notifications"] == "off"
    });
    choose(&screen, &["Start at login"]);
    let entry = app.home().join(".config/autostart/Apoidea.desktop");
    wait("an entry among the session's programs", || {
        entry.exists().then_some(())
    });

    choose(&screen, &["Open dashboard"]);
    screen.picture_of_page("dashboard", &screen.wait_for_window("Apoidea"));
    screen.close_window("Apoidea");
    wait_for_no_viewer(&app);

    // A second start shows the first one's window and ends.
    let second = app::command(&screen, app.home()).status().unwrap();
    assert!(second.success(), "{second:?}");
    screen.wait_for_window("Apoidea");

    choose(&screen, &["Quit"]);
    let status = app.ended();
    assert!(status.success(), "{status:?}\n{}", app.words());
    assert!(
        !app.home().join("data/api-address").exists(),
        "the peer did not leave in good order"
    );
    screen.wait_for_no_window("Apoidea");
}
