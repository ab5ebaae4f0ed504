//! Finding a way into the ring, and back into it.
//!
//! At the start, this peer asks the peers remembered from the last run, the entry points, and the
//! local network. If none of them answers, it looks at the rendezvous. If nobody is there either, it
//! begins a ring of its own, announces itself so that the next one finds it, and goes on asking, ever
//! more rarely. The ring merges with the other one as soon as it hears of it.

use super::{
    ChordSettings, LocalDiscovery, RendezvousUse, RingStanding, SettingOut,
    dial_back::Reachability,
    entry::{Entries, EntryLog, EntryState, EntryWay},
    entry_point::EntryPoint,
    local_network::LocalNetwork,
    local_peers::LocalPeers,
    mailbox::{Command, Mailbox},
    openness::{open_port, own_port},
};
use crate::{
    AddressPolicy, NetworkId, Source, Transport,
    rendezvous::{Rendezvous, RendezvousTraffic},
};
use apoidea_chord::{Contact, Phase};
use apoidea_model::{PeerId, Route, is_global};
use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use hickory_resolver::TokioResolver;
use rand::{RngExt, seq::SliceRandom};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, watch},
    time,
};

/// Entry points asked in one attempt, chosen at random so that no one of them carries all
/// newcomers.
const ENTRY_POINTS: usize = 6;
/// Peers of the last run asked in one attempt.
const REMEMBERED: usize = 16;
/// Further attempts to enter before a ring of one's own is begun; it merges later all the same.
const ATTEMPTS: u32 = 2;
/// Pause after the first attempt that failed; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Announcements of the local network that are followed at a time; a quarter of all dials.
const MEETINGS: usize = 16;
/// Tries to meet the peer of one announcement.
const MEETING_ATTEMPTS: u32 = 2;
/// On one wire an answer takes milliseconds, on a busy machine a second.
const MEET_WITHIN: Duration = Duration::from_secs(2);
/// The local network has so long to answer before somebody further away is asked: probing and
/// announcing take two seconds.
const LOCAL_WITHIN: Duration = Duration::from_millis(2500);
/// A dial to an address of the rendezvous; whoever answers does so in a round trip or two.
const DIAL_WITHIN: Duration = Duration::from_secs(3);
/// The proof of work for the identity is there after this long, even on a slow and busy machine.
const TOIL_WITHIN: Duration = Duration::from_secs(20);
/// Such dials at a time.
const DIALS_AT_ONCE: usize = 4;
/// Peers of the rendezvous that are enough to enter by: one of them may be a liar.
const ENOUGH_MET: usize = 3;
/// The pauses after which a peer that has met nobody on the local network asks again who is there:
/// a neighbour may have been too slow to answer at first. Each is twice as long as the one before.
const LOCAL_AGAIN: Duration = Duration::from_secs(5);
const LOCAL_AGAIN_MOST: Duration = Duration::from_secs(600);
/// How long one name is used on the local network.
const RENAME_EVERY: Duration = Duration::from_secs(3600);
/// A member that others can reach announces itself this often; the DHT forgets after half an hour.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(1200);
/// The first announcement of a member, when it is clear that it stays.
const ANNOUNCE_FIRST: Duration = Duration::from_secs(60);
/// So many members announce themselves at a time, whatever the size of the ring.
const ANNOUNCERS: f64 = 16.0;

pub(crate) struct Bootstrap {
    transport: Transport,
    mailbox: Mailbox,
    standing: watch::Receiver<RingStanding>,
    reachability: watch::Receiver<Reachability>,
    network: NetworkId,
    settings: ChordSettings,
    resolver: Option<TokioResolver>,
    /// Rung when a peer that left is to enter again.
    again: Arc<Notify>,
    entries: EntryLog,
    rendezvous: Option<Rendezvous>,
    switch: RendezvousSwitch,
    /// The local network is listened to since then.
    begun: Instant,
}

