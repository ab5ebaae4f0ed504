//! Real peers over real QUIC on loopback, in one test binary.

mod hostile;
mod peers;
mod stranger;
mod transport;
