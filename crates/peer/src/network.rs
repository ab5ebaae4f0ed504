//! This peer's place among the others: the overlay of its choice, what it remembers of it, and what
//! it shows of it.

use crate::{
    config::{NetworkConfig, OverlayChoice},
    swarm::trust::standing::Standing,
};
use apoidea_fetch::own_interfaces;
use apoidea_governor::Switch;
use apoidea_model::{Domain, PeerId, Route};
use apoidea_overlay::{
    AddressBook, AddressPolicy, Bandwidth, Chord, ChordSettings, Effort, EntryPoint, EntryState,
    EntryStatus, Fixed, FixedSettings, Identity, IdentityError, Invite, InvitedPeer, KnownPeer,
    LocalDiscovery, LookupError, NetworkId, Overlay, OverlayStartError, PeerView, Phase,
    Reachability, RendezvousUse, RingSettings, RingStanding, Service, SettingOut, Signer, ToilFile,
    Touch, Traffic, Transport, TransportSettings,
};
use apoidea_store::{Commit, Store};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU64,
    path::Path,
    sync::Arc,
    time::Duration,
};

/// The file with the peer's key, in its data folder.
const IDENTITY_FILE: &str = "identity";
/// Where the peers met so far are remembered.
const PEERS_VALUE: &str = "peers";
/// How often they are written down: a crash costs at most the acquaintances of this long.
pub(crate) const REMEMBER_EVERY: Duration = Duration::from_secs(60);

/// A name in DNS where the ring is entered, given when the program is built; usually none.
const ENTRY_NAME: Option<&str> = option_env!("APOIDEA_ENTRY_NAME");

/// So many peers that name an address of this peer are believed, whatever others say.
const OWN_ADDRESS_VOTES: usize = 3;

/// The overlay that the settings chose.
pub(crate) struct Network {
    overlay: Choice,
    signer: Signer,
    store: Store,
    /// The proof of the work for this peer's identity.
    toil: ToilFile,
    /// Whether it looks for others by itself.
    has_company: bool,
    name: NetworkId,
    advertise: Vec<SocketAddr>,
}

enum Choice {
    Chord(Arc<Chord>),
    Fixed(Arc<Fixed>),
}

/// Why a peer cannot take its place in the network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The key file cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The transport does not start.
    #[error("cannot talk to other peers: {0}; choose another port with network.port, or 0 for any")]
    Start(#[from] OverlayStartError),
    /// The member list of a fixed network does not fit.
    #[error("network.overlay is \"fixed\", but this peer ({0}) is not among network.members")]
    NotAMember(PeerId),
}

/// A peer's place in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NetworkState {
    /// It takes no part.
    Outside,
    /// It looks for others.
    Joining,
    /// There is no other peer.
    Alone,
    /// It is on the ring.
    Member {
        /// Members in all, itself included, as far as can be told.
        peers: u64,
    },
    /// It is in a network whose members are listed in the settings.
    Fixed {
        /// Members in all, itself included.
        peers: u64,
        /// Members that do not answer.
        down: u64,
    },
}

/// The network as seen from this peer.
#[derive(Debug, Clone, Serialize, Deserialize, ts_rs::TS)]
pub struct NetworkStatus {
    /// This peer.
    pub me: PeerId,
    /// This peer's place in it.
    pub standing: NetworkState,
    /// Members of the network, as far as can be told.
    pub size_estimate: f64,
    /// The share of all keys that this peer owns, 0 to 1.
    pub share: f64,
    /// Where this peer listens.
    pub listens: Vec<SocketAddr>,
    /// The addresses under which others see this peer, as far as enough of them agree.
    pub seen_at: Vec<SocketAddr>,
    /// Can others reach this peer without being called first?
    pub reachability: Reachability,
    /// How often others refused this peer's seat on the ring: its clock is wrong, or its address.
    pub seat_refused: u64,
    /// Who is before this peer on the ring.
    pub predecessor: Option<PeerId>,
    /// Who is after it, nearest first.
    pub successors: Vec<PeerId>,
    /// Distinct fingers beyond the successors.
    pub fingers: Vec<PeerId>,
    /// The leaf set: neighbours on either side.
    pub leaves: Vec<PeerId>,
    /// Measured round trips in milliseconds.
    pub round_trips_ms: BTreeMap<PeerId, f64>,
    /// Peers with a connection now.
    pub connected: Vec<PeerView>,
    /// What this peer found when it checked the work of others, liars first.
    pub standings: Vec<Standing>,
    /// Requests and bytes since the start.
    pub traffic: Traffic,
    /// The ring's own messages: kind, sent, received.
    pub ring_messages: Vec<(String, u64, u64)>,
}

