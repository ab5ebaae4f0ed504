//! Whom a peer contacts that is told nothing: with the list in the program and a silent name server
//! nobody, in a demo and in every test nobody ever.

use super::{MINUTE, OUTSIDE, contacted, in_an_internet};
use crate::{
    namespace, patience,
    peer_process::{Launch, program},
};
use apoidea_peer::{Missing, SeedSource};
use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::net::UdpSocket;

/// Names that are asked for besides those of the seeds: whether a gateway translates addresses, and
/// where the DHT begins.
const OTHER_NAMES: [&str; 5] = [
    "ipv4only.arpa",
    "router.bittorrent.com",
    "dht.transmissionbt.com",
    "dht.libtorrent.org",
    "router.utorrent.com",
];

#[test]
fn with_a_silent_name_server_nobody_is_contacted() {
    in_an_internet("contacts::a_silent_name_server");
}

/// The name in a question of DNS.
fn name(question: &[u8]) -> Option<String> {
    let (mut labels, mut rest) = (Vec::new(), question.get(12..)?);
    loop {
        let (&length, after) = rest.split_first()?;
        if length == 0 {
            return Some(labels.join("."));
        }
        let (label, after) = after.split_at_checked(length.into())?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        rest = after;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by with_a_silent_name_server_nobody_is_contacted"]
async fn a_silent_name_server() {
    if !namespace::is_prepared() {
        return;
    }
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    let server = UdpSocket::bind((OUTSIDE, 53)).await.unwrap();
    let heard = asked.clone();
    tokio::spawn(async move {
        let mut question = [0; 512];
        while let Ok((length, _)) = server.recv_from(&mut question).await {
            heard.lock().unwrap().extend(name(&question[..length]));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    // Everything as a volunteer has it, but for the port of the dashboard.
    let launch = Launch::as_installed(&folder.path().join("data"));
    let peer = launch.start().await;
    let status = peer
        .wait("it says what is missing", MINUTE, |status| {
            status.door.missing == Some(Missing::NameServer)
        })
        .await;
    assert!(status.reason.contains("name servers do not answer"));
    assert!(status.queued > 300, "the list is sown: {}", status.queued);
    let told = launch.run(&["status"]);
    let told = String::from_utf8(told.stdout).unwrap();
    let first = told.lines().next().unwrap();
    assert!(first.contains("name servers do not answer"), "{told}");
    assert!(
        told.contains("BitTorrent's DHT: cannot be reached"),
        "{told}"
    );
    let codes = launch.run(&["status", "--json"]);
    let codes: serde_json::Value = serde_json::from_slice(&codes.stdout).unwrap();
    assert_eq!(codes["missing"]["kind"], "name_server");
    let ways = codes["entry"].as_array().unwrap().iter();
    let ways: Vec<(&str, &str)> = ways
        .map(|entry| (entry["way"].as_str(), entry["state"].as_str()))
        .map(|(way, state)| (way.unwrap(), state.unwrap()))
        .collect();
    assert_eq!(
        ways,
        [
            ("remembered", "nothing"),
            ("configured", "nothing"),
            ("name", "nothing"),
            ("local_network", "silent"),
            ("rendezvous", "closed"),
        ]
    );
    // The same in one line, where `make run` shows it.
    let line = |words: String| {
        let line = words.lines().last()?.to_owned();
        let parts = ["name servers do not answer", "local network", "BitTorrent"];
        parts.iter().all(|part| line.contains(part)).then_some(line)
    };
    peer.observe("one line says it all", MINUTE, async || line(peer.words()))
        .await;
    assert_eq!(
        contacted(),
        [""; 0],
        "no packet leaves but for the name server"
    );
    let seeds = SeedSource::BuiltIn.urls().unwrap();
    let seeds: BTreeSet<String> = seeds.iter().map(|url| url.host().to_owned()).collect();
    let asked = asked.lock().unwrap().clone();
    let is_expected = |name: &&String| {
        seeds.contains(*name) || OTHER_NAMES.contains(&name.as_str()) || name.ends_with(".local")
    };
    assert!(asked.iter().any(|name| seeds.contains(name)), "{asked:?}");
    let others: Vec<&String> = asked.iter().filter(|name| !is_expected(name)).collect();
    assert_eq!(others, Vec::<&String>::new());
}

#[test]
fn no_demo_and_no_test_contacts_anybody() {
    in_an_internet("contacts::demos_and_tests");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by no_demo_and_no_test_contacts_anybody"]
async fn demos_and_tests() {
    if !namespace::is_prepared() {
        return;
    }
    for demo in [
        &["demo", "--exit-when-done", "--hosts", "4", "--pages", "40"][..],
        &[
            "demo",
            "--peers",
            "2",
            "--exit-when-done",
            "--hosts",
            "4",
            "--pages",
            "40",
        ],
    ] {
        let mut demo = Command::new(program())
            .args(demo)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let ended = patience::look(2 * MINUTE, async || demo.try_wait().unwrap()).await;
        let _ = demo.kill();
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
    }
    // A peer as tests start it, with nothing to crawl and long enough to look round.
    let folder = tempfile::tempdir().unwrap();
    let peer = Launch::new(&folder.path().join("data")).start().await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let status = peer.status().await;
    assert_eq!((status.queued, status.door.rendezvous_bytes), (0, 0));
    assert_eq!(contacted(), [""; 0]);
}

/// Every file that starts peers for a test, a demo or a benchmark takes them off the local network;
/// it has to take them off the DHT and the seeds as well.
#[test]
fn every_program_that_starts_peers_for_itself_keeps_them_off_the_internet() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let listed = Command::new("git")
        .arg("-C")
        .arg(root)
        .args([
            "ls-files",
            "-z",
            "tests",
            "src-tauri/tests",
            "ui/tests",
            "crates/cli/src",
        ])
        .output()
        .unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    let mut starters = 0;
    for name in names.split_terminator('\0') {
        let Ok(text) = fs::read_to_string(root.join(name)) else {
            continue;
        };
        let is_starter = [
            "network.local_network=off",
            "local_network\": \"off\"",
            "local_network\", \"off\"",
            "LocalDiscovery::Off",
        ]
        .iter()
        .any(|mark| text.contains(mark));
        // The overlay by itself has no rendezvous unless it is told of one.
        if !is_starter || text.contains("ChordSettings") || name.ends_with("door/contacts.rs") {
            continue;
        }
        starters += 1;
        assert!(
            text.contains("rendezvous"),
            "{name} leaves the rendezvous on"
        );
        assert!(
            text.contains("crawl.seeds") || text.contains("SeedSource::List"),
            "{name} leaves the seeds in"
        );
    }
    assert!(starters >= 5, "{starters}");
}
