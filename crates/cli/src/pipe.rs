//! Ends quietly when whoever reads the output has had enough, as `apoidea pages | head` has.
//!
//! Rust programs ignore the system's signal for that and fail with the next line they print. A peer
//! that runs must go on without its reader, so [`say`] is for its lines, and [`end_with_reader`]
//! for commands that are nothing but their output.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// From now on the process ends when it writes to a pipe that nobody reads. Elsewhere than on Unix
/// there is no such signal.
#[cfg_attr(unix, allow(unsafe_code))]
pub fn end_with_reader() {
    #[cfg(unix)]
    // SAFETY: the signal exists, and its default action is set, which runs no code of ours.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}

/// Prints a line, if somebody reads it.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}