impl Network {
    /// Takes the peer's place, or begins to look for it.
    pub(crate) fn start(
        config: &NetworkConfig,
        folder: &Path,
        store: Store,
        service: Arc<dyn Service>,
        setting_out: SettingOut,
        rendezvous: Switch,
    ) -> Result<Self, NetworkError> {
        let file = folder.join(IDENTITY_FILE);
        let identity = Identity::load_or_create(&file)?;
        let signer = Signer::new(identity.clone(), config.name.clone());
        let overlay = match config.overlay {
            OverlayChoice::Chord => Choice::Chord(Arc::new(start_chord(
                config,
                identity,
                &store,
                service,
                (setting_out, rendezvous),
            )?)),
            OverlayChoice::Fixed => {
                Choice::Fixed(Arc::new(start_fixed(config, identity, service)?))
            }
        };
        let has_company = config.local_network == LocalDiscovery::On
            || !config.entry_points.is_empty()
            || !config.rendezvous().is_empty();
        let network = Network {
            overlay,
            signer,
            store,
            name: config.name.clone(),
            advertise: config.advertise.clone(),
            toil: ToilFile::beside(&file),
            has_company,
        };
        if setting_out == SettingOut::AtOnce {
            network.do_toil();
        }
        Ok(network)
    }

    /// Does the work that the network asks of an identity, unless it was done before or nobody is
    /// looked for. Until then others turn this peer away, and it tries again.
    fn do_toil(&self) {
        if self.has_company {
            drop(tokio::spawn(self.toil()));
        }
    }

    /// Does that work now: somebody is to be called, or will call.
    fn toil(&self) -> impl Future<Output = ()> + Send + use<> {
        let (transport, file) = (self.transport().clone(), self.toil.clone());
        async move {
            let (id, effort) = (transport.me(), transport.effort());
            if effort == Effort::NONE {
                return;
            }
            let work = move || {
                if let Some(toil) = file.load_or_do(id, effort, || transport.is_closed()) {
                    transport.show_toil(toil);
                }
            };
            let _ = tokio::task::spawn_blocking(work).await;
        }
    }

    /// Signs as this peer in this network.
    pub(crate) fn signer(&self) -> &Signer {
        &self.signer
    }

