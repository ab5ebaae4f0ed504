//! A naive crawl, written without knowledge of the generator, must find what the truth says.

use crate::client::client;
use apoidea_model::PageUrl;
use apoidea_toyweb::{Fate, ToyWeb};
use reqwest::Response;
use scraper::{Html, Selector};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io::Read,
    time::Duration,
};

/// How much of a body is unpacked, in bytes: one of them is a bomb.
const LIMIT: u64 = 1_000_000;
/// How long an answer is waited for; slow hosts are not what this is about, except one robots.txt
/// of three seconds.
const HASTE: Duration = Duration::from_secs(4);

/// The links a polite crawler may follow.
fn links(page: &PageUrl, html: &str) -> Vec<PageUrl> {
    let document = Html::parse_document(html);
    let select = |selector| Selector::parse(selector).unwrap();
    let base = document.select(&select("base[href]")).next();
    let base = base.map_or(page.clone(), |base| {
        page.join(base.attr("href").unwrap()).unwrap()
    });
    let anchors = select("a[href]");
    let allowed = document
        .select(&anchors)
        .filter(|a| !a.attr("rel").unwrap_or_default().contains("nofollow"));
    allowed
        .filter_map(|a| base.join(a.attr("href").unwrap()).ok())
        .collect()
}

/// Fetches everything reachable, obeying nothing but the one rule ordinary hosts have. Returns
/// bodies by URL.
async fn crawl(web: &ToyWeb) -> BTreeMap<PageUrl, String> {
    let client = client(web);
    let mut bodies = BTreeMap::new();
    let mut seen: BTreeSet<PageUrl> = web.seeds().into_iter().collect();
    let mut queue: VecDeque<PageUrl> = web.seeds().into();
    while let Some(url) = queue.pop_front() {
        if url.path().starts_with("/private/") {
            continue;
        }
        let response = client.get(url.as_str()).send().await.unwrap();
        assert_eq!(response.status(), 200, "{url}");
        let body = response.text().await.unwrap();
        queue.extend(
            links(&url, &body)
                .into_iter()
                .filter(|link| seen.insert(link.clone())),
        );
        bodies.insert(url, body);
    }
    bodies
}

#[tokio::test]
async fn a_naive_crawl_finds_exactly_what_the_truth_says() {
    let web = ToyWeb::builder(11)
        .hosts(30)
        .pages(600)
        .mean_bytes(4_000)
        .copies_percent(10.0)
        .start()
        .await
        .unwrap();
    let found = crawl(&web).await;
    let expected: BTreeSet<PageUrl> = web.truth().must_keep().collect();
    assert_eq!(expected.len() as u64, web.truth().expected_total());
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), expected);

    let mut same = BTreeMap::<&str, Vec<&PageUrl>>::new();
    found
        .iter()
        .for_each(|(url, body)| same.entry(body).or_default().push(url));
    let found_copies: BTreeSet<Vec<&PageUrl>> =
        same.into_values().filter(|urls| urls.len() > 1).collect();
    let copies = web.truth().copies();
    let copies: BTreeSet<Vec<&PageUrl>> = copies
        .iter()
        .map(|group| {
            let mut group: Vec<_> = group.iter().collect();
            group.sort();
            group
        })
        .collect();
    assert!(copies.len() > 5);
    assert_eq!(found_copies, copies);

    let log = web.log();
    assert_eq!(log.visits.len(), 600);
    assert!(log.requests_per_url().values().all(|&count| count == 1));
    assert!(
        log.visits
            .iter()
            .all(|visit| visit.status == 200 && visit.answered > Some(visit.received))
    );
    assert!(log.lookups.len() >= 30);
    assert_eq!(log.user_agents().len(), 1);
    assert!(
        web.addresses()
            .iter()
            .all(|address| log.gaps_per_address().contains_key(address))
    );
    assert!(web.honeypot().intruders().is_empty());
    web.stop().await.unwrap();
}

