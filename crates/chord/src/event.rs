//! Events go into a ring, actions come out: the two ends of [`crate::Ring::handle`].

use crate::{Contact, arc::ArcChange, message::Message};
use apoidea_model::{Key, PeerId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Names a lookup; the driver that starts it chooses the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LookupId(pub u64);

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RingEvent {
    /// Take a position on the ring, through these peers and those already known. Without any, the
    /// peer founds a ring of one.
    Join(Vec<Contact>),
    /// Give the position up and tell the neighbours. The layer above must have handed its keys over
    /// before.
    Leave,
    /// Peers that may be members, from a discovery or an earlier run.
    Learned(Vec<Contact>),
    /// A message came from this peer, whose identity the transport has verified, and from this
    /// address, which it has proven; none behind a relay.
    Received(PeerId, Option<IpAddr>, Message),
    /// The transport could not connect to this peer, or lost it and could not reconnect.
    Unreachable(PeerId),
    /// Find the owner of this key. Answered by [`RingAction::Found`] or [`RingAction::NotFound`], often at
    /// once.
    Lookup {
        /// The name under which the answer comes.
        id: LookupId,
        /// The key.
        key: Key,
        /// The number of peers: the owner and the next clockwise, which hold its replicas. At most
        /// r.
        count: usize,
        /// Whether the answer may come from memory.
        freshness: Freshness,
    },
    /// A peer that was named as the owner of a key says that it is not: forget its arc.
    Redirected {
        /// The peer that is not its owner.
        by: PeerId,
    },
    /// The time of [`crate::Ring::next_timeout`] has come.
    Timeout,
}

/// Whether a lookup may be answered from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// From the own neighbourhood or the arc cache, where possible. The request that follows finds
    /// out if it is wrong.
    Cached,
    /// Only by the owner's own word and that of the peers before it, given now.
    Fresh,
}

/// Something to be done by the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RingAction {
    /// Send this to that peer; failing quietly is fine, [`RingEvent::Unreachable`] is better. A
    /// response goes back the way its request came, and its contact may name no address.
    Send(Contact, Message),
    /// A lookup's answer.
    Found {
        /// Which lookup.
        id: LookupId,
        /// The owner and the peers after it; fewer than asked for where the ring is smaller.
        owners: Vec<Contact>,
        /// The source of the answer.
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
    /// Another member has this peer's seat. The driver gives this peer another one, or none.
    SeatTaken,
}

/// The source that named a peer as the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// The owner itself, and the peers before it that have named it.
    Confirmed,
    /// The owner that everyone names is silent, and this is the next living peer: it becomes the
    /// owner with the next rounds of stabilisation.
    Presumed,
    /// This peer's memory: its neighbourhood or the arc cache.
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
    /// Looking for its place; owns nothing yet.
    Joining,
    /// The only member of its ring, which owns every key.
    Alone,
    /// A member of a ring of several.
    Member,
}
