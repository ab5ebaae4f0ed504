//! A ring in memory for unit tests: its members are given, and a function answers for the others.
//!
//! [`TestPeer`] is the peer at one place of it: a real store, and a crawler that the test plays.

use crate::{
    page::{content::LocalIndex, proof::Prover},
    swarm::{
        links::message::LinksAnswer,
        orders::{Orders, SwarmOrder},
        replicas::{
            message::{DELTAS, Delta, DeltaAnswer},
            provenance::Provenance,
            puller::Puller,
            rounds,
            sweep::Sweeper,
        },
        rights::Rights,
        service::{Answering, PeerService},
        tenancy::{Tenancy, whole_ring},
        trust::{
            book::{Openness, TrustBook},
            checker::{Checks, Wish},
            held_links::HeldLinks,
            keepers::Keepers,
        },
        watching::watchlist::Watchlist,
        wire,
    },
};
use apoidea_crawl::{DomainState, Tenure, Versions};
use apoidea_model::{
    ContentHash, CrawlId, Domain, Key, Link, PageUrl, PeerId, Pending, Slot, Target, Time,
};
use apoidea_overlay::{
    ArcChange, Identity, Kind, LookupError, Membership, NetworkId, Overlay, Reachability, Refusal,
    Request, RequestError, Service, Signed, Signer, Touch,
};
use apoidea_store::{Commit, Fact, Store};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, pending, ready},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    sync::{broadcast, mpsc},
    time,
};

type Answer = dyn Fn(PeerId, Kind, Bytes) -> Result<Bytes, RequestError> + Send + Sync;

/// An overlay whose members are known beforehand.
pub(crate) struct TestRing {
    me: PeerId,
    members: Mutex<Vec<PeerId>>,
    answer: Mutex<Arc<Answer>>,
    /// Members that never answer.
    silent: Mutex<BTreeSet<PeerId>>,
    is_lost: AtomicBool,
    is_large: AtomicBool,
    touch: Mutex<Touch>,
    /// Members that fell silent, and until when nobody may take their places.
    graces: Mutex<BTreeMap<PeerId, time::Instant>>,
    /// The requests that were sent, in order.
    pub requests: Mutex<Vec<(PeerId, Kind, Bytes)>>,
    changes: broadcast::Sender<ArcChange>,
}

/// A peer with its place on the ring made of one byte.
pub(crate) fn peer(place: u8) -> PeerId {
    PeerId::at(Key::from_bytes([place; 32]))
}

/// A peer with a key, whose place on the ring begins with this byte.
pub(crate) fn signer_at(place: u8) -> Signer {
    let all = std::iter::repeat_with(|| Identity::ephemeral().unwrap());
    let mut there = all.filter(|identity| identity.id().key().as_bytes()[0] == place);
    let identity = there.next().expect("keys do not run out");
    Signer::new(identity, NetworkId::default())
}

impl TestRing {
    /// A ring of these members, the first of which is this peer. No other one can be reached.
    pub(crate) fn new(members: impl IntoIterator<Item = PeerId>) -> Arc<Self> {
        let members: Vec<PeerId> = members.into_iter().collect();
        let unreachable = |_: PeerId, _: Kind, _: Bytes| -> Result<Bytes, RequestError> {
            Err(RequestError::Unreachable("nobody is there".to_owned()))
        };
        Arc::new(TestRing {
            me: members[0],
            members: Mutex::new(members),
            answer: Mutex::new(Arc::new(unreachable)),
            silent: Mutex::default(),
            is_lost: AtomicBool::new(false),
            is_large: AtomicBool::new(false),
            touch: Mutex::new(Touch::All),
            graces: Mutex::default(),
            requests: Mutex::default(),
            changes: broadcast::Sender::new(16),
        })
    }

    /// This function answers for the other members from now on.
    pub(crate) fn answer_with(
        &self,
        answer: impl Fn(PeerId, Kind, Bytes) -> Result<Bytes, RequestError> + Send + Sync + 'static,
    ) {
        *self.answer.lock().unwrap() = Arc::new(answer);
    }