/// What a client makes of a response: its text, however packed and encoded.
async fn text(response: Response) -> String {
    let encoding = response
        .headers()
        .get("content-encoding")
        .map(|value| value.as_bytes().to_vec());
    let kind = response
        .headers()
        .get("content-type")
        .map_or("", |value| value.to_str().unwrap())
        .to_owned();
    let is_packed_file = kind == "application/gzip";
    let bytes = response.bytes().await.unwrap_or_default();
    let mut plain = Vec::new();
    let unpacked = match encoding.as_deref() {
        Some(b"gzip" | b"x-gzip") => flate2::read::GzDecoder::new(&bytes[..])
            .take(LIMIT)
            .read_to_end(&mut plain),
        Some(b"br") => brotli::Decompressor::new(&bytes[..], 4096).read_to_end(&mut plain),
        None if is_packed_file => flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain),
        _ => std::io::copy(&mut &bytes[..], &mut plain).map(|_| 0),
    };
    if unpacked.is_err() {
        return String::new();
    }
    let fallback = if kind.contains("utf-16") {
        encoding_rs::UTF_16LE
    } else {
        encoding_rs::UTF_8
    };
    fallback.decode(&plain).0.into_owned()
}

/// Everything that a text or its headers might lead to: links, sitemap entries, the lines of a
/// list.
fn leads(page: &PageUrl, text: &str) -> Vec<PageUrl> {
    let locations = text
        .split("<loc>")
        .skip(1)
        .filter_map(|rest| rest.split("</loc>").next());
    let lines = text
        .lines()
        .map(|line| line.split_once("itemap: ").map_or(line, |(_, url)| url));
    let listed = locations
        .chain(lines.filter(|line| line.starts_with("http")))
        .map(|url| url.replace("&amp;", "&"));
    listed
        .filter_map(|url| PageUrl::parse(&url).ok())
        .chain(links(page, text))
        .collect()
}

#[tokio::test]
async fn every_url_that_must_be_fetched_can_be_found() {
    let web = ToyWeb::builder(3).everything().start().await.unwrap();
    let client = client(&web);
    let (mut seen, mut queue) = (BTreeSet::new(), VecDeque::from(web.seeds()));
    while let Some(url) = queue.pop_front() {
        let is_due = web.truth().must_fetch_contains(&url) && seen.insert(url.clone());
        if !is_due {
            continue;
        }
        let Ok(response) = client.get(url.as_str()).timeout(HASTE).send().await else {
            continue;
        };
        let location = response
            .headers()
            .get("location")
            .and_then(|value| url.join(value.to_str().ok()?).ok());
        let is_slow = url.host().starts_with("slow-") || url.host().starts_with("body-");
        let text = if is_slow && url.path() != "/" {
            String::new()
        } else {
            text(response).await
        };
        queue.extend(
            leads(&url, &text)
                .into_iter()
                .chain(location)
                .chain(url.join("/robots.txt").ok()),
        );
    }
    let missed: Vec<PageUrl> = web
        .truth()
        .must_fetch()
        .filter(|url| !seen.contains(url))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(web.honeypot().intruders().is_empty());
}

#[tokio::test]
async fn what_must_not_be_fetched_is_known() {
    let web = ToyWeb::builder(11)
        .hosts(3)
        .pages(30)
        .start()
        .await
        .unwrap();
    let home = web.seeds().remove(0);
    for (path, fate) in [
        ("/", Fate::Keep),
        ("/robots.txt", Fate::Visit),
        ("/private/1", Fate::Never),
        ("/fake/comment-3", Fate::Never),
        ("/hidden/2", Fate::Never),
        ("/img/3.png", Fate::Either),
        ("https://example.com/", Fate::Never),
        ("http://127.0.0.1/", Fate::Never),
    ] {
        assert_eq!(web.truth().fate(&home.join(path).unwrap()), fate, "{path}");
    }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_page_and_another_seed_another() {
    let fetch = async |seed| {
        let web = ToyWeb::builder(seed)
            .hosts(1)
            .pages(9)
            .start()
            .await
            .unwrap();
        let body = client(&web)
            .get(web.seeds()[0].as_str())
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        body.replace(&web.http_port().to_string(), "PORT")
    };
    assert_eq!(fetch(5).await, fetch(5).await);
    assert_ne!(fetch(5).await, fetch(6).await);
}

#[tokio::test]
async fn known_pages_are_not_sent_again() {
    let web = ToyWeb::builder(2).hosts(1).pages(3).start().await.unwrap();
    let (client, home) = (client(&web), web.seeds().remove(0));
    let first = client.get(home.as_str()).send().await.unwrap();
    let etag = first.headers()["etag"].to_str().unwrap().to_owned();
    let second = client
        .get(home.as_str())
        .header("If-None-Match", &etag)
        .send()
        .await
        .unwrap();
    assert_eq!(second.status(), 304);
    let visit = web.log().visits.pop().unwrap();
    assert_eq!(
        (visit.if_none_match.as_deref(), visit.status),
        (Some(&*etag), 304)
    );
}
