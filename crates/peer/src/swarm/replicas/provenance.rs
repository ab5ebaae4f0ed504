//! The means of telling where replicas come from, shared by all parts that send or take them.

use super::{heard::Heard, rounds::Rounds};
use apoidea_overlay::Signer;

/// The means of telling where replicas come from.
pub(crate) struct Provenance {
    /// Signs this peer's rounds, and reads those of others.
    pub signer: Signer,
    /// The last rounds of the owners whose replicas this peer holds.
    pub rounds: Rounds,
    /// The replicas of which this peer, as an owner, has heard all that it can take.
    pub heard: Heard,
}

impl Provenance {
    pub(crate) fn new(signer: Signer) -> Self {
        Provenance {
            signer,
            rounds: Rounds::default(),
            heard: Heard::default(),
        }
    }
}
