//! A package manager brings a newer program while the app runs.

use crate::{
    app::{self, App, agree, home},
    menu::choose,
    screen::Screen,
};
use std::fs;

#[test]
fn windows_still_open_after_the_program_was_replaced() {
    let Some(screen) = Screen::start() else {
        eprintln!("there is no X server here: nothing was tested");
        return;
    };
    let home = home();
    agree(home.path());
    // The menu is known by the program's name.
    let [installed, newer] =
        ["installed", "newer"].map(|name| home.path().join(name).join("apoidea-desktop"));
    for place in [&installed, &newer] {
        fs::create_dir(place.parent().unwrap()).unwrap();
        fs::copy(app::program(), place).unwrap();
    }
    let _app = App::start_as(&screen, &installed, home);
    fs::rename(&newer, &installed).unwrap();
    choose(&screen, &["Open dashboard"]);
    screen.wait_for_window("Apoidea");
}
