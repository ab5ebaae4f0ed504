//! Several peers that crawl one toy web together, what happens to them meanwhile, and what the
//! servers saw of it.

use crate::{
    archived::Archived,
    contract::Contract,
    patience,
    peer_process::{Launch, PeerProcess, program},
    toy::Toy,
};
use apoidea_model::{Domain, PageUrl, PeerId, Time};
use apoidea_peer::{Help, NetworkStatus, State, Status};
use apoidea_tests::lab::{Lab, Place};
use apoidea_toyweb::{AccessLog, Builder};
use reqwest::Method;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

/// The number of messages with links.
const LINKS: u8 = 16;
/// The number of messages that tell what came of a fetch for another peer.
const LEASED: u8 = 27;
/// Between two requests to one host, where the pace does not matter.
pub const QUICK: Duration = Duration::from_millis(60);
/// For the whole crawl, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// With everybody idle and nothing asked for so long, the crawl is over.
const QUIET: Duration = Duration::from_secs(6);

/// A web and the peers that crawl it.
pub struct Trial {
    pub toy: Toy,
    /// Running peers by number.
    pub peers: BTreeMap<usize, PeerProcess>,
    /// Between two requests to one host.
    delay: Duration,
    /// Settings of all peers besides.
    settings: Vec<(&'static str, String)>,
    /// Those that may fetch one page at a time only.
    small: BTreeSet<usize>,
    /// All that ever ran.
    ever: usize,
    /// The network with distances that they live in, if it is not this machine's own.
    lab: Option<Lab>,
}

impl Trial {
    /// Starts the web and so many peers, at this pace for each host; the last one is given the
    /// seeds.
    pub async fn start(plan: Builder, peers: usize, delay: Duration) -> Self {
        Self::start_with(plan, peers, delay, &[]).await
    }

