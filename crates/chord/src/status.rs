//! The ring as it shows itself to `apoidea peers`, to the dashboard and to the tests.

use crate::{Contact, Seat, arc::Arc, event::Phase, message::MessageKind, message::Scale};
use apoidea_model::{Key, PeerId};
use serde::Serialize;
use std::time::Duration;

/// A snapshot of one peer's view of the ring.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RingStatus {
    /// This peer.
    pub me: PeerId,
    /// Its seat.
    pub seat: Seat,
    /// The position that the seat gives it.
    pub position: Key,
    /// Its relation to the ring.
    pub phase: Phase,
    /// Whether it keeps the full membership.
    pub scale: Scale,
    /// The arc that it owns.
    pub arc: Option<Arc>,
    /// The peer before it.
    pub predecessor: Option<Contact>,
    /// The peers after it, nearest first.
    pub successors: Vec<Contact>,
    /// The leaf peers: predecessors, farthest first, then successors.
    pub leaves: Vec<Contact>,
    /// Distinct fingers beyond the successors, nearest first.
    pub fingers: Vec<Contact>,
    /// Measured round trips.
    pub round_trips: Vec<(PeerId, Duration)>,
    /// Members of the ring, as far as can be told from here.
    pub size_estimate: f64,
    /// Arcs in the cache.
    pub cached_arcs: usize,
    /// Messages by kind.
    pub counters: Vec<Counter>,
    /// Times that others have refused this peer's seat: its clock is wrong, or its address.
    pub misplaced: u64,
}

/// The number of messages of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// Which kind.
    pub kind: MessageKind,
    /// Sent so far.
    pub sent: u64,
    /// Received so far.
    pub received: u64,
}
