//! A window as a process of its own: all that a web view costs is gone when it closes, and its fall
//! takes no peer along.
//!
//! The app says on standard input what to show: a link of the peer first, then names of pages. A
//! link on the command line could be read by everybody on the computer. When the app ends, so does
//! its word, and the window closes.

#[cfg(target_os = "linux")]
use crate::screensaver::{Owner, Screensaver};
use crate::{
    activity::Activity,
    window::{self, Kind, Setting},
};
use anyhow::Context;
use std::{io, thread};
use tauri::AppHandle;

/// Longest name of a page; whoever says more is not the app.
const LONGEST_PAGE: usize = 64;

/// Shows what standard input says.
pub fn run(kind: Kind) -> anyhow::Result<()> {
    let mut link = String::new();
    io::stdin()
        .read_line(&mut link)
        .context("nobody said what to show")?;
    let link = link.trim();
    // An older Windows may have no web view. Its browser shows the dashboard as well.
    if kind == Kind::Dashboard && tauri::webview_version().is_err() {
        return tauri_plugin_opener::open_url(link, None::<&str>).context("there is no browser");
    }
    #[cfg(target_os = "linux")]
    if kind == Kind::Screensaver
        && let Ok(screensaver) = Screensaver::open(None)
    {
        return screensaver.run(link, Owner::App);
    }
    show(kind, Setting::Screen, link, |app| {
        obey(&app, io::stdin().lines())
    })
}

/// Shows a link in a web view until the window is closed; beside it, `follow` runs in a thread of
/// its own.
pub fn show(
    kind: Kind,
    setting: Setting,
    link: &str,
    follow: impl FnOnce(AppHandle) + Send + 'static,
) -> anyhow::Result<()> {
    let link = link.to_owned();
    let app = tauri::Builder::default()
        .plugin(tauri_plugin_opener::init())
        .setup(move |app| {
            window::open(app.handle(), kind, setting, &link)?;
            let handle = app.handle().clone();
            thread::Builder::new()
                .name("follow".to_owned())
                .spawn(move || follow(handle))?;
            if kind == Kind::Screensaver && setting == Setting::Screen {
                let handle = app.handle().clone();
                thread::Builder::new()
                    .name("wake".to_owned())
                    .spawn(move || close_at_input(&handle))?;
            }
            Ok(())
        })
        .build(crate::context())
        .context("this desktop can show no window")?;
    app.run(|_, _| ());
    Ok(())
}

fn obey(app: &AppHandle, words: impl Iterator<Item = io::Result<String>>) {
    for page in words.map_while(Result::ok).filter(|page| is_page(page)) {
        window::raise(app, &page);
    }
    app.exit(0);
}

fn is_page(word: &str) -> bool {
    word.len() <= LONGEST_PAGE && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn close_at_input(app: &AppHandle) {
    Activity::watch().wait();
    window::close(app);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_pages_are_obeyed() {
        assert!(is_page("overview") && is_page("welcome"));
        for word in [
            "'; alert(1)",
            "over view",
            "../x",
            "Overview",
            &"x".repeat(65),
        ] {
            assert!(!is_page(word), "{word}");
        }
    }
}
