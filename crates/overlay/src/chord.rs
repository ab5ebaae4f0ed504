//! A ring that anyone may join: [`apoidea_chord::Ring`] driven over the transport.
//!
//! One task owns the ring ([`actor`]); another finds a way in and back in ([`bootstrap`]). This
//! file is the face that both show to the crawler.

mod actor;
mod bootstrap;
mod entry_point;
mod local_network;
mod mailbox;

pub use entry_point::{EntryPoint, InvalidEntryPoint, Place};
#[cfg(feature = "fuzzing")]
pub(crate) use mailbox::{decode, encode};

use crate::{
    AddressBook, Identity, Kind, LookupError, Overlay, Refusal, RequestError, Service, Settings,
    StartError, Transport, overlay::ARC_CHANGES,
};
use actor::Actor;
use apoidea_chord::{Arc as RingArc, ArcChange, Freshness, Phase, Status};
use apoidea_model::{Key, PeerId};
use bootstrap::Bootstrap;
use bytes::Bytes;
use futures::future::BoxFuture;
use mailbox::{Command, Doorman, Mailbox};
use serde::{Deserialize, Serialize};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, broadcast, oneshot, watch},
    time,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Longest that a lookup may take: a dozen hops with a timeout or two.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(10);

/// What can be chosen about the ring.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChordSettings {
    /// Where to enter the ring; a few at random are tried at a time. Peers remembered from the last
    /// run are tried too.
    pub entry_points: Vec<EntryPoint>,
    /// Are peers looked for on the local network?
    pub local_network: LocalDiscovery,
    /// Addresses under which others can reach this peer, if it cannot find them out itself.
    pub advertise: Vec<SocketAddr>,
    /// The ring's own parameters.
    pub ring: apoidea_chord::Settings,
    /// When to look for the ring.
    #[serde(skip)]
    pub setting_out: SettingOut,
}

/// When a peer looks for the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SettingOut {
    /// As soon as it starts.
    #[default]
    AtOnce,
    /// When it is told to ([`Chord::enter`]); until then it calls nobody.
    WhenTold,
}

/// Are peers looked for on the local network?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalDiscovery {
    /// By multicast DNS.
    #[default]
    On,
    /// Not at all.
    Off,
}

/// This peer's place in the ring, in short.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Standing {
    /// Alone, joining, a member.
    pub phase: Phase,
    /// What this peer owns.
    pub arc: Option<RingArc>,
    /// Members of the ring, as far as can be told from here.
    pub size_estimate: f64,
}

/// A member of the ring.
pub struct Chord {
    transport: Transport,
    mailbox: Mailbox,
    standing: watch::Receiver<Standing>,
    changes: broadcast::Sender<ArcChange>,
    /// Rung to enter again after leaving.
    again: Arc<Notify>,
    _stop: DropGuard,
}

impl Chord {
    /// Begins to listen and to answer, and sets out to join. The book is what the last run
    /// remembered.
    pub fn start(
        identity: Identity,
        transport: Settings,
        chord: ChordSettings,
        book: AddressBook,
        service: Arc<dyn Service>,
    ) -> Result<Self, StartError> {
        let (mailbox, commands) = mailbox::open();
        let doorman = Arc::new(Doorman::new(mailbox.clone(), service));
        let network = transport.network.clone();
        let transport = Transport::start(identity, transport, book, doorman)?;
        let changes = broadcast::Sender::new(ARC_CHANGES);
        let stop = CancellationToken::new();
        let (actor, standing) = Actor::new(
            transport.clone(),
            mailbox.clone(),
            commands,
            changes.clone(),
            &chord,
        );
        tokio::spawn(stop.clone().run_until_cancelled_owned(actor.run()));
        let again = Arc::new(Notify::new());
        let bootstrap = Bootstrap::new(
            transport.clone(),
            mailbox.clone(),
            standing.clone(),
            network,
            chord,
            again.clone(),
        );
        tokio::spawn(stop.clone().run_until_cancelled_owned(bootstrap.run()));
        Ok(Chord {
            transport,
            mailbox,
            standing,
            changes,
            again,
            _stop: stop.drop_guard(),
        })
    }

    /// The transport underneath.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// This peer's place in the ring now and whenever it changes.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Everything that the ring shows of itself; none after shutting down.
    pub async fn status(&self) -> Option<Status> {
        let (reply, status) = oneshot::channel();
        self.mailbox.send(Command::Status(reply)).await;
        status.await.ok()
    }

    /// The owners of a key by their own word, not from memory.
    pub async fn owners_afresh(&self, key: Key, count: usize) -> Result<Vec<PeerId>, LookupError> {
        self.look_up(key, count, Freshness::Fresh).await
    }

    /// Gives the place in the ring up and tells the neighbours. Questions are still answered, so
    /// that they can fetch what they need to take over.
    pub async fn leave(&self) {
        let (reply, left) = oneshot::channel();
        self.mailbox.send(Command::Leave(reply)).await;
        let _ = time::timeout(Duration::from_secs(1), left).await;
    }

    /// Sets out to join, again after having left or for the first time; a member stays where it is.
    pub fn enter(&self) {
        self.again.notify_one();
    }

    /// Leaves the ring and stops listening.
    pub async fn shut_down(&self) {
        self.leave().await;
        self.transport.shut_down().await;
    }

    async fn look_up(
        &self,
        key: Key,
        count: usize,
        freshness: Freshness,
    ) -> Result<Vec<PeerId>, LookupError> {
        let (reply, answer) = oneshot::channel();
        self.mailbox
            .send(Command::LookUp {
                key,
                count,
                freshness,
                reply,
            })
            .await;
        match time::timeout(LOOKUP_DEADLINE, answer).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => Err(LookupError::Closed),
            Err(_) => Err(LookupError::TimedOut(LOOKUP_DEADLINE)),
        }
    }
}

impl Overlay for Chord {
    fn me(&self) -> PeerId {
        self.transport.me()
    }

    fn owners(&self, key: Key, count: usize) -> BoxFuture<'_, Result<Vec<PeerId>, LookupError>> {
        Box::pin(self.look_up(key, count, Freshness::Cached))
    }

    fn owns(&self, key: Key) -> bool {
        self.standing
            .borrow()
            .arc
            .is_some_and(|arc| arc.contains(key))
    }

    fn request(
        &self,
        to: PeerId,
        kind: Kind,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Bytes, RequestError>> {
        Box::pin(async move {
            let answer = self.transport.request(to, kind, body).await;
            match &answer {
                Err(RequestError::Refused(Refusal::NotMine)) => {
                    self.mailbox.send(Command::Redirected(to)).await
                }
                Err(RequestError::Unreachable(_)) => {
                    self.mailbox.send(Command::Unreachable(to)).await
                }
                _ => {}
            }
            answer
        })
    }

    fn arc_changes(&self) -> broadcast::Receiver<ArcChange> {
        self.changes.subscribe()
    }
}