    /// These are the members from now on.
    pub(crate) fn set_members(&self, members: impl IntoIterator<Item = PeerId>) {
        *self.members.lock().unwrap() = members.into_iter().collect();
    }

    /// The members now.
    pub(crate) fn members(&self) -> Vec<PeerId> {
        self.members.lock().unwrap().clone()
    }

    /// This member does not answer any more.
    pub(crate) fn silence(&self, member: PeerId) {
        self.silent.lock().unwrap().insert(member);
    }

    /// Look-ups fail while the ring is lost.
    pub(crate) fn set_lost(&self, is_lost: bool) {
        self.is_lost.store(is_lost, Relaxed);
    }

    /// Whether this peer hears the members that it knew.
    pub(crate) fn set_touch(&self, touch: Touch) {
        *self.touch.lock().unwrap() = touch;
    }

    /// Nobody may take the place of this member for so long: it fell silent.
    pub(crate) fn grant_grace(&self, member: PeerId, grace: Duration) {
        let until = time::Instant::now() + grace;
        self.graces.lock().unwrap().insert(member, until);
    }

    /// There may be more members than those that this peer knows.
    pub(crate) fn set_large(&self) {
        self.is_large.store(true, Relaxed);
    }

    /// A service answers for one member; the others cannot be reached.
    pub(crate) fn answer_from(&self, member: PeerId, service: PeerService) {
        let me = self.me;
        self.answer_with(move |to, kind, body| {
            if to != member {
                return Err(RequestError::Unreachable("nobody is there".to_owned()));
            }
            let answer = service.answer(me, Request { kind, body }).now_or_never();
            Ok(answer.expect("such an answer needs no time")?)
        });
    }

    /// The peers that were asked something of this kind, in order.
    pub(crate) fn asked(&self, kind: Kind) -> Vec<PeerId> {
        let requests = self.requests.lock().unwrap();
        let asked = requests.iter().filter(|(_, other, _)| *other == kind);
        asked.map(|(to, ..)| *to).collect()
    }

    /// The messages of this kind that were sent to a peer, in order.
    pub(crate) fn sent<T: DeserializeOwned>(&self, to: PeerId, kind: Kind) -> Vec<T> {
        let requests = self.requests.lock().unwrap();
        let sent = requests
            .iter()
            .filter(|request| (request.0, request.1) == (to, kind));
        sent.map(|(_, _, body)| wire::decode(body).unwrap())
            .collect()
    }

    /// The changes that were sent to a peer, message by message.
    pub(crate) fn sent_deltas(&self, to: PeerId) -> Vec<Vec<Delta>> {
        let sent = self.sent::<Signed>(to, DELTAS);
        sent.iter().filter_map(rounds::read).collect()
    }

    /// The members in the order of the ring, from the owner of a domain on.
    pub(crate) fn near(&self, domain: &Domain) -> Vec<PeerId> {
        self.owner_and_next(domain.key())
    }

    /// The members in the order of the ring, from the owner of a key on.
    pub(crate) fn near_key(&self, key: Key) -> Vec<PeerId> {
        self.owner_and_next(key)
    }

    /// Some domains of one member.
    pub(crate) fn domains_of(&self, owner: PeerId, count: usize) -> Vec<Domain> {
        let names = (0..).map(|i| format!("d{i}.test").parse::<Domain>().unwrap());
        names
            .filter(|domain| self.near(domain)[0] == owner)
            .take(count)
            .collect()
    }

    /// A domain of one member.
    pub(crate) fn domain_of(&self, owner: PeerId) -> Domain {
        self.domains_of(owner, 1).remove(0)
    }

    /// Some contents that one member answers for.
    pub(crate) fn contents_of(&self, owner: PeerId, count: usize) -> Vec<ContentHash> {
        let contents = (0u32..).map(|i| ContentHash::of_body(format!("page {i}").as_bytes()));
        contents
            .filter(|content| self.owner_and_next(content.key())[0] == owner)
            .take(count)
            .collect()
    }

    /// Tells all who follow the ring of a change.
    pub(crate) fn change(&self, change: ArcChange) {
        let _ = self.changes.send(change);
    }

