//! Pages that many peers visit again: what is known of them, and who watches them, outlives every
//! peer.

use crate::{
    changing_site::{ChangingSite, Manner},
    fresh_pages::{LEAST, by_path, ip, launch},
    patience,
    peer_process::PeerProcess,
    swarm_trial::view,
    watching::{changes, watch, watches},
};
use apoidea_model::PeerId;
use apoidea_peer::{ChangeKind, WatchStanding};
use reqwest::Method;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(180);

/// Peers of one private ring, and the sites that they visit.
struct Ring {
    sites: Vec<ChangingSite>,
    folder: tempfile::TempDir,
    peers: BTreeMap<usize, PeerProcess>,
    ever: usize,
}

impl Ring {
    async fn start(sites: Vec<ChangingSite>, peers: usize) -> Self {
        let mut ring = Ring {
            sites,
            folder: tempfile::tempdir().unwrap(),
            peers: BTreeMap::new(),
            ever: 0,
        };
        for _ in 0..peers {
            ring.join().await;
        }
        ring.settle().await;
        ring
    }

    async fn join(&mut self) -> usize {
        let number = self.ever;
        self.ever += 1;
        self.run(number).await;
        number
    }

    async fn run(&mut self, number: usize) {
        let mut entries = Vec::new();
        for peer in self.peers.values().take(3) {
            entries.extend(
                view(peer)
                    .await
                    .map(|view| format!("\"{}\"", view.listens[0])),
            );
        }
        let sites: Vec<&ChangingSite> = self.sites.iter().collect();
        let data: PathBuf = self.folder.path().join(format!("peer-{number}"));
        let peer = launch(&data, &sites)
            .set("network.entry_points", format!("[{}]", entries.join(",")))
            .set("network.is_private", true)
            .set("network.stabilize_ms", 500)
            .start()
            .await;
        self.peers.insert(number, peer);
    }

    /// Waits until all peers see each other.
    async fn settle(&self) {
        let formed = patience::look(PATIENCE, async || {
            let (mut share, mut seen) = (0.0, BTreeSet::new());
            for peer in self.peers.values() {
                let view = view(peer).await.ok()?;
                share += view.share;
                seen.insert(view.successors.len() + 1);
            }
            let all = BTreeSet::from([self.peers.len()]);
            ((share - 1.0_f64).abs() < 1e-9 && seen == all).then_some(())
        });
        formed.await.expect("the peers form a ring");
    }

