//! Starting with the session: what the system's own list of such programs says about this one.

use anyhow::Context;
use apoidea_governor::Switch;
use tauri::{AppHandle, Wry, plugin::TauriPlugin};
use tauri_plugin_autostart::ManagerExt;

/// What Tauri needs to know.
pub fn plugin() -> TauriPlugin<Wry> {
    tauri_plugin_autostart::Builder::new()
        .arg("--hidden")
        .app_name("Apoidea")
        .build()
}

/// Does the app start with the session?
pub fn switch(app: &AppHandle) -> Switch {
    app.autolaunch().is_enabled().unwrap_or(false).into()
}

/// Starts the app with the session, or not any more.
pub fn set(app: &AppHandle, switch: Switch) -> anyhow::Result<()> {
    let set = match switch {
        Switch::On => app.autolaunch().enable(),
        Switch::Off => app.autolaunch().disable(),
    };
    set.context("the session's list of programs cannot be changed")
}