    /// The members from the owner of a key on.
    fn owner_and_next(&self, key: Key) -> Vec<PeerId> {
        let mut members = self.members.lock().unwrap().clone();
        members.sort_by_key(|member| member.key());
        let owner = members.iter().position(|member| member.key() >= key);
        members.rotate_left(owner.unwrap_or(0));
        members
    }
}

impl Overlay for TestRing {
    fn me(&self) -> PeerId {
        self.me
    }

    fn owners(&self, key: Key, count: usize) -> BoxFuture<'_, Result<Vec<PeerId>, LookupError>> {
        if self.is_lost.load(Relaxed) {
            return Box::pin(ready(Err(LookupError::NotJoined)));
        }
        let mut owners = self.owner_and_next(key);
        owners.truncate(count);
        Box::pin(ready(Ok(owners)))
    }

    fn owns(&self, key: Key) -> bool {
        self.owner_and_next(key).first() == Some(&self.me)
    }

    fn near(&self, key: Key, count: usize) -> Vec<PeerId> {
        if self.is_lost.load(Relaxed) {
            return Vec::new();
        }
        let mut near = self.owner_and_next(key);
        near.truncate(count);
        near
    }

    fn before(&self, key: Key) -> Option<PeerId> {
        self.owner_and_next(key).last().copied()
    }

    fn membership(&self, peer: PeerId) -> Membership {
        match self.members().contains(&peer) {
            true => Membership::Member,
            false if self.is_large.load(Relaxed) => Membership::Unknown,
            false => Membership::Stranger,
        }
    }

    fn position(&self, peer: PeerId) -> Option<Key> {
        Some(peer.key())
    }

    fn has_place(&self, peer: PeerId) -> BoxFuture<'_, Result<bool, LookupError>> {
        let owner = self.owners(peer.key(), 1);
        Box::pin(async move { Ok(owner.await?.first() == Some(&peer)) })
    }

    fn request(
        &self,
        to: PeerId,
        kind: Kind,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Bytes, RequestError>> {
        self.requests.lock().unwrap().push((to, kind, body.clone()));
        if self.silent.lock().unwrap().contains(&to) {
            return Box::pin(pending());
        }
        let answer = self.answer.lock().unwrap().clone();
        Box::pin(async move { answer(to, kind, body) })
    }

    fn round_trip(&self, peer: PeerId) -> Option<Duration> {
        (peer == self.me).then_some(Duration::ZERO)
    }

    fn reachability(&self) -> Reachability {
        Reachability::Open
    }

    fn touch(&self) -> Touch {
        *self.touch.lock().unwrap()
    }

    fn grace(&self, peer: PeerId) -> Duration {
        let graces = self.graces.lock().unwrap();
        let until = graces.get(&peer);
        until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(time::Instant::now())
        })
    }

    fn arc_changes(&self) -> broadcast::Receiver<ArcChange> {
        self.changes.subscribe()
    }
}

/// A peer at its place on the ring; the test plays its crawler.
pub(crate) struct TestPeer {
    pub ring: Arc<TestRing>,
    pub store: Store,
    pub orders: Orders,
    pub tenancy: Arc<Tenancy>,
    pub puller: Puller,
    pub provenance: Arc<Provenance>,
    _news: mpsc::Receiver<(ContentHash, Fact)>,
    pub index: Arc<LocalIndex>,
    pub signer: Signer,
    /// Wishes that nobody takes.
    pub wishes: mpsc::Sender<Wish>,
    _folder: Option<tempfile::TempDir>,
}

/// The orders that a crawler was given, in words.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

