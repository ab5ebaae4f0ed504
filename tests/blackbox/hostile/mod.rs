//! A hostile peer: a real endpoint of the overlay with a key of its own, in the test's process,
//! that says what no honest peer would say.
//!
//! It is a *stranger* with a key and a connection only, or a *member* with a place on the ring. It
//! chooses its place by trying keys. The [`victims`] are real peers in processes of their own. Each
//! other file holds one family of attacks. A test judges by what the web's servers saw, and by what
//! the victims kept. That nothing happens can only be seen by waiting: such tests wait a few
//! seconds, and see first that what is allowed does happen.

mod all_at_once;
mod drops;
mod facts;
mod floods;
mod forgery;
mod hand_overs;
mod lending;
mod messages;
mod replicas;
mod victims;

use crate::patience;
use apoidea_model::{Domain, Key, LinkBatch, PeerId, Time};
use apoidea_overlay::{
    AddressBook, AddressPolicy, Arc as RingArc, Chord, ChordSettings, EntryPlace, EntryPoint,
    Identity, Kind, LocalDiscovery, NetworkId, Overlay, Refusal, Request, RequestError,
    RingSettings, Service, Signed, Signer, Silent, Transport, TransportSettings,
};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use messages::{CensusPage, DeltaAnswer, LinksAnswer, OfferAnswer, Parcel, Seal};
use ring::{rand::SystemRandom, signature::Ed25519KeyPair, signature::KeyPair};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    ops::Range,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Between two rounds of the ring, as the victims have it.
const STABILIZE: Duration = Duration::from_millis(500);
/// For taking a place on the ring, on a busy machine.
const JOIN_PATIENCE: Duration = Duration::from_secs(20);
/// The head of a bare Ed25519 key in its ASN.1 form (RFC 8410).
const KEY_HEAD: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// A hostile peer.
pub struct Hostile {
    signer: Signer,
    transport: Transport,
    chord: Option<Chord>,
}

impl Hostile {
    /// A peer without a place on the ring, which answers by `part`.
    pub fn stranger(part: Part) -> Self {
        let identity = Identity::ephemeral().unwrap();
        let book = AddressBook::default();
        let service = part.service(&identity);
        let signer = Signer::new(identity.clone(), NetworkId::default());
        let transport = Transport::start(identity, transport_settings(), book, service).unwrap();
        Hostile {
            signer,
            transport,
            chord: None,
        }
    }

    /// A member at a place of its choice, which answers by `part`. It has its place when this
    /// returns.
    pub async fn member(place: Range<f64>, entries: &[SocketAddr], part: Part) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("identity");
        place_identity(&file, place);
        let entry = |address: &SocketAddr| EntryPoint {
            id: None,
            place: EntryPlace::Address(*address),
        };
        let settings = ChordSettings {
            entry_points: entries.iter().map(entry).collect(),
            local_network: LocalDiscovery::Off,
            ring: RingSettings {
                stabilize_every: STABILIZE,
                ..RingSettings::default()
            },
            ..ChordSettings::default()
        };
        let identity = Identity::load_or_create(&file).unwrap();
        let signer = Signer::new(identity.clone(), NetworkId::default());
        let book = AddressBook::default();
        let service = part.service(&identity);
        let chord = Chord::start(identity, transport_settings(), settings, book, service).unwrap();
        let joined = patience::look(JOIN_PATIENCE, async || {
            chord.owns(chord.me().key()).then_some(())
        });
        joined.await.expect("a place on the ring");
        Hostile {
            signer,
            transport: chord.transport().clone(),
            chord: Some(chord),
        }
    }

    /// Its name.
    pub fn id(&self) -> PeerId {
        self.transport.me()
    }

    /// Gives its place up, and answers on.
    pub async fn leave(&self) {
        self.chord.as_ref().expect("a member").leave().await;
    }

    /// The number of other peers that it sees.
    pub async fn neighbours(&self) -> usize {
        let chord = self.chord.as_ref().expect("a member");
        chord
            .status()
            .await
            .map_or(0, |status| status.successors.len())
    }

    /// Connects to the peer at an address.
    pub async fn meet(&self, address: SocketAddr) -> PeerId {
        self.transport.meet(address).await.unwrap()
    }

    /// Signs changes as an owner does.
    pub fn sign(&self, deltas: &[messages::Delta]) -> Signed {
        self.signer.sign(messages::ROUND, &deltas)
    }

    /// Sends a message and reads the answer.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        to: PeerId,
        kind: Kind,
        message: &impl Serialize,
    ) -> Result<T, RequestError> {
        let answer = self.tell(to, kind, message).await?;
        messages::decode(&answer).ok_or(RequestError::Malformed)
    }

    /// Sends a message.
    pub async fn tell(
        &self,
        to: PeerId,
        kind: Kind,
        message: &impl Serialize,
    ) -> Result<Bytes, RequestError> {
        self.send(to, kind, messages::encode(message)).await
    }

    /// Sends bytes.
    pub async fn send(&self, to: PeerId, kind: Kind, body: Bytes) -> Result<Bytes, RequestError> {
        self.transport.request(to, kind, body).await
    }

    /// The time until a ping is answered.
    pub async fn ping(&self, to: PeerId) -> Duration {
        let begun = tokio::time::Instant::now();
        // A ping that fails took all its time.
        let _ = self.transport.ping(to).await;
        begun.elapsed()
    }
}

