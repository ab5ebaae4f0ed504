//! The trait that the crawler uses, whichever lookup system is underneath.
//!
//! Peers are named by [`PeerId`] throughout. The routes to them are learned, change, and may lead
//! through a relay.

use crate::{Kind, Reachability, Refusal};
use apoidea_chord::{ArcChange, Membership, Touch};
use apoidea_model::{Key, PeerId};
use bytes::Bytes;
use futures::future::BoxFuture;
use std::time::Duration;
use tokio::sync::broadcast;

/// A lookup system together with a way to reach the peers it names.
pub trait Overlay: Send + Sync + 'static {
    /// This peer.
    fn me(&self) -> PeerId;

    /// The `count` distinct peers responsible for `key`, its owner first; fewer only if fewer peers
    /// exist.
    fn owners(&self, key: Key, count: usize) -> BoxFuture<'_, Result<Vec<PeerId>, LookupError>>;

    /// Whether this peer is the owner of `key`, as far as it knows now.
    fn owns(&self, key: Key) -> bool;

    /// The first `count` peers at and after `key` in this peer's own view of the ring, its owner
    /// first, known without asking anybody; none where the view does not reach. A peer that has left
    /// its place keeps the last view: its neighbours fetch from it what it held.
    fn near(&self, key: Key, count: usize) -> Vec<PeerId>;

    /// The last peer before `key` in this peer's own view, where the arc of its owner begins; none
    /// where the view does not reach.
    fn before(&self, key: Key) -> Option<PeerId>;

    /// Whether a peer is on the ring in this peer's own view.
    fn membership(&self, peer: PeerId) -> Membership;

    /// The position of a peer on the ring, as far as this peer has found it out: of itself, of the
    /// peers in its view, and of those that [`Overlay::has_place`] has found lately. A peer that has
    /// left its place keeps the last one. In a fixed network it is one of a member's points.
    fn position(&self, peer: PeerId) -> Option<Key>;

    /// Asks the ring whether a peer that the own view does not reach has a place on it.
    fn has_place(&self, peer: PeerId) -> BoxFuture<'_, Result<bool, LookupError>>;

    /// Asks a peer something. Dropping the future cancels the request at both ends.
    fn request(
        &self,
        to: PeerId,
        kind: Kind,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Bytes, RequestError>>;

    /// The time that a message to this peer and its answer take together, as far as it was
    /// measured: zero to this peer itself, none to a peer that was not asked lately.
    fn round_trip(&self, peer: PeerId) -> Option<Duration>;

    /// Whether others can reach this peer without being called first.
    fn reachability(&self) -> Reachability;

    /// Whether this peer still hears the members that it knew. One that hears few is cut off: others
    /// do its work, and it must not.
    fn touch(&self) -> Touch;

    /// The time for which a peer that fell silent may still work, since it cannot know yet that it
    /// is cut off. Until then nobody may take its place. Zero for all other peers.
    fn grace(&self, peer: PeerId) -> Duration;

    /// Tells from now on which parts of the ring this peer gained or lost. A receiver that lagged
    /// has missed some and must compare everything it holds with its owners.
    fn arc_changes(&self) -> broadcast::Receiver<ArcChange>;
}

/// Arc changes that wait for a slow receiver before it counts as lagging.
pub(crate) const ARC_CHANGES: usize = 1024;

/// Why the peers responsible for a key are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// Nobody answered in time.
    #[error("the lookup found no answer within {0:?}")]
    TimedOut(Duration),
    /// Too many lookups are under way.
    #[error("too many lookups are under way")]
    Busy,
    /// This peer is not part of the ring yet, or no longer.
    #[error("this peer is not a member of the ring")]
    NotJoined,
    /// The overlay was shut down.
    #[error("the overlay is shut down")]
    Closed,
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No connection to the peer could be made: see the reason of the last attempt.
    #[error("the peer cannot be reached: {0}")]
    Unreachable(String),
    /// The connection was lost before the answer came; the peer may have acted on the request.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The answer took too long.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The peer refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The request is larger than a frame may be.
    #[error("the request has {0} bytes, more than a frame holds")]
    TooLarge(usize),
    /// The answer was not what the protocol says.
    #[error("the answer was malformed")]
    Malformed,
    /// This peer is making too many connections already; ask again later.
    #[error("too many connections are being made")]
    Busy,
    /// The overlay was shut down.
    #[error("the overlay is shut down")]
    Closed,
}

impl RequestError {
    /// Whether the peer itself is gone, rather than unwilling to answer this request.
    pub fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::Lost(_) | Self::TimedOut(_)
        )
    }
}
