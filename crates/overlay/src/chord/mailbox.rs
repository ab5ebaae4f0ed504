//! The mailbox of the task that owns the ring, and the doorman that brings other peers' messages
//! there.

use crate::{Kind, LookupError, Refusal, Request, Service};
use apoidea_chord::{Contact, Freshness, Message, RingStatus};
use apoidea_model::{Key, PeerId};
use bytes::Bytes;
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Commands that wait; a sender of more waits as well.
const COMMANDS: usize = 256;

/// Something for the ring to take in.
#[derive(Debug)]
pub(crate) enum Command {
    /// A message came, with the stream on which an answer may go back.
    Received(PeerId, Message, Option<oneshot::Sender<Message>>),
    /// A request about reachability.
    DialBack(PeerId, Bytes, oneshot::Sender<Result<Bytes, Refusal>>),
    /// No connection could be made to this peer.
    Unreachable(PeerId),
    /// This peer says that it does not own a key that it was named for.
    Redirected(PeerId),
    /// Enter the ring through these peers.
    Join(Vec<Contact>),
    /// Peers that may be members.
    Learned(Vec<Contact>),
    /// Find the owner of this key.
    LookUp {
        key: Key,
        count: usize,
        freshness: Freshness,
        reply: oneshot::Sender<Result<Vec<PeerId>, LookupError>>,
    },
    /// Give the place up; answered when the neighbours have been told.
    Leave(oneshot::Sender<()>),
    /// Show the ring's state.
    Status(oneshot::Sender<RingStatus>),
}

/// The sending end.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox(mpsc::Sender<Command>);

/// A mailbox and the end that its owner reads.
pub(crate) fn open() -> (Mailbox, mpsc::Receiver<Command>) {
    let (sender, receiver) = mpsc::channel(COMMANDS);
    (Mailbox(sender), receiver)
}

impl Mailbox {
    /// Puts a command in, waiting for room. After the ring has stopped it is dropped, and with it
    /// the way to answer.
    pub async fn send(&self, command: Command) {
        let _ = self.0.send(command).await;
    }
}

/// Brings messages of the ring to the ring and everything else to the crawler's service.
pub(crate) struct Doorman {
    mailbox: Mailbox,
    service: Arc<dyn Service>,
}

impl Doorman {
    pub fn new(mailbox: Mailbox, service: Arc<dyn Service>) -> Self {
        Doorman { mailbox, service }
    }

    /// Hands a message over and returns the ring's answer, which is empty if it has none at once.
    async fn bring(&self, from: PeerId, body: Bytes) -> Result<Bytes, Refusal> {
        let message = decode(&body).ok_or(Refusal::Malformed)?;
        let (reply, answer) = oneshot::channel();
        self.mailbox
            .send(Command::Received(from, message, Some(reply)))
            .await;
        Ok(answer
            .await
            .map_or_else(|_| Bytes::new(), |message| encode(&message)))
    }
}

impl Doorman {
    /// Hands a request about reachability over.
    async fn put_through(&self, from: PeerId, body: Bytes) -> Result<Bytes, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.mailbox
            .send(Command::DialBack(from, body, reply))
            .await;
        answer.await.unwrap_or(Err(Refusal::Busy))
    }
}

impl Service for Doorman {
    fn answer(&self, from: PeerId, request: Request) -> BoxFuture<'_, Result<Bytes, Refusal>> {
        match request.kind {
            Kind::RING => Box::pin(self.bring(from, request.body)),
            Kind::DIAL_BACK => Box::pin(self.put_through(from, request.body)),
            kind if kind.is_reserved() => Box::pin(std::future::ready(Err(Refusal::UnknownKind))),
            _ => self.service.answer(from, request),
        }
    }
}

/// A message's bytes.
pub(crate) fn encode(message: &Message) -> Bytes {
    postcard::to_stdvec(message)
        .expect("a message has no type that postcard cannot write")
        .into()
}

/// A stranger's message, if it is one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Message> {
    if bytes.len() > Message::MAX_BYTES {
        return None;
    }
    postcard::from_bytes(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_chord::{Notice, RequestId};
    use apoidea_model::Key;
    use proptest::prelude::*;

    #[test]
    fn messages_round_trip_and_no_truncation_is_taken_for_one() {
        let through = Contact::new(
            PeerId::at(Key::hash("a")),
            &["127.0.0.1:1".parse().unwrap()],
        );
        let message = Message::Notice(Notice::OtherRing { through });
        let bytes = encode(&message);
        assert_eq!(decode(&bytes), Some(message));
        assert!((0..bytes.len()).all(|length| decode(&bytes[..length]).is_none()));
        let ping = encode(&Message::Request(
            RequestId(1),
            apoidea_chord::RingRequest::Ping,
        ));
        assert!(ping.len() <= 4, "{}", ping.len());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_are_not(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            if let Some(message) = decode(&bytes) {
                prop_assert_eq!(decode(&encode(&message)), Some(message));
            }
        }
    }

    #[test]
    fn a_list_that_claims_to_be_endless_is_refused_at_once() {
        let endless = [&[1, 0, 6, 0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0; 8000]].concat();
        assert_eq!(decode(&endless), None);
        assert_eq!(decode(&vec![0; Message::MAX_BYTES + 1]), None);
    }
}
