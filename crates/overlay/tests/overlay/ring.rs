//! Behaviour that only the ring has: finding a way in, leaving, and distrusting messages.

use crate::{
    peers::{Desk, PATIENCE, own_loopback, settings, until},
    stranger::{self, enter, frame, say},
};
use apoidea_chord::Settings as RingSettings;
use apoidea_overlay::{
    AddressBook, Chord, ChordSettings, EntryPoint, Identity, Kind, Limits, LocalDiscovery, Overlay,
    Phase, SettingOut, TransportSettings,
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::time;

fn start_as(identity: Identity, listen: &str, entry_points: &[String], book: AddressBook) -> Chord {
    start_when(SettingOut::AtOnce, identity, listen, entry_points, book)
}

fn start_when(
    setting_out: SettingOut,
    identity: Identity,
    listen: &str,
    entry_points: &[String],
    book: AddressBook,
) -> Chord {
    let ring = RingSettings {
        stabilize_every: Duration::from_millis(300),
        check_every: Duration::from_secs(1),
        first_timeout: Duration::from_millis(500),
        ..RingSettings::default()
    };
    let chord = ChordSettings {
        entry_points: entry_points
            .iter()
            .map(|text| text.parse().unwrap())
            .collect(),
        local_network: LocalDiscovery::Off,
        ring,
        setting_out,
        ..ChordSettings::default()
    };
    let limits = Limits {
        dial_deadline_ms: 1000,
        ..Limits::default()
    };
    let transport = TransportSettings {
        listen: vec![listen.parse().unwrap()],
        limits,
        ..settings()
    };
    let desk = Arc::new(Desk::new(identity.id()));
    Chord::start(identity, transport, chord, book, desk).unwrap()
}

fn start(entry_points: &[String]) -> Chord {
    start_as(
        Identity::ephemeral().unwrap(),
        "127.0.0.1:0",
        entry_points,
        AddressBook::default(),
    )
}

fn address(chord: &Chord) -> SocketAddr {
    chord.transport().local_addresses()[0]
}

async fn becomes(chord: &Chord, phase: Phase) {
    let mut standing = chord.standing();
    let wait = standing.wait_for(|standing| standing.phase == phase);
    time::timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("it never was {phase:?}"))
        .unwrap();
}

#[tokio::test]
async fn an_entry_point_can_be_an_address_an_id_or_a_name() {
    let first = start(&[]);
    becomes(&first, Phase::Alone).await;
    let port = address(&first).port();
    let ways = [
        format!("127.0.0.1:{port}"),
        format!("{}@127.0.0.1:{port}", first.me()),
        format!("localhost:{port}"),
        format!("{}@localhost:{port}", first.me()),
    ];
    for way in ways {
        let newcomer = start(std::slice::from_ref(&way));
        becomes(&newcomer, Phase::Member).await;
        becomes(&first, Phase::Member).await;
        newcomer.shut_down().await;
        becomes(&first, Phase::Alone).await;
    }
}

#[tokio::test]
async fn who_waits_to_be_told_calls_nobody_until_then() {
    let first = start(&[]);
    becomes(&first, Phase::Alone).await;
    let way = [format!("127.0.0.1:{}", address(&first).port())];
    let identity = Identity::ephemeral().unwrap();
    let patient = start_when(
        SettingOut::WhenTold,
        identity,
        "127.0.0.1:0",
        &way,
        AddressBook::default(),
    );
    // Somebody who sets out later is long a member.
    let other = start(&way);
    becomes(&other, Phase::Member).await;
    assert_eq!(patient.standing().borrow().phase, Phase::Outside);
    assert!(
        first
            .transport()
            .peers()
            .iter()
            .all(|peer| peer.id == other.me())
    );
    patient.enter();
    becomes(&patient, Phase::Member).await;
}

#[tokio::test]
async fn whoever_else_answers_at_an_entry_point_with_an_id_is_not_believed() {
    let impostor = start(&[]);
    let expected = Identity::ephemeral().unwrap().id();
    let newcomer = start(&[format!("{expected}@{}", address(&impostor))]);
    becomes(&newcomer, Phase::Alone).await;
    assert_eq!(impostor.transport().traffic().accepted, 0);
}

