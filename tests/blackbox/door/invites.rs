//! Invites: two people with one link have a network, without any infrastructure.

use super::{HOMES, MINUTE, contacted, in_an_internet, is_member, outside};
use crate::{
    namespace,
    peer_process::{Launch, PeerProcess},
};
use apoidea_model::{Key, PeerId};
use apoidea_overlay::{AddressPolicy, Invite, InvitedPeer};
use apoidea_peer::{InviteAnswer, NetworkState};
use reqwest::Method;
use std::path::Path;

fn launch(folder: &Path, home: usize) -> Launch {
    Launch::new(&folder.join(format!("peer-{home}")))
        .set("network.listen", format!("[{:?}]", HOMES[home]))
}

fn said(launch: &Launch, arguments: &[&str]) -> (bool, String) {
    let output = launch.run(arguments);
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8(said).unwrap().trim().to_owned(),
    )
}

async fn invite(peer: &PeerProcess) -> InviteAnswer {
    let answer = peer.request(Method::GET, "/api/invite").send().await;
    answer.unwrap().json().await.unwrap()
}

/// The rows of modules that a terminal shows: two on each line.
fn modules_of_text(text: &str) -> String {
    let mut rows = String::new();
    for line in text.lines() {
        for dark in [['▄', ' '], ['▀', ' ']] {
            rows.extend(
                line.chars()
                    .map(|c| if dark.contains(&c) { '1' } else { '0' }),
            );
            rows.push('\n');
        }
    }
    rows
}