impl TestPeer {
    /// The first of these members, and the orders to its crawler. Nothing is taken over yet.
    pub(crate) fn new(
        members: impl IntoIterator<Item = PeerId>,
    ) -> (Self, mpsc::Receiver<SwarmOrder>) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let (mut peer, inbox) = Self::around(TestRing::new(members), store);
        peer._folder = Some(folder);
        (peer, inbox)
    }

    /// The same with a ring and a store that somebody else has, too.
    pub(crate) fn around(ring: Arc<TestRing>, store: Store) -> (Self, mpsc::Receiver<SwarmOrder>) {
        let (orders, inbox) = mpsc::channel(64);
        let (tell, news) = mpsc::channel(64);
        let peer = TestPeer {
            tenancy: Arc::new(Tenancy::new(ring.clone())),
            index: Arc::new(LocalIndex::new(store.clone(), tell)),
            orders: Orders(orders),
            puller: Puller::default(),
            provenance: provenance(),
            signer: Signer::new(Identity::ephemeral().unwrap(), NetworkId::default()),
            wishes: mpsc::channel(1).0,
            ring,
            store,
            _news: news,
            _folder: None,
        };
        (peer, inbox)
    }

    /// The same, on a ring where it may act on all that it owns.
    pub(crate) fn owner(
        members: impl IntoIterator<Item = PeerId>,
    ) -> (Self, mpsc::Receiver<SwarmOrder>) {
        let (peer, inbox) = Self::new(members);
        peer.tenancy.end_taking_over(whole_ring());
        peer.tenancy.end_taking_over_facts(whole_ring());
        (peer, inbox)
    }

    /// Its service, open.
    pub(crate) fn service(&self) -> PeerService {
        let service = PeerService::default();
        service.open(Answering {
            overlay: self.ring.clone(),
            store: self.store.clone(),
            orders: self.orders.clone(),
            rights: Rights::new(self.ring.clone()),
            budgets: Default::default(),
            tenancy: self.tenancy.clone(),
            index: self.index.clone(),
            puller: self.puller.clone(),
            provenance: self.provenance.clone(),
            prover: Arc::new(Prover::new(self.ring.me(), None)),
            large: Default::default(),
            leaving: Default::default(),
            clocks: Default::default(),
            signer: self.signer.clone(),
            held: Arc::new(self.held_links()),
            checks: Checks(self.wishes.clone()),
            watchlist: Arc::new(Watchlist::open(self.store.clone()).unwrap()),
        });
        service
    }

    pub(crate) fn held_links(&self) -> HeldLinks {
        let book = TrustBook::open(self.store.clone(), Openness::Open).unwrap();
        let (ring, store) = (self.ring.clone(), self.store.clone());
        HeldLinks::new(ring, store, self.orders.clone(), Arc::new(book))
    }

    pub(crate) fn keepers(&self) -> Keepers {
        let book = TrustBook::open(self.store.clone(), Openness::Open).unwrap();
        Keepers {
            store: self.store.clone(),
            book: Arc::new(book),
        }
    }

    pub(crate) fn sweeper(&self) -> Sweeper {
        Sweeper {
            overlay: self.ring.clone(),
            store: self.store.clone(),
            tenancy: self.tenancy.clone(),
            orders: self.orders.clone(),
            puller: self.puller.clone(),
            bell: Default::default(),
        }
    }

    /// Puts a replica with these versions and this many waiting URLs into the store.
    pub(crate) fn hold(&self, domain: &Domain, versions: &Versions, waiting: u64) {
        let mut state = DomainState::default();
        state.versions = versions.clone();
        let mut commit = Commit::new();
        commit.put_domain(domain, state.encode());
        for number in 0..waiting {
            commit.put_pending(domain, &waiting_url(domain, number));
        }
        self.store.apply(&commit).unwrap();
    }

    /// Puts a content fact into the store.
    pub(crate) fn know(&self, content: &ContentHash, fact: Fact) {
        let mut commit = Commit::new();
        commit.put_fact(content, fact);
        self.store.apply(&commit).unwrap();
    }
}

/// A peer with a key, whose id is not one of a test ring.
pub(crate) fn signer() -> Signer {
    Signer::new(Identity::ephemeral().unwrap(), NetworkId::default())
}

/// The means of telling where replicas come from.
pub(crate) fn provenance() -> Arc<Provenance> {
    Arc::new(Provenance::new(signer()))
}

/// Changes as they are sent, signed by whomever.
pub(crate) fn signed(deltas: &[Delta]) -> Signed {
    rounds::sign(&signer(), deltas)
}

/// The answer of a replica that says the same to every change.
pub(crate) fn answer_deltas(body: &[u8], answer: DeltaAnswer) -> Bytes {
    let round: Signed = wire::decode(body).unwrap();
    let deltas = rounds::read(&round).unwrap();
    wire::encode(&vec![answer; deltas.len()])
}