#[tokio::test]
async fn who_finds_nobody_begins_alone_and_merges_when_the_entry_point_appears() {
    let reserved = std::net::UdpSocket::bind((own_loopback(), 0)).unwrap();
    let listen = reserved.local_addr().unwrap().to_string();
    drop(reserved);
    let early = start(std::slice::from_ref(&listen));
    becomes(&early, Phase::Alone).await;
    let entry = start_as(
        Identity::ephemeral().unwrap(),
        &listen,
        &[],
        AddressBook::default(),
    );
    becomes(&early, Phase::Member).await;
    becomes(&entry, Phase::Member).await;
}

#[tokio::test]
async fn peers_remembered_from_the_last_run_lead_back_in() {
    let first = start(&[]);
    let identity = Identity::ephemeral().unwrap();
    let entry = [address(&first).to_string()];
    let second = start_as(
        identity.clone(),
        "127.0.0.1:0",
        &entry,
        AddressBook::default(),
    );
    becomes(&second, Phase::Member).await;
    let remembered = second.transport().address_book();
    second.shut_down().await;
    let again = start_as(
        identity,
        "127.0.0.1:0",
        &[],
        AddressBook::from_snapshot(remembered),
    );
    becomes(&again, Phase::Member).await;
}

#[tokio::test]
async fn who_leaves_tells_its_neighbours() {
    let first = start(&[]);
    let second = start(&[address(&first).to_string()]);
    becomes(&second, Phase::Member).await;
    becomes(&first, Phase::Member).await;
    let key = second.me().key();
    assert!(second.owns(key));
    second.shut_down().await;
    becomes(&first, Phase::Alone).await;
    assert!(first.owns(key));
    assert!(second.owners(key, 1).await.is_err() || !second.owns(key));
}

#[tokio::test]
async fn the_status_shows_the_ring() {
    let first = start(&[]);
    let second = start(&[address(&first).to_string()]);
    becomes(&second, Phase::Member).await;
    becomes(&first, Phase::Member).await;
    let status = second.status().await.unwrap();
    assert_eq!(status.successors[0].id, first.me());
    assert_eq!(
        status.successors[0].routes.as_slice(),
        [address(&first).into()]
    );
    assert!((second.standing().borrow().size_estimate - 2.0).abs() < 0.5);
    let owner = second.owners_afresh(first.me().key(), 1).await.unwrap();
    assert_eq!(owner, [first.me()]);
}

#[tokio::test]
async fn a_round_trip_that_the_ring_measured_outlives_the_connection() {
    let first = start(&[]);
    let second = start(&[address(&first).to_string()]);
    becomes(&second, Phase::Member).await;
    becomes(&first, Phase::Member).await;
    let measured = || async {
        let status = second.status().await.unwrap();
        let all = status.round_trips.into_iter();
        all.filter(|(peer, _)| *peer == first.me()).count() == 1
    };
    let wait = async {
        while !measured().await {
            time::sleep(Duration::from_millis(10)).await;
        }
    };
    time::timeout(PATIENCE, wait).await.expect("it is measured");
    first.shut_down().await;
    until("the ring's measure is told", || {
        !second.transport().is_connected(first.me()) && second.round_trip(first.me()).is_some()
    })
    .await;
}

#[tokio::test]
async fn messages_that_make_no_sense_count_against_their_sender() {
    let victim = start(&[]);
    becomes(&victim, Phase::Alone).await;
    let endpoint = stranger::endpoint();
    let connection = enter(&endpoint, address(&victim)).await;
    let ring = Kind::RING.as_byte();
    let nonsense = [
        vec![],
        vec![0xff; 100],
        vec![1; 30_000],
        [vec![1, 0, 6], vec![0xff; 5000]].concat(),
    ];
    for (bytes, count) in nonsense.iter().zip(1..) {
        let answer = say(&connection, &frame(ring, bytes)).await.unwrap();
        assert_eq!(answer[0], 2, "refused as malformed: {bytes:?}");
        assert_eq!(victim.transport().traffic().malformed, count);
    }
    assert_eq!(victim.standing().borrow().phase, Phase::Alone);
    let helped = start(&[EntryPoint {
        id: None,
        place: apoidea_overlay::EntryPlace::Address(address(&victim)),
    }
    .to_string()]);
    becomes(&helped, Phase::Member).await;
}
