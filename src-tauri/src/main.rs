//! `apoidea-desktop`: the tray app. It embeds the whole peer and shows it; it decides nothing about
//! crawling.
//!
//! `menu` says what the tray shows, as a pure function; `app` carries out what is chosen there;
//! `engine` runs the peer. `viewer` is another life of the same program: one window on the
//! dashboard, which the peer itself serves; `guest` a third: the screensaver as the system starts
//! it.

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod activity;
mod app;
mod engine;
mod guest;
mod launch;
mod local_api;
mod log_file;
mod login;
mod lull;
mod menu;
mod order;
#[cfg(target_os = "linux")]
mod screensaver;
mod termination;
mod tooltip;
mod tray;
mod update;
mod viewer;
mod window;
mod windows;

use launch::{Launch, Purpose};
use std::process::ExitCode;

fn main() -> ExitCode {
    let launch = match Launch::parse(std::env::args()) {
        Ok(launch) => launch,
        Err(error) => error.exit(),
    };
    let outcome = match launch.purpose {
        Purpose::View(kind) => viewer::run(kind),
        Purpose::Screensaver => guest::run(&launch.place, None),
        Purpose::Inside(canvas) => guest::run(&launch.place, Some(canvas)),
        Purpose::Preview(frame) => guest::preview(&launch.place, frame),
        _ => {
            apoidea_governor::heap::share();
            apoidea_governor::open_files::allow_all();
            app::run(launch)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("apoidea-desktop: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What Tauri compiled into the app.
fn context() -> tauri::Context {
    tauri::generate_context!()
}