    /// The same, with other settings for all peers.
    pub async fn start_with(
        plan: Builder,
        peers: usize,
        delay: Duration,
        settings: &[(&'static str, String)],
    ) -> Self {
        let mut trial = Self::prepare(plan, delay, settings).await;
        for _ in 0..peers {
            trial.join().await;
        }
        trial.wait_for_a_ring().await;
        trial.seed_last().await;
        trial
    }

    /// The web alone, without a peer.
    pub async fn prepare(
        plan: Builder,
        delay: Duration,
        settings: &[(&'static str, String)],
    ) -> Self {
        let (peers, small) = Default::default();
        Trial {
            toy: Toy::start(plan).await,
            peers,
            small,
            delay,
            settings: settings.to_vec(),
            ever: 0,
            lab: None,
        }
    }

    /// From now on peers start in a network with distances, where the web must be, too.
    pub fn within(mut self, lab: Lab) -> Self {
        self.lab = Some(lab);
        self
    }

    /// The network with distances.
    pub fn lab(&self) -> &Lab {
        self.lab.as_ref().expect("the trial is in a lab")
    }

    /// Gives the seeds to the peer that came last.
    pub async fn seed_last(&self) {
        let seeds = self.toy.web.seeds();
        let seeds: Vec<String> = seeds.iter().map(|url| url.to_string()).collect();
        let last = self.peers.values().last().expect("there is a peer");
        assert_eq!(last.seed(&seeds).await.accepted, seeds.len() as u64);
    }

    /// A new peer comes.
    pub async fn join(&mut self) -> usize {
        let number = self.ever;
        self.ever += 1;
        self.run(number).await;
        number
    }

    /// The number of peers that ever ran.
    pub fn count(&self) -> usize {
        self.ever
    }

    /// A new peer comes that may do little.
    pub async fn join_small(&mut self) -> usize {
        self.small.insert(self.ever);
        self.join().await
    }

    /// A peer's volunteer refuses a domain.
    pub async fn refuse(&self, number: usize, domain: &Domain) {
        let request = self.peers[&number].request(Method::POST, "/api/refusals");
        let answer = request
            .json(&serde_json::json!({ "domain": domain.as_str() }))
            .send()
            .await;
        assert!(answer.expect("it answers").status().is_success());
    }

    /// A peer starts, for the first time or again, and enters through one of those that run.
    pub async fn run(&mut self, number: usize) {
        let mut entries = Vec::new();
        for peer in self.peers.values().take(3) {
            if let Ok(view) = view(peer).await {
                entries.push(format!("\"{}\"", view.listens[0]));
            }
        }
        let launch = self
            .launch(number)
            .set("network.entry_points", format!("[{}]", entries.join(",")));
        let peer = match &self.lab {
            None => launch.start().await,
            Some(lab) => {
                let mut command = lab.command(number, program());
                launch.complete(&mut command);
                launch.start_as(&mut command).await
            }
        };
        self.peers.insert(number, peer);
    }

    fn launch(&self, number: usize) -> Launch {
        let launch = self.toy.launch().at(&self.data(number));
        let launch = if self.small.contains(&number) {
            launch.set("crawl.fetches", 1)
        } else {
            launch
        };
        let launch = match &self.lab {
            None => launch,
            Some(lab) => launch
                .set(
                    "network.listen",
                    format!("[\"{}\"]", Place::Peer(number).address()),
                )
                .set("api.port", lab.api_port(number)),
        };
        let settings = self.settings.iter();
        let launch = settings.fold(launch, |launch, (name, value)| launch.set(name, value));
        launch
            .set("crawl.private_delay_ms", self.delay.as_millis())
            .set("network.is_private", true)
            .set("network.stabilize_ms", 500)
    }

    fn data(&self, number: usize) -> PathBuf {
        self.toy.folder().join(format!("peer-{number}"))
    }

    /// A peer's machine loses power.
    pub fn kill(&mut self, number: usize) {
        self.peers.remove(&number).expect("it runs").kill();
    }

    /// A peer leaves in good order.
    pub async fn leave(&mut self, number: usize) {
        self.peers.remove(&number).expect("it runs").stop().await;
    }

    /// Waits until all see each other: no part of the ring is claimed twice or by nobody, and
    /// everybody knows everybody else who runs.
    pub async fn wait_for_a_ring(&self) {
        let formed = patience::look(PATIENCE, async || {
            let mut views = Vec::new();
            for peer in self.peers.values() {
                views.push(view(peer).await.ok()?);
            }
            let share: f64 = views.iter().map(|view| view.share).sum();
            let all: BTreeSet<PeerId> = views.iter().map(|view| view.me).collect();
            let sees_all = |view: &NetworkStatus| {
                let seen = view.successors.iter().chain([&view.me]).copied();
                seen.collect::<BTreeSet<PeerId>>() == all
            };
            ((share - 1.0).abs() < 1e-9 && views.iter().all(sees_all)).then_some(())
        });
        formed.await.expect("the peers form a ring");
    }

    /// Who owns each domain of the web, by the word of the first peer.
    pub async fn owners(&self) -> BTreeMap<Domain, PeerId> {
        let peer = self.peers.values().next().expect("there is a peer");
        let domains: BTreeSet<Domain> = self
            .toy
            .web
            .truth()
            .must_fetch()
            .map(|url| url.domain())
            .collect();
        let mut owners = BTreeMap::new();
        for domain in domains {
            let path = format!("/api/owners?domain={}&count=1", domain.as_str());
            let answer = peer
                .request(Method::GET, &path)
                .send()
                .await
                .expect("it answers");
            let named: Vec<PeerId> = answer.json().await.expect("it names peers");
            owners.insert(domain, named[0]);
        }
        owners
    }

    /// What each peer fetched for the owners of domains, by the peer's number and the domain.
    pub async fn helped(&self) -> BTreeMap<(usize, Domain), Help> {
        let mut all = BTreeMap::new();
        for (number, peer) in &self.peers {
            let rows = peer.domains().await.into_iter();
            all.extend(rows.filter_map(|row| Some(((*number, row.domain), row.helped?))));
        }
        all
    }

    pub async fn statuses(&self) -> Vec<Status> {
        let mut all = Vec::new();
        for peer in self.peers.values() {
            all.push(peer.status().await);
        }
        all
    }

    /// Waits until nobody has anything to do.
    pub async fn finish(&self) -> Vec<Status> {
        let mut last = Vec::new();
        let done = patience::look(PATIENCE, async || {
            last = self.statuses().await;
            let is_done = |status: &Status| {
                status.state == State::Idle
                    && status.queued + status.outbox + status.processing == 0
            };
            let log = self.toy.web.log();
            let quiet = log.visits.last().is_some_and(|visit| {
                last.iter()
                    .all(|status| status.at.since(visit.wall) > QUIET)
            });
            (quiet && last.iter().all(is_done)).then_some(())
        });
        if done.await.is_none() {
            let words: Vec<String> = self.peers.values().map(PeerProcess::words).collect();
            panic!("not done in {PATIENCE:?}: {last:#?}\n{}", words.join("\n"));
        }
        last
    }

    /// Pages that should have been asked for and were not.
    pub fn missed(&self, log: &AccessLog) -> Vec<PageUrl> {
        let requests = log.requests_per_url();
        self.toy
            .web
            .truth()
            .must_fetch()
            .filter(|url| !requests.contains_key(url.as_str()))
            .collect()
    }

    /// Requests for pages beyond the first.
    pub fn repeats(&self, log: &AccessLog) -> Vec<(String, usize)> {
        let is_page = |url: &str| !url.ends_with("/robots.txt");
        let requests = log.requests_per_url().into_iter();
        requests
            .filter(|(url, times)| *times > 1 && is_page(url))
            .collect()
    }

    /// For each page that was asked for again: how long after its first request the next of these
    /// moments came.
    pub fn repeated_before(&self, log: &AccessLog, moments: &[Time]) -> Vec<Option<Duration>> {
        let mut first = BTreeMap::new();
        let mut gaps = Vec::new();
        for visit in log
            .visits
            .iter()
            .filter(|visit| &*visit.path != "/robots.txt")
        {
            match first.get(&visit.url()) {
                None => _ = first.insert(visit.url(), visit.wall),
                Some(before) => {
                    let next = moments.iter().find(|moment| *moment >= before);
                    gaps.push(next.map(|next| next.since(*before)));
                }
            }
        }
        gaps
    }

    /// Requests that came too soon, whoever sent them.
    pub fn breaches(&self, log: &AccessLog) -> Vec<String> {
        let contract = Contract {
            delay: self.delay,
            back_off: Duration::ZERO,
            crawl_delays: &[],
            retry_afters: &[],
            slow: &[],
        };
        contract.pace_breaches(log)
    }

    /// Groups of equal pages.
    pub fn copy_groups(&self) -> usize {
        self.toy.web.truth().copies().len()
    }

    /// Groups of equal pages that were not kept exactly once in the whole swarm.
    pub fn copies_kept_wrongly(&self) -> Vec<Vec<PageUrl>> {
        let archives: Vec<Archived> = (0..self.ever)
            .map(|number| Archived::of(&self.data(number)))
            .collect();
        let originals = |url: &PageUrl| -> usize {
            archives
                .iter()
                .filter_map(|archive| archive.responses.get(url))
                .sum()
        };
        let groups = self.toy.web.truth().copies().into_iter();
        groups
            .filter(|group| group.iter().map(originals).sum::<usize>() != 1)
            .collect()
    }

    /// Pages that are in nobody's archive.
    pub fn not_kept(&self) -> Vec<PageUrl> {
        let mut kept = BTreeSet::new();
        for number in 0..self.ever {
            let archive = Archived::of(&self.data(number));
            kept.extend(
                archive
                    .responses
                    .into_keys()
                    .chain(archive.revisits.into_keys()),
            );
        }
        self.toy
            .web
            .truth()
            .must_keep()
            .filter(|url| !kept.contains(url))
            .collect()
    }

    /// How often a peer was told what came of a fetch that it had left to a neighbour.
    pub async fn leases_ended(&self, number: usize) -> u64 {
        let view = view(&self.peers[&number]).await.unwrap();
        view.traffic
            .kinds
            .get(&LEASED)
            .map_or(0, |leased| leased.answered)
    }

    /// Messages with links, and bytes of all messages, that the peers sent each other.
    pub async fn batches_and_bytes(&self) -> (u64, u64) {
        let (mut batches, mut bytes) = (0, 0);
        for peer in self.peers.values() {
            let Ok(view) = view(peer).await else { continue };
            let kinds = &view.traffic.kinds;
            batches += kinds.get(&LINKS).map_or(0, |links| links.asked);
            bytes += kinds.values().map(|kind| kind.bytes_out).sum::<u64>();
        }
        (batches, bytes)
    }
}

/// The network as a peer sees it.
pub async fn view(peer: &PeerProcess) -> Result<NetworkStatus, reqwest::Error> {
    peer.request(Method::GET, "/api/peers")
        .send()
        .await?
        .json()
        .await
}
