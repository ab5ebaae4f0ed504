//! A part of the ring, and a change of the part that a peer owns.

use apoidea_model::{Key, PeerId};
use serde::{Deserialize, Serialize};

/// The keys after `from` up to and including `to`; from a key to itself is the whole ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arc {
    /// Exclusive start.
    pub from: Key,
    /// Inclusive end.
    pub to: Key,
}

/// The keys that a peer gained or lost, and the other peer. The layer above moves the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ArcChange {
    /// These keys are now ours.
    Gained {
        /// The keys.
        arc: Arc,
        /// Their owner before (the end of a chain, if several died); none if it is not known.
        from: Option<PeerId>,
    },
    /// These keys are no longer ours.
    Lost {
        /// The keys.
        arc: Arc,
        /// Their owner now; none if this peer itself has dropped out.
        to: Option<PeerId>,
    },
}

impl Arc {
    /// Whether this key is in the arc.
    pub fn contains(&self, key: Key) -> bool {
        key.in_arc(self.from, self.to)
    }

    /// Share of the whole ring, 0 to 1.
    pub fn share(&self) -> f64 {
        if self.from == self.to {
            1.0
        } else {
            self.from.distance_to(self.to).fraction()
        }
    }
}
