//! Peers that are told nothing find each other through a DHT, and a hostile one leads them nowhere.

use super::{
    HOMES, MINUTE, OUTSIDE, contacted, in_an_internet, is_member, nft, outside::Dht, ways,
};
use crate::{
    namespace,
    peer_process::{Launch, PeerProcess},
    toy::Toy,
};
use apoidea_peer::Missing;
use apoidea_toyweb::ToyWeb;
use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::{Duration, Instant},
};
use tokio::{net::UdpSocket, time};

/// The most that finding others may cost.
const START_BYTES: u64 = 50_000;
/// Addresses dialled after one search.
const DIALS: usize = 8;

/// A peer with everything that a volunteer has, in this Internet: its web, its DHT, an address of
/// its own. The local network is off, since all peers share one machine.
fn launch(toy: &Toy, home: usize, dht: &[String]) -> Launch {
    let nodes: Vec<String> = dht.iter().map(|node| format!("{node:?}")).collect();
    let seeds: Vec<String> = toy
        .web
        .seeds()
        .iter()
        .map(|url| format!("\"{url}\""))
        .collect();
    toy.launch()
        .at(&toy.folder().join(format!("peer-{home}")))
        .set("network.listen", format!("[{:?}]", HOMES[home]))
        .set("crawl.private_delay_ms", 500)
        .set("network.rendezvous", "on")
        .set("network.rendezvous_nodes", format!("[{}]", nodes.join(",")))
        .set("crawl.seeds", format!("[{}]", seeds.join(",")))
}

async fn web() -> Toy {
    Toy::start(
        ToyWeb::builder(19)
            .hosts(40)
            .pages(2000)
            .https_percent(100.0),
    )
    .await
}