    /// May anybody become a member?
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.overlay, Choice::Chord(_))
    }

    /// What the crawler needs of it.
    pub(crate) fn overlay(&self) -> Arc<dyn Overlay> {
        match &self.overlay {
            Choice::Chord(chord) => chord.clone(),
            Choice::Fixed(fixed) => fixed.clone(),
        }
    }

    /// Gives this peer's place up, but answers on.
    pub(crate) async fn leave(&self) {
        if let Choice::Chord(chord) = &self.overlay {
            chord.leave().await;
        }
    }

    /// Takes a place, again after having left or for the first time.
    pub(crate) fn enter(&self) {
        self.do_toil();
        if let Choice::Chord(chord) = &self.overlay {
            chord.enter();
        }
    }

    /// Does this peer have a place among others that it can give up?
    pub(crate) fn is_member(&self) -> bool {
        match &self.overlay {
            Choice::Chord(chord) => chord.standing().borrow().phase == Phase::Member,
            Choice::Fixed(_) => false,
        }
    }

    /// The peers responsible for a domain, its owner first, by their own word: whoever asks wants
    /// to know how it is now, and nobody would correct an answer from memory.
    pub(crate) async fn owners(
        &self,
        domain: &Domain,
        count: usize,
    ) -> Result<Vec<PeerId>, LookupError> {
        if let Choice::Chord(chord) = &self.overlay {
            return chord.owners_afresh(domain.key(), count).await;
        }
        self.overlay().owners(domain.key(), count).await
    }

    /// What `apoidea peers` shows.
    pub(crate) async fn status(&self) -> NetworkStatus {
        let transport = self.transport();
        let mut status = NetworkStatus {
            me: transport.me(),
            standing: self.standing(),
            size_estimate: 1.0,
            share: 1.0,
            listens: transport.local_addresses(),
            seen_at: transport.believed_addresses(),
            reachability: self.overlay().reachability(),
            seat_refused: 0,
            predecessor: None,
            successors: Vec::new(),
            fingers: Vec::new(),
            leaves: Vec::new(),
            round_trips_ms: BTreeMap::new(),
            connected: transport.peers(),
            standings: Vec::new(),
            traffic: transport.traffic(),
            ring_messages: Vec::new(),
        };
        if let Choice::Chord(chord) = &self.overlay
            && let Some(ring) = chord.status().await
        {
            let ids = |contacts: &[apoidea_overlay::Contact]| {
                contacts.iter().map(|contact| contact.id).collect()
            };
            status.size_estimate = ring.size_estimate;
            status.seat_refused = ring.misplaced;
            status.share = ring.arc.map_or(0.0, |arc| arc.share());
            status.predecessor = ring.predecessor.as_ref().map(|contact| contact.id);
            status.successors = ids(&ring.successors);
            status.fingers = ids(&ring.fingers);
            status.leaves = ids(&ring.leaves);
            let millis = ring
                .round_trips
                .iter()
                .map(|(id, took)| (*id, took.as_secs_f64() * 1000.0));
            status.round_trips_ms = millis.collect();
            let counts = ring
                .counters
                .iter()
                .map(|count| (format!("{:?}", count.kind), count.sent, count.received));
            status.ring_messages = counts.collect();
        }
        status
    }

    /// Is this peer cut off from most of the others that it knew?
    pub(crate) fn is_cut_off(&self) -> bool {
        self.overlay().touch() == Touch::Few
    }

    /// This peer's place in the network.
    pub(crate) fn standing(&self) -> NetworkState {
        match &self.overlay {
            Choice::Chord(chord) => {
                let standing = NetworkState::from(*chord.standing().borrow());
                let is_trying = |entry: &EntryStatus| entry.state == EntryState::Trying;
                match standing == NetworkState::Outside && chord.entries().iter().any(is_trying) {
                    true => NetworkState::Joining,
                    false => standing,
                }
            }
            Choice::Fixed(fixed) => {
                let (peers, down) = (fixed.size() as u64, fixed.down().len() as u64);
                NetworkState::Fixed { peers, down }
            }
        }
    }

    /// An invite to this network: this peer, and neighbours for the time when it is away.
    pub(crate) async fn invite(&self) -> Invite {
        self.toil().await;
        let transport = self.transport();
        let me = InvitedPeer {
            id: transport.me(),
            addresses: self.reachable_at(),
        };
        let neighbours = match &self.overlay {
            Choice::Chord(chord) => chord.neighbours().await,
            Choice::Fixed(_) => Vec::new(),
        };
        let neighbours = neighbours.into_iter().map(|contact| InvitedPeer {
            id: contact.id,
            addresses: transport
                .routes(contact.id)
                .iter()
                .filter_map(|route| route.address())
                .collect(),
        });
        let peers = std::iter::once(me).chain(neighbours);
        Invite::new(self.name.clone(), transport.policy(), peers)
    }

    /// Calls the peers of an invite to this network; gives the number of those that answer.
    pub(crate) async fn call(&self, invite: &Invite) -> usize {
        let Choice::Chord(chord) = &self.overlay else {
            return 0;
        };
        self.toil().await;
        let contacts = invite.contacts();
        chord.learn(contacts.clone()).await;
        let pings = contacts.iter().map(|contact| async {
            let me = self.transport().me();
            contact.id != me && self.transport().ping(contact.id).await.is_ok()
        });
        let answered = futures::future::join_all(pings).await;
        answered.into_iter().filter(|answered| *answered).count()
    }

    /// The network's name, and the addresses that its peers may dial.
    pub(crate) fn kind(&self) -> (&NetworkId, AddressPolicy) {
        (&self.name, self.transport().policy())
    }

    /// The addresses at which others may find this peer, the likeliest first.
    fn reachable_at(&self) -> Vec<SocketAddr> {
        if !self.advertise.is_empty() {
            return self.advertise.clone();
        }
        let observed = self.transport().observed_routes();
        let observed = observed.iter().filter_map(|(route, _)| route.address());
        let interfaces = own_interfaces();
        let local = self.transport().local_addresses();
        let local = local.iter().flat_map(|listened| {
            let own = interfaces.iter().copied();
            let same = own.filter(|ip| ip.is_ipv4() == listened.is_ipv4() && !ip.is_loopback());
            match listened.ip().is_unspecified() {
                true => same
                    .map(|ip| SocketAddr::new(ip, listened.port()))
                    .collect(),
                false => vec![*listened],
            }
        });
        let mut all = Vec::new();
        for address in observed.chain(local) {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }

    /// The ways into the ring, in order, and how each went; none where members are listed.
    pub(crate) fn entries(&self) -> Vec<EntryStatus> {
        match &self.overlay {
            Choice::Chord(chord) => chord.entries().to_vec(),
            Choice::Fixed(_) => Vec::new(),
        }
    }

    /// Whether the rendezvous may be used from now on.
    pub(crate) fn allow_rendezvous(&self, switch: Switch) {
        if let Choice::Chord(chord) = &self.overlay {
            chord.allow_rendezvous(rendezvous_use(switch));
        }
    }

    /// Bytes that the rendezvous has used since the start.
    pub(crate) fn rendezvous_bytes(&self) -> u64 {
        match &self.overlay {
            Choice::Chord(chord) => chord.rendezvous_bytes(),
            Choice::Fixed(_) => 0,
        }
    }

    /// Bytes received and sent since the start, as far as the overlay sees them.
    pub(crate) fn traffic_bytes(&self) -> (u64, u64) {
        self.transport().traffic_bytes()
    }

    /// Limits what the crawl's requests to other peers may use.
    pub(crate) fn limit_bandwidth(&self, down: Option<u64>, up: Option<u64>) {
        let (down, up) = (down.and_then(NonZeroU64::new), up.and_then(NonZeroU64::new));
        self.transport().limit_bandwidth(Bandwidth { down, up });
    }

    /// Writes down whom this peer has met, for the next start.
    pub(crate) fn remember(&self) {
        let book = self.transport().address_book();
        let Ok(bytes) = postcard::to_stdvec(&book) else {
            return;
        };
        let mut commit = Commit::new();
        commit.set_value(PEERS_VALUE, &bytes);
        if let Err(error) = self.store.apply(&commit) {
            tracing::warn!(%error, "the peers met so far were not remembered");
        }
    }

    /// The address under which most others see this peer.
    pub(crate) fn own_address(&self) -> Option<IpAddr> {
        self.transport()
            .observed_routes()
            .iter()
            .find_map(|(route, _)| Some(route.address()?.ip()))
    }

    /// The addresses under which others see this peer: of each family the one that most name, and
    /// every one that several name. A single liar adds none beside an honest peer.
    pub(crate) fn own_addresses(&self) -> Vec<IpAddr> {
        own_addresses(self.transport().observed_routes())
    }

    /// Leaves the network and stops listening.
    pub(crate) async fn shut_down(&self) {
        self.remember();
        match &self.overlay {
            Choice::Chord(chord) => chord.shut_down().await,
            Choice::Fixed(fixed) => fixed.transport().shut_down().await,
        }
    }

    fn transport(&self) -> &Transport {
        match &self.overlay {
            Choice::Chord(chord) => chord.transport(),
            Choice::Fixed(fixed) => fixed.transport(),
        }
    }
}

