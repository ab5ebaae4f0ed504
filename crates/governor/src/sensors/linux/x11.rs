//! The X server: its screensaver extension counts the time since the last input, its window manager
//! names what fills the screen. Only outside Wayland: behind it, an X server sees nothing and may
//! hang.

use crate::{Screen, sensors::Blind};
use x11rb::{
    connection::Connection,
    protocol::{
        screensaver::ConnectionExt as _,
        xproto::{Atom, AtomEnum, ConnectionExt as _, Window},
    },
    rust_connection::RustConnection,
};

/// States that a window has at most; the window manager's word is not trusted to be short.
const MAX_STATES: u32 = 64;

/// A connection to an X server.
pub(super) struct X11 {
    connection: RustConnection,
    root: Window,
    active_window: Atom,
    state: Atom,
    full_screen: Atom,
}

impl X11 {
    pub(super) const NAME: &str = "X11";

    pub(super) fn connect() -> Result<Self, Blind> {
        let (connection, screen) = x11rb::connect(None).map_err(Blind::because)?;
        let screen = connection
            .setup()
            .roots
            .get(screen)
            .ok_or(Blind("no screen".to_owned()))?;
        let root = screen.root;
        let version = connection
            .screensaver_query_version(1, 1)
            .map_err(Blind::because)?;
        version
            .reply()
            .map_err(|_| Blind("the X server has no screensaver extension".to_owned()))?;
        let atom = |name: &str| -> Result<Atom, Blind> {
            let asked = connection
                .intern_atom(false, name.as_bytes())
                .map_err(Blind::because)?;
            Ok(asked.reply().map_err(Blind::because)?.atom)
        };
        let (active_window, state) = (atom("_NET_ACTIVE_WINDOW")?, atom("_NET_WM_STATE")?);
        let full_screen = atom("_NET_WM_STATE_FULLSCREEN")?;
        Ok(X11 {
            connection,
            root,
            active_window,
            state,
            full_screen,
        })
    }

    /// Milliseconds since the last input.
    pub(super) fn idle_ms(&self) -> Result<u64, Blind> {
        let asked = self
            .connection
            .screensaver_query_info(self.root)
            .map_err(Blind::because)?;
        Ok(u64::from(
            asked.reply().map_err(Blind::because)?.ms_since_user_input,
        ))
    }

    /// Whether the window in front fills the screen; unknown without a window manager.
    pub(super) fn screen(&self) -> Option<Screen> {
        let window = *self
            .property(self.root, self.active_window, AtomEnum::WINDOW)?
            .first()?;
        let states = self.property(window, self.state, AtomEnum::ATOM)?;
        Some(if states.contains(&self.full_screen) {
            Screen::Full
        } else {
            Screen::Shared
        })
    }

    fn property(&self, window: Window, name: Atom, kind: AtomEnum) -> Option<Vec<u32>> {
        let asked = self
            .connection
            .get_property(false, window, name, kind, 0, MAX_STATES)
            .ok()?;
        Some(asked.reply().ok()?.value32()?.collect())
    }
}