    /// The number of the peer that owns a site.
    async fn owner(&self, site: &ChangingSite) -> usize {
        let asked = self.peers.values().next().unwrap();
        let path = format!("/api/owners?domain={}&count=1", site.address().ip());
        let answer = asked.request(Method::GET, &path).send().await.unwrap();
        let owners: Vec<PeerId> = answer.json().await.unwrap();
        for (number, peer) in &self.peers {
            if view(peer).await.unwrap().me == owners[0] {
                return *number;
            }
        }
        panic!("the owner does not run");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half a minute"]
async fn a_watch_outlives_the_owner_of_its_page_and_the_subscriber_may_be_away() {
    let site = ChangingSite::start(ip(12), 0, 6, Manner::Honest).await;
    let page = format!("{}page/3", site.url());
    let mut ring = Ring::start(vec![site], 4).await;
    let owner = ring.owner(&ring.sites[0]).await;
    let mine = *ring.peers.keys().find(|number| **number != owner).unwrap();
    watch(&ring.peers[&mine], &page).await;
    let is_kept = async |ring: &Ring| {
        let kept = watches(&ring.peers[&mine]).await.watches;
        let is_kept = kept.first()?.standing == WatchStanding::Kept;
        (is_kept && by_path(&ring.sites[0].asked()).contains_key("/page/3")).then_some(())
    };
    let kept = patience::look(PATIENCE, async || is_kept(&ring).await);
    kept.await.expect("the owner keeps the watch");
    // The owner dies as soon as its replicas know the page, and the subscriber is away when it
    // changes.
    let replicas = patience::look(PATIENCE, async || {
        let mut known = 0;
        for peer in ring.peers.values() {
            known += usize::from(peer.status().await.usage.known_pages >= 1);
        }
        (known >= 3).then_some(())
    });
    replicas.await.expect("two replicas know the page");
    ring.peers.remove(&owner).unwrap().kill();
    ring.peers.remove(&mine).unwrap().stop().await;
    ring.sites[0].change([3]);
    let seen = patience::look(PATIENCE, async || {
        let asked = ring.sites[0].asked();
        let is_new = |asked: &crate::changing_site::Asked| {
            asked.path == "/page/3" && asked.version == 1 && asked.status == 200
        };
        asked.iter().any(is_new).then_some(())
    });
    seen.await.expect("the next owner visits the page");
    ring.run(mine).await;
    let told = ring.peers[&mine].observe("the change is told", PATIENCE, async || {
        changes(&ring.peers[&mine]).await.into_iter().next()
    });
    let told = told.await;
    assert_eq!(told.url.as_str(), page);
    // The next owner has no earlier version in its archive, or none at all any more.
    assert!(
        matches!(
            told.kind,
            ChangeKind::ReadsNow | ChangeKind::Unseen | ChangeKind::Changed
        ),
        "{told:#?}"
    );
    assert_eq!(changes(&ring.peers[&mine]).await.len(), 1, "once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes about three minutes"]
async fn no_page_loses_its_history_and_none_has_two_visitors_while_peers_come_and_go() {
    const SITES: u8 = 10;
    const PAGES: usize = 20;
    let mut sites = Vec::new();
    let mut port = 0;
    for number in 0..SITES {
        let site = ChangingSite::start(ip(20 + number), port, PAGES, Manner::Honest).await;
        port = site.address().port();
        sites.push(site);
    }
    let mut ring = Ring::start(sites, 5).await;
    let seeds: Vec<String> = ring.sites.iter().map(ChangingSite::url).collect();
    ring.peers[&0].seed(&seeds).await;
    let all = patience::look(PATIENCE, async || {
        let known = |site: &ChangingSite| by_path(&site.asked()).len();
        ring.sites
            .iter()
            .all(|site| known(site) == PAGES)
            .then_some(())
    });
    all.await.expect("every page is visited");
    let mut disturbances: Vec<Instant> = Vec::new();
    // (number, how) of what happens, never so much that all replicas of a domain are gone.
    for round in 0..6 {
        tokio::time::sleep(Duration::from_secs(8)).await;
        disturbances.push(Instant::now());
        let running: Vec<usize> = ring.peers.keys().copied().collect();
        match round % 3 {
            0 => ring
                .peers
                .remove(&running[round % running.len()])
                .unwrap()
                .kill(),
            1 => drop(ring.join().await),
            _ => ring.peers.remove(&running[1]).unwrap().stop().await,
        }
        disturbances.push(Instant::now());
    }
    ring.settle().await;
    // Every page is still visited: a page whose record was lost would be seen, and never asked for.
    let then: Vec<usize> = ring.sites.iter().map(|site| site.asked().len()).collect();
    let again = patience::look(PATIENCE, async || {
        let mut visited = ring.sites.iter().zip(&then);
        let is_all =
            |(site, then): (&ChangingSite, &usize)| by_path(&site.asked()[*then..]).len() == PAGES;
        visited.all(is_all).then_some(())
    });
    again.await.expect("every page is visited again");
    let (mut visits, mut whole, mut early, mut late) = (0, 0, 0, Vec::new());
    for site in &ring.sites {
        for (path, asked) in by_path(&site.asked()) {
            for pair in asked.windows(2) {
                visits += 1;
                whole += usize::from(pair[1].status == 200);
                let gap = pair[1].at.duration_since(pair[0].at);
                if gap + Duration::from_millis(50) < LEAST {
                    early += 1;
                    let is_near = |at: &Instant| pair[1].at.duration_since(*at) < 3 * LEAST;
                    if !disturbances.iter().any(is_near) {
                        late.push(format!("{path} after {gap:?}"));
                    }
                }
            }
        }
    }
    println!("{visits} later visits, {whole} without conditions, {early} too early after a death");
    assert_eq!(late, [""; 0], "two peers visit the same page");
    // One in fifty is a probe; a page that was fetched when its owner died is fetched once more.
    let share = whole as f64 / visits as f64;
    assert!(share < 0.08, "{whole} of {visits} visits had no conditions");
    assert!((early as f64) < 0.04 * visits as f64, "{early} of {visits}");
}