fn own_addresses(observed: Vec<(Route, usize)>) -> Vec<IpAddr> {
    let mut votes = BTreeMap::<IpAddr, usize>::new();
    for (route, count) in observed {
        if let Some(address) = route.address() {
            *votes.entry(address.ip().to_canonical()).or_default() += count;
        }
    }
    let most = |is_v4: bool| {
        let family = votes
            .iter()
            .filter(|(address, _)| address.is_ipv4() == is_v4);
        family.map(|(_, count)| *count).max().unwrap_or_default()
    };
    let enough = [most(false), most(true)].map(|most| most.min(OWN_ADDRESS_VOTES));
    votes
        .iter()
        .filter(|(address, count)| **count >= enough[usize::from(address.is_ipv4())])
        .map(|(address, _)| *address)
        .collect()
}

fn start_chord(
    config: &NetworkConfig,
    identity: Identity,
    store: &Store,
    service: Arc<dyn Service>,
    (setting_out, rendezvous): (SettingOut, Switch),
) -> Result<Chord, NetworkError> {
    let stored = store.value(PEERS_VALUE).ok().flatten().unwrap_or_default();
    let known: Vec<KnownPeer> = postcard::from_bytes(&stored).unwrap_or_default();
    let settings = ChordSettings {
        entry_points: config.entry_points.clone(),
        entry_name: entry_name(ENTRY_NAME),
        rendezvous_nodes: config.rendezvous(),
        local_network: config.local_network,
        advertise: config.advertise.clone(),
        ring: ring_settings(config),
        rendezvous: rendezvous_use(rendezvous),
        setting_out,
    };
    let start = |port| {
        let book = AddressBook::from_snapshot(known.clone());
        Chord::start(
            identity.clone(),
            transport_settings(config, port),
            settings.clone(),
            book,
            service.clone(),
        )
    };
    Ok(on_a_free_port(config.port, start)?)
}

