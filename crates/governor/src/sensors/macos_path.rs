//! The path that macOS takes to the network, and whether it is expensive: a phone's hotspot, or a
//! plan with a limit.
//!
//! The Network framework tells it to a callback whenever it changes, and to nobody who asks; so a
//! monitor listens, and the sensor reads what it heard last. No crate wraps this framework, so its
//! seven functions are named here.

// Calling the framework takes unsafe code; all of it is in this file.
#![allow(unsafe_code)]

use crate::Metering;
use block2::{Block, RcBlock};
use dispatch2::{DispatchQueue, DispatchRetained};
use std::{
    ffi::c_void,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
};

type Monitor = NonNull<c_void>;
type Path = *mut c_void;

#[link(name = "Network", kind = "framework")]
unsafe extern "C" {
    fn nw_path_monitor_create() -> Option<Monitor>;
    fn nw_path_monitor_set_queue(monitor: Monitor, queue: &DispatchQueue);
    fn nw_path_monitor_set_update_handler(monitor: Monitor, handler: &Block<dyn Fn(Path)>);
    fn nw_path_monitor_start(monitor: Monitor);
    fn nw_path_monitor_cancel(monitor: Monitor);
    fn nw_path_is_expensive(path: Path) -> bool;
    fn nw_release(object: Monitor);
}

/// What the callback has heard.
const UNHEARD: u8 = 0;
const CHEAP: u8 = 1;
const EXPENSIVE: u8 = 2;

/// Listens until it is dropped.
pub(super) struct PathMonitor {
    monitor: Monitor,
    heard: Arc<AtomicU8>,
    _queue: DispatchRetained<DispatchQueue>,
}

// SAFETY: a path monitor may be used from any thread; its queue is what its callback runs on.
unsafe impl Send for PathMonitor {}

impl PathMonitor {
    /// Begins to listen; `None` if the system gives no monitor.
    pub(super) fn start() -> Option<Self> {
        // SAFETY: takes nothing; what it returns is released when this is dropped.
        let monitor = unsafe { nw_path_monitor_create() }?;
        let queue = DispatchQueue::new("apoidea.path", None);
        let heard = Arc::new(AtomicU8::new(UNHEARD));
        let told = heard.clone();
        let handler = RcBlock::new(move |path: Path| {
            // SAFETY: the framework passes a path that is valid during the call.
            let is_expensive = !path.is_null() && unsafe { nw_path_is_expensive(path) };
            told.store(if is_expensive { EXPENSIVE } else { CHEAP }, Relaxed);
        });
        // SAFETY: the monitor was just made and is not started yet; it keeps the queue and a copy
        // of the block.
        unsafe {
            nw_path_monitor_set_queue(monitor, &queue);
            nw_path_monitor_set_update_handler(monitor, &handler);
            nw_path_monitor_start(monitor);
        }
        Some(PathMonitor {
            monitor,
            heard,
            _queue: queue,
        })
    }

    /// What was heard last; unknown until the first word.
    pub(super) fn metering(&self) -> Option<Metering> {
        match self.heard.load(Relaxed) {
            CHEAP => Some(Metering::Unmetered),
            EXPENSIVE => Some(Metering::Metered),
            _ => None,
        }
    }
}

impl Drop for PathMonitor {
    fn drop(&mut self) {
        // SAFETY: the monitor is alive until the release, after which nobody has it; a callback
        // that still runs has its own share of what it writes to.
        unsafe {
            nw_path_monitor_cancel(self.monitor);
            nw_release(self.monitor);
        }
    }
}