/// Whether the rendezvous may be used, and what it has used.
#[derive(Debug, Clone, Default)]
pub(crate) struct RendezvousSwitch {
    is_forbidden: Arc<AtomicBool>,
    traffic: RendezvousTraffic,
}

impl RendezvousSwitch {
    pub fn allow(&self, is_allowed: bool) {
        self.is_forbidden.store(!is_allowed, Relaxed);
    }

    pub fn bytes(&self) -> u64 {
        self.traffic.bytes()
    }

    fn is_allowed(&self) -> bool {
        !self.is_forbidden.load(Relaxed)
    }
}

impl Bootstrap {
    pub fn new(
        transport: Transport,
        mailbox: Mailbox,
        (standing, reachability): (watch::Receiver<RingStanding>, watch::Receiver<Reachability>),
        network: NetworkId,
        settings: ChordSettings,
        again: Arc<Notify>,
    ) -> (Self, watch::Receiver<Entries>, RendezvousSwitch) {
        let (entries, watch) = EntryLog::new();
        let nodes = settings.rendezvous_nodes.clone();
        let listened = transport.local_addresses();
        let from = listened.iter().find_map(|address| match address.ip() {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        });
        let rendezvous = from
            .filter(|_| !nodes.is_empty())
            .map(|from| Rendezvous::new(network.clone(), nodes, from));
        let switch = RendezvousSwitch {
            is_forbidden: Arc::new(AtomicBool::new(
                settings.rendezvous == RendezvousUse::Forbidden,
            )),
            traffic: rendezvous
                .as_ref()
                .map(Rendezvous::traffic)
                .unwrap_or_default(),
        };
        let bootstrap = Bootstrap {
            transport,
            mailbox,
            standing,
            reachability,
            network,
            settings,
            resolver: None,
            again,
            entries,
            rendezvous,
            switch: switch.clone(),
            begun: Instant::now(),
        };
        (bootstrap, watch, switch)
    }

    /// Enters, and enters again whenever this peer finds itself alone or is told to.
    pub async fn run(mut self) {
        if self.settings.setting_out == SettingOut::WhenTold {
            self.again.notified().await;
        }
        self.begun = Instant::now();
        let local = self.listen_locally();
        let again = self.again.clone();
        let enter = async {
            loop {
                self.enter().await;
                tokio::select! {
                    () = self.stay() => return,
                    () = again.notified() => {}
                }
            }
        };
        tokio::join!(enter, local);
    }

    async fn enter(&mut self) {
        let mut contacts = self.find().await;
        for attempt in 0..ATTEMPTS {
            if !contacts.is_empty() || self.settings.entry_points.is_empty() {
                break;
            }
            tracing::warn!("no entry point answers");
            time::sleep(pause(attempt)).await;
            contacts = self.find().await;
        }
        self.mailbox.send(Command::Join(contacts)).await;
    }

    async fn stay(&mut self) {
        let mut attempt = 0;
        let mut standing = self.standing.clone();
        let mut announce_in = ANNOUNCE_FIRST;
        loop {
            let is_adrift =
                |standing: &RingStanding| matches!(standing.phase, Phase::Alone | Phase::Joining);
            let adrift = time::timeout(spread(announce_in), standing.wait_for(is_adrift)).await;
            let adrift = adrift.map(|standing| standing.is_ok());
            match adrift {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => {
                    self.announce_if_open().await;
                    announce_in = ANNOUNCE_EVERY;
                    continue;
                }
            }
            let settled = standing.wait_for(|standing| standing.phase == Phase::Member);
            let is_settled = time::timeout(pause(attempt), settled).await.is_ok();
            if is_settled {
                attempt = 0;
                if let Some(rendezvous) = &mut self.rendezvous {
                    rendezvous.rest();
                }
                continue;
            }
            attempt += 1;
            let contacts = self.find().await;
            self.mailbox.send(Command::Learned(contacts)).await;
        }
    }

