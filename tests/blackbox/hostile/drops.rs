//! A member that acknowledges all it is told and keeps nothing of it.

use super::{Hostile, Part, victims::Victims};
use apoidea_toyweb::{Builder, ToyWeb};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn web() -> Builder {
    ToyWeb::builder(22)
        .hosts(20)
        .pages(300)
        .mean_bytes(3000)
        .skew(0.2)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "defence is not built yet"]
async fn links_that_their_owner_drops_are_crawled_all_the_same() {
    let places = [0.0..0.01, 0.2..0.21, 0.4..0.41, 0.6..0.61];
    let settings = [("crawl.private_delay_ms", "60".to_owned())];
    let victims = Victims::start(web(), &places, &settings).await;
    let member = Hostile::member(0.8..0.81, &victims.addresses(), Part::careless()).await;
    victims.wait_for_ring(&[&member]).await;
    victims.seed().await;
    let missed = victims.crawl(PATIENCE).await.len();
    let all = victims.toy.web.truth().expected_total() as usize;
    println!(
        "1 of 5 drops all: {} of {all} pages asked for",
        all - missed
    );
    assert!(missed * 100 <= all, "{missed} of {all} pages are missing");
}
