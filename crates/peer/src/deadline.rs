//! The end of a program whose volunteer waits no longer.
//!
//! It comes from a thread of its own: a disk that hangs may hold every thread of the runtime, and
//! with them its clock.

use crate::peer::API_ADDRESS_FILE;
use std::{fs, path::Path, process, sync::Once, thread, time::Duration};

/// Ends the process after this long, whatever its threads are at, unless it has ended by itself.
/// The first call counts. That is as good as a crash, which loses nothing: the next start recovers.
/// Only the note where the API of the peer in `folder` listens would mislead, and is removed.
pub fn end_process_within(time: Duration, folder: &Path, code: i32) {
    static SET: Once = Once::new();
    let note = folder.join(API_ADDRESS_FILE);
    let end = move || {
        thread::sleep(time);
        let _ = fs::remove_file(note);
        process::exit(code);
    };
    SET.call_once(|| {
        if let Err(error) = thread::Builder::new()
            .name("deadline".to_owned())
            .spawn(end)
        {
            tracing::warn!(%error, "the end may take longer than promised");
        }
    });
}
