//! The bytes that the rendezvous may use: so many for a start, then a little at a time.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// What IPv4 and UDP add to each datagram.
const HEADERS: usize = 28;
/// Room that a question needs before it is asked, with the longest answer.
const ROOM: usize = 1800;

/// Bytes sent and received so far, for those who watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct RendezvousTraffic(Arc<AtomicU64>);

impl RendezvousTraffic {
    /// Bytes since the start, headers included.
    pub fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The rest of the bytes that may be used.
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
    traffic: RendezvousTraffic,
}

impl Budget {
    pub fn new(bytes: usize, traffic: RendezvousTraffic) -> Self {
        Budget {
            left: bytes,
            traffic,
        }
    }

    /// Takes the bytes of one datagram.
    pub fn take(&mut self, length: usize) {
        let bytes = length + HEADERS;
        self.left = self.left.saturating_sub(bytes);
        self.traffic.0.fetch_add(bytes as u64, Relaxed);
    }

    /// May one more question be asked?
    pub fn has_room(&self) -> bool {
        self.left >= ROOM
    }

    /// May one announcement be sent? Its answer is short.
    pub fn has_little_room(&self) -> bool {
        self.left >= ROOM / 6
    }
}
