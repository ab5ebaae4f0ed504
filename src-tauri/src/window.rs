//! The app's windows: the dashboard and the screensaver, both pages that the peer serves.
//!
//! A window exists while it is seen: closing it destroys the web view, and an idle tray costs none.

use anyhow::Context;
use tauri::{AppHandle, Manager, Url, WebviewUrl, WebviewWindowBuilder};
use tauri_plugin_opener::OpenerExt;

/// Where the dashboard's screensaver goes when it has seen a key or the mouse.
const LEAVE_PATH: &str = "/leave";
/// Told to the page, which does not know otherwise that it is not in a browser.
const IN_APP: &str = "window.apoideaApp = true;";

/// Which window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The dashboard.
    Dashboard,
    /// The screensaver.
    Screensaver,
}

impl Kind {
    fn label(self) -> &'static str {
        match self {
            Kind::Dashboard => "dashboard",
            Kind::Screensaver => "screensaver",
        }
    }
}

/// Brings a window to the front that is there already, at a page of the dashboard; false if there is none.
pub fn raise(app: &AppHandle, kind: Kind, page: &str) -> bool {
    let Some(window) = app.get_webview_window(kind.label()) else { return false };
    let _ = window.eval(format!("location.hash = '#/{page}'"));
    let _ = window.unminimize();
    window.set_focus().is_ok()
}

/// Opens a window at a link of the peer.
pub fn open(app: &AppHandle, kind: Kind, link: &str) -> anyhow::Result<()> {
    let url: Url = link.parse().context("the peer's link is no URL")?;
    let home = url.origin();
    let (for_leaving, for_links) = (app.clone(), app.clone());
    let builder = WebviewWindowBuilder::new(app, kind.label(), WebviewUrl::External(url))
        .title("Apoidea")
        // Nothing of the dashboard is written to the disk.
        .incognito(true)
        .initialization_script(IN_APP)
        .on_navigation(move |url| {
            if url.origin() != home {
                let _ = for_links.opener().open_url(url.as_str(), None::<&str>);
                return false;
            }
            if url.path() == LEAVE_PATH {
                close(&for_leaving, Kind::Screensaver);
            }
            url.path() != LEAVE_PATH
        });
    let builder = match kind {
        Kind::Dashboard => builder.inner_size(1180.0, 820.0).min_inner_size(380.0, 480.0),
        Kind::Screensaver => {
            builder.fullscreen(true).decorations(false).always_on_top(true).skip_taskbar(true)
        }
    };
    builder.build().context("no window can be opened")?;
    Ok(())
}

/// Closes a window, if it is there.
pub fn close(app: &AppHandle, kind: Kind) {
    if let Some(window) = app.get_webview_window(kind.label()) {
        let _ = window.destroy();
    }
}
