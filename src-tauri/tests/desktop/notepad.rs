//! A window that is typed into: what a volunteer had open before the screensaver came.

use crate::screen::{Screen, wait};
use x11rb::{
    COPY_DEPTH_FROM_PARENT,
    connection::Connection,
    protocol::{
        Event,
        xproto::{ConnectionExt, CreateWindowAux, EventMask, WindowClass},
    },
    rust_connection::RustConnection,
    wrapper::ConnectionExt as _,
};

/// An open window with the focus.
pub struct Notepad {
    connection: RustConnection,
    window: u32,
}

impl Notepad {
    /// Opens one and waits until it has the focus.
    pub fn open(screen: &Screen) -> Self {
        let (connection, number) = x11rb::connect(Some(screen.display())).unwrap();
        let root = &connection.setup().roots[number];
        let window = connection.generate_id().unwrap();
        let listening = CreateWindowAux::new().event_mask(EventMask::KEY_PRESS);
        connection
            .create_window(
                COPY_DEPTH_FROM_PARENT,
                window,
                root.root,
                300,
                300,
                400,
                300,
                0,
                WindowClass::INPUT_OUTPUT,
                0,
                &listening,
            )
            .unwrap();
        connection.map_window(window).unwrap();
        connection.sync().unwrap();
        let notepad = Notepad { connection, window };
        wait("the notepad to have the focus", || {
            notepad.has_focus().then_some(()).or_else(|| {
                screen.activate(notepad.window);
                None
            })
        });
        notepad
    }

    /// Its number.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Is it the window that is typed into?
    pub fn has_focus(&self) -> bool {
        self.connection
            .get_input_focus()
            .unwrap()
            .reply()
            .is_ok_and(|focus| focus.focus == self.window)
    }

    /// A window inside it that can be seen.
    pub fn child(&self) -> Option<u32> {
        let tree = self
            .connection
            .query_tree(self.window)
            .unwrap()
            .reply()
            .unwrap();
        tree.children.first().copied()
    }

    /// Width and height of a window.
    pub fn size_of(&self, window: u32) -> Option<(u16, u16)> {
        let geometry = self.connection.get_geometry(window).unwrap().reply().ok()?;
        Some((geometry.width, geometry.height))
    }

    /// Keys that were pressed in it since the last time.
    pub fn keys(&self) -> usize {
        let events = std::iter::from_fn(|| self.connection.poll_for_event().unwrap());
        events
            .filter(|event| matches!(event, Event::KeyPress(_)))
            .count()
    }
}
