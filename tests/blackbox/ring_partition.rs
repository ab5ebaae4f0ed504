//! A network that falls apart and comes together again.
//!
//! It happens in a network namespace of its own, where packets between two groups of loopback
//! addresses are dropped. Where the system does not allow that, the test says so.

use crate::{namespace, peer_process::Launch, ring_swarm::Swarm};
use std::{path::Path, process::Command, time::Duration};

/// Peers in each half.
const HALF: usize = 4;
/// Time to notice that half of the peers are gone: three silent attempts and a few rounds, on a
/// busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const SPLIT: &str = "add table ip split
add chain ip split arriving { type filter hook input priority 0; }
add rule ip split arriving ip saddr 127.0.1.0/24 ip daddr 127.0.2.0/24 drop
add rule ip split arriving ip saddr 127.0.2.0/24 ip daddr 127.0.1.0/24 drop
";
const JOIN: &str = "delete table ip split\n";

#[test]
fn two_halves_that_were_cut_off_from_each_other_become_one_ring_again() {
    if !namespace::allows(&format!(
        "ip link set lo up && nft '{SPLIT}' && nft '{JOIN}'"
    )) {
        eprintln!(
            "note: no network namespace or no nftables here; a split network is only simulated"
        );
        return;
    }
    namespace::run("ring_partition::two_halves_merge", "ip link set lo up", &[]);
}

/// Peer `number` of half 1 or 2, which knows the first of the first half.
fn launch(folder: &Path, half: usize, number: usize, entry: Option<&str>) -> Launch {
    let entries = entry.map_or("[]".to_owned(), |entry| format!("[\"{entry}\"]"));
    Launch::new(&folder.join(format!("peer-{half}-{number}")))
        .set(
            "network.listen",
            format!("[\"127.0.{half}.{}\"]", number + 1),
        )
        .set("network.is_private", true)
        .set("network.entry_points", entries)
        .set("network.stabilize_ms", 1000)
        .set("network.check_ms", 3000)
        .set("archive.keep", false)
}

fn nft(rules: &str) {
    let changed = Command::new("nft")
        .arg(rules)
        .status()
        .expect("it was there before");
    assert!(changed.success(), "{rules}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by two_halves_that_were_cut_off_from_each_other_become_one_ring_again"]
async fn two_halves_merge() {
    if !namespace::is_prepared() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut one = Swarm::start(&[launch(folder.path(), 1, 0, None)]).await;
    let entry = one.views().await.unwrap()[0].listens[0].to_string();
    let launch = |half, number| launch(folder.path(), half, number, Some(&entry));
    let first: Vec<Launch> = (1..HALF).map(|number| launch(1, number)).collect();
    let second: Vec<Launch> = (0..HALF).map(|number| launch(2, number)).collect();
    one.peers
        .extend(Swarm::start(&[first, second].concat()).await.peers);
    let before = one.form_a_ring("all form one ring", PATIENCE).await;

    nft(SPLIT);
    let other = Swarm {
        peers: one.peers.split_off(HALF),
    };
    one.form_a_ring("the first half goes on", PATIENCE).await;
    other.form_a_ring("the second half goes on", PATIENCE).await;

    nft(JOIN);
    one.peers.extend(other.peers);
    let after = one.form_a_ring("the halves merge", PATIENCE).await;
    assert_eq!(after, before, "the same peers own the same domains");
}
