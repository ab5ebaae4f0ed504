//! The other end of a request: the service that answers it.

use crate::Kind;
use apoidea_model::PeerId;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// One request of another peer. The transport has bounded its size. Its bytes are still a
/// stranger's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its kind.
    pub kind: Kind,
    /// Its content.
    pub body: Bytes,
}

/// Why a peer did not answer a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// It does not know this kind of request: an older version, or a peer with another role.
    #[error("the peer does not know this kind of request")]
    UnknownKind,
    /// It could not make sense of the bytes. Counts against the sender.
    #[error("the peer could not read the request")]
    Malformed,
    /// It has too much to do; ask again later.
    #[error("the peer is busy")]
    Busy,
    /// The key lies outside its arc; look the owner up again.
    #[error("the peer is not responsible for the key")]
    NotMine,
    /// In its view of the ring the sender has no right to ask or to say this. Views differ for a
    /// while after a change; ask again later.
    #[error("the peer does not grant this peer the right to say that")]
    NotYours,
}

/// Answers requests. Every call holds a slot until it returns, and there are boundedly many slots:
/// a slow service slows its callers down and never piles them up. When a caller goes away, its
/// future is dropped.
pub trait Service: Send + Sync + 'static {
    /// Answers one request of the peer `from`, whose identity is proven.
    fn answer(&self, from: PeerId, request: Request) -> BoxFuture<'_, Result<Bytes, Refusal>>;
}

/// Knows no kind of request; for peers that only ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Service for Silent {
    fn answer(&self, _: PeerId, _: Request) -> BoxFuture<'_, Result<Bytes, Refusal>> {
        Box::pin(std::future::ready(Err(Refusal::UnknownKind)))
    }
}
