//! The lowest priority on the CPU, and with it on the disk: everything else on the computer comes first.
//!
//! A process can give its priority up but not take it back, so this holds until the next start.

/// Gives the priority of every thread of this process up. Threads that start later inherit it.
#[cfg(target_os = "linux")]
pub(crate) fn lower() {
    // Linux has a niceness for each thread; the kernel derives the priority of reads and writes from it.
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return };
    for thread in threads.flatten() {
        let id = thread.file_name().to_str().and_then(|name| name.parse().ok());
        nice(id.and_then(rustix::process::Pid::from_raw));
    }
}

/// Gives the priority of this process up.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn lower() {
    nice(None);
}

/// Not on this system yet: the CPU share is held all the same.
#[cfg(not(unix))]
pub(crate) fn lower() {
    tracing::debug!("the priority cannot be changed here");
}

#[cfg(unix)]
fn nice(id: Option<rustix::process::Pid>) {
    const NICEST: i32 = 19;
    if let Err(error) = rustix::process::setpriority_process(id, NICEST) {
        tracing::debug!(%error, "the priority was not changed");
    }
}
