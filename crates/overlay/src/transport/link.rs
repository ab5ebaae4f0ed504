//! One connection to one peer whose identity is proven and whose hello was accepted.

use super::{
    Limits,
    close::{CANCELLED, Close},
    frame::{FrameError, HEAD_BYTES, Head, MAX_BODY_BYTES, Writer},
    hello::Hello,
    origin::Origin,
};
use crate::{Kind, Refusal};
use apoidea_model::{PeerId, Route};
use bytes::Bytes;
use quinn::{Connection, ConnectionError, RecvStream};
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// Which side made a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "kebab-case")]
pub enum Dialler {
    /// This peer.
    Me,
    /// The other one.
    Them,
}

/// A connection and what is known about it.
#[derive(Debug)]
pub(crate) struct Link {
    pub peer: PeerId,
    pub dialler: Dialler,
    pub hello: Hello,
    pub connection: Connection,
    /// The address of the other side during the handshake. It is proven: the other side has read
    /// there what this side sent. A later address of a connection that moves is not, for a moment.
    pub proven: SocketAddr,
    /// The peer that forwards this connection, if it is not direct.
    relay: Option<PeerId>,
    pub opened: Instant,
    /// Slots in the service's hands that this peer may hold.
    pub slots: Arc<Semaphore>,
    used_ms: AtomicU64,
    asking: AtomicUsize,
    strikes: AtomicU32,
}

/// Why a link gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AskError {
    /// The request never left: it may be repeated on another connection.
    #[error("not sent: {0}")]
    NotSent(ConnectionError),
    #[error("lost: {0}")]
    Lost(ConnectionError),
    #[error(transparent)]
    Refused(Refusal),
    #[error("the answer made no sense")]
    Malformed,
}

/// The tag of a frame that carries an answer; all others are refusals.
pub(crate) const ANSWERED: u8 = 0;

impl Link {
    /// A connection without a relay in between.
    pub fn direct(
        peer: PeerId,
        dialler: Dialler,
        hello: Hello,
        proven: SocketAddr,
        connection: Connection,
    ) -> Self {
        Link {
            peer,
            dialler,
            hello,
            connection,
            proven,
            relay: None,
            opened: Instant::now(),
            slots: Arc::new(Semaphore::new(Limits::SERVING_PER_PEER)),
            used_ms: AtomicU64::new(0),
            asking: AtomicUsize::new(0),
            strikes: AtomicU32::new(0),
        }
    }

    /// Sends one request and waits for its answer.
    pub async fn ask(&self, kind: Kind, body: Bytes) -> Result<Bytes, AskError> {
        let _asking = self.asking();
        let (send, mut receive) = self.connection.open_bi().await.map_err(AskError::NotSent)?;
        let mut writer = Writer::new(send);
        // A peer that refuses without reading stops the stream; its answer says why.
        let _ = writer.write(kind.as_byte(), body).await;
        let answer = read_answer(&mut receive).await;
        self.touch();
        answer
    }

    /// Whether the connection is still open.
    pub fn is_alive(&self) -> bool {
        self.connection.close_reason().is_none()
    }

    /// The way to the other side now; its address may change during the connection's life.
    pub fn route(&self) -> Route {
        match self.relay {
            Some(relay) => Route::Via { relay },
            None => Route::Direct(self.connection.remote_address()),
        }
    }

    /// The address that the other side has proven; none behind a relay.
    pub fn proven_ip(&self) -> Option<IpAddr> {
        self.relay
            .is_none()
            .then(|| self.proven.ip().to_canonical())
    }

    /// The party that this connection's limits are counted by.
    pub fn origin(&self) -> Origin {
        Origin::of(self.peer, self.route())
    }

    /// Takes note that the connection was of use.
    pub fn touch(&self) {
        let age = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used_ms.store(age, Relaxed);
    }

    /// The time since the connection was last of use.
    pub fn unused_for(&self) -> Duration {
        self.opened
            .elapsed()
            .saturating_sub(Duration::from_millis(self.used_ms.load(Relaxed)))
    }

    /// Requests of this peer that wait for their answers.
    pub fn asking_count(&self) -> usize {
        self.asking.load(Relaxed)
    }

    /// Counts a malformed frame; true if that was one too many.
    pub fn strike(&self) -> bool {
        self.strikes.fetch_add(1, Relaxed) + 1 >= Limits::STRIKES
    }

    /// Ends the connection.
    pub fn close(&self, why: Close) {
        why.end(&self.connection);
    }

    fn asking(&self) -> Asking<'_> {
        self.asking.fetch_add(1, Relaxed);
        Asking(self)
    }
}

/// Counts a request for as long as it waits.
struct Asking<'a>(&'a Link);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Relaxed);
    }
}

/// Stops the stream if the answer is not waited for any longer.
struct Reader<'a>(&'a mut RecvStream);

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let _ = self.0.stop(CANCELLED);
    }
}

async fn read_answer(stream: &mut RecvStream) -> Result<Bytes, AskError> {
    let stream = Reader(stream);
    let head = Head::read(stream.0, MAX_BODY_BYTES).await.map_err(lost)?;
    let tag = head.tag;
    let body = head.body(stream.0).await.map_err(lost)?;
    match tag {
        ANSWERED => Ok(body),
        tag => Err(refusal(tag).map_or(AskError::Malformed, AskError::Refused)),
    }
}

fn lost(error: FrameError) -> AskError {
    match error {
        FrameError::Connection(error) => AskError::Lost(error),
        FrameError::Cancelled => AskError::Refused(Refusal::Malformed),
        _ => AskError::Malformed,
    }
}

/// The tag that says why there is no answer.
pub(crate) fn refusal_tag(refusal: Refusal) -> u8 {
    match refusal {
        Refusal::UnknownKind => 1,
        Refusal::Malformed => 2,
        Refusal::Busy => 3,
        Refusal::NotMine => 4,
        Refusal::NotYours => 5,
    }
}

fn refusal(tag: u8) -> Option<Refusal> {
    let all = [
        Refusal::UnknownKind,
        Refusal::Malformed,
        Refusal::Busy,
        Refusal::NotMine,
        Refusal::NotYours,
    ];
    all.into_iter().find(|refusal| refusal_tag(*refusal) == tag)
}

/// Bytes that a frame with this body takes on its stream.
pub(crate) fn frame_bytes(body: &Bytes) -> usize {
    HEAD_BYTES + body.len()
}
