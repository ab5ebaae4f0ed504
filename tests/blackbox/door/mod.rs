//! The first minute: a peer that is told nothing finds others and something to crawl, or says what
//! is missing.
//!
//! Each test has a network namespace that stands for the Internet: addresses of the Internet on
//! loopback, a default route that leads to a wire where every packet is seen and none arrives
//! anywhere, and a file of its own in place of `/etc/resolv.conf`.

mod contacts;
mod invites;
mod line;
mod outside;
mod strangers;

use crate::{namespace, peer_process::PeerProcess};
use apoidea_peer::NetworkState;
use std::{fs, process::Command};
use tempfile::TempDir;

/// What the volunteer's first minute is.
const MINUTE: std::time::Duration = std::time::Duration::from_secs(60);

/// Where peers live; each in a network of its own.
const HOMES: [&str; 3] = ["5.1.0.1", "5.2.0.1", "5.3.0.1"];
/// Where everything lives that stands for the rest of the Internet.
const OUTSIDE: &str = "9.9.9.9";

/// Lays the Internet out. The name server is that of the file `$RESOLV`.
const INTERNET: &str = "ip link set lo up \
    && for a in 5.1.0.1 5.2.0.1 5.3.0.1 9.9.9.9; do ip address add $a/32 dev lo || exit 1; done \
    && ip link add out type veth peer name far && ip link set out arp off up \
    && ip link set far up && ip address add 5.250.0.1/32 dev out \
    && ip route add default dev out src 5.250.0.1 \
    && nft 'add table inet watch; \
        add set inet watch told { type ipv4_addr . inet_service; flags dynamic; size 65535; }; \
        add chain inet watch leaving { type filter hook output priority 0; }; \
        add rule inet watch leaving oifname out ip daddr != 224.0.0.0/4 \
            add @told { ip daddr . th dport }' \
    && exec unshare --mount sh -c \
        'mount --bind \"$RESOLV\" /etc/resolv.conf && exec \"$0\" \"$@\"' \"$0\" \"$@\"";

/// Runs an ignored test of this folder in an Internet of its own; says so where that cannot be.
fn in_an_internet(test: &str) {
    let probe = "ip link set lo up && ip link add out type veth peer name far \
        && nft 'add table inet watch' && unshare --mount true";
    if !namespace::allows(probe) {
        eprintln!("note: no network namespace or no nftables here; {test} is not tried");
        return;
    }
    // Built here, since there is no registry in there.
    outside::programs();
    let folder = TempDir::new().unwrap();
    let resolv = folder.path().join("resolv.conf");
    fs::write(&resolv, format!("nameserver {OUTSIDE}\n")).unwrap();
    let resolv = resolv.display().to_string();
    namespace::run(&format!("door::{test}"), INTERNET, &[("RESOLV", &resolv)]);
}

fn nft(rules: &str) -> String {
    let output = Command::new("nft").arg(rules).output().unwrap();
    assert!(output.status.success(), "{rules}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The addresses and ports to which packets left, or would have.
fn contacted() -> Vec<String> {
    let listed = nft("list set inet watch told");
    let Some((_, elements)) = listed.split_once("elements = {") else {
        return Vec::new();
    };
    let elements = elements.split('}').next().unwrap();
    elements
        .split(',')
        .map(|element| element.trim().replace(" . ", ":"))
        .collect()
}

fn is_member(peers: u64) -> impl Fn(&apoidea_peer::Status) -> bool {
    move |status| matches!(status.network, NetworkState::Member { peers: known } if known == peers)
}

/// The state of each way into the ring, such as `rendezvous found`.
async fn ways(peer: &PeerProcess) -> Vec<String> {
    let status: serde_json::Value = peer
        .request(reqwest::Method::GET, "/api/status")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let entry = status["entry"].as_array().unwrap();
    let word = |entry: &serde_json::Value, field: &str| entry[field].as_str().unwrap().to_owned();
    entry
        .iter()
        .map(|entry| format!("{} {}", word(entry, "way"), word(entry, "state")))
        .collect()
}
