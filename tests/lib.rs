//! Black-box tests, and the network that some of them run in.

// All of this crate is for tests, where a panic is the message.
#![allow(clippy::unwrap_used)]

#[cfg(target_os = "linux")]
pub mod lab;
