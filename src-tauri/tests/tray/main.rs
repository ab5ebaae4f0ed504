//! The tray app on a real desktop: X server, window manager, session bus and tray, used with the mouse and the keyboard,
//! each choice judged by what the peer's API says afterwards. Pictures are kept under `target/artefacts/desktop`.

// All of this is tests, where a panic is the message.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

mod app;
mod menu;
mod screen;

use app::App;
use screen::Screen;

/// One test, because it is one volunteer's evening: they see the welcome, agree, use the menu, and quit.
#[test]
#[ignore = "depends on how quickly windows listen to keys: run it on a machine that does nothing else"]
fn a_volunteer_can_do_everything_from_the_tray() {
    let Some(screen) = Screen::start() else {
        eprintln!("there is no X server here: nothing was tested");
        return;
    };
    let mut app = App::start(&screen);

    // The first start asks before it begins.
    app.wait("the peer to wait for consent", |status| status["state"] == "paused");
    screen.wait_for_window("Apoidea");
    screen.picture("welcome");
    app.ask("POST", "/api/resume");
    app.wait("the crawl to begin", |status| status["state"] != "paused");
    screen.open_menu();
    screen.picture("menu");
    screen.press(&["Escape"]);

    let toggle = ["Pause or Resume"];
    menu::choose(&screen, &toggle, || app.soon("/api/status", |status| status["state"] == "paused"));
    menu::choose(&screen, &toggle, || app.soon("/api/status", |status| status["state"] != "paused"));

    screen.close_window("Apoidea");
    menu::choose(&screen, &["Open dashboard"], || screen.sees_window("Apoidea"));
    screen.picture("dashboard");
    screen.close_window("Apoidea");

    // A second start shows the first one's window and ends.
    let second = App::command(&screen, app.folder()).status().unwrap();
    assert!(second.success(), "{second:?}");
    screen.wait_for_window("Apoidea");
    screen.close_window("Apoidea");

    menu::choose(&screen, &["Show screensaver"], || screen.sees_window("Apoidea"));
    screen.picture("screensaver");
    screen.press_until_gone("a", "Apoidea");

    menu::choose(&screen, &["Quit"], || app.has_ended());
    let status = app.ended();
    assert!(status.success(), "{status:?}\n{}", app.words());
    assert!(!app.folder().join("data/api-address").exists(), "the peer did not leave in good order");
}
