//! The tray app on a real desktop: X server, window manager, session bus and tray, used with the mouse and the keyboard,
//! each choice judged by what the peer's API says afterwards. Pictures are kept under `artefacts/desktop` of the target folder.

// All of this is tests, where a panic is the message.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

mod api;
mod app;
mod crash;
mod family;
mod memory;
mod menu;
mod notepad;
mod processor;
mod screen;
mod screensaver;
mod tray;
mod web_view;
