//! Last in line: everything else on the computer comes first, on the CPU and on the disk.
//!
//! A process can give its precedence up but not always take it back, so this holds until the next
//! start.

/// Gives the precedence of this process up. Threads that start later inherit it.
///
/// On Linux the first thread keeps its own: in every face it waits or talks to people, who should
/// not have to wait for it, and a window that it opens is none of the crawl.
pub fn give_up() {
    if let Err(why) = system::give_up() {
        // The CPU share is held all the same.
        tracing::debug!(why, "the precedence was not given up");
    }
}

/// Linux schedules each thread by itself. `SCHED_IDLE` runs when nobody else wants to (a
/// three-hundredth of a core beside a busy thread, niceness 19 a seventieth), and the kernel
/// derives the idle class on the disk from it.
#[cfg(target_os = "linux")]
mod system {
    #![allow(unsafe_code)]

    use rustix::process::{Pid, setpriority_process};

    const NICEST: i32 = 19;

    pub(super) fn give_up() -> Result<(), String> {
        let threads = std::fs::read_dir("/proc/self/task").map_err(|error| error.to_string())?;
        let first = i32::try_from(std::process::id()).map_err(|error| error.to_string())?;
        let ids = threads
            .flatten()
            .filter_map(|thread| thread.file_name().to_str()?.parse().ok());
        ids.filter(|thread| *thread != first).try_for_each(lower)
    }

    fn lower(thread: i32) -> Result<(), String> {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the pointer is to a value of the right type that outlives the call.
        let outcome = unsafe { libc::sched_setscheduler(thread, libc::SCHED_IDLE, &parameters) };
        // Niceness still counts among idle threads, and where the policy is refused.
        let nice =
            setpriority_process(Pid::from_raw(thread), NICEST).map_err(|error| error.to_string());
        if outcome == 0 { Ok(()) } else { nice }
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod system {
    const NICEST: i32 = 19;

    pub(super) fn give_up() -> Result<(), String> {
        rustix::process::setpriority_process(None, NICEST).map_err(|error| error.to_string())
    }
}

#[cfg(windows)]
mod system {
    #![allow(unsafe_code)]

    use windows::Win32::System::Threading::{
        GetCurrentProcess, IDLE_PRIORITY_CLASS, SetPriorityClass,
    };

    pub(super) fn give_up() -> Result<(), String> {
        // SAFETY: the first takes nothing and gives a handle that needs no closing; the second
        // takes that and a number.
        let outcome = unsafe { SetPriorityClass(GetCurrentProcess(), IDLE_PRIORITY_CLASS) };
        outcome.map_err(|error| error.to_string())
    }
}

#[cfg(not(any(unix, windows)))]
mod system {
    pub(super) fn give_up() -> Result<(), String> {
        Err("this system is not known".to_owned())
    }
}