/// The same of a picture whose path is made of runs, `Mx yhN…`.
fn modules_of_picture(svg: &str) -> String {
    let size = svg.split("viewBox=\"0 0 ").nth(1).unwrap();
    let size: usize = size.split(' ').next().unwrap().parse().unwrap();
    let mut rows = vec![vec!['0'; size]; size];
    let path = svg
        .rsplit("d=\"")
        .next()
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    for run in path.split('M').skip(1) {
        let (x, rest) = run.split_once(' ').unwrap();
        let (y, rest) = rest.split_once('h').unwrap();
        let length: usize = rest.split('v').next().unwrap().parse().unwrap();
        let (x, y): (usize, usize) = (x.parse().unwrap(), y.parse().unwrap());
        rows[y][x..x + length].fill('1');
    }
    let rows = rows
        .into_iter()
        .map(|row| row.into_iter().collect::<String>());
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn one_invite_makes_a_network() {
    in_an_internet("invites::three_join_by_a_link");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by one_invite_makes_a_network"]
async fn three_join_by_a_link() {
    if !namespace::is_prepared() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let launches = [0, 1, 2].map(|home| launch(folder.path(), home));
    let first = launches[0].start().await;
    first
        .wait("it is alone", MINUTE, |status| {
            status.network == NetworkState::Alone
        })
        .await;
    let made = invite(&first).await;
    let (is_done, link) = said(&launches[0], &["invite"]);
    assert!(is_done && link == made.link, "{link}");
    // A camera reads the same from the window and from the terminal.
    for modules in [modules_of_text(&made.text), modules_of_picture(&made.svg)] {
        assert_eq!(outside::read_qr(&modules), link.to_ascii_uppercase());
    }

    // Opened before the program runs, and pasted while it runs.
    let (is_done, words) = said(&launches[1], &["join", &link]);
    assert!(is_done, "{words}");
    let second = launches[1].start().await;
    second.wait("two are a network", MINUTE, is_member(2)).await;
    let third = launches[2].start().await;
    let (is_done, words) = said(&launches[2], &["join", &link.to_ascii_uppercase()]);
    assert!(
        is_done && words.contains("1 of 1 peers answered"),
        "{words}"
    );
    for peer in [&first, &second, &third] {
        peer.wait("three are a network", MINUTE, is_member(3)).await;
    }
    let made = invite(&second).await;
    assert_eq!(made.contents.peers.len(), 3, "an invite outlives its maker");
    let (is_done, words) = said(&launches[1], &["join", &made.link]);
    assert!(is_done, "{words}");
    assert_eq!(contacted(), [""; 0], "nobody else was told anything");
}

#[test]
fn a_damaged_invite_or_one_of_another_network_is_told_apart() {
    in_an_internet("invites::bad_links");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by a_damaged_invite_or_one_of_another_network_is_told_apart"]
async fn bad_links() {
    if !namespace::is_prepared() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (launch, other) = (launch(folder.path(), 0), launch(folder.path(), 1));
    let peer = launch.start().await;
    let link = invite(&peer).await.link;
    for (bad, why) in [
        ("https://example.org/", "begins with apoidea:"),
        (&link[..link.len() - 2], "damaged"),
        (&link[..], "your own invite"),
    ] {
        let (is_done, words) = said(&launch, &["join", bad]);
        assert!(!is_done && words.contains(why), "{bad}: {words}");
    }
    // A private network of somebody's own: its peers are dialled only if the volunteer agrees.
    let (is_done, words) = said(&other, &["join", "--found", "family"]);
    assert!(is_done && words.contains("family-"), "{words}");
    let founder = other.start().await;
    let private = invite(&founder).await;
    assert!(private.contents.is_private);
    let (is_done, words) = said(&launch, &["join", &private.link]);
    assert!(!is_done && words.contains("another network"), "{words}");
    assert!(words.contains("private"), "{words}");
    let (is_done, words) = said(&launch, &["join", "--yes", &private.link]);
    assert!(is_done && words.contains("next start"), "{words}");
    peer.stop().await;
    let peer = launch.start().await;
    peer.wait("the family is a network", MINUTE, is_member(2))
        .await;
    founder.wait("for both", MINUTE, is_member(2)).await;
    assert_eq!(contacted(), [""; 0]);
}

#[test]
fn a_forged_invite_leads_nowhere() {
    in_an_internet("invites::forged_links");
}

/// A link to one peer, as somebody writes it who has read the source.
fn forged(network: &str, addresses: AddressPolicy, id: PeerId, places: &[&str]) -> String {
    let peer = InvitedPeer {
        id,
        addresses: places.iter().map(|place| place.parse().unwrap()).collect(),
    };
    let invite = Invite {
        network: network.parse().unwrap(),
        addresses,
        peers: vec![peer],
    };
    invite.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by a_forged_invite_leads_nowhere"]
async fn forged_links() {
    if !namespace::is_prepared() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [first, second, third] = [0, 1, 2].map(|home| launch(folder.path(), home));
    let (victim, honest) = (first.start().await, second.start().await);
    let made = invite(&honest).await;
    let (network, place) = (
        &made.contents.network,
        made.contents.peers[0][0].to_string(),
    );
    let stranger = PeerId::at(Key::hash("nobody"));

    // Places in the volunteer's own network, in an invite to the open one.
    let inside = forged(
        network,
        AddressPolicy::Global,
        stranger,
        &["192.168.1.1:80", "127.0.0.1:22"],
    );
    let (is_done, words) = said(&first, &["join", &inside]);
    assert!(!is_done && words.contains("no peer"), "{words}");

    // The same places, in an invite to a private network that has the open one's name; also while no
    // peer runs.
    let private = forged(
        network,
        AddressPolicy::Private,
        stranger,
        &["192.168.1.1:80"],
    );
    for launch in [&first, &third] {
        let (is_done, words) = said(launch, &["join", &private]);
        assert!(!is_done && words.contains("another network"), "{words}");
        assert!(
            words.contains("private") && words.contains("--yes"),
            "{words}"
        );
    }

    // Somebody else's name for a peer, and the address of a third party.
    let wrong = forged(
        network,
        AddressPolicy::Global,
        stranger,
        &[&place, "60.1.2.3:443"],
    );
    let (is_done, words) = said(&first, &["join", &wrong]);
    assert!(is_done && words.contains("None of the 1 peers"), "{words}");
    for peer in [&victim, &honest] {
        assert_eq!(peer.status().await.network, NetworkState::Alone);
    }
    assert_eq!(contacted(), ["60.1.2.3:443"], "and nobody else");
}
