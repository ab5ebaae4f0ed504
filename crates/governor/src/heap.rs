//! One heap for all threads, from which large blocks return to the system at once.
//!
//! The C library's allocator gives every thread a heap of its own. What one thread allocates and
//! another frees, as every page on its way to the writing thread is, then stays with the first; a
//! crawl of 9,000 pages took 49 MiB with several heaps and 33 with one, in the same processor time.
//! It also learns from large blocks to keep them; bodies of two megabytes would then leave holes
//! between small things that live on.

/// Blocks from here on are mapped by themselves: larger than what a connection reads at a time,
/// smaller than a large body.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 512 << 10;
/// Free memory at the heap's end beyond this returns to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const SPARE_BYTES: libc::c_int = 2 << 20;

/// Asks the allocator for it; to be called before there are threads. Elsewhere than on Linux there
/// is nothing to ask.
#[cfg_attr(all(target_os = "linux", target_env = "gnu"), allow(unsafe_code))]
pub fn share() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the calls change parameters of the allocator, of which any value is valid, and no
    // other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE_BYTES);
    }
}
