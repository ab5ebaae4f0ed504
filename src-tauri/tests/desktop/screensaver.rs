//! The screensaver: opens by itself, keeps nobody awake, and goes at the first key, which is not
//! lost.

use crate::{
    app::{self, App},
    family,
    menu::choose,
    notepad::Notepad,
    screen::{SOON, Screen, look, wait},
};
use serde_json::json;

fn idle_ms(app: &App) -> u64 {
    app.ask("GET", "/api/status")["readings"]["idle_ms"]
        .as_u64()
        .unwrap_or_default()
}

#[test]
fn the_screensaver_comes_by_itself_and_goes_at_the_first_key_which_is_not_lost() {
    let Some(screen) = Screen::start() else {
        eprintln!("there is no X server here: nothing was tested");
        return;
    };
    let app = App::start_agreed(&screen);
    let notepad = Notepad::open(&screen);
    app.prefer(json!({ "desktop": { "screensaver_seconds": 10 } }));
    screen.picture_of_page("screensaver", &screen.wait_for_window("Apoidea"));
    assert!(notepad.has_focus(), "the screensaver is typed into");
    let before = idle_ms(&app);
    assert!(before >= 10_000, "{before}");
    // Time goes on without input: nothing that the screensaver does counts as some, or forbids the
    // machine to sleep.
    app.wait("more idle time", |status| {
        status["readings"]["idle_ms"].as_u64() >= Some(before + 3000)
    });
    assert!(app.ask("GET", "/api/status")["allowance"]["reason"]["code"] != "full_screen");

    assert_eq!(notepad.keys(), 0);
    screen.press(&["a"]);
    wait("the key", || (notepad.keys() == 1).then_some(()));
    screen.wait_for_no_window("Apoidea");
    wait("the viewer to end", || {
        family::names(app.id()).is_empty().then_some(())
    });

    // From the menu, and gone when the mouse moves.
    app.prefer(json!({ "desktop": { "screensaver_seconds": 0 } }));
    choose(&screen, &["Show screensaver"]);
    screen.wait_for_window("Apoidea");
    wait("the mouse to end it", || {
        screen.point(600, 600);
        screen.point(700, 500);
        look(SOON, || screen.window("Apoidea").is_none().then_some(()))
    });
}

#[test]
fn the_screensaver_is_drawn_in_the_window_that_xscreensaver_names() {
    let Some(screen) = Screen::start() else {
        eprintln!("there is no X server here: nothing was tested");
        return;
    };
    let app = App::start_agreed(&screen);
    let canvas = Notepad::open(&screen);
    let mut command = app::command(&screen, app.home());
    let mut guest = command
        .args(["-root", "-window-id", &format!("{:#x}", canvas.window())])
        .spawn()
        .unwrap();
    let inside = wait("a window inside", || canvas.child());
    wait("the window to fill it", || {
        (canvas.size_of(inside) == canvas.size_of(canvas.window())).then_some(())
    });
    screen.picture_of_page("inside", &inside.to_string());
    // That is how XScreenSaver ends it.
    let ended = std::process::Command::new("kill")
        .arg(guest.id().to_string())
        .status()
        .unwrap();
    assert!(ended.success());
    guest.wait().unwrap();
    wait("the window to be empty", || {
        canvas.child().is_none().then_some(())
    });
    app.ask("GET", "/api/status");
}
