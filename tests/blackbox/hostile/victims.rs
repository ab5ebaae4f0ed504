//! The honest peers that are attacked: real processes at chosen places of one ring, on one toy web.

use super::{Hostile, STABILIZE, place_identity};
use crate::{
    archived::Archived,
    patience,
    peer_process::{Launch, PeerProcess},
    swarm_trial::view,
    toy::Toy,
};
use apoidea_model::{Domain, PageUrl, PeerId};
use apoidea_overlay::Kind;
use apoidea_peer::{DomainRow, NetworkStatus, Standing, State, Status, USER_AGENT};
use apoidea_toyweb::{Builder, Visit};
use futures::future::join_all;
use reqwest::Method;
use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    ops::Range,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

/// For forming a ring, on a busy machine.
const RING_PATIENCE: Duration = Duration::from_secs(30);
/// For writing what is under way.
const REST_PATIENCE: Duration = Duration::from_secs(20);
/// With everybody idle and nothing asked for so long, the crawl is over.
const QUIET: Duration = Duration::from_secs(4);

/// The honest peers and their web.
pub struct Victims {
    pub toy: Toy,
    pub peers: Vec<Victim>,
    settings: Vec<(&'static str, String)>,
}

/// One honest peer.
pub struct Victim {
    pub process: PeerProcess,
    pub id: PeerId,
    /// Where it listens for other peers.
    pub address: SocketAddr,
    launch: Launch,
    data: PathBuf,
}

impl Victims {
    /// Starts a web and a peer at each of these places; `settings` are those of all.
    pub async fn start(
        plan: Builder,
        places: &[Range<f64>],
        settings: &[(&'static str, String)],
    ) -> Self {
        let toy = Toy::start(plan).await;
        Self::on(toy, places, settings).await
    }

    /// Starts a peer at each of these places, on a web that runs already.
    pub async fn on(toy: Toy, places: &[Range<f64>], settings: &[(&'static str, String)]) -> Self {
        let mut victims = Victims {
            toy,
            peers: Vec::new(),
            settings: settings.to_vec(),
        };
        let (first, others) = places.split_first().expect("a victim");
        victims.join(first.clone()).await;
        let others = others.iter().enumerate();
        let others = others.map(|(number, place)| victims.begin(number + 1, place.clone()));
        let others = join_all(others).await;
        victims.peers.extend(others);
        victims.wait_for_ring(&[]).await;
        victims
    }

    /// One more comes.
    pub async fn join(&mut self, place: Range<f64>) -> &Victim {
        let victim = self.begin(self.peers.len(), place).await;
        self.peers.push(victim);
        self.peers.last().expect("pushed just now")
    }

    async fn begin(&self, number: usize, place: Range<f64>) -> Victim {
        let data = self.toy.folder().join(format!("peer-{number}"));
        place_identity(&data.join("identity"), place);
        let entries = self.addresses().into_iter().take(3);
        let entries: Vec<String> = entries.map(|entry| format!("\"{entry}\"")).collect();
        let launch = self.settings.iter();
        let launch = launch.fold(self.plain(&data, &entries), |launch, (name, value)| {
            launch.set(name, value)
        });
        Victim::start(launch, data).await
    }

    fn plain(&self, data: &Path, entries: &[String]) -> Launch {
        self.toy
            .launch()
            .at(data)
            .set("network.is_private", true)
            .set("network.stabilize_ms", STABILIZE.as_millis())
            .set("network.entry_points", format!("[{}]", entries.join(",")))
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.peers.iter().map(|peer| peer.address).collect()
    }

    /// Waits until the victims and these members all see each other.
    pub async fn wait_for_ring(&self, members: &[&Hostile]) {
        let others = self.peers.len() + members.len() - 1;
        let formed = patience::look(RING_PATIENCE, async || {
            for peer in &self.peers {
                let NetworkStatus { successors, .. } = view(&peer.process).await.ok()?;
                if successors.len() != others {
                    return None;
                }
            }
            for member in members {
                if member.neighbours().await != others {
                    return None;
                }
            }
            Some(())
        });
        formed.await.expect("the peers form a ring");
    }

    /// Lets all of them wait, so that nothing changes but by the attack.
    pub async fn pause(&self) {
        for peer in &self.peers {
            peer.order("/api/pause").await;
        }
    }

    /// Lets all of them go on.
    pub async fn resume(&self) {
        for peer in &self.peers {
            peer.order("/api/resume").await;
        }
    }

    /// Gives the first one the web's seeds.
    pub async fn seed(&self) {
        let seeds: Vec<String> = self
            .toy
            .web
            .seeds()
            .iter()
            .map(PageUrl::to_string)
            .collect();
        let answer = self.peers[0].process.seed(&seeds).await;
        assert_eq!(answer.accepted, seeds.len() as u64);
    }

    /// The requests of the victims so far; those of others are not among them.
    pub fn visits(&self) -> Vec<Visit> {
        let mut visits = self.toy.web.log().visits;
        visits.retain(|visit| visit.user_agent.as_deref() == Some(USER_AGENT));
        visits
    }

    /// The requests of the victims to one domain so far.
    pub fn visits_to(&self, domain: &Domain) -> Vec<Visit> {
        let mut visits = self.visits();
        visits.retain(|visit| &*visit.host == domain.as_str());
        visits
    }

    /// Pages that no victim has asked for.
    pub fn missed(&self) -> Vec<PageUrl> {
        let asked: BTreeSet<String> = self.visits().iter().map(Visit::url).collect();
        let pages = self.toy.web.truth().must_fetch();
        pages.filter(|url| !asked.contains(url.as_str())).collect()
    }

    /// Waits until every page was asked for, or nobody does anything any more; gives the pages that
    /// no victim has asked for.
    pub async fn crawl(&self, patience: Duration) -> Vec<PageUrl> {
        let over = patience::look(patience, async || {
            if self.missed().is_empty() {
                return Some(());
            }
            let last = self.visits().last()?.wall;
            for peer in &self.peers {
                let status = peer.process.status().await;
                let is_done = status.state == State::Idle && status.outbox + status.processing == 0;
                if !is_done || status.at.since(last) < QUIET {
                    return None;
                }
            }
            Some(())
        });
        // Missing pages tell the rest.
        let _ = over.await;
        self.missed()
    }

    /// The pages that the victims asked for and none of them has kept. They end by this.
    pub async fn unkept(self) -> Vec<PageUrl> {
        for Victim { process, .. } in &self.peers {
            let rests = |status: &Status| status.outbox + status.processing == 0;
            process.wait("all is written", REST_PATIENCE, rests).await;
        }
        let asked: BTreeSet<String> = self.visits().iter().map(Visit::url).collect();
        let kill = |Victim { process, data, .. }| {
            process.kill();
            Archived::of(&data)
        };
        let archives: Vec<Archived> = self.peers.into_iter().map(kill).collect();
        let is_kept = |url: &PageUrl| {
            let mut archives = archives.iter();
            archives.any(|archive| archive.responses.contains_key(url))
        };
        let pages = self.toy.web.truth().must_keep();
        pages
            .filter(|url| asked.contains(url.as_str()) && !is_kept(url))
            .collect()
    }

    /// What the victims found of each other's work, and of others'.
    pub async fn standings(&self) -> Vec<Standing> {
        let views = self.peers.iter().map(|peer| view(&peer.process));
        let views = join_all(views).await.into_iter();
        views.flat_map(|view| view.unwrap().standings).collect()
    }

    /// The number of victims that distrust a peer.
    pub async fn distrusting(&self, peer: PeerId) -> usize {
        let standings = self.standings().await.into_iter();
        let distrusting =
            |standing: &Standing| standing.peer == peer && standing.distrusted_until.is_some();
        standings.filter(distrusting).count()
    }

    /// Bytes of the crawl that the victims have sent to other peers: without those that keep the ring
    /// together, which depend on time and not on pages.
    pub async fn crawl_bytes(&self) -> u64 {
        self.bytes_of(|kind| kind >= Kind::free(0).as_byte()).await
    }

    /// Bytes that the victims have sent in messages of some kinds.
    pub async fn bytes_of(&self, is_counted: impl Fn(u8) -> bool) -> u64 {
        let mut bytes = 0;
        for peer in &self.peers {
            let kinds = view(&peer.process).await.unwrap().traffic.kinds;
            let counted = kinds.iter().filter(|(kind, _)| is_counted(**kind));
            bytes += counted.map(|(_, kind)| kind.bytes_out).sum::<u64>();
        }
        bytes
    }

    /// The rows of all victims, whatever each is to a domain.
    pub async fn rows(&self) -> Vec<DomainRow> {
        let rows = self.peers.iter().map(|peer| peer.process.domains());
        join_all(rows).await.concat()
    }

    /// The ordinary hosts of the web.
    pub fn hosts(&self) -> Vec<Domain> {
        let hosts = self.toy.web.truth().hosts();
        hosts.map(|(name, _)| name.parse().unwrap()).collect()
    }

    /// The pages of one domain.
    pub fn pages_of(&self, domain: &Domain) -> Vec<PageUrl> {
        let pages = self.toy.web.truth().must_fetch();
        pages.filter(|url| url.domain() == *domain).collect()
    }
}

impl Victim {
    async fn start(launch: Launch, data: PathBuf) -> Self {
        let process = launch.start().await;
        let view = view(&process).await.unwrap();
        Victim {
            process,
            id: view.me,
            address: view.listens[0],
            launch,
            data,
        }
    }

    /// Stops it in good order, and starts it again with its memory.
    pub async fn restart(self) -> Self {
        let Victim {
            process,
            launch,
            data,
            ..
        } = self;
        process.stop().await;
        Self::start(launch, data).await
    }

    async fn order(&self, path: &str) {
        let answer = self.process.request(Method::POST, path).send().await;
        assert!(answer.unwrap().status().is_success());
    }

    /// Waits until it sees so many other peers.
    pub async fn sees(&self, others: usize) {
        let seen = patience::look(RING_PATIENCE, async || {
            let NetworkStatus { successors, .. } = view(&self.process).await.ok()?;
            (successors.len() == others).then_some(())
        });
        seen.await.expect("the ring mends");
    }

    /// Bytes that its database takes on the disk.
    pub fn database_bytes(&self) -> u64 {
        folder_bytes(&self.data.join("db"))
    }

    /// Memory that it has asked for, whether it was written to or not, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmData:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.unwrap().parse::<u64>().unwrap() * 1024
    }
}

fn folder_bytes(folder: &Path) -> u64 {
    const BLOCK: u64 = 512;
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let bytes = entries.map(|entry| {
        // A file may go while it is looked at.
        let taken = entry
            .metadata()
            .map_or(0, |metadata| BLOCK * metadata.blocks());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => folder_bytes(&entry.path()),
            _ => taken,
        }
    });
    bytes.sum()
}
