//! What the tray app takes beside the peer without it, and whether windows leave anything behind.
//! Figures for `docs/desktop.md`; the release build is measured with `--release`.

use crate::{
    app::{App, home, program},
    family,
    screen::{Screen, look, wait},
};
use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// Resident memory that the tray may take beyond the peer's own, in MB.
const TRAY_MB: f64 = 60.0;
const MB_PER_MIB: f64 = 1.048_576;
const OPENINGS: usize = 50;
/// What an allocator may keep of fifty windows, in MiB.
const GROWTH_MIB: f64 = 3.0;
/// Until a peer that does nothing has come to rest, and the app has given back what starting took.
const REST: Duration = Duration::from_secs(40);

/// The peer without the app, built beside it.
fn headless(home: &Path) -> Child {
    let program = program().with_file_name("apoidea");
    let mut command = Command::new(program);
    command
        .arg("--data")
        .arg(home.join("data"))
        .arg("--config")
        .arg(home.join("apoidea.toml"));
    for setting in [
        "api.port=0",
        "network.port=0",
        "network.listen=[\"127.0.0.1\"]",
        "network.local_network=off",
        "network.rendezvous=off",
        "crawl.seeds=[]",
    ] {
        command.args(["--set", setting]);
    }
    command
        .arg("run")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
        .spawn()
        .expect("build it first: cargo build -p apoidea")
}

fn rest() {
    look(REST, || None::<()>);
}

/// All processes of the app together, in MiB.
fn resident(app: &App) -> f64 {
    family::of(app.id())
        .into_iter()
        .map(family::resident_mib)
        .sum()
}

#[test]
#[ignore = "measures for minutes; see docs/desktop.md"]
fn the_tray_costs_little_and_windows_leave_nothing_behind() {
    let screen = Screen::start().expect("an X server");
    let app = App::start_agreed(&screen);
    let other = home();
    let mut peer = headless(other.path());
    rest();
    let (tray, alone) = (resident(&app), family::resident_mib(peer.id()));
    let _ = peer.kill();
    let _ = peer.wait();
    let more = (tray - alone) * MB_PER_MIB;
    println!("headless peer {alone:.1} MiB, tray app {tray:.1} MiB: {more:.1} MB more");

    let mut after = Vec::new();
    for opening in 1..=OPENINGS {
        let second = crate::app::command(&screen, app.home()).status().unwrap();
        assert!(second.success());
        let window = screen.wait_for_window("Apoidea");
        if opening == 1 {
            screen.picture_of_page("memory", &window);
            println!(
                "window open: {:.1} MiB in {} processes",
                resident(&app),
                family::of(app.id()).len()
            );
        }
        screen.close_window("Apoidea");
        wait("the viewer to end", || {
            family::names(app.id()).is_empty().then_some(())
        });
        after.push(resident(&app));
        if opening % 10 == 0 {
            println!("after {opening} windows: {:.1} MiB", resident(&app));
        }
    }
    // The first windows bring pages of the program in that are there from then on.
    let growth = after[OPENINGS - 1] - after[9];
    println!("growth from the 10th to the {OPENINGS}th window: {growth:.1} MiB");
    assert!(more <= TRAY_MB, "{more:.1} MB");
    assert!(growth <= GROWTH_MIB, "{growth:.1} MiB");
}
