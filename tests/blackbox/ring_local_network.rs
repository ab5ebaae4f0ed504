//! Two machines in one home find each other without being told anything.
//!
//! Each is a network namespace of its own, joined to the other by a wire (a veth pair); multicast
//! DNS goes over that.

use crate::{
    namespace, patience,
    peer_process::{Launch, PeerProcess, program},
};
use apoidea_peer::NetworkStatus;
use reqwest::Method;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// Probing and announcing take about two seconds (RFC 6762 section 8), joining as long again; on a
/// busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The second machine: waits for its end of the wire, then becomes the peer.
const SECOND_MACHINE: &str = "
until ip link set there up 2>/dev/null; do sleep 0.1; done
ip link set lo up && ip address add 192.168.77.2/24 dev there && exec \"$0\" \"$@\"";

#[test]
fn two_machines_in_one_home_find_each_other_without_configuration() {
    if !namespace::allows("ip link add here type veth peer name there && unshare --net true") {
        eprintln!("note: no network namespace here; multicast DNS is not tried");
        return;
    }
    namespace::run(
        "ring_local_network::two_machines_form_a_ring",
        "ip link set lo up",
        &[],
    );
}

/// A peer with the settings that everybody has, except that its ports are free ones.
fn launch(folder: &Path, name: &str) -> Launch {
    Launch::new(&folder.join(name))
        .set("network.listen", "[]")
        .set("network.local_network", "on")
}

/// The network namespace of a process.
fn network_of(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

/// Lays a wire from here to the machine of this process, as soon as it is one of its own.
async fn lay_a_wire_to(process: u32) {
    let (here, id) = (network_of("self"), process.to_string());
    let is_apart = async || {
        network_of(&id)
            .filter(|network| Some(network) != here.as_ref())
            .map(drop)
    };
    patience::look(PATIENCE, is_apart)
        .await
        .expect("the second machine starts");
    let wire = format!(
        "ip link add here type veth peer name there netns {id} && \
         ip address add 192.168.77.1/24 dev here && ip link set here up"
    );
    assert!(
        Command::new("sh")
            .args(["-c", &wire])
            .status()
            .unwrap()
            .success()
    );
}

/// Waits until a peer knows exactly one other; gives both.
async fn neighbour(peer: &PeerProcess) -> NetworkStatus {
    let status = patience::look(PATIENCE, async || {
        let answer = peer.request(Method::GET, "/api/peers").send().await.ok()?;
        let status: NetworkStatus = answer.json().await.ok()?;
        (status.successors.len() == 1 && status.predecessor.is_some()).then_some(status)
    });
    status
        .await
        .unwrap_or_else(|| panic!("nobody is found:\n{}", peer.words()))
}

#[tokio::test]
#[ignore = "run by two_machines_in_one_home_find_each_other_without_configuration"]
async fn two_machines_form_a_ring() {
    if !namespace::is_prepared() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let second = launch(folder.path(), "second");
    let mut machine = Command::new("unshare");
    machine
        .args(["--net", "--", "sh", "-c", SECOND_MACHINE])
        .arg(program());
    second.complete(&mut machine);
    let there = second.spawn_as(&mut machine);
    lay_a_wire_to(there.id()).await;
    let here = launch(folder.path(), "first").start().await;

    let status = neighbour(&here).await;
    let (other, route) = status
        .connected
        .first()
        .map(|view| (view.id, view.route))
        .unwrap();
    assert_eq!(status.predecessor, Some(other), "both are on one ring");
    assert!(
        route.to_string().starts_with("192.168.77.2:"),
        "over the wire: {route}"
    );
}