    /// Tries the ways in their order; returns the peers that answered. All that the volunteer, the
    /// operator or this peer itself knows are asked together, the rendezvous only if none of them
    /// and nobody on the local network answers.
    async fn find(&mut self) -> Vec<Contact> {
        if self.resolver.is_none() {
            self.resolver = TokioResolver::builder_tokio()
                .and_then(|builder| builder.build())
                .ok();
        }
        let named = self.settings.entry_name.iter().cloned().collect();
        let remembered = self.remembered();
        self.entries
            .try_many(EntryWay::Remembered, remembered.len());
        let calls = async {
            let called = join_all(remembered.into_iter().map(|peer| self.call(peer))).await;
            let met: Vec<PeerId> = called.into_iter().flatten().collect();
            self.entries.answered(EntryWay::Remembered, met.len());
            met
        };
        let (called, knocked, looked_up) = tokio::join!(
            calls,
            self.knock_at(EntryWay::Configured, self.settings.entry_points.clone()),
            self.knock_at(EntryWay::Name, named),
        );
        let mut met = [called, knocked, looked_up].concat();
        if met.is_empty() {
            // A name server that did not answer may be another one by now.
            self.resolver = None;
            met = self.meet_at_rendezvous().await;
        }
        met.into_iter()
            .map(|peer| Contact::new(peer, &self.transport.routes(peer)))
            .collect()
    }

    /// Asks a few of these entry points.
    async fn knock_at(&self, way: EntryWay, mut entry_points: Vec<EntryPoint>) -> Vec<PeerId> {
        entry_points.shuffle(&mut rand::rng());
        entry_points.truncate(ENTRY_POINTS);
        self.entries.try_many(way, entry_points.len());
        let knocks = join_all(entry_points.into_iter().map(|entry| self.knock(entry))).await;
        let met: Vec<PeerId> = knocks.into_iter().flatten().collect();
        self.entries.answered(way, met.len());
        met
    }

    /// Finds the peers at an entry point.
    async fn knock(&self, entry: EntryPoint) -> Vec<PeerId> {
        let addresses = entry.place.addresses(self.resolver.as_ref()).await;
        if let Some(id) = entry.id {
            self.transport.learn(id, addresses, Source::Configured);
            return self.call(id).await.into_iter().collect();
        }
        let mut met = Vec::new();
        for address in addresses {
            match self.transport.meet(address).await {
                Ok(peer) => {
                    // The user gave this address, so the policy does not apply to it.
                    self.transport.learn(peer, [address], Source::Configured);
                    met.push(peer);
                }
                Err(error) => {
                    tracing::debug!(%entry, %address, %error, "an entry point does not answer")
                }
            }
        }
        met
    }

    async fn call(&self, peer: PeerId) -> Option<PeerId> {
        (peer != self.transport.me() && self.transport.ping(peer).await.is_ok()).then_some(peer)
    }

    fn remembered(&self) -> Vec<PeerId> {
        let mut peers: Vec<_> = self
            .transport
            .address_book()
            .into_iter()
            .map(|entry| entry.id)
            .collect();
        peers.shuffle(&mut rand::rng());
        peers.truncate(REMEMBERED);
        peers
    }

    /// Looks who announced themselves, and dials a few of them. A peer that finds nobody announces
    /// itself, reachable or not: otherwise no ring would ever begin.
    async fn meet_at_rendezvous(&mut self) -> Vec<PeerId> {
        if self.rendezvous.is_none() || !self.switch.is_allowed() {
            self.entries.note(EntryWay::Rendezvous, EntryState::Off);
            return Vec::new();
        }
        self.wait_for_local_peers().await;
        let is_found = self.entries.state(EntryWay::LocalNetwork) == EntryState::Found;
        let own = self.own_addresses();
        let Some(rendezvous) = self.rendezvous.as_mut().filter(|_| !is_found) else {
            return Vec::new();
        };
        if !rendezvous.is_due() {
            return Vec::new();
        }
        self.entries.note(EntryWay::Rendezvous, EntryState::Trying);
        let meeting = rendezvous.meet(self.resolver.as_ref(), &own).await;
        if meeting.answered == 0 {
            self.entries.note(EntryWay::Rendezvous, EntryState::Closed);
            return Vec::new();
        }
        self.entries
            .try_many(EntryWay::Rendezvous, meeting.dial.len());
        if !meeting.dial.is_empty() {
            // Searches are rare, so none of these dials should be in vain.
            let _ = time::timeout(TOIL_WITHIN, self.transport.toiled()).await;
        }
        let met = dial_few(&self.transport, meeting.dial).await;
        self.entries.answered(EntryWay::Rendezvous, met.len());
        if met.is_empty()
            && let Some(port) = own_port(&self.transport)
        {
            rendezvous.announce(self.resolver.as_ref(), port).await;
        }
        met
    }

