//! A window of ours inside a window of somebody else, as XScreenSaver and its settings want it. Only with an X server.

use crate::launch::Canvas;
use tauri::WebviewWindow;

/// Moves a window that is not seen yet, and shows it there.
#[cfg(target_os = "linux")]
pub fn move_into(window: &WebviewWindow, canvas: Canvas) -> anyhow::Result<()> {
    use anyhow::Context;
    use gtk::prelude::WidgetExt;
    use tauri::{PhysicalSize, Size};
    use x11rb::{connection::Connection, protocol::xproto::ConnectionExt, wrapper::ConnectionExt as _};

    // The toolkit gives a window a number when it is first shown, unless it is told to.
    window.gtk_window()?.realize();
    let own = linux::number_of(window)?;
    let (connection, _) = x11rb::connect(None).context("there is no X server")?;
    let room = connection.get_geometry(canvas.0)?.reply().context("there is no such window to draw in")?;
    connection.reparent_window(own, canvas.0, 0, 0)?.check().context("that window takes no other")?;
    connection.sync()?;
    window.set_size(Size::Physical(PhysicalSize::new(room.width.into(), room.height.into())))?;
    window.show()?;
    // The toolkit places what it shows as it would on a desktop of its own.
    connection.reparent_window(own, canvas.0, 0, 0)?;
    connection.map_window(own)?;
    connection.flush()?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub fn move_into(_: &WebviewWindow, _: Canvas) -> anyhow::Result<()> {
    anyhow::bail!("windows inside others are an affair of X servers")
}

#[cfg(target_os = "linux")]
mod linux {
    use anyhow::{Context, bail};
    use raw_window_handle::{HasWindowHandle, RawWindowHandle};
    use tauri::WebviewWindow;

    /// What the X server calls it.
    pub(super) fn number_of(window: &WebviewWindow) -> anyhow::Result<u32> {
        let handle = window.window_handle().context("the window is not there yet")?;
        match handle.as_raw() {
            RawWindowHandle::Xlib(x11) => u32::try_from(x11.window).context("no number of a window"),
            RawWindowHandle::Xcb(x11) => Ok(x11.window.get()),
            _ => bail!("this desktop has no X server"),
        }
    }
}
