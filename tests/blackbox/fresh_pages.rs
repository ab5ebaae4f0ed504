//! Pages that were fetched are visited again: what has changed is found, what has not costs almost
//! nothing, and a site that lies about it is found out.

use crate::{
    archived::Archived,
    changing_site::{Asked, ChangingSite, Manner},
    patience,
    peer_process::Launch,
};
use apoidea_peer::ARCHIVE_FOLDER;
use apoidea_store::archive::Reader;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::{Duration, SystemTime},
};

const PATIENCE: Duration = Duration::from_secs(180);
/// The least time between two visits of a page, a "day" of these tests.
pub const LEAST: Duration = Duration::from_secs(4);

pub fn ip(last: u8) -> IpAddr {
    [127, 0, 7, last].into()
}

/// A peer that may visit these sites again soon, since they are its operator's own.
pub fn launch(data: &std::path::Path, sites: &[&ChangingSite]) -> Launch {
    let mut ports: Vec<String> = sites
        .iter()
        .map(|site| site.address().port().to_string())
        .collect();
    ports.dedup();
    Launch::new(data)
        .set("crawl.ports", format!("[{}]", ports.join(",")))
        .set("crawl.private_networks", "[\"127.0.7.0/24\"]")
        .set("crawl.private_delay_ms", 10)
        .set("crawl.private_address_delay_ms", 10)
        .set("freshness.private_least_ms", LEAST.as_millis())
        .set("freshness.private_most_ms", 180 * LEAST.as_millis())
}

pub fn by_path(asked: &[Asked]) -> BTreeMap<String, Vec<Asked>> {
    let mut pages = BTreeMap::<String, Vec<Asked>>::new();
    for asked in asked {
        pages
            .entry(asked.path.clone())
            .or_default()
            .push(asked.clone());
    }
    pages
}

/// No page was asked for again sooner than allowed.
fn assert_patient(site: &ChangingSite) {
    for (path, asked) in by_path(&site.asked()) {
        for pair in asked.windows(2) {
            let gap = pair[1].at.duration_since(pair[0].at);
            assert!(
                gap + Duration::from_millis(50) >= LEAST,
                "{path} after {gap:?}"
            );
        }
    }
}

