//! What a ring is told and what it wants done: the two ends of [`crate::Ring::handle`].

use crate::{Contact, arc::ArcChange, message::Message};
use apoidea_model::{Key, PeerId};
use serde::{Deserialize, Serialize};

/// Names a lookup; chosen by whoever starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LookupId(pub u64);

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Take a position on the ring, through these peers and those already known. Without any: found
    /// a ring of one.
    Join(Vec<Contact>),
    /// Give the position up and tell the neighbours. What was owned must have been handed over
    /// before.
    Leave,
    /// Peers that may be members, from a discovery or an earlier run.
    Learned(Vec<Contact>),
    /// A message came from this peer, whose identity the transport has verified.
    Received(PeerId, Message),
    /// The transport could not connect to this peer, or lost it and could not reconnect.
    Unreachable(PeerId),
    /// Who owns this key? Answered by [`Action::Found`] or [`Action::NotFound`], often at once.
    Lookup {
        /// The name under which the answer comes.
        id: LookupId,
        /// The key.
        key: Key,
        /// How many peers: the owner and the next clockwise, which hold its replicas. At most r.
        count: usize,
        /// May the answer come from memory?
        freshness: Freshness,
    },
    /// A peer that was named as the owner of this key says that it is not: forget the arc.
    Redirected {
        /// The key.
        key: Key,
        /// Who is not its owner.
        by: PeerId,
    },
    /// The time of [`crate::Ring::next_timeout`] has come.
    Timeout,
}

/// May a lookup be answered from memory?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// From the own neighbourhood or the arc cache, where possible: the request itself will find
    /// out.
    Cached,
    /// Only by the owner's own word, given now.
    Fresh,
}

/// Something to be done by the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send this to that peer; failing quietly is fine, [`Event::Unreachable`] is better. A
    /// response goes back the way its request came, and its contact may name no address.
    Send(Contact, Message),
    /// A lookup's answer.
    Found {
        /// Which lookup.
        id: LookupId,
        /// The owner and the peers after it; fewer than asked for where the ring is smaller.
        owners: Vec<Contact>,
        /// On whose word.
        certainty: Certainty,
        /// Peers asked one after the other, the owner included; 0 from memory.
        hops: u32,
    },
    /// A lookup that nobody answered.
    NotFound(LookupId, NotFound),
    /// The part of the ring that this peer owns has changed.
    ArcChanged(ArcChange),
    /// The peer's relation to the ring has changed.
    PhaseChanged(Phase),
}

/// On whose word a peer was named as the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// Its own.
    Confirmed,
    /// The owner that everyone names is silent, and this is the next living peer: it becomes the
    /// owner with the next rounds of stabilisation.
    Presumed,
    /// Ours: from the neighbourhood or the arc cache.
    Remembered,
}

/// Why a lookup ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotFound {
    /// There is nobody to ask.
    #[error("no member of the ring is known")]
    NoPeers,
    /// Nobody who was asked knew further.
    #[error("nobody who was asked knew further")]
    DeadEnd,
    /// It took too long, or too many peers.
    #[error("the lookup took too long")]
    GaveUp,
    /// Too many lookups are running already.
    #[error("too many lookups are running")]
    Overloaded,
}

/// A peer's relation to the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Without a position, by choice: a worker, or before the start, or after having left. Lookups
    /// work.
    #[default]
    Outside,
    /// Looking for the own place; owns nothing yet.
    Joining,
    /// The only member of its ring, which owns every key.
    Alone,
    /// A member among others.
    Member,
}
