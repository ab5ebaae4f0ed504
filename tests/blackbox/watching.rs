//! A volunteer watches a page and is told what has changed: in the dashboard's data, by the command
//! line, by the event stream, and in a feed that any reader takes.

use crate::{
    changing_site::{ChangingSite, Manner},
    fresh_pages::{by_path, ip, launch},
    peer_process::PeerProcess,
};
use apoidea_peer::{ChangeKind, WatchList, WatchedChange};
use futures::StreamExt;
use reqwest::{Method, StatusCode};
use serde_json::json;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

pub async fn watch(peer: &PeerProcess, target: &str) -> WatchList {
    let request = peer.request(Method::POST, "/api/watches");
    let answer = request.json(&json!({ "target": target })).send().await;
    answer.unwrap().json().await.unwrap()
}

pub async fn watches(peer: &PeerProcess) -> WatchList {
    let request = peer.request(Method::GET, "/api/watches");
    request.send().await.unwrap().json().await.unwrap()
}

pub async fn changes(peer: &PeerProcess) -> Vec<WatchedChange> {
    let request = peer.request(Method::GET, "/api/changes");
    request.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volunteer_is_told_what_has_changed_on_a_watched_page() {
    let site = ChangingSite::start(ip(11), 0, 8, Manner::Honest).await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let launch = launch(&data, &[&site]);
    let peer = launch.start().await;
    let page = format!("{}page/5", site.url());
    // Nobody has to know the page before: it becomes part of the crawl.
    let said = launch.run(&["watch", &page, "--until", "30d"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains(&page) && said.contains("30 days"), "{said}");
    peer.observe("the page is watched and visited", PATIENCE, async || {
        let watches = watches(&peer).await.watches;
        let watch = watches
            .first()
            .filter(|watch| watch.visited.as_millis() > 0);
        // The owner is asked once an hour, and when it has something to tell.
        if watch.is_none() && by_path(&site.asked()).contains_key("/page/5") {
            crate::watching::watch(&peer, &page).await;
        }
        watch.cloned()
    })
    .await;
    let events = peer
        .request(Method::GET, "/api/events")
        .send()
        .await
        .unwrap();
    site.change([5, 6]);
    let found = peer
        .observe("the change is told", PATIENCE, async || {
            changes(&peer).await.into_iter().next()
        })
        .await;
    assert_eq!(found.url.as_str(), page);
    assert_eq!(found.kind, ChangeKind::Changed, "{found:#?}");
    assert!(found.added.contains("page 5 in version 1"), "{found:#?}");
    assert!(found.removed.contains("page 5 in version 0"), "{found:#?}");
    let told = tokio::time::timeout(PATIENCE, async {
        let mut text = String::new();
        let mut stream = events.bytes_stream();
        while !text.contains("event: change") {
            text += &String::from_utf8_lossy(&stream.next().await.unwrap().unwrap());
        }
    });
    told.await.expect("the event stream tells it");
    feed_shows(&peer, &page).await;
    // A restart forgets neither the watch nor the change.
    peer.kill();
    let peer = launch.start().await;
    // What was told a moment before the kill is told once more.
    let again = peer.observe("the change is known", PATIENCE, async || {
        changes(&peer).await.into_iter().next()
    });
    assert_eq!(again.await.added, found.added);
    feed_shows(&peer, &page).await;
    site.remove([5]);
    let gone = peer.observe("it is gone", PATIENCE, async || {
        let latest = changes(&peer).await.into_iter().next();
        latest.filter(|change| change.kind == ChangeKind::Gone)
    });
    assert_eq!(gone.await.url.as_str(), page);
    let ended = launch.run(&["watch", &page, "--end"]);
    assert!(ended.status.success());
    assert_eq!(watches(&peer).await.watches, []);
    let unknown = launch.run(&["watch", "no such name"]);
    let why = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        why.contains("https://") && !unknown.status.success(),
        "{why}"
    );
    peer.stop().await;
}

/// A reader that knows the feed's address alone reads it, and nothing else.
async fn feed_shows(peer: &PeerProcess, page: &str) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let feed = watches(peer).await.feed;
    let get = async |path: &str| {
        let url = format!("{}{path}", peer.address());
        client.get(url).send().await.unwrap()
    };
    let answer = get(&feed).await;
    let kind = answer.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(kind.starts_with("application/atom+xml"), "{kind}");
    let text = answer.text().await.unwrap();
    assert!(text.contains(page) && text.contains("version 1"), "{text}");
    assert!(!text.contains(peer.token()), "the token stays at home");
    let secret = feed.strip_prefix("/feed/").unwrap();
    assert_eq!(get("/feed/wrong").await.status(), StatusCode::NOT_FOUND);
    for path in ["/api/watches", "/api/status", "/api/changes"] {
        let url = format!("{}{path}", peer.address());
        let answer = client.get(url).bearer_auth(secret).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
}