#[test]
fn three_strangers_become_one_network() {
    in_an_internet("strangers::three_meet_in_a_dht");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by three_strangers_become_one_network"]
async fn three_meet_in_a_dht() {
    if !namespace::is_prepared() {
        return;
    }
    let dht = Dht::start(OUTSIDE);
    let toy = web().await;
    let begun = Instant::now();
    let mut peers: Vec<PeerProcess> = Vec::new();
    for home in 0..3 {
        peers.push(launch(&toy, home, &dht.nodes).start().await);
    }
    for peer in &peers {
        let left = MINUTE.saturating_sub(begun.elapsed());
        peer.wait("a page is there", left, |status| status.totals.pages > 0)
            .await;
        let left = MINUTE.saturating_sub(begun.elapsed());
        peer.wait("all are one network", left, is_member(3)).await;
    }
    println!("one network with pages after {:?}", begun.elapsed());
    let mut used = Vec::new();
    for peer in &peers {
        let status = peer.status().await;
        assert_eq!(status.door.missing, None);
        assert!(status.door.rendezvous_bytes > 0, "{status:?}");
        used.push(status.door.rendezvous_bytes);
        let ways = ways(peer).await;
        // Those that were met meanwhile are remembered at once.
        assert_eq!(ways[1..3], ["configured nothing", "name nothing"]);
    }
    println!("bytes of the rendezvous: {used:?}");
    assert!(used.iter().all(|bytes| *bytes <= START_BYTES), "{used:?}");
    // Nothing more, as long as they are connected: of time, the test has ten seconds.
    time::sleep(Duration::from_secs(10)).await;
    for (peer, used) in peers.iter().zip(used) {
        assert_eq!(peer.status().await.door.rendezvous_bytes, used);
    }
    assert_eq!(contacted(), [""; 0], "nobody else was told anything");
}

/// A node of the DHT that invents announcements: of strangers, of home networks; and names a true
/// one among them, if it is given.
async fn liar(port: u16, truth: Option<SocketAddrV4>) {
    let socket = UdpSocket::bind((OUTSIDE, port)).await.unwrap();
    let mut datagram = [0; 1500];
    let mut number = u32::from(port) << 12;
    while let Ok((length, from)) = socket.recv_from(&mut datagram).await {
        let at = datagram[..length]
            .windows(4)
            .position(|part| part == b"1:t4");
        let Some(at) = at else { continue };
        let question = datagram[at + 5..at + 9].to_vec();
        let mut answer = b"d1:rd2:id20:".to_vec();
        answer.extend([(port % 256) as u8; 20]);
        answer.extend(b"5:token2:ok6:valuesl");
        let mut name = |address: SocketAddrV4| {
            answer.extend(b"6:");
            answer.extend(address.ip().octets());
            answer.extend(address.port().to_be_bytes());
        };
        for _ in 0..150 {
            number += 1;
            let [_, a, b, c] = number.to_be_bytes();
            let invented = match number % 5 {
                0 => Ipv4Addr::new(192, 168, b, c),
                1 => Ipv4Addr::new(10, a, b, c),
                2 => Ipv4Addr::new(127, 0, 0, c),
                _ => Ipv4Addr::new(60 + c % 90, b, a, c),
            };
            name(SocketAddrV4::new(invented, 27643));
        }
        truth.into_iter().for_each(&mut name);
        answer.extend(b"ee1:t4:");
        answer.extend(question);
        answer.extend(b"1:y1:re");
        let _ = socket.send_to(&answer, from).await;
    }
}

#[test]
fn a_hostile_rendezvous_leads_to_the_right_ring_or_nowhere() {
    in_an_internet("strangers::liars_lead_nowhere");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by a_hostile_rendezvous_leads_to_the_right_ring_or_nowhere"]
async fn liars_lead_nowhere() {
    if !namespace::is_prepared() {
        return;
    }
    nft(
        "add set inet watch home { type ipv4_addr . inet_service; flags dynamic; size 65535; }; \
         add rule inet watch leaving meta l4proto udp \
            ip daddr { 10.0.0.0/8, 192.168.0.0/16, 127.0.0.2-127.76.255.255 } \
            add @home { ip daddr . th dport }",
    );
    let toy = web().await;
    let lies: Vec<u16> = (7001..7009).collect();
    for port in &lies {
        tokio::spawn(liar(*port, None));
    }
    let dht = |ports: &[u16]| -> Vec<String> {
        ports
            .iter()
            .map(|port| format!("{OUTSIDE}:{port}"))
            .collect()
    };
    let fooled = launch(&toy, 0, &dht(&lies)).start().await;
    let alone = fooled.wait("it goes on alone", MINUTE, |status| {
        matches!(status.door.missing, Some(Missing::Peers { .. }))
    });
    let alone = alone.await;
    assert!(
        alone.reason.contains("nobody found yet"),
        "{}",
        alone.reason
    );
    // Of 1,200 addresses a search; there are three searches at most in the first minute.
    let dialled = contacted();
    assert!(
        (1..=3 * DIALS).contains(&dialled.len()),
        "{}: {dialled:?}",
        dialled.len()
    );
    assert!(
        ways(&fooled)
            .await
            .contains(&"rendezvous silent".to_owned())
    );
    fooled
        .wait("it crawls all the same", MINUTE, |status| {
            status.totals.pages > 0
        })
        .await;

    // The same lies, and three nodes of eight that name a true peer among theirs.
    let listens = fooled
        .request(reqwest::Method::GET, "/api/peers")
        .send()
        .await
        .unwrap();
    let listens: apoidea_peer::NetworkStatus = listens.json().await.unwrap();
    let truth: SocketAddrV4 = listens.listens[0].to_string().parse().unwrap();
    let mixed: Vec<u16> = (7101..7109).collect();
    for (index, port) in mixed.iter().enumerate() {
        tokio::spawn(liar(*port, (index < 3).then_some(truth)));
    }
    let second = launch(&toy, 1, &dht(&mixed)).start().await;
    second
        .wait("it finds the right ring", MINUTE, is_member(2))
        .await;
    let bytes = second.status().await.door.rendezvous_bytes;
    assert!(bytes <= START_BYTES, "{bytes}");
    let home = nft("list set inet watch home");
    assert!(!home.contains("elements"), "no home network: {home}");
}
