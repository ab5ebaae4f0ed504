//! The app's windows, each shown by a process of its own (see `viewer`).

use crate::window::Kind;
use anyhow::Context;
use std::{
    collections::HashMap,
    io::{self, Write},
    process::{Child, Command, Stdio},
};
use tauri::{Env, process::current_binary};

/// The windows that were opened.
#[derive(Debug, Default)]
pub struct Windows {
    viewers: HashMap<Kind, Child>,
}

impl Windows {
    /// Brings a window to the front that is there already, at a page of the dashboard; false if
    /// there is none.
    pub fn raise(&mut self, kind: Kind, page: &str) -> bool {
        let Some(viewer) = self.viewers.get_mut(&kind) else {
            return false;
        };
        if matches!(viewer.try_wait(), Ok(None)) && say(viewer, page).is_ok() {
            return true;
        }
        self.close(kind);
        false
    }

    /// Opens a window at a link of the peer. To be called from the app's first thread, whose
    /// precedence it inherits.
    pub fn open(&mut self, kind: Kind, link: &str) -> anyhow::Result<()> {
        self.close(kind);
        // Where it was when it started: one that was replaced since does not find itself.
        let program =
            current_binary(&Env::default()).context("this program does not find itself")?;
        let mut command = Command::new(program);
        command.args(["--view", kind.name()]).stdin(Stdio::piped());
        with_usual_precedence(&mut command);
        let mut viewer = command.spawn().context("no window can be opened")?;
        say(&mut viewer, link).context("the window does not listen")?;
        self.viewers.insert(kind, viewer);
        Ok(())
    }

    /// Closes a window, if it is there.
    pub fn close(&mut self, kind: Kind) {
        let Some(mut viewer) = self.viewers.remove(&kind) else {
            return;
        };
        let _ = viewer.kill();
        let _ = viewer.wait();
    }

    /// Notices windows that were closed.
    pub fn look(&mut self) {
        self.viewers
            .retain(|_, viewer| matches!(viewer.try_wait(), Ok(None)));
    }
}

fn say(viewer: &mut Child, word: &str) -> io::Result<()> {
    let mut ear = viewer.stdin.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
    writeln!(ear, "{word}")
}

/// On Windows the crawl's precedence is that of the whole process, and windows would inherit it.
#[cfg(windows)]
fn with_usual_precedence(command: &mut Command) {
    use std::os::windows::process::CommandExt;
    const NORMAL_PRIORITY_CLASS: u32 = 0x20;
    command.creation_flags(NORMAL_PRIORITY_CLASS);
}

#[cfg(not(windows))]
fn with_usual_precedence(_: &mut Command) {}