type Answer = BoxFuture<'static, Option<Result<Bytes, Refusal>>>;
type Answering = dyn Fn(PeerId, Kind, &Bytes) -> Answer + Send + Sync;

/// The part that a hostile peer plays towards those who ask it.
pub enum Part {
    /// It answers nothing.
    Mute,
    /// It acknowledges all and keeps nothing, except where the function has another answer.
    Careless(Box<Answering>),
}

impl Part {
    /// It acknowledges all and keeps nothing.
    pub fn careless() -> Self {
        Self::careless_but(|_, _, _| ready(None).boxed())
    }

    /// The same, except where the function has another answer.
    pub fn careless_but(
        answer: impl Fn(PeerId, Kind, &Bytes) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Part::Careless(Box::new(answer))
    }

    fn service(self, identity: &Identity) -> Arc<dyn Service> {
        match self {
            Part::Mute => Arc::new(Silent),
            Part::Careless(answering) => {
                let signer = Signer::new(identity.clone(), transport_settings().network);
                Arc::new(Careless(answering, signer))
            }
        }
    }
}

struct Careless(Box<Answering>, Signer);

impl Service for Careless {
    fn answer(&self, from: PeerId, request: Request) -> BoxFuture<'_, Result<Bytes, Refusal>> {
        let Request { kind, body } = request;
        let own = (self.0)(from, kind, &body);
        Box::pin(async move {
            match own.await {
                Some(answer) => answer,
                None => {
                    let answer = acknowledge(&self.1, from, kind, &body);
                    answer.unwrap_or(Err(Refusal::Malformed))
                }
            }
        })
    }
}

/// The answer of a member that has nothing and takes everything; none to bytes that it cannot read.
fn acknowledge(
    signer: &Signer,
    from: PeerId,
    kind: Kind,
    body: &[u8],
) -> Option<Result<Bytes, Refusal>> {
    Some(Ok(match kind {
        messages::LINKS => {
            let batch: LinkBatch = messages::decode(body)?;
            messages::encode(&LinksAnswer::Taken {
                declined: Vec::new(),
                dropped: Vec::new(),
                seal: Some(Seal::set(signer, from, &batch)),
            })
        }
        messages::CONTENT => {
            let asks: Vec<messages::ContentAsk> = messages::decode(body)?;
            messages::encode(&vec![None::<messages::Fact>; asks.len()])
        }
        messages::DELTAS => {
            let deltas = messages::decode_deltas(body)?;
            messages::encode(&vec![DeltaAnswer::Applied; deltas.len()])
        }
        messages::OFFER => {
            let offers: Vec<(Domain, messages::Versions)> = messages::decode(body)?;
            messages::encode(&vec![OfferAnswer::Held; offers.len()])
        }
        messages::CENSUS => messages::encode(&CensusPage {
            held: Vec::new(),
            after: None,
        }),
        messages::REPLICAS => {
            let domains: Vec<Domain> = messages::decode(body)?;
            let parcels: Vec<Parcel> = domains.into_iter().map(Parcel::Unknown).collect();
            messages::encode(&parcels)
        }
        messages::FACTS_IN => messages::encode(&messages::Facts::new()),
        messages::FACTS | messages::FETCH | messages::RESULT => Bytes::new(),
        messages::LOAN => return Some(Err(Refusal::Busy)),
        _ => return Some(Err(Refusal::UnknownKind)),
    }))
}

fn transport_settings() -> TransportSettings {
    TransportSettings {
        listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
        addresses: AddressPolicy::Private,
        ..TransportSettings::default()
    }
}

/// Writes a key whose place on the ring, as a share of it, lies within `place`. Places are found by
/// trying: that is all that it costs a hostile peer, too.
fn place_identity(file: &Path, place: Range<f64>) {
    let random = SystemRandom::new();
    let key = loop {
        let key = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap();
        let public = [&KEY_HEAD[..], pair.public_key().as_ref()].concat();
        if place.contains(&PeerId::of_public_key(&public).key().fraction()) {
            break key;
        }
    };
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, key.as_ref()).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A small part of the ring, so far after a key; both as shares of the ring.
fn beyond(key: Key, distance: f64) -> Range<f64> {
    const WIDTH: f64 = 0.002;
    let from = (key.fraction() + distance) % (1.0 - WIDTH);
    from..from + WIDTH
}

/// Every key.
fn whole_ring() -> RingArc {
    let zero = Key::from_bytes([0; 32]);
    RingArc {
        from: zero,
        to: zero,
    }
}

fn now() -> Time {
    SystemTime::now().into()
}
