//! The toy web's contract, checked from outside with an ordinary client: a naive crawl finds
//! exactly what the truth says, and every quirk does to a client what its name promises.

#![allow(
    clippy::unwrap_used,
    reason = "in a test, whatever fails is the finding"
)]

mod client;
mod control;
mod crawl;
mod quirks;