fn rendezvous_use(switch: Switch) -> RendezvousUse {
    match switch {
        Switch::On => RendezvousUse::Allowed,
        Switch::Off => RendezvousUse::Forbidden,
    }
}

fn entry_name(name: Option<&str>) -> Option<EntryPoint> {
    let name = name.map(str::trim).filter(|name| !name.is_empty())?;
    match name.parse() {
        Ok(entry) => Some(entry),
        Err(error) => {
            tracing::error!(%error, "the name that this program was built with is not used");
            None
        }
    }
}

fn ring_settings(config: &NetworkConfig) -> RingSettings {
    let defaults = RingSettings::default();
    let stabilize_every = config.stabilize_ms.as_millis();
    RingSettings {
        stabilize_every,
        check_every: config.check_ms.as_millis(),
        // Three rounds, as by default, but never less: a short stop of the machine is not an
        // absence.
        absent_after: defaults.absent_after.max(3 * stabilize_every),
        ..defaults
    }
}

fn start_fixed(
    config: &NetworkConfig,
    identity: Identity,
    service: Arc<dyn Service>,
) -> Result<Fixed, NetworkError> {
    if !config
        .members
        .iter()
        .any(|member| member.id == identity.id())
    {
        return Err(NetworkError::NotAMember(identity.id()));
    }
    let settings = FixedSettings {
        members: config.members.clone(),
        ..FixedSettings::default()
    };
    let transport = transport_settings(config, config.port);
    Ok(Fixed::start(identity, transport, settings, service)?)
}

/// Several peers on one machine: the first has the usual port, the others any.
fn on_a_free_port<T>(
    port: u16,
    start: impl Fn(u16) -> Result<T, OverlayStartError>,
) -> Result<T, OverlayStartError> {
    match start(port) {
        Err(OverlayStartError::Listen { source, .. })
            if source.kind() == std::io::ErrorKind::AddrInUse =>
        {
            start(0)
        }
        started => started,
    }
}

fn transport_settings(config: &NetworkConfig, port: u16) -> TransportSettings {
    let listen = if config.listen.is_empty() {
        vec![
            (Ipv4Addr::UNSPECIFIED, port).into(),
            (Ipv6Addr::UNSPECIFIED, port).into(),
        ]
    } else {
        config
            .listen
            .iter()
            .map(|&address| SocketAddr::new(address, port))
            .collect()
    };
    let addresses = if config.is_private {
        AddressPolicy::Private
    } else {
        AddressPolicy::Global
    };
    let effort = if config.is_private {
        Effort::NONE
    } else {
        Effort::IDENTITY
    };
    TransportSettings {
        network: config.name.clone(),
        listen,
        addresses,
        effort,
        ..TransportSettings::default()
    }
}

impl From<RingStanding> for NetworkState {
    fn from(standing: RingStanding) -> Self {
        match standing.phase {
            Phase::Outside => NetworkState::Outside,
            Phase::Joining => NetworkState::Joining,
            Phase::Alone => NetworkState::Alone,
            Phase::Member => NetworkState::Member {
                peers: standing.size_estimate.max(2.0).round() as u64,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_be_built_with_a_name() {
        assert_eq!(entry_name(None), None);
        assert_eq!(entry_name(Some(" ")), None);
        assert_eq!(entry_name(Some("not a name")), None);
        let name = entry_name(Some("entry.example.org"));
        assert_eq!(name.unwrap().to_string(), "entry.example.org:27643");
    }

    #[test]
    fn the_address_that_most_name_is_own_and_so_is_every_one_that_several_name() {
        let told = |routes: &[(&str, usize)]| {
            let routes = routes.iter();
            let routes = routes.map(|(route, count)| (route.parse().unwrap(), *count));
            let own = own_addresses(routes.collect()).into_iter();
            own.map(|address| address.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(told(&[]), [""; 0]);
        let alone = [("1.1.1.1:5", 1), ("[2a00::1]:5", 1)];
        assert_eq!(told(&alone), ["1.1.1.1", "2a00::1"]);
        let one_liar = [("1.1.1.1:5", 1), ("1.1.1.1:6", 1), ("8.8.8.8:5", 1)];
        assert_eq!(told(&one_liar), ["1.1.1.1"]);
        let two_homes = [("1.1.1.1:5", 9), ("8.8.8.8:5", 3), ("9.9.9.9:5", 2)];
        assert_eq!(told(&two_homes), ["1.1.1.1", "8.8.8.8"]);
    }
}
