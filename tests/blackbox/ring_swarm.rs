//! Several peers of one network, each a process of its own, and whether they agree on who owns
//! what.

use crate::{
    patience,
    peer_process::{Launch, PeerProcess},
};
use apoidea_model::{Domain, PeerId};
use apoidea_peer::{NetworkState, NetworkStatus};
use reqwest::{Method, RequestBuilder};
use serde::de::DeserializeOwned;
use std::{collections::BTreeSet, time::Duration};
use tokio::task::LocalSet;

/// Domains whose owners everyone is asked for.
const SAMPLE: usize = 24;
/// The owner and the holders of two copies.
const OWNERS: usize = 3;

/// Who is responsible for each domain of the sample, the owner first.
pub type Owners = Vec<Vec<PeerId>>;

/// Peers of one network.
#[derive(Default)]
pub struct Swarm {
    pub peers: Vec<PeerProcess>,
}

impl Swarm {
    /// Starts all of these at once and waits until each answers.
    pub async fn start(launches: &[Launch]) -> Self {
        let local = LocalSet::new();
        let starting: Vec<_> = launches
            .iter()
            .cloned()
            .map(|launch| local.spawn_local(async move { launch.start().await }))
            .collect();
        let peers = local.run_until(async {
            let mut peers = Vec::new();
            for peer in starting {
                peers.push(peer.await.expect("it starts"));
            }
            peers
        });
        Swarm { peers: peers.await }
    }

    /// The network as each peer sees it.
    pub async fn views(&self) -> Result<Vec<NetworkStatus>, String> {
        ask_all(
            self.peers
                .iter()
                .map(|peer| peer.request(Method::GET, "/api/peers")),
        )
        .await
    }

    /// Waits until all agree; gives the owners of the sample.
    pub async fn agree(&self, what: &str, patience: Duration) -> Owners {
        self.wait(what, patience, async || self.owners().await)
            .await
    }

    /// Waits until every key is claimed by one peer, and all name those as its owners that come
    /// next on the ring.
    pub async fn form_a_ring(&self, what: &str, patience: Duration) -> Owners {
        self.wait(what, patience, async || self.ring().await).await
    }

    async fn wait(
        &self,
        what: &str,
        patience: Duration,
        mut judge: impl AsyncFnMut() -> Result<Owners, String>,
    ) -> Owners {
        let mut last = String::new();
        let judged = patience::look(patience, async || {
            judge().await.map_err(|why| last = why).ok()
        })
        .await;
        judged.unwrap_or_else(|| {
            panic!(
                "not in {patience:?}: {what}: {last}\n{}",
                self.peers[0].words()
            )
        })
    }

    async fn ring(&self) -> Result<Owners, String> {
        let views = self.views().await?;
        if let Some(out) = views
            .iter()
            .find(|view| !matches!(view.standing, NetworkState::Member { .. }))
        {
            return Err(format!("{} is {:?}", out.me, out.standing));
        }
        let shares: f64 = views.iter().map(|view| view.share).sum();
        if (shares - 1.0).abs() > 1e-9 {
            return Err(format!("all shares together are {shares}"));
        }
        let owners = self.owners().await?;
        for (domain, owners) in sample().zip(&owners) {
            let mut clockwise: Vec<PeerId> = views.iter().map(|view| view.me).collect();
            clockwise.sort_by_key(|peer| domain.key().distance_to(peer.key()));
            if !clockwise.starts_with(owners) {
                return Err(format!(
                    "{} is with {owners:?}, but should be with {clockwise:?}",
                    domain.as_str()
                ));
            }
            let claim = |view: &&NetworkStatus| {
                view.predecessor
                    .is_some_and(|before| domain.key().in_arc(before.key(), view.me.key()))
            };
            let claimed: Vec<PeerId> = views.iter().filter(claim).map(|view| view.me).collect();
            if claimed != owners[..1] {
                return Err(format!(
                    "{} is owned by {} and claimed by {claimed:?}",
                    domain.as_str(),
                    owners[0]
                ));
            }
        }
        Ok(owners)
    }

    /// The owners on which all agree, all of them running.
    async fn owners(&self) -> Result<Owners, String> {
        let running: BTreeSet<PeerId> = self.views().await?.iter().map(|view| view.me).collect();
        let mut agreed = Vec::new();
        for domain in sample() {
            let path = format!("/api/owners?domain={}&count={OWNERS}", domain.as_str());
            let answers: Owners = ask_all(
                self.peers
                    .iter()
                    .map(|peer| peer.request(Method::GET, &path)),
            )
            .await?;
            let different: BTreeSet<&Vec<PeerId>> = answers.iter().collect();
            let owners = answers.first().cloned().unwrap_or_default();
            let distinct: BTreeSet<&PeerId> = owners.iter().collect();
            if different.len() != 1 || distinct.len() != OWNERS.min(running.len()) {
                return Err(format!(
                    "for {} there are {} answers: {different:?}",
                    domain.as_str(),
                    different.len()
                ));
            }
            if let Some(dead) = owners.iter().find(|owner| !running.contains(owner)) {
                return Err(format!(
                    "{} is said to be with {dead}, which does not run",
                    domain.as_str()
                ));
            }
            agreed.push(owners);
        }
        Ok(agreed)
    }
}

/// The domains that are asked for.
pub fn sample() -> impl Iterator<Item = Domain> {
    (0..SAMPLE).map(|number| format!("site-{number}.example").parse().expect("a domain"))
}

/// The answers to questions that are asked at the same time, in their order.
async fn ask_all<T>(requests: impl Iterator<Item = RequestBuilder>) -> Result<Vec<T>, String>
where
    T: DeserializeOwned + Send + 'static,
{
    let asked: Vec<_> = requests
        .map(|request| tokio::spawn(answer(request)))
        .collect();
    let mut answers = Vec::new();
    for answer in asked {
        answers.push(answer.await.expect("asking does not panic")?);
    }
    Ok(answers)
}

async fn answer<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, String> {
    let answer = request.send().await.map_err(|error| error.to_string())?;
    let (status, text) = (
        answer.status(),
        answer.text().await.map_err(|error| error.to_string())?,
    );
    serde_json::from_str(&text).map_err(|_| format!("{status}: {text}"))
}