/// Asks a service as another peer would.
pub(crate) async fn ask<T: Serialize>(
    service: &PeerService,
    from: PeerId,
    kind: Kind,
    message: &T,
) -> Result<Bytes, Refusal> {
    let body = wire::encode(message);
    service.answer(from, Request { kind, body }).await
}

/// A crawler that does all that it is told; gives its log.
pub(crate) fn obedient_crawler(mut inbox: mpsc::Receiver<SwarmOrder>) -> Log {
    let log = Log::default();
    let written = log.clone();
    tokio::spawn(async move {
        while let Some(order) = inbox.recv().await {
            let line = obey(order);
            written.lock().unwrap().push(line);
        }
    });
    log
}

fn obey(order: SwarmOrder) -> String {
    match order {
        SwarmOrder::Admit(_, batch, reply) => {
            let _ = reply.send(LinksAnswer::Taken {
                declined: Vec::new(),
                dropped: Vec::new(),
                seal: None,
            });
            format!("admit {}", batch.links.len())
        }
        SwarmOrder::SendAgain(_, links, reply) => {
            let _ = reply.send(());
            format!("send again {}", links.len())
        }
        SwarmOrder::Deltas(deltas, reply) => {
            let _ = reply.send(vec![DeltaAnswer::Applied; deltas.len()]);
            let names: Vec<&str> = deltas.iter().map(|delta| delta.domain.as_str()).collect();
            format!("deltas {}", names.join(" "))
        }
        SwarmOrder::Adopt(_, domain, replica, reply) => {
            let _ = reply.send(());
            format!("adopt {domain} {}", replica.queue.len())
        }
        SwarmOrder::Rounds(deltas, reply) => {
            let _ = reply.send(());
            format!("rounds {}", deltas.len())
        }
        SwarmOrder::Pages(_, domain, pages, reply) => {
            let _ = reply.send(());
            format!("pages {domain} {}", pages.len())
        }
        SwarmOrder::Lose(_) => "lose".to_owned(),
        SwarmOrder::Drained(_, reply) => {
            let _ = reply.send(true);
            "drained".to_owned()
        }
        SwarmOrder::Activate(_, reply) => {
            let _ = reply.send(());
            "activate".to_owned()
        }
        SwarmOrder::Forget(domain, _) => format!("forget {domain}"),
        SwarmOrder::PassOn(domain, _) => format!("pass on {domain}"),
        SwarmOrder::Borrow(_, borrow, reply) => {
            let _ = reply.send(());
            format!("borrow {}", borrow.url().as_str())
        }
        SwarmOrder::Result(..) => "result".to_owned(),
        SwarmOrder::Watch(_, ask, _) => format!("watch {}", ask.domain),
        SwarmOrder::Quiesce(mut quiescing) => {
            quiescing.reached.take().map(|reached| reached.send(()));
            "quiesce".to_owned()
        }
    }
}

/// The versions of a replica with this many changes by each of these owners.
pub(crate) fn versions(changes: &[(PeerId, u32)]) -> Versions {
    let mut versions = Versions::default();
    for &(owner, count) in changes {
        let tenure = Tenure::begin(owner, Time::from_millis(5), Tenure::default());
        (0..count).for_each(|_| _ = versions.advance(tenure));
    }
    versions
}

/// A link to a page of a domain.
pub(crate) fn link(domain: &Domain, number: u64) -> Link {
    Link {
        url: PageUrl::parse(&format!("http://{domain}/{number}")).unwrap(),
        depth: 0,
        target: Target::Page,
    }
}

/// A URL in the queue of its domain.
pub(crate) fn waiting_url(domain: &Domain, number: u64) -> Pending {
    let slot = Slot {
        rank: 0,
        sequence: number,
    };
    Pending::admitted(link(domain, number), slot, CrawlId::OPEN)
}

/// A page of this name that had some content first.
pub(crate) fn fact(name: &str) -> Fact {
    Fact {
        page: PageUrl::parse(&format!("http://{name}/")).unwrap(),
        time: Time::from_millis(1),
        keeper: peer(0xf0),
    }
}
