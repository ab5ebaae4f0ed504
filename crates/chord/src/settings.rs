//! The numbers that a ring runs by, each with its origin.

use crate::Seating;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Parameters of a [`crate::Ring`]. All peers of one network should agree on `successors`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Length r of the successor list, 2 to [`Settings::MAX_SUCCESSORS`]. 16: with half of 10,000
    /// peers dead at once, r = 8 orphans about 20 and r = 16 none (Chord §4.5.3 asks for Ω(log N)).
    pub successors: usize,
    /// Leaf peers l, half of them on either side (Apoidea §2.1); at most twice `successors`.
    pub leaves: usize,
    /// Mean time between two rounds of stabilisation, of which each differs by up to half. 10 s:
    /// finds a crash within the time a crawler waits for a slow site, at well below one message per
    /// second.
    pub stabilize_every: Duration,
    /// Lookup requests in flight at a time (Kademlia's α = 3): hides a dead peer's timeout.
    pub parallel: usize,
    /// Time between two searches for another ring; partitions last minutes to hours.
    pub check_every: Duration,
    /// Timeout before anything was measured: RFC 6298 starts at one second.
    pub first_timeout: Duration,
    /// Shortest timeout: below it, a busy machine looks dead.
    pub least_timeout: Duration,
    /// Longest timeout of a single attempt.
    pub most_timeout: Duration,
    /// A gap in time after which all others have taken this peer for dead, so that it joins afresh:
    /// three rounds.
    pub absent_after: Duration,
    /// Time for which a peer that lost most of its neighbours at once waits for them, and does
    /// nothing: most cuts of a line are shorter, and then both parts would do the same work.
    pub lost_for: Duration,
    /// Arcs of other owners that are remembered, so that a warm lookup needs no hop: about 200
    /// bytes each.
    pub cached_arcs: usize,
    /// Time for which a cached arc is believed without being used successfully; half of all
    /// sessions are longer than an hour.
    pub cached_for: Duration,
    /// Peers remembered for joining again and for finding another ring.
    pub remembered: usize,
    /// Where members stand.
    pub seating: Seating,
}

impl Settings {
    /// Longest successor list that fits every message.
    pub const MAX_SUCCESSORS: usize = 32;
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            successors: 16,
            leaves: 16,
            stabilize_every: Duration::from_secs(10),
            parallel: 3,
            check_every: Duration::from_secs(300),
            first_timeout: Duration::from_secs(1),
            least_timeout: Duration::from_millis(300),
            most_timeout: Duration::from_secs(3),
            absent_after: Duration::from_secs(30),
            lost_for: Duration::from_secs(180),
            cached_arcs: 4096,
            cached_for: Duration::from_secs(600),
            remembered: 64,
            seating: Seating::Private,
        }
    }
}