    async fn wait_for_local_peers(&self) {
        let until = self.begun + LOCAL_WITHIN;
        while self.entries.state(EntryWay::LocalNetwork) == EntryState::Trying
            && Instant::now() < until
        {
            time::sleep(Duration::from_millis(100)).await;
        }
        if self.entries.state(EntryWay::LocalNetwork) == EntryState::Trying {
            self.entries
                .note(EntryWay::LocalNetwork, EntryState::Silent);
        }
    }

    /// The addresses at which a search must not find this peer itself.
    fn own_addresses(&self) -> Vec<IpAddr> {
        let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
        let observed = self.transport.observed_routes();
        let observed = observed.iter().filter_map(|(route, _)| route.address());
        let listened = self.transport.local_addresses().into_iter();
        let listened: Vec<IpAddr> = listened
            .map(|address| address.ip())
            .filter(|address| !address.is_unspecified())
            .collect();
        let own = match listened.is_empty() {
            true => interfaces.iter().map(|interface| interface.ip()).collect(),
            false => listened,
        };
        own.into_iter()
            .chain(observed.map(|address| address.ip()))
            .chain(self.settings.advertise.iter().map(SocketAddr::ip))
            .collect()
    }

    /// A member that strangers can reach announces itself, unless enough others do.
    async fn announce_if_open(&mut self) {
        let standing = *self.standing.borrow();
        let reachability = *self.reachability.borrow();
        let port = open_port(&self.transport, &self.settings.advertise, reachability);
        let share = ANNOUNCERS / standing.size_estimate.max(1.0);
        let is_turn = rand::rng().random_range(0.0..1.0) < share;
        let is_allowed = self.switch.is_allowed() && standing.phase == Phase::Member && is_turn;
        if let (Some(rendezvous), Some(port), true) = (&mut self.rendezvous, port, is_allowed) {
            let told = rendezvous.announce(self.resolver.as_ref(), port).await;
            tracing::debug!(told, port, "announced at the rendezvous");
        }
    }

    /// Meets the peers that are announced on the local network, and passes on those that answer.
    fn listen_locally(&self) -> impl Future<Output = ()> + use<> {
        let (transport, mailbox, network) = (
            self.transport.clone(),
            self.mailbox.clone(),
            self.network.clone(),
        );
        let (discovery, entries) = (self.settings.local_network, self.entries.clone());
        async move {
            let port = transport
                .local_addresses()
                .first()
                .map_or(0, SocketAddr::port);
            if discovery == LocalDiscovery::Off || port == 0 {
                return entries.note(EntryWay::LocalNetwork, EntryState::Off);
            }
            entries.note(EntryWay::LocalNetwork, EntryState::Trying);
            match LocalNetwork::join(network, port) {
                Ok(local) => meet_locally(local, transport, mailbox, entries).await,
                Err(error) => {
                    entries.note(EntryWay::LocalNetwork, EntryState::Closed);
                    tracing::info!(%error, "peers on the local network cannot be looked for")
                }
            }
        }
    }
}

