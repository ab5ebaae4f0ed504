//! The line that is shown beside the pointer when it is on the icon in the tray.
//!
//! `tray-icon` shows it on Windows and macOS and leaves it out on Linux, where two ways lead to it:
//! trays that ask over D-Bus show the title of the library's indicator; for those of the older kind
//! (XEmbed) the library makes a window of GTK's, which is the icon and has a tooltip as any window
//! of GTK's.

use tauri::tray::TrayIcon;

/// Shows other words than before.
#[cfg(not(target_os = "linux"))]
pub fn show(icon: &TrayIcon, before: &str, words: &str) -> tauri::Result<()> {
    if before == words {
        Ok(())
    } else {
        icon.set_tooltip(Some(words))
    }
}

/// Shows other words than before; and the same ones on an icon that is new, since trays come and
/// go.
#[cfg(target_os = "linux")]
pub fn show(icon: &TrayIcon, before: &str, words: &str) -> tauri::Result<()> {
    let (is_new, words) = (before != words, words.to_owned());
    icon.with_inner_tray_icon(move |icon| {
        if is_new {
            // The one way to the indicator is unsafe.
            #[allow(unsafe_code)]
            // SAFETY: the icon is borrowed, on the only thread that changes it, and its indicator
            // lives as long as it does. What is read is a copy of the library's handle: one
            // pointer, which nobody frees when it is dropped.
            let mut indicator = unsafe { icon.app_indicator().read() };
            indicator.set_title(&words);
        }
        embedded::show(&words);
    })
}

#[cfg(target_os = "linux")]
mod embedded {
    use gtk::prelude::*;

    /// What GTK calls the window that is an icon in a tray.
    const ICON: &str = "GtkTrayIcon";

    /// Gives these words to every icon that does not have them.
    pub fn show(words: &str) {
        let icons = gtk::Window::list_toplevels()
            .into_iter()
            .filter(|window| window.type_().name() == ICON);
        for icon in icons.filter(|icon| icon.tooltip_text().as_deref() != Some(words)) {
            icon.set_tooltip_text(Some(words));
        }
    }
}
