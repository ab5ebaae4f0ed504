//! `apoidea-desktop`: the tray app. It embeds the whole peer and shows it; it decides nothing about crawling.
//!
//! `menu` says what the tray shows, as a pure function; `app` carries out what is chosen there; `engine` runs the peer;
//! `window` shows the dashboard, which the peer itself serves.

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod app;
mod engine;
mod launch;
mod local_api;
mod log_file;
mod menu;
mod order;
mod switches;
mod tray;
mod update;
mod window;

use launch::{Launch, Purpose};
use std::process::ExitCode;

fn main() -> ExitCode {
    let launch = match Launch::parse(std::env::args()) {
        Ok(launch) => launch,
        Err(error) => error.exit(),
    };
    // There is nothing to see in a picture of that size; the system draws the monitor around it.
    if launch.purpose == Purpose::Preview {
        return ExitCode::SUCCESS;
    }
    match app::run(launch) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("apoidea-desktop: {error:#}");
            ExitCode::FAILURE
        }
    }
}
