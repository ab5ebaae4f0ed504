//! Somebody leaves the computer and comes back, again and again: the crawl runs in between, and
//! loses nothing.
//!
//! When it stopped is read off the servers' log. Each way of seeing the volunteer is tried with the
//! real thing (an X server and its idle counter) or with the smallest thing that speaks its
//! protocol (a bus with a Mutter, a compositor).

use crate::{
    desktop::{Bus, Compositor, Display},
    peer_process::{Launch, PeerProcess},
    toy::Toy,
};
use apoidea_model::{PageUrl, Time};
use apoidea_peer::{
    Note, State,
    governor::{Pace, Reason},
};
use apoidea_toyweb::ToyWeb;
use reqwest::Method;
use serde_json::json;
use std::{
    process::Command,
    time::{Duration, SystemTime},
};

const PATIENCE: Duration = Duration::from_secs(60);
/// How long nobody must have been there. Within this of an input, every request is one that should
/// have stopped.
const IDLE: Duration = Duration::from_secs(3);
/// What a volunteer is promised.
const STOPS_WITHIN: Duration = Duration::from_secs(2);
/// Cycles in the tests that always run, and in those that are asked for.
const FEW: usize = 2;
const MANY: usize = 20;
const IN_USE: &str = "Paused: you are using the computer";

/// A desktop that a volunteer sits at.
trait Desktop {
    /// What the peer calls its way of seeing it.
    const DETECTOR: &str;

    /// Shows the peer this desktop and no other.
    fn show(&self, command: &mut Command);

    /// A key or a mouse move.
    fn touch(&self);
}

impl Desktop for Display {
    const DETECTOR: &str = "X11";

    fn show(&self, command: &mut Command) {
        command.env("DISPLAY", self.name());
    }

    fn touch(&self) {
        self.move_mouse();
    }
}

impl Desktop for Bus {
    const DETECTOR: &str = "Mutter";

    fn show(&self, command: &mut Command) {
        command
            .env("DBUS_SESSION_BUS_ADDRESS", self.address())
            .env("WAYLAND_DISPLAY", "nowhere");
    }

    fn touch(&self) {
        self.input();
    }
}

impl Desktop for Compositor {
    const DETECTOR: &str = "ext-idle-notify";

    fn show(&self, command: &mut Command) {
        command
            .env("XDG_RUNTIME_DIR", self.folder())
            .env("WAYLAND_DISPLAY", self.name());
    }

    fn touch(&self) {
        self.input();
    }
}

/// Hides the machine's own desktop from a peer.
fn hide_desktops(command: &mut Command) {
    for name in [
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XDG_SESSION_TYPE",
        "XAUTHORITY",
    ] {
        command.env_remove(name);
    }
    for name in ["DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"] {
        command.env(name, "unix:path=/nonexistent");
    }
}

async fn start(launch: &Launch, desktop: &impl Desktop) -> PeerProcess {
    let mut command = launch.command();
    hide_desktops(&mut command);
    desktop.show(&mut command);
    launch.start_as(&mut command).await
}

/// Lets somebody come and go; gives how long after each coming the servers still saw requests.
async fn come_and_go<D: Desktop>(desktop: &D, cycles: usize) -> Vec<Duration> {
    let plan = ToyWeb::builder(21)
        .hosts(12)
        .pages(100 * cycles as u32 + 200)
        .mean_bytes(2000);
    let toy = Toy::start(plan).await;
    let launch = toy
        .launch_with_seeds()
        .set("crawl.private_delay_ms", 400)
        .set("preferences.run", "when_idle")
        .set("preferences.idle_seconds", IDLE.as_secs());
    let peer = start(&launch, desktop).await;
    let (mut touches, mut pages) = (Vec::new(), 0);
    for _ in 0..cycles {
        let running = peer.wait("nobody is there", PATIENCE, |status| {
            status.state == State::Crawling && status.totals.pages >= pages + 5
        });
        let running = running.await;
        assert_eq!(
            running.readings.detector.as_deref(),
            Some(D::DETECTOR),
            "{running:?}"
        );
        touches.push(Time::from(SystemTime::now()));
        desktop.touch();
        let paused = peer
            .wait("somebody is there", PATIENCE, |status| {
                status.state == State::Paused
            })
            .await;
        assert_eq!(paused.allowance.reason, Some(Reason::InUse));
        assert_eq!(paused.reason, IN_USE);
        pages = peer
            .wait("what was under way has ended", PATIENCE, |status| {
                status.fetching == 0
            })
            .await
            .totals
            .pages;
    }
    let journal: Vec<Note> = peer
        .request(Method::GET, "/api/journal")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let pauses = journal
        .iter()
        .filter(|note| note.at >= touches[0] && note.text == IN_USE)
        .count();
    assert_eq!(
        pauses, cycles,
        "it pauses once each time somebody comes: {journal:#?}"
    );
    let released = Time::from(SystemTime::now());
    peer.prefer(json!({ "run": "always" })).await.unwrap();
    peer.wait("everything is crawled", 10 * PATIENCE, |status| {
        status.state == State::Idle && status.queued == 0
    })
    .await;
    let log = toy.web.log();
    let visited = log.requests_per_url();
    let missed: Vec<PageUrl> = toy
        .web
        .truth()
        .must_fetch()
        .filter(|url| !visited.contains_key(url.as_str()))
        .collect();
    assert_eq!(missed, []);
    let last_after = |touch: &Time| {
        let late = log
            .visits
            .iter()
            .map(|visit| visit.wall)
            .filter(|at| (*touch..released).contains(at));
        late.map(|at| at.since(*touch))
            .filter(|late| *late < IDLE)
            .max()
            .unwrap_or_default()
    };
    touches.iter().map(last_after).collect()
}

