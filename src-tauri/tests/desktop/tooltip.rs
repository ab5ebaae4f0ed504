//! The line beside the pointer, in both kinds of trays that Linux has.

use crate::{
    app::App,
    screen::{Screen, wait},
    watcher::Watcher,
};
use zbus::blocking::Proxy;

fn wait_for_title(icon: &Proxy<'_>, is_it: impl Fn(&str) -> bool) -> String {
    wait("a title", || {
        icon.get_property::<String>("Title")
            .ok()
            .filter(|title| is_it(title))
    })
}

/// What the peer says about itself.
fn reason(app: &App) -> String {
    app.ask("GET", "/api/status")["reason"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_tray_on_the_bus_is_told_how_things_stand_and_when_that_changes() {
    let Some(screen) = Screen::start() else {
        eprintln!("there is no X server here: nothing was tested");
        return;
    };
    let watcher = Watcher::start(&screen);
    let app = App::start_agreed(&screen);
    let icon = watcher.icon();
    wait_for_title(&icon, |title| {
        title.starts_with(&format!("Apoidea: {}", reason(&app)))
    });

    let mut changes = icon.receive_signal("NewTitle").unwrap();
    app.ask("POST", "/api/pause");
    app.wait("the pause", |status| status["state"] == "paused");
    let paused = wait_for_title(&icon, |title| title == format!("Apoidea: {}", reason(&app)));
    assert!(changes.next().is_some());
    app.ask("POST", "/api/resume");
    wait_for_title(&icon, |title| title != paused);
}

#[test]
fn a_tray_of_the_older_kind_shows_it_beside_the_pointer() {
    let Some(screen) = Screen::start() else {
        eprintln!("there is no X server here: nothing was tested");
        return;
    };
    let _app = App::start_agreed(&screen);
    wait("a tooltip", || screen.has_tooltip().then_some(()));
    screen.picture("tooltip");
}
