//! A window on a page that the peer serves: the dashboard or the screensaver. Opened by `viewer`.

use crate::launch::Frame;
use anyhow::Context;
use tauri::{AppHandle, Manager, Url, WebviewUrl, WebviewWindowBuilder, Wry, window::Color};
use tauri_plugin_opener::OpenerExt;

/// Where the dashboard's screensaver goes when it has seen a key or the mouse.
const LEAVE_PATH: &str = "/leave";
/// Told to the page, which does not know otherwise that it is not in a browser.
const IN_APP: &str = "window.apoideaApp = true;";
/// Told to a screensaver that is a small picture.
#[cfg(windows)]
const IN_PREVIEW: &str = "window.apoideaPreview = true;";
/// What the settings of Windows leave for it, in pixels of a screen of usual density.
#[cfg(windows)]
const PREVIEW_SIZE: (f64, f64) = (152.0, 112.0);
/// Is the screensaver typed into? It is looked at, and the first key goes where it would have gone
/// without it; the system's count of idle time tells of that key. On Linux a web view is the
/// screensaver only where nothing tells of input or nobody can refuse the keyboard (Wayland): there
/// it has to hear the key itself.
const TAKES_KEYS: bool = cfg!(target_os = "linux");
/// There is one window in a process.
const LABEL: &str = "window";
/// What is seen of the screensaver before its page is there.
const NIGHT: Color = Color(13, 11, 8, 255);
/// Set by a test that drives the web view.
const AUTOMATION: &str = "TAURI_WEBVIEW_AUTOMATION";

/// Which window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Kind {
    /// The dashboard.
    Dashboard,
    /// The screensaver.
    Screensaver,
}

impl Kind {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Dashboard => "dashboard",
            Kind::Screensaver => "screensaver",
        }
    }
}

/// Where a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// On the screen, as windows are.
    Screen,
    /// In a window of the system, small, and not to be closed by the mouse that passes over it.
    Inside(Frame),
}

type Builder<'a> = WebviewWindowBuilder<'a, Wry, AppHandle>;

/// Opens the window at a link of the peer.
pub fn open(app: &AppHandle, kind: Kind, setting: Setting, link: &str) -> anyhow::Result<()> {
    let url: Url = link.parse().context("the peer's link is no URL")?;
    let home = url.origin();
    let (for_leaving, for_links) = (app.clone(), app.clone());
    let builder = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::External(url))
        .title("Apoidea")
        // Nothing of the dashboard is written to the disk. WebKit lets no test into such a view.
        .incognito(std::env::var_os(AUTOMATION).is_none())
        .initialization_script(IN_APP)
        .on_navigation(move |url| {
            if url.origin() != home {
                let _ = for_links.opener().open_url(url.as_str(), None::<&str>);
                return false;
            }
            if url.path() == LEAVE_PATH {
                close(&for_leaving);
            }
            url.path() != LEAVE_PATH
        });
    let builder = match (kind, setting) {
        (_, Setting::Inside(frame)) => inside(builder, frame).background_color(NIGHT),
        (Kind::Dashboard, Setting::Screen) => builder
            .inner_size(1180.0, 820.0)
            .min_inner_size(380.0, 480.0),
        (Kind::Screensaver, Setting::Screen) => builder
            .fullscreen(true)
            .decorations(false)
            .always_on_top(true)
            .skip_taskbar(true)
            .focusable(TAKES_KEYS)
            .focused(TAKES_KEYS)
            .background_color(NIGHT),
    };
    builder.build().map(drop).context("no window can be opened")
}

/// A child of the system's window, which is destroyed together with it.
#[cfg(windows)]
fn inside(builder: Builder<'_>, Frame(number): Frame) -> Builder<'_> {
    let parent = windows::Win32::Foundation::HWND(std::ptr::without_provenance_mut(number));
    let (width, height) = PREVIEW_SIZE;
    builder
        .parent_raw(parent)
        .position(0.0, 0.0)
        .inner_size(width, height)
        .decorations(false)
        .resizable(false)
        .focused(false)
        .initialization_script(IN_PREVIEW)
}

/// Only Windows asks for it.
#[cfg(not(windows))]
fn inside(builder: Builder<'_>, _: Frame) -> Builder<'_> {
    builder
}

/// Brings the window to the front, at a page of the dashboard.
pub fn raise(app: &AppHandle, page: &str) {
    let Some(window) = app.get_webview_window(LABEL) else {
        return;
    };
    let _ = window.eval(format!("location.hash = '#/{page}'"));
    let _ = window.unminimize();
    let _ = window.set_focus();
}

/// Closes the window.
pub fn close(app: &AppHandle) {
    if let Some(window) = app.get_webview_window(LABEL) {
        let _ = window.destroy();
    }
}