/// Many cycles, and each time the requests stop in time.
async fn stops_in_time<D: Desktop>(desktop: &D) {
    let mut delays = come_and_go(desktop, MANY).await;
    delays.sort();
    println!(
        "{}: median {:?}, worst {:?} of {MANY}",
        D::DETECTOR,
        delays[MANY / 2],
        delays[MANY - 1]
    );
    assert!(delays[MANY - 1] < STOPS_WITHIN, "{delays:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_x11_the_crawl_stops_when_somebody_comes_and_goes_on_when_they_leave() {
    come_and_go(&Display::start().await, FEW).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_gnome_the_crawl_stops_when_somebody_comes_and_goes_on_when_they_leave() {
    come_and_go(&Bus::start().await, FEW).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_wayland_the_crawl_stops_when_somebody_comes_and_goes_on_when_they_leave() {
    come_and_go(&Compositor::start(), FEW).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures, for five minutes: cargo test -p apoidea-tests --test blackbox twenty_times -- --ignored --nocapture"]
async fn twenty_times_under_x11_the_crawl_stops_within_two_seconds() {
    stops_in_time(&Display::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures, for five minutes: cargo test -p apoidea-tests --test blackbox twenty_times -- --ignored --nocapture"]
async fn twenty_times_under_gnome_the_crawl_stops_within_two_seconds() {
    stops_in_time(&Bus::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures, for five minutes: cargo test -p apoidea-tests --test blackbox twenty_times -- --ignored --nocapture"]
async fn twenty_times_under_wayland_the_crawl_stops_within_two_seconds() {
    stops_in_time(&Compositor::start()).await;
}

#[tokio::test]
async fn without_a_desktop_it_counts_as_in_use_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new(&folder.path().join("data")).set("preferences.run", "when_idle");
    let mut command = launch.command();
    hide_desktops(&mut command);
    let peer = launch.start_as(&mut command).await;
    let status = peer
        .wait("it knows that it is blind", PATIENCE, |status| {
            !status.readings.missing.is_empty()
        })
        .await;
    assert_eq!(
        (status.state, status.allowance.reason),
        (State::Paused, Some(Reason::Unseen))
    );
    assert_eq!(
        status.readings.missing,
        ["cannot see user activity here: there is no display"]
    );
    assert!(
        status.reason.contains("set a schedule"),
        "{}",
        status.reason
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn battery_and_metered_connections_pause_it_if_the_volunteer_wants() {
    let bus = Bus::start().await;
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new(&folder.path().join("data"))
        .set("preferences.on_battery", "pause")
        .set("preferences.on_metered", "pause");
    let mut command = launch.command();
    hide_desktops(&mut command);
    command.env("DBUS_SYSTEM_BUS_ADDRESS", bus.address());
    let peer = launch.start_as(&mut command).await;
    peer.wait("all is well", PATIENCE, |status| {
        status.allowance.pace == Pace::Full && status.readings.power.is_some()
    })
    .await;
    bus.set_battery(Some(43));
    peer.wait("on battery", PATIENCE, |status| {
        status.reason == "Paused: on battery, 43 %"
    })
    .await;
    bus.set_battery(None);
    peer.wait("on mains", PATIENCE, |status| {
        status.allowance.pace == Pace::Full
    })
    .await;
    bus.set_metered(true);
    peer.wait("metered", PATIENCE, |status| {
        status.reason == "Paused: the connection is metered"
    })
    .await;
    peer.prefer(json!({ "on_metered": "go_on" })).await.unwrap();
    peer.wait("it goes on", PATIENCE, |status| {
        status.allowance.pace == Pace::Full
    })
    .await;
}
