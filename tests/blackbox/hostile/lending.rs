//! An owner that lends fetches in order to aim others at a site.

use super::{
    Hostile, Part, beyond,
    messages::{self, LOAN, LoanAsk},
    victims::Victims,
};
use crate::toy::Toy;
use apoidea_model::{Domain, PageUrl};
use apoidea_toyweb::{Builder, Fate, Quirk, ToyWeb};
use std::time::{Duration, Instant};
use tokio::time;

/// Between two requests to one host, by the contract.
const DELAY: Duration = Duration::from_millis(500);
/// The time for which the owner lends all it can.
const ATTACK: Duration = Duration::from_secs(5);

fn web() -> Builder {
    ToyWeb::builder(24)
        .hosts(2)
        .pages(200)
        .mean_bytes(3000)
        .skew(0.0)
        .quirks([Quirk::RobotsRules])
}

/// Lends these pages, all of one domain, to four peers again and again; the lender owns the domain
/// by right. Gives the number of loans that were taken.
async fn lend(toy: Toy, pages: &[PageUrl]) -> (Victims, usize) {
    let site = pages[0].domain();
    let places = [0.2, 0.4, 0.6, 0.8].map(|distance| beyond(site.key(), distance));
    let settings = [("crawl.private_delay_ms", DELAY.as_millis().to_string())];
    let victims = Victims::on(toy, &places, &settings).await;
    let place = beyond(site.key(), 0.002);
    let owner = Hostile::member(place, &victims.addresses(), Part::careless()).await;
    victims.wait_for_ring(&[&owner]).await;
    let (begun, mut taken) = (Instant::now(), 0);
    let mut sequence = 0;
    while begun.elapsed() < ATTACK {
        for victim in &victims.peers {
            let page = &pages[usize::try_from(sequence).unwrap() % pages.len()];
            let ask = LoanAsk::Page(Box::new(messages::waiting(page, sequence)));
            sequence += 1;
            taken += usize::from(owner.tell(victim.id, LOAN, &ask).await.is_ok());
        }
        time::sleep(Duration::from_millis(100)).await;
    }
    (victims, taken)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_whose_owner_lends_to_everybody_is_not_asked_faster() {
    let toy = Toy::start(web()).await;
    let (name, _) = toy.web.truth().hosts().next().unwrap();
    let site: Domain = name.parse().unwrap();
    let pages = toy.web.truth().must_fetch();
    let pages: Vec<PageUrl> = pages.filter(|url| url.domain() == site).collect();
    let (victims, taken) = lend(toy, &pages).await;
    let visits = victims.visits_to(&site);
    let mut within: Vec<Duration> = visits.iter().map(|visit| visit.received).collect();
    let end = within
        .first()
        .map_or(Duration::ZERO, |first| *first + ATTACK);
    within.retain(|received| *received < end);
    let due = ATTACK.as_secs_f64() / DELAY.as_secs_f64();
    println!(
        "{taken} loans taken, {} requests in {ATTACK:?}, {due} by the contract",
        within.len()
    );
    assert!(taken > 0, "an owner may lend");
    assert!(
        within.len() as f64 <= 1.2 * due,
        "{} requests",
        within.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_helper_asks_for_nothing_that_robots_txt_forbids() {
    let toy = Toy::start(web()).await;
    let site: Domain = "robots-rules.test".parse().unwrap();
    let forbidden = toy.web.truth().special(Fate::Never);
    let forbidden: Vec<PageUrl> = forbidden.filter(|url| url.domain() == site).collect();
    let (victims, taken) = lend(toy, &forbidden).await;
    let visits = victims.visits_to(&site);
    let wrong = visits.iter().filter(|visit| &*visit.path != "/robots.txt");
    let wrong: Vec<String> = wrong.map(|visit| visit.url()).collect();
    println!("{taken} loans taken, {} forbidden requests", wrong.len());
    assert_eq!(wrong, Vec::<String>::new());
}
