//! Answering the requests of one connection: the rate and the number at a time are bounded.

use super::{
    Inner, Limits,
    close::{Close, UNREADABLE},
    counters::TransportEvent,
    frame::{FrameError, Head, MAX_BODY_BYTES, Writer},
    link::{ANSWERED, Link, frame_bytes, refusal_tag},
    throttle::Way,
};
use crate::{Kind, Refusal, Request};
use bytes::Bytes;
use quinn::RecvStream;
use std::{sync::Arc, time::Instant};
use tokio::{sync::SemaphorePermit, time};

/// Bodies up to this size do not count against the bytes held at once: the streams of a connection
/// bound them.
const SMALL_BODY_BYTES: usize = 4096;

impl Inner {
    /// Answers until the connection ends, then forgets it.
    pub(crate) async fn serve(self: Arc<Self>, link: Arc<Link>) {
        while let Ok((send, receive)) = link.connection.accept_bi().await {
            self.pace(&link).await;
            let (inner, link) = (self.clone(), link.clone());
            self.spawn(async move { inner.serve_one(&link, Writer::new(send), receive).await });
        }
        self.table().remove(&link);
        self.note_spoken(link.proven);
        tracing::debug!(peer = ?link.peer, reason = ?link.connection.close_reason(), "disconnected");
    }

    /// Waits until the peer may ask again. Meanwhile its further streams wait in QUIC's windows,
    /// which are small.
    async fn pace(&self, link: &Link) {
        loop {
            let taken = self.gate().take(link.peer, link.origin(), Instant::now());
            let Err(wait) = taken else { return };
            self.counters.note(TransportEvent::Throttled);
            tokio::select! {
                () = time::sleep(wait) => {}
                _ = link.connection.closed() => return,
            }
        }
    }

    async fn serve_one(&self, link: &Link, mut writer: Writer, mut receive: RecvStream) {
        let work = self.answer(link, &mut writer, &mut receive);
        match time::timeout(self.settings.limits.request_deadline(), work).await {
            Ok(Ok(())) => link.touch(),
            Ok(Err(error)) if error.is_malformed() => {
                writer.reset(UNREADABLE);
                let _ = receive.stop(UNREADABLE);
                self.count_malformed(link);
            }
            Ok(Err(_)) => {}
            Err(_) => self.counters.note(TransportEvent::Slow),
        }
    }

    async fn answer(
        &self,
        link: &Link,
        writer: &mut Writer,
        receive: &mut RecvStream,
    ) -> Result<(), FrameError> {
        let head = Head::read(receive, MAX_BODY_BYTES).await?;
        let _room = self.room_for(head.length).await;
        let kind = Kind::from_byte(head.tag);
        let body = head.body(receive).await?;
        let received = frame_bytes(&body);
        self.gate()
            .charge(link.peer, link.origin(), received, Instant::now());
        self.spend(Way::Down, kind, received).await;
        let outcome = tokio::select! {
            outcome = self.dispatch(link, Request { kind, body }) => outcome,
            () = writer.unwanted() => return Err(FrameError::Cancelled),
        };
        let (tag, body) = self.judge(link, outcome);
        let sent = frame_bytes(&body);
        self.spend(Way::Up, kind, sent).await;
        writer
            .write(tag, body)
            .await
            .map_err(|_| FrameError::Cancelled)?;
        self.counters.answered(kind, received, sent);
        Ok(())
    }

    /// Answers by the transport itself, or by the service once it has a slot free.
    async fn dispatch(&self, link: &Link, request: Request) -> Result<Bytes, Refusal> {
        match request.kind {
            Kind::PING => Ok(Bytes::new()),
            Kind::HELLO => Err(Refusal::Malformed),
            kind if kind.is_reserved() => self.service.answer(link.peer, request).await,
            _ => {
                let _mine = link.slots.acquire().await.map_err(|_| Refusal::Busy)?;
                let _all = self.slots.acquire().await.map_err(|_| Refusal::Busy)?;
                self.service.answer(link.peer, request).await
            }
        }
    }

    /// The frame that carries the outcome.
    fn judge(&self, link: &Link, outcome: Result<Bytes, Refusal>) -> (u8, Bytes) {
        match outcome {
            Ok(body) if body.len() <= MAX_BODY_BYTES => (ANSWERED, body),
            Ok(body) => {
                tracing::error!(
                    bytes = body.len(),
                    "the service's answer does not fit into a frame"
                );
                (refusal_tag(Refusal::Busy), Bytes::new())
            }
            Err(refusal) => {
                self.counters.note(TransportEvent::Refused);
                if refusal == Refusal::Malformed {
                    self.count_malformed(link);
                }
                (refusal_tag(refusal), Bytes::new())
            }
        }
    }

    /// Waits until the bytes of all large requests held together leave room for this one.
    async fn room_for(&self, length: usize) -> Option<SemaphorePermit<'_>> {
        if length <= SMALL_BODY_BYTES {
            return None;
        }
        const { assert!(MAX_BODY_BYTES < Limits::BODIES_BYTES) };
        self.bodies
            .acquire_many(u32::try_from(length).unwrap_or(u32::MAX))
            .await
            .ok()
    }

    /// Counts a frame that made no sense against its sender, who is cut off after a few.
    fn count_malformed(&self, link: &Link) {
        self.counters.note(TransportEvent::Malformed);
        if link.strike() {
            self.gate().banish(link.peer, Instant::now());
            link.close(Close::Malformed);
        }
    }
}