/// Whether the newest version of each of these pages was shown.
fn has_shown(site: &ChangingSite, pages: &BTreeSet<usize>, version: u32) -> bool {
    let asked = site.asked();
    pages.iter().all(|page| {
        let path = ChangingSite::path(*page);
        asked
            .iter()
            .any(|asked| asked.path == path && asked.version == version && asked.status == 200)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_pass_finds_every_change_and_takes_a_tenth_of_the_bytes() {
    const PAGES: usize = 60;
    let site = ChangingSite::start(ip(1), 0, PAGES, Manner::Honest).await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let peer = launch(&data, &[&site]).start().await;
    peer.seed(&[site.url()]).await;
    peer.wait("all pages", PATIENCE, |status| {
        status.totals.pages >= PAGES as u64
    })
    .await;
    let first = site.asked();
    let changed = BTreeSet::from([7, 23, 42]);
    site.change(changed.iter().copied());
    let found = patience::look(PATIENCE, async || {
        let again = by_path(&site.asked()[first.len()..]).len();
        (again == PAGES && has_shown(&site, &changed, 1)).then_some(())
    });
    assert!(found.await.is_some(), "{:#?}", peer.status().await);
    let status = peer
        .wait("the changes are counted", PATIENCE, |status| {
            status.totals.changed >= 3 && status.totals.not_modified as usize >= PAGES - 4
        })
        .await;
    // The first visits, and of each page the second.
    let seconds: Vec<Asked> = by_path(&site.asked())
        .into_values()
        .filter_map(|asked| asked.get(1).cloned())
        .collect();
    let bytes = |asked: &[Asked]| asked.iter().map(|asked| asked.bytes).sum::<usize>();
    let share = bytes(&seconds) as f64 / bytes(&first) as f64;
    println!(
        "second pass: {} pages, {:.3} of the bytes, {} not modified, {} bytes saved, {:?} current",
        seconds.len(),
        share,
        status.totals.not_modified,
        status.totals.saved_bytes,
        status.usage.current_percent,
    );
    assert!(share <= 0.1, "{share} of the bytes");
    assert_eq!(status.totals.changed, 3);
    assert_eq!(status.totals.liars, 0);
    assert_patient(&site);
    peer.stop().await;
    check_revisits(&data);
    Archived::of(&data).check_with_warcio();
}

/// Every revisit record names a capture with a body.
fn check_revisits(data: &std::path::Path) {
    let (mut bodies, mut named) = (BTreeSet::new(), Vec::new());
    for file in Reader::new(&data.join(ARCHIVE_FOLDER)).files().unwrap() {
        for record in Reader::records(&file).unwrap() {
            let record = record.unwrap();
            let field = |name: &str| record.field(name).unwrap_or_default().to_owned();
            let uri = field("WARC-Target-URI");
            match record.kind.as_str() {
                "response" => drop(bodies.insert((uri, field("WARC-Date")))),
                "revisit" => {
                    let refers = field("WARC-Refers-To-Target-URI");
                    let refers = if refers.is_empty() { uri } else { refers };
                    named.push((refers, field("WARC-Refers-To-Date")));
                }
                _ => {}
            }
        }
    }
    assert!(!named.is_empty());
    for capture in named {
        assert!(
            bodies.contains(&capture),
            "{capture:?} is no capture with a body"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_whose_validators_lie_is_found_out_and_not_believed() {
    const PAGES: usize = 25;
    let site = ChangingSite::start(ip(2), 0, PAGES, Manner::Lying).await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let peer = launch(&data, &[&site]).start().await;
    peer.seed(&[site.url()]).await;
    peer.wait("all pages", PATIENCE, |status| {
        status.totals.pages >= PAGES as u64
    })
    .await;
    let before = site.asked().len();
    let mut version = 0;
    let caught = patience::look(PATIENCE, async || {
        // All pages change all the time.
        version += 1;
        site.change(0..PAGES);
        let status = peer.status().await;
        (status.totals.liars > 0).then_some(())
    });
    assert!(caught.await.is_some(), "{:#?}", peer.status().await);
    let needed = site.asked().len() - before;
    println!("found out after {needed} requests");
    assert!(needed <= 100 + 16, "{needed} requests");
    let then = site.asked().len();
    let shown = patience::look(PATIENCE, async || {
        let later = site.asked();
        let whole = later[then..]
            .iter()
            .filter(|asked| asked.status == 200)
            .count();
        (whole >= 10).then_some(())
    });
    assert!(shown.await.is_some(), "its pages are fetched as a whole");
    assert_patient(&site);
    peer.stop().await;
    check_revisits(&data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_markup_is_no_change_a_hint_brings_a_visit_and_gone_pages_leave() {
    const PAGES: usize = 20;
    let site = ChangingSite::start(ip(3), 0, PAGES, Manner::Silent).await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let launch = launch(&data, &[&site]);
    let peer = launch.start().await;
    peer.seed(&[site.url()]).await;
    peer.wait("all pages", PATIENCE, |status| {
        status.totals.pages >= PAGES as u64
    })
    .await;
    let first = site.asked().len();
    peer.wait("some are visited again", PATIENCE, |status| {
        status.totals.revisits >= 12
    })
    .await;
    assert_eq!(
        peer.status().await.totals.changed,
        0,
        "only comments differ"
    );
    // A restart forgets nothing.
    peer.kill();
    let peer = launch.start().await;
    site.change([5]);
    site.remove([9]);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    site.tell([5], now.as_secs());
    peer.wait("the change is found", PATIENCE, |status| {
        status.totals.changed >= 1
    })
    .await;
    let gone = ChangingSite::path(9);
    let looked_for = || {
        let asked = site.asked();
        let missing = asked[first..]
            .iter()
            .filter(|asked| asked.path == gone && asked.status == 404);
        missing.count()
    };
    let left = patience::look(PATIENCE, async || {
        let is_known = peer.status().await.usage.known_pages;
        // The sitemap is a page, too.
        (looked_for() >= 2 && is_known <= PAGES as u64).then_some(())
    });
    assert!(
        left.await.is_some(),
        "{:#?} {}",
        peer.status().await,
        looked_for()
    );
    assert_patient(&site);
    peer.stop().await;
}
