//! A part of the ring, and how the part that a peer owns changes.

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

/// Which keys a peer has won or lost, and to whom: what the anti-entropy of the layer above must
/// move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ArcChange {
    /// These keys are now ours.
    Gained {
        /// The keys.
        arc: Arc,
        /// Who owned them before (the end of a chain, if several died); none if nobody is known.
        from: Option<PeerId>,
    },
    /// These keys are no longer ours.
    Lost {
        /// The keys.
        arc: Arc,
        /// Who owns them now; none if this peer itself has dropped out.
        to: Option<PeerId>,
    },
}

impl Arc {
    /// Is this key in the arc?
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
