//! A member that acknowledges all it is told and keeps nothing of it.

use super::{Hostile, Part, messages, victims::Victims};
use apoidea_overlay::Kind;
use apoidea_toyweb::{Builder, ToyWeb};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
const PLACES: [std::ops::Range<f64>; 4] = [0.0..0.01, 0.2..0.21, 0.4..0.41, 0.6..0.61];

fn web() -> Builder {
    ToyWeb::builder(22)
        .hosts(20)
        .pages(300)
        .mean_bytes(3000)
        .skew(0.2)
}

fn settings() -> [(&'static str, String); 1] {
    [("crawl.private_delay_ms", "300".to_owned())]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_that_their_owner_drops_are_crawled_all_the_same() {
    let victims = Victims::start(web(), &PLACES, &settings()).await;
    let member = Hostile::member(0.8..0.81, &victims.addresses(), Part::careless()).await;
    victims.wait_for_ring(&[&member]).await;
    let begun = Instant::now();
    victims.seed().await;
    let missed = victims.crawl(PATIENCE).await.len();
    let took = begun.elapsed();
    let all = victims.toy.web.truth().expected_total() as usize;
    let named = victims.distrusting(member.id()).await;
    println!(
        "1 of 5 drops all: {} of {all} pages asked for in {took:?}, named by {named} of 4, {} bytes \
         a page between peers",
        all - missed,
        victims.crawl_bytes().await / all as u64,
    );
    assert!(missed * 100 <= all, "{missed} of {all} pages are missing");
    assert!(named >= 2, "only {named} know the liar");
}

/// The same crawl by honest peers only: nobody is suspected, and the checks cost little.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn honest_owners_are_checked_and_found_right() {
    let places = [&PLACES[..], &[0.8..0.81]].concat();
    let victims = Victims::start(web(), &places, &settings()).await;
    let begun = Instant::now();
    victims.seed().await;
    let missed = victims.crawl(PATIENCE).await.len();
    let took = begun.elapsed();
    let all = victims.toy.web.truth().expected_total();
    let kinds = [messages::CHECK, messages::EVIDENCE].map(Kind::as_byte);
    println!(
        "5 honest peers: all {all} pages asked for in {took:?}, {} bytes a page between peers, {} \
         of them checks",
        victims.crawl_bytes().await / all,
        victims.bytes_of(|kind| kinds.contains(&kind)).await / all,
    );
    assert_eq!(missed, 0);
    let standings = victims.standings().await;
    let checked: u64 = standings.iter().map(|standing| standing.checked).sum();
    assert!(checked >= 5, "{checked} checks");
    for standing in standings {
        assert_eq!(standing.checked, standing.right, "{standing:?}");
        assert!(standing.lies.is_empty(), "{standing:?}");
    }
}