async fn meet_locally(
    mut local: LocalNetwork,
    transport: Transport,
    mailbox: Mailbox,
    entries: EntryLog,
) {
    let (mut peers, mut meetings) = (LocalPeers::default(), FuturesUnordered::new());
    let (mut asked, mut answered) = (0, 0);
    let mut rename = time::interval(RENAME_EVERY);
    rename.tick().await;
    let mut pause = LOCAL_AGAIN;
    let mut again = Instant::now() + pause;
    loop {
        tokio::select! {
            found = local.next(), if meetings.len() < MEETINGS => match found {
                Some(addresses) => {
                    asked += 1;
                    meetings.push(meet(&transport, addresses));
                }
                None => return,
            },
            Some(met) = meetings.next() => {
                let Some((peer, address)) = met else { continue };
                answered += 1;
                entries.try_many(EntryWay::LocalNetwork, asked);
                entries.answered(EntryWay::LocalNetwork, answered);
                if peers.note(peer, Instant::now()) {
                    tracing::debug!(?peer, %address, "met on the local network");
                    transport.learn(peer, [address], Source::Proven);
                    let contact = Contact::new(peer, &[Route::from(address)]);
                    mailbox.send(Command::Learned(vec![contact])).await;
                }
            }
            () = time::sleep_until(again.into()), if answered == 0 => {
                if let Err(error) = local.ask_again() {
                    tracing::debug!(%error, "nobody is asked on the local network");
                }
                pause = (pause * 2).min(LOCAL_AGAIN_MOST);
                again = Instant::now() + pause;
            }
            _ = rename.tick() => {
                if let Err(error) = local.rename() {
                    tracing::debug!(%error, "the name on the local network stays");
                }
            }
        }
    }
}

/// The first peer that answers at one of these addresses, which belong to the same wire and so may
/// be dialled in the open network too.
async fn meet(transport: &Transport, addresses: Vec<SocketAddr>) -> Option<(PeerId, SocketAddr)> {
    for attempt in 0..MEETING_ATTEMPTS {
        time::sleep(FIRST_PAUSE * attempt).await;
        for address in addresses.iter().copied() {
            if !AddressPolicy::Private.allows(address) {
                continue;
            }
            let met = time::timeout(MEET_WITHIN, transport.meet(address)).await;
            if let Ok(Ok(peer)) = met {
                return Some((peer, address));
            }
        }
    }
    None
}

/// Dials addresses of the rendezvous, a few at a time, until a few of the network have answered. All of
/// them are in the Internet: nobody's word leads into the volunteer's own network.
async fn dial_few(transport: &Transport, addresses: Vec<SocketAddr>) -> Vec<PeerId> {
    let dial = |address: SocketAddr| async move {
        let met = time::timeout(DIAL_WITHIN, transport.meet(address)).await;
        met.ok()?.ok().map(|peer| (peer, address))
    };
    let mut dials = futures::stream::iter(
        addresses
            .into_iter()
            .filter(|address| is_global(address.ip()))
            .map(dial),
    )
    .buffer_unordered(DIALS_AT_ONCE);
    let mut found = Vec::new();
    while let Some(met) = dials.next().await {
        if let Some((peer, address)) = met
            && peer != transport.me()
        {
            transport.learn(peer, [address], Source::Proven);
            found.push(peer);
        }
        if found.len() == ENOUGH_MET {
            break;
        }
    }
    found
}

/// A time of about this length, so that many do not come at once.
fn spread(mean: Duration) -> Duration {
    mean.mul_f64(rand::rng().random_range(0.8..1.2))
}

/// The pause after so many attempts, spread so that peers that lost the same entry point do not
/// return together.
fn pause(attempt: u32) -> Duration {
    let mean = FIRST_PAUSE
        .saturating_mul(1 << attempt.min(10))
        .min(LONGEST_PAUSE);
    mean.mul_f64(rand::rng().random_range(0.5..1.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_are_spread() {
        for attempt in [0, 3, 40, u32::MAX] {
            let mean = FIRST_PAUSE
                .saturating_mul(1 << attempt.min(10))
                .min(LONGEST_PAUSE);
            let drawn = pause(attempt);
            assert!(
                drawn >= mean / 2 && drawn <= mean * 3 / 2,
                "{attempt}: {drawn:?}"
            );
        }
    }
}
