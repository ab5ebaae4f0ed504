//! One of ten peers lies in every way at once: it drops the links that it acknowledges, calls all
//! content known, hands nothing over, and lends its sites to everybody.

use super::{
    Hostile, Part,
    messages::{self, CENSUS, CONTENT, ContentAsk, Fact, LOAN, LoanAsk, REPLICAS},
    now,
    victims::Victims,
};
use crate::patience;
use apoidea_model::{Domain, Key, PageUrl, PeerId};
use apoidea_overlay::{Kind, Refusal};
use apoidea_toyweb::{Builder, ToyWeb};
use futures::future::{FutureExt, ready};
use std::{
    collections::BTreeMap,
    ops::Range,
    time::{Duration, Instant},
};
use tokio::time;

const PATIENCE: Duration = Duration::from_secs(180);
/// Between two requests to one host, by the contract.
const DELAY: Duration = Duration::from_millis(300);
/// For the evidence to be looked at by all, on a busy machine.
const NAMING: Duration = Duration::from_secs(20);
/// The liar begins a tenth of the ring after the last honest peer.
const LIAR: Range<f64> = 0.95..0.96;

fn web() -> Builder {
    ToyWeb::builder(23)
        .hosts(40)
        .pages(600)
        .mean_bytes(3000)
        .skew(0.2)
        .copies_percent(0.0)
}

/// The liar's answers, where careless ones are not bad enough.
fn part() -> Part {
    Part::careless_but(|_, kind, body| {
        let known = || {
            let asks: Vec<ContentAsk> = messages::decode(body)?;
            let fact = Fact {
                page: PageUrl::parse("http://nowhere.test/").unwrap(),
                time: now(),
                keeper: PeerId::at(Key::hash("nobody")),
            };
            Some(Ok(messages::encode(&vec![Some(fact); asks.len()])))
        };
        let answer = match kind {
            CONTENT => known(),
            CENSUS | REPLICAS => Some(Err(Refusal::Busy)),
            _ => None,
        };
        ready(answer).boxed()
    })
}

/// Lends the pages of its own domains to everybody, until it is dropped.
async fn lend(liar: &Hostile, victims: &[PeerId], pages: Vec<PageUrl>) {
    for sequence in 0u64.. {
        let page = &pages[usize::try_from(sequence).unwrap() % pages.len()];
        let ask = LoanAsk::Page(Box::new(messages::waiting(page, sequence)));
        for victim in victims {
            let _ = liar.tell(*victim, LOAN, &ask).await;
        }
        time::sleep(Duration::from_millis(200)).await;
    }
}

/// Hosts that were asked more than 1.2 times as often as the contract allows.
fn hurried(victims: &Victims) -> Vec<String> {
    let mut by_host: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    for visit in victims.visits() {
        let host = visit.host.to_string();
        by_host.entry(host).or_default().push(visit.received);
    }
    let is_hurried = |(host, visits): (String, Vec<Duration>)| {
        let (first, last) = (visits.iter().min()?, visits.iter().max()?);
        let due = (*last - *first).as_secs_f64() / DELAY.as_secs_f64() + 1.0;
        let asked = visits.len() as f64;
        (asked > 1.2 * due + 1.0).then(|| format!("{host}: {asked} requests, {due:.1} by contract"))
    };
    by_host.into_iter().filter_map(is_hurried).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_liar_in_every_way_among_ten_peers_changes_nothing() {
    let places = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85];
    let places = places.map(|place| place..place + 0.01);
    let settings = [("crawl.private_delay_ms", DELAY.as_millis().to_string())];
    let victims = Victims::start(web(), &places, &settings).await;
    let liar = Hostile::member(LIAR, &victims.addresses(), part()).await;
    victims.wait_for_ring(&[&liar]).await;
    let owned = |url: &PageUrl| {
        let place = url.domain().key().fraction();
        (places[8].end..LIAR.start).contains(&place)
    };
    let pages: Vec<PageUrl> = victims.toy.web.truth().must_fetch().filter(owned).collect();
    let sites: std::collections::BTreeSet<Domain> = pages.iter().map(PageUrl::domain).collect();
    let (count, all) = (
        pages.len(),
        victims.toy.web.truth().expected_total() as usize,
    );
    let ids: Vec<PeerId> = victims.peers.iter().map(|peer| peer.id).collect();
    let begun = Instant::now();
    victims.seed().await;
    let missed = tokio::select! {
        missed = victims.crawl(PATIENCE) => missed,
        () = lend(&liar, &ids, pages) => unreachable!("it lends for ever"),
    };
    let took = begun.elapsed();
    let half = patience::look(NAMING, async || {
        (victims.distrusting(liar.id()).await * 2 >= ids.len()).then_some(())
    });
    // The count tells the rest.
    let _ = half.await;
    let named = victims.distrusting(liar.id()).await;
    let bytes = victims.crawl_bytes().await;
    let kinds = [messages::CHECK, messages::EVIDENCE].map(Kind::as_byte);
    let checks = victims.bytes_of(|kind| kinds.contains(&kind)).await;
    let (hurried, standings) = (hurried(&victims), victims.standings().await);
    let framed = standings
        .iter()
        .filter(|standing| standing.peer != liar.id() && standing.distrusted_until.is_some());
    let framed = framed.count();
    let unkept = victims.unkept().await;
    println!(
        "the liar owns {} sites with {count} of {all} pages; {} pages asked for in {took:?}, {} of \
         them kept by nobody; named by {named} of 9, {framed} honest peers distrusted; {} bytes a \
         page between peers, {} of them checks",
        sites.len(),
        all - missed.len(),
        unkept.len(),
        bytes / all as u64,
        checks / all as u64,
    );
    assert!(count > 0, "the liar owns nothing");
    assert!(missed.len() * 100 <= all, "{missed:?}");
    assert_eq!(unkept, [], "asked for and kept by nobody");
    assert_eq!(hurried, [""; 0]);
    assert!(named * 2 >= 9, "only {named} of 9 know the liar");
    assert_eq!(framed, 0, "{standings:?}");
    assert!(checks <= 150 * all as u64, "{checks} bytes for checks");
}
