//! A window on a page that the peer serves: the dashboard or the screensaver. Opened by `viewer`.

use anyhow::Context;
use tauri::{AppHandle, Manager, Url, WebviewUrl, WebviewWindowBuilder, window::Color};
use tauri_plugin_opener::OpenerExt;

/// Where the dashboard's screensaver goes when it has seen a key or the mouse.
const LEAVE_PATH: &str = "/leave";
/// Told to the page, which does not know otherwise that it is not in a browser.
const IN_APP: &str = "window.apoideaApp = true;";
/// There is one window in a process.
const LABEL: &str = "window";
/// What is seen of the screensaver before its page is there.
const NIGHT: Color = Color(13, 11, 8, 255);
/// Set by `tauri-driver`: the web view may be driven by a test.
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

/// Opens the window at a link of the peer.
pub fn open(app: &AppHandle, kind: Kind, link: &str) -> anyhow::Result<()> {
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
    let builder = match kind {
        Kind::Dashboard => builder.inner_size(1180.0, 820.0).min_inner_size(380.0, 480.0),
        // It is looked at and never typed into: the first key goes where it would have gone without it. Under Wayland
        // nobody can ask for that.
        Kind::Screensaver => builder
            .fullscreen(true)
            .decorations(false)
            .always_on_top(true)
            .skip_taskbar(true)
            .focusable(false)
            .focused(false)
            .background_color(NIGHT),
    };
    builder.build().map(drop).context("no window can be opened")
}

/// Brings the window to the front, at a page of the dashboard.
pub fn raise(app: &AppHandle, page: &str) {
    let Some(window) = app.get_webview_window(LABEL) else { return };
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
