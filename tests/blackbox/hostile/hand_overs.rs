//! A peer that holds replicas, and calls every page done when they are handed over.

use super::{
    Hostile, Part,
    messages::{
        self, CENSUS, CensusPage, DELTAS, OFFER, OfferAnswer, Parcel, REPLICAS, Replica, Versions,
    },
    now,
    victims::Victims,
};
use crate::patience;
use apoidea_model::{Domain, PageUrl};
use apoidea_toyweb::{Builder, ToyWeb};
use futures::future::{FutureExt, ready};
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time;

const PATIENCE: Duration = Duration::from_secs(90);
/// For something that takes a moment, on a busy machine.
const SOON: Duration = Duration::from_secs(20);
/// The place of the hostile peer: right after the first victim, so that no host is its own.
const HOSTILE: Range<f64> = 0.455..0.46;

fn web() -> Builder {
    ToyWeb::builder(23)
        .hosts(20)
        .pages(300)
        .mean_bytes(3000)
        .skew(0.0)
}

/// So slow that the attack comes while most pages wait.
fn slowly() -> [(&'static str, String); 1] {
    [("crawl.private_delay_ms", "400".to_owned())]
}

/// All pages of the web by host, each called done, in versions beyond those that are told.
#[derive(Clone)]
struct Finished {
    pages: Arc<BTreeMap<Domain, Vec<PageUrl>>>,
    told: Arc<Mutex<BTreeMap<Domain, Versions>>>,
}

impl Finished {
    fn of(victims: &Victims) -> Self {
        let hosts = victims.hosts().into_iter();
        let pages = hosts.map(|host| (host.clone(), victims.pages_of(&host)));
        Finished {
            pages: Arc::new(pages.collect()),
            told: Arc::default(),
        }
    }

    /// One change more than the owner told of, under the owner's own tenure.
    fn versions(&self, domain: &Domain) -> Versions {
        let told = self.told.lock().unwrap();
        let known = told.get(domain).cloned().unwrap_or_default();
        let latest = known.last().map(|(tenure, _)| *tenure);
        messages::with_change(&known, latest.unwrap_or(messages::tenure(now())))
    }

    fn claims(&self) -> Vec<(Domain, Versions)> {
        let hosts = self.pages.keys();
        let claim = |host: &Domain| (host.clone(), self.versions(host));
        hosts.map(claim).collect()
    }

    fn parcel(&self, domain: Domain) -> Parcel {
        let Some(pages) = self.pages.get(&domain) else {
            return Parcel::Unknown(domain);
        };
        let replica = Replica::finished(self.versions(&domain), pages);
        Parcel::Whole(domain, replica)
    }

    /// A holder that notes what it is told, and gives everybody its finished replicas.
    fn part(&self) -> Part {
        let finished = self.clone();
        Part::careless_but(move |_, kind, body| {
            let answer = match kind {
                DELTAS => {
                    let mut told = finished.told.lock().unwrap();
                    let deltas = messages::decode_deltas(body).unwrap_or_default();
                    told.extend(
                        deltas
                            .into_iter()
                            .map(|delta| (delta.domain, delta.versions)),
                    );
                    None
                }
                CENSUS => Some(messages::encode(&CensusPage {
                    held: finished.claims(),
                    after: None,
                })),
                REPLICAS => {
                    let domains: Vec<Domain> = messages::decode(body).unwrap_or_default();
                    let parcels = domains.into_iter().map(|domain| finished.parcel(domain));
                    Some(messages::encode(&parcels.collect::<Vec<_>>()))
                }
                _ => None,
            };
            ready(answer.map(Ok)).boxed()
        })
    }

    /// Offers the finished replicas to all victims.
    async fn offer(&self, hostile: &Hostile, victims: &Victims) -> usize {
        let mut wanted = 0;
        for victim in &victims.peers {
            let claims = self.claims();
            let answers = hostile.ask::<Vec<OfferAnswer>>(victim.id, OFFER, &claims);
            let answers = answers.await.unwrap_or_default().into_iter();
            wanted += answers
                .filter(|answer| *answer == OfferAnswer::Wanted)
                .count();
        }
        wanted
    }
}

/// Waits until the crawl has begun.
async fn begun(victims: &Victims) {
    let begun = patience::look(SOON, async || (victims.visits().len() > 30).then_some(()));
    begun.await.expect("the crawl begins");
}

fn assert_owns_nothing(victims: &Victims) {
    let is_its_own = |host: &Domain| (0.44..HOSTILE.end).contains(&host.key().fraction());
    assert!(!victims.hosts().iter().any(is_its_own));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_calls_all_done_when_the_owner_crashes_loses_no_page() {
    let places = [0.45..0.454, 0.8..0.81, 0.1..0.11, 0.2..0.21];
    let mut victims = Victims::start(web(), &places, &slowly()).await;
    assert_owns_nothing(&victims);
    let finished = Finished::of(&victims);
    let hostile = Hostile::member(HOSTILE, &victims.addresses(), finished.part()).await;
    victims.wait_for_ring(&[&hostile]).await;
    for peer in &victims.peers {
        hostile.meet(peer.address).await;
    }
    victims.seed().await;
    begun(&victims).await;
    let waited = victims.missed().len();
    // Its replicas are with the first victim, which is the next owner, and with the hostile one.
    victims.peers.remove(3).process.kill();
    let mut wanted = 0;
    for _ in 0..6 {
        wanted += finished.offer(&hostile, &victims).await;
        time::sleep(Duration::from_millis(500)).await;
    }
    let missed = victims.crawl(PATIENCE).await;
    println!(
        "{wanted} finished replicas wanted; {} pages missed of {waited} that waited",
        missed.len()
    );
    assert_eq!(missed, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_calls_all_done_when_a_peer_joins_loses_no_page() {
    let places = [0.45..0.454, 0.8..0.81];
    let mut victims = Victims::start(web(), &places, &slowly()).await;
    assert_owns_nothing(&victims);
    let finished = Finished::of(&victims);
    let hostile = Hostile::member(HOSTILE, &victims.addresses(), finished.part()).await;
    victims.wait_for_ring(&[&hostile]).await;
    for peer in &victims.peers {
        hostile.meet(peer.address).await;
    }
    victims.seed().await;
    begun(&victims).await;
    let waited = victims.missed().len();
    let newcomer = victims.join(0.2..0.21).await.address;
    hostile.meet(newcomer).await;
    let mut wanted = 0;
    for _ in 0..6 {
        wanted += finished.offer(&hostile, &victims).await;
        time::sleep(Duration::from_millis(500)).await;
    }
    let missed = victims.crawl(PATIENCE).await;
    println!(
        "{wanted} finished replicas wanted; {} pages missed of {waited} that waited",
        missed.len()
    );
    assert_eq!(missed, []);
}
