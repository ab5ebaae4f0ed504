//! Finding a way into the ring, and back into it.
//!
//! At the start, this peer asks the entry points, the peers remembered from the last run and the
//! local network. If nobody answers, it begins a ring of its own and goes on asking, ever more
//! rarely. The ring merges with the other one as soon as it hears of it.

use super::{
    ChordSettings, LocalDiscovery, RingStanding, SettingOut,
    entry_point::EntryPoint,
    local_network::LocalNetwork,
    local_peers::LocalPeers,
    mailbox::{Command, Mailbox},
};
use crate::{AddressPolicy, NetworkId, Source, Transport};
use apoidea_chord::{Contact, Phase};
use apoidea_model::{PeerId, Route};
use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use hickory_resolver::TokioResolver;
use rand::{RngExt, seq::SliceRandom};
use std::{
    net::SocketAddr,
    sync::Arc,
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
/// How long one name is used on the local network.
const RENAME_EVERY: Duration = Duration::from_secs(3600);

pub(crate) struct Bootstrap {
    transport: Transport,
    mailbox: Mailbox,
    standing: watch::Receiver<RingStanding>,
    network: NetworkId,
    settings: ChordSettings,
    resolver: Option<TokioResolver>,
    /// Rung when a peer that left is to enter again.
    again: Arc<Notify>,
}

impl Bootstrap {
    pub fn new(
        transport: Transport,
        mailbox: Mailbox,
        standing: watch::Receiver<RingStanding>,
        network: NetworkId,
        settings: ChordSettings,
        again: Arc<Notify>,
    ) -> Self {
        Bootstrap {
            transport,
            mailbox,
            standing,
            network,
            settings,
            resolver: None,
            again,
        }
    }

    /// Enters, and enters again whenever this peer finds itself alone or is told to.
    pub async fn run(mut self) {
        if self.settings.setting_out == SettingOut::WhenTold {
            self.again.notified().await;
        }
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
        loop {
            let is_adrift =
                |standing: &RingStanding| matches!(standing.phase, Phase::Alone | Phase::Joining);
            if self.standing.wait_for(is_adrift).await.is_err() {
                return;
            }
            let settled = self
                .standing
                .wait_for(|standing| standing.phase == Phase::Member);
            if time::timeout(pause(attempt), settled).await.is_ok() {
                attempt = 0;
                continue;
            }
            attempt += 1;
            let contacts = self.find().await;
            self.mailbox.send(Command::Learned(contacts)).await;
        }
    }

    /// Asks a few entry points and remembered peers; returns those that answered.
    async fn find(&mut self) -> Vec<Contact> {
        let mut entry_points = self.settings.entry_points.clone();
        entry_points.shuffle(&mut rand::rng());
        entry_points.truncate(ENTRY_POINTS);
        if self.resolver.is_none() {
            self.resolver = TokioResolver::builder_tokio()
                .and_then(|builder| builder.build())
                .ok();
        }
        let knocks = join_all(entry_points.into_iter().map(|entry| self.knock(entry)));
        let calls = join_all(self.remembered().into_iter().map(|peer| self.call(peer)));
        let (knocked, called) = tokio::join!(knocks, calls);
        let met = knocked
            .into_iter()
            .flatten()
            .chain(called.into_iter().flatten());
        met.map(|peer| Contact::new(peer, &self.transport.routes(peer)))
            .collect()
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

    /// Meets the peers that are announced on the local network, and passes on those that answer.
    fn listen_locally(&self) -> impl Future<Output = ()> + use<> {
        let (transport, mailbox, network) = (
            self.transport.clone(),
            self.mailbox.clone(),
            self.network.clone(),
        );
        let discovery = self.settings.local_network;
        async move {
            let port = transport
                .local_addresses()
                .first()
                .map_or(0, SocketAddr::port);
            if discovery == LocalDiscovery::Off || port == 0 {
                return;
            }
            match LocalNetwork::join(network, port) {
                Ok(local) => meet_locally(local, transport, mailbox).await,
                Err(error) => {
                    tracing::info!(%error, "peers on the local network cannot be looked for")
                }
            }
        }
    }
}

async fn meet_locally(mut local: LocalNetwork, transport: Transport, mailbox: Mailbox) {
    let (mut peers, mut meetings) = (LocalPeers::default(), FuturesUnordered::new());
    let mut rename = time::interval(RENAME_EVERY);
    rename.tick().await;
    loop {
        tokio::select! {
            found = local.next(), if meetings.len() < MEETINGS => match found {
                Some(addresses) => meetings.push(meet(&transport, addresses)),
                None => return,
            },
            Some(met) = meetings.next() => {
                let Some((peer, address)) = met else { continue };
                if peers.note(peer, Instant::now()) {
                    tracing::debug!(?peer, %address, "met on the local network");
                    transport.learn(peer, [address], Source::Proven);
                    let contact = Contact::new(peer, &[Route::from(address)]);
                    mailbox.send(Command::Learned(vec![contact])).await;
                }
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
