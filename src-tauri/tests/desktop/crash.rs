//! A peer that does not run leaves no dead icon: the menu says what happened and offers to begin
//! anew.

use crate::{
    app::{App, agree, home},
    menu,
    screen::Screen,
};
use std::fs;

#[test]
fn a_peer_that_does_not_start_is_explained_and_can_be_started_again() {
    let Some(screen) = Screen::start() else {
        eprintln!("there is no X server here: nothing was tested");
        return;
    };
    let home = home();
    agree(home.path());
    fs::write(home.path().join("apoidea.toml"), "crawl = 3").unwrap();
    let mut app = App::begin(&screen, home, &["--hidden"]);
    crate::screen::wait("the menu of a crash", || {
        let is_there = menu::is_open(&screen, &menu::CRASHED);
        is_there.then(|| screen.picture("crash"))
    });
    screen.press(&["Escape"]);
    fs::write(app.home().join("apoidea.toml"), "").unwrap();
    menu::choose_in(&screen, &menu::CRASHED, &["Restart"]);
    app.wait("the peer to run after all", |status| {
        status["state"] != "stopping"
    });
    // The app began anew as another process, which is asked to end like any other.
    app.ask("POST", "/api/quit");
    app.ended();
    crate::screen::wait("the peer to leave", || {
        (!app.home().join("data/api-address").exists()).then_some(())
    });
}
