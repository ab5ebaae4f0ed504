//! The screensaver as somebody else starts it: the system, XScreenSaver, or a volunteer on the
//! command line.
//!
//! It is a window on the app that runs already, ends when it is closed, and starts the app into the
//! tray if there is none.

#[cfg(target_os = "linux")]
use crate::screensaver::{Owner, Screensaver};
use crate::{
    engine,
    launch::{Canvas, Frame, Place},
    local_api::LocalApi,
    viewer,
    window::{Kind, Setting},
};
use anyhow::Context;
use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// An app that starts answers within this, on a slow disk too.
const START_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Shows the screensaver until it is closed.
pub fn run(place: &Place, canvas: Option<Canvas>) -> anyhow::Result<()> {
    let folder = engine::data_folder(place)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let link = runtime.block_on(link(&folder, place))?;
    present(&link, canvas)
}

/// Without a web view where there is an X server.
#[cfg(target_os = "linux")]
fn present(link: &str, canvas: Option<Canvas>) -> anyhow::Result<()> {
    match Screensaver::open(canvas) {
        Ok(screensaver) => screensaver.run(link, Owner::Starter),
        Err(error) if canvas.is_some() => Err(error),
        Err(_) => viewer::show(Kind::Screensaver, Setting::Screen, link, |_| ()),
    }
}

#[cfg(not(target_os = "linux"))]
fn present(link: &str, canvas: Option<Canvas>) -> anyhow::Result<()> {
    anyhow::ensure!(
        canvas.is_none(),
        "windows inside others are an affair of X servers"
    );
    viewer::show(Kind::Screensaver, Setting::Screen, link, |_| ())
}

/// Shows the small picture in the system's settings until these close it. It stays dark while no
/// peer runs: whoever looks through screensavers does not ask for one.
pub fn preview(place: &Place, frame: Option<Frame>) -> anyhow::Result<()> {
    let Some(frame) = frame else { return Ok(()) };
    let folder = engine::data_folder(place)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match runtime.block_on(ask(&folder)) {
        Some(link) => viewer::show(Kind::Screensaver, Setting::Inside(frame), &link, |_| ()),
        None => Ok(()),
    }
}

async fn link(folder: &Path, place: &Place) -> anyhow::Result<String> {
    if let Some(link) = ask(folder).await {
        return Ok(link);
    }
    start_app(place)?;
    let deadline = Instant::now() + START_WITHIN;
    loop {
        sleep(LOOK_EVERY).await;
        match ask(folder).await {
            Some(link) => return Ok(link),
            None if Instant::now() > deadline => anyhow::bail!("there is no peer to be seen"),
            None => {}
        }
    }
}

async fn ask(folder: &Path) -> Option<String> {
    LocalApi::of(folder).ok()?.link("screensaver").await.ok()
}

/// Starts the app into the tray, where it stays when the screensaver is gone.
fn start_app(place: &Place) -> anyhow::Result<()> {
    let program = env::current_exe().context("this program does not find itself")?;
    let mut command = Command::new(program);
    command
        .arg("--hidden")
        .args(place.words())
        .env_remove("XSCREENSAVER_WINDOW");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().map(drop).context("the app does not start")
}
