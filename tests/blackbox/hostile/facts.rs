//! Lies about content: "this page is known". Believed, they hide pages and all that these link to.

use super::{
    Hostile, Part, beyond,
    messages::{self, CONTENT, ContentAsk, FACTS, FACTS_IN, Fact, Facts, FactsAsk, Standing},
    now,
    victims::Victims,
    whole_ring,
};
use crate::toy::Toy;
use apoidea_model::{ContentHash, Domain, Key, PageUrl, PeerId};
use apoidea_overlay::RequestError;
use apoidea_toyweb::{Builder, ToyWeb};
use futures::future::{FutureExt, ready};
use reqwest::header::HOST;
use std::{
    ops::Range,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);
/// Between two requests to one host, so that the crawl takes a moment.
const DELAY_MS: u64 = 60;

fn web() -> Builder {
    ToyWeb::builder(21)
        .hosts(20)
        .pages(300)
        .mean_bytes(3000)
        .skew(0.2)
        .copies_percent(0.0)
}

fn delay() -> [(&'static str, String); 1] {
    [("crawl.private_delay_ms", DELAY_MS.to_string())]
}

/// A page as its server gives it to everybody.
async fn peek(victims: &Victims, url: &PageUrl) -> ContentHash {
    let web = &victims.toy.web;
    let address = web.addresses()[0];
    let place = format!(
        "http://{address}:{}{}",
        web.http_port(),
        url.path_and_query()
    );
    let host = format!("{}:{}", url.host(), url.port());
    let request = reqwest::Client::new().get(place).header(HOST, host);
    let body = request.send().await.unwrap().bytes().await.unwrap();
    ContentHash::of_body(&body)
}

/// The contents of the seeds and of the first page of each host.
async fn front_pages(victims: &Victims) -> Vec<ContentHash> {
    let mut pages = victims.toy.web.seeds();
    let first = |host| victims.pages_of(&host).into_iter().next();
    pages.extend(victims.hosts().into_iter().filter_map(first));
    let mut contents = Vec::new();
    for page in pages {
        contents.push(peek(victims, &page).await);
    }
    contents
}

fn nowhere() -> Fact {
    Fact {
        page: PageUrl::parse("http://nowhere.test/").unwrap(),
        time: now(),
        keeper: PeerId::at(Key::hash("nobody")),
    }
}

/// Every page was asked for, and somebody kept it.
async fn nothing_is_hidden(victims: Victims) {
    let missed = victims.crawl(PATIENCE).await;
    let all = victims.toy.web.truth().expected_total();
    let unkept = victims.unkept().await;
    println!(
        "of {all} pages {} were not asked for, {} asked for and kept by nobody",
        missed.len(),
        unkept.len()
    );
    let some = missed.iter().chain(&unkept).take(3).collect::<Vec<_>>();
    assert_eq!((missed.len(), unkept.len()), (0, 0), "{some:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_facts_of_a_stranger_hide_no_page() {
    let victims = Victims::start(web(), &[0.1..0.12, 0.4..0.42, 0.7..0.72], &delay()).await;
    let stranger = Hostile::stranger(Part::Mute);
    let contents = front_pages(&victims).await;
    let facts: Facts = contents
        .iter()
        .map(|content| (*content, nowhere()))
        .collect();
    let mut refused = 0;
    for address in victims.addresses() {
        let victim = stranger.meet(address).await;
        let told = stranger.tell(victim, FACTS, &facts).await;
        refused += usize::from(matches!(told, Err(RequestError::Refused(_))));
    }
    println!(
        "{} bytes, refused by {refused} of 3",
        messages::encode(&facts).len()
    );
    victims.seed().await;
    nothing_is_hidden(victims).await;
    assert_eq!(refused, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_of_a_stranger_hide_no_page() {
    let victims = Victims::start(web(), &[0.1..0.12, 0.4..0.42, 0.7..0.72], &delay()).await;
    ask_first(&victims, &Hostile::stranger(Part::Mute)).await;
    victims.seed().await;
    nothing_is_hidden(victims).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_of_a_member_hide_no_page() {
    let victims = Victims::start(web(), &[0.1..0.12, 0.4..0.42, 0.7..0.72], &delay()).await;
    // Its arc is so small that nothing lies in it.
    let place = beyond(victims.peers[0].id.key(), 0.001);
    let member = Hostile::member(place, &victims.addresses(), Part::careless()).await;
    victims.wait_for_ring(&[&member]).await;
    ask_first(&victims, &member).await;
    victims.seed().await;
    nothing_is_hidden(victims).await;
}

/// Asks for contents before anybody has seen them: to ask is to tell. Victims may have to notice a
/// new neighbour first, so it asks again for a while.
async fn ask_first(victims: &Victims, hostile: &Hostile) {
    const FOR: Duration = Duration::from_secs(5);
    for address in victims.addresses() {
        hostile.meet(address).await;
    }
    let (begun, mut open) = (Instant::now(), front_pages(victims).await);
    let all = open.len();
    while !open.is_empty() && begun.elapsed() < FOR {
        let mut unanswered = Vec::new();
        for content in open {
            if !is_answered(victims, hostile, content).await {
                unanswered.push(content);
            }
        }
        open = unanswered;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    println!("{} of {all} questions were answered", all - open.len());
}

async fn is_answered(victims: &Victims, hostile: &Hostile, content: ContentHash) -> bool {
    let Fact { page, time, .. } = nowhere();
    let ask = ContentAsk {
        content,
        page,
        time,
        standing: Standing::Open,
    };
    let asks = [ask];
    let mut is_answered = false;
    for peer in &victims.peers {
        is_answered |= hostile
            .tell(peer.id, CONTENT, &asks.as_slice())
            .await
            .is_ok();
    }
    is_answered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_calls_all_content_known_loses_no_page() {
    let toy = Toy::start(web()).await;
    let (before, liar) = widest_gap(&toy);
    let middle = (before.end + 0.5) % 0.99;
    let places = [before, middle..middle + 0.01];
    let victims = Victims::on(toy, &places, &delay()).await;
    let part = Part::careless_but(|_, kind, body| {
        let lie = || {
            let asks: Vec<ContentAsk> = messages::decode(body)?;
            Some(Ok(messages::encode(&vec![Some(nowhere()); asks.len()])))
        };
        ready((kind == CONTENT).then(lie).flatten()).boxed()
    });
    let member = Hostile::member(liar, &victims.addresses(), part).await;
    victims.wait_for_ring(&[&member]).await;
    victims.seed().await;
    nothing_is_hidden(victims).await;
}

/// Two places on the ring with no domain of the web between them, as far from each other as can be:
/// a liar at the second one owns contents but no domain.
fn widest_gap(toy: &Toy) -> (Range<f64>, Range<f64>) {
    let mut places: Vec<f64> = toy
        .web
        .truth()
        .hosts()
        .map(|(name, _)| name.parse::<Domain>().unwrap().key().fraction())
        .collect();
    places.sort_by(f64::total_cmp);
    let gaps = places.windows(2).map(|pair| (pair[0], pair[1]));
    let (from, to) = gaps
        .max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)))
        .unwrap();
    println!("a liar owns {:.1} % of all contents", 100.0 * (to - from));
    let margin = (to - from) / 20.0;
    (from + 1e-4..from + margin, to - margin..to - 1e-4)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_of_a_stranger_take_no_room() {
    const FLOOD: Duration = Duration::from_secs(3);
    let victims = Victims::start(web(), &[0.1..0.12, 0.4..0.42], &delay()).await;
    let stranger = Hostile::stranger(Part::Mute);
    let victim = &victims.peers[0];
    stranger.meet(victim.address).await;
    let before = victim.database_bytes();
    let (begun, mut number, mut taken) = (Instant::now(), 0u32, 0);
    while begun.elapsed() < FLOOD {
        let facts: Facts = (0..256)
            .map(|_| {
                number += 1;
                (ContentHash::of_body(&number.to_le_bytes()), nowhere())
            })
            .collect();
        if stranger.tell(victim.id, FACTS, &facts).await.is_ok() {
            taken += facts.len();
        }
    }
    let grown = victim.database_bytes().saturating_sub(before);
    println!("{taken} of {number} facts taken in {FLOOD:?}, {grown} bytes more on the disk");
    let ask = FactsAsk {
        arc: whole_ring(),
        after: None,
    };
    let read = stranger.ask::<Facts>(victim.id, FACTS_IN, &ask).await;
    assert_eq!(taken, 0);
    assert!(matches!(read, Err(RequestError::Refused(_))), "{read:?}");
    assert!(grown < 1 << 20, "{grown} bytes");
}
