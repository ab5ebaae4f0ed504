//! Real peers over real QUIC on loopback, in one test binary.

mod conformance;
mod hostile;
mod networks;
mod peers;
mod stranger;
mod transport;
