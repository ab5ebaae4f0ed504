//! Real peers over real QUIC on loopback, in one test binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod conformance;
mod gullible;
mod hostile;
mod lookups;
mod networks;
mod peers;
mod ring;
mod seats;
mod stranger;
mod transport;
