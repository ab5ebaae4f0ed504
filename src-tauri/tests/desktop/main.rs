//! The tray app on a real desktop: X server, window manager, session bus and tray, used with the
//! mouse and the keyboard, each choice judged by what the peer's API says afterwards. Pictures are
//! kept under `artefacts/desktop` of the target folder.
//!
//! `APOIDEA_DESKTOP=/usr/bin/apoidea-desktop` has the same clicks made on an installed app instead
//! of the one just built: `APOIDEA_DESKTOP=… cargo test -p apoidea-desktop --test desktop tray::`.
//! It may be a script that starts the app in another root, if it becomes the app (`exec`) and
//! `/tmp`, where the homes are, is the same there.

// All of this is tests, where a panic is the message.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

mod api;
mod app;
mod crash;
mod family;
mod full_disk;
mod memory;
mod menu;
mod notepad;
mod processor;
mod screen;
mod screensaver;
mod tooltip;
mod tray;
mod upgrade;
mod watcher;
mod web_view;
