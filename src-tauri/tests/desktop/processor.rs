//! What the screensaver takes of a processor while pages arrive: prints the figure for
//! `docs/desktop.md`. It is drawn by software alone, since there is no graphics card behind this
//! screen.

use crate::{
    app::{at_home, home, program},
    family,
    screen::{Screen, look},
};
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// Until the demo has found its pace: it begins with a few hosts.
const SETTLING: Duration = Duration::from_secs(20);
/// Until the window is drawn.
const OPENING: Duration = Duration::from_secs(2);
/// How long processor time is watched.
const WATCHED: Duration = Duration::from_secs(30);

/// A crawl of the made-up web, some twenty pages a second, and a link to its dashboard.
fn demo() -> (Child, String) {
    let mut command = Command::new(program().with_file_name("apoidea"));
    command.args([
        "demo", "--peers", "1", "--hosts", "20", "--pages", "100000", "--delay", "1000",
    ]);
    let mut demo = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("build it first: cargo build -p apoidea");
    let lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let link = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line[line.find("http://127.0.0.1")?..].to_owned()));
    (demo, link.unwrap().trim().to_owned())
}

#[test]
#[ignore = "measures for a minute; see docs/desktop.md"]
fn the_screensaver_takes_little_of_a_processor() {
    let screen = Screen::of_size(1920, 1080).expect("an X server");
    let (mut demo, link) = demo();
    look(SETTLING, || None::<()>);
    let home = home();
    let mut command = at_home(&screen, program(), home.path());
    let mut viewer = command
        .args(["--view", "screensaver"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ear = viewer.stdin.take().unwrap();
    writeln!(ear, "{link}&page=screensaver").unwrap();
    let window = screen.wait_for_window("Apoidea");
    look(OPENING, || None::<()>);
    screen.picture_of_page("screensaver-of-demo", &window);
    let taken = || [viewer.id(), screen.server_id()].map(family::processor_seconds);
    let before = taken();
    look(WATCHED, || None::<()>);
    let after = taken();
    let percent = |which: usize| (after[which] - before[which]) / WATCHED.as_secs_f64() * 100.0;
    println!(
        "the screensaver takes {:.1} % of one core, the X server {:.1} %",
        percent(0),
        percent(1)
    );
    drop(ear);
    let _ = viewer.wait();
    println!(
        "{}",
        std::fs::read_to_string(home.path().join("words"))
            .unwrap_or_default()
            .trim()
    );
    let _ = demo.kill();
    let _ = demo.wait();
}
