//! Seats on the open Internet, with real connections: a network namespace of the test's own, in
//! which every peer has a global address.

use apoidea_chord::{
    Contact, Introduction, Message, Prefix, RequestId, RingRequest, RingResponse, Routes, Seat,
    Seating,
};
use apoidea_model::{Key, PeerId, Time};
use apoidea_overlay::{
    AddressBook, AddressPolicy, Chord, ChordSettings, EntryPlace, EntryPoint, Identity, Kind,
    LocalDiscovery, Membership, Overlay, Phase, Reachability, RingSettings, Silent, Source,
    Transport, TransportSettings,
};
use std::{
    env,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::Command,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// Set for a test that another one runs.
const INNER: &str = "APOIDEA_INNER_TEST";
/// Gives the loopback device the addresses 5.1.0.1 to 5.20.0.1.
const PREPARE: &str = "ip link set lo up && \
    for i in $(seq 1 20); do ip address add 5.$i.0.1/32 dev lo || exit 1; done";
/// On a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Runs the ignored test of this name in a network namespace, where it must pass.
fn run_apart(test: &str) {
    let apart = |script: &str| {
        let mut command = Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "--net",
            "--",
            "sh",
            "-c",
            script,
        ]);
        command
    };
    let probe = apart(PREPARE).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        eprintln!("note: no network namespace here; seats are not tried on real connections");
        return;
    }
    let output = apart(&format!("{PREPARE} && exec \"$0\" \"$@\""))
        .arg(env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env(INNER, test)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(5, number, 0, 1)
}

fn prefix(number: u8) -> Prefix {
    Prefix::of(address(number).into()).expect("global")
}

fn transport_settings(number: u8) -> TransportSettings {
    TransportSettings {
        listen: vec![(address(number), 4433).into()],
        addresses: AddressPolicy::Global,
        network: "test".parse().unwrap(),
        ..TransportSettings::default()
    }
}

fn start(number: u8, seating: Seating) -> Chord {
    let entry = (number != 1).then(|| EntryPoint {
        id: None,
        place: EntryPlace::Address((address(1), 4433).into()),
    });
    let ring = RingSettings {
        stabilize_every: Duration::from_millis(500),
        check_every: Duration::from_secs(3),
        seating,
        ..RingSettings::default()
    };
    let settings = ChordSettings {
        entry_points: entry.into_iter().collect(),
        local_network: LocalDiscovery::Off,
        ring,
        ..ChordSettings::default()
    };
    let (identity, book) = (Identity::ephemeral().unwrap(), AddressBook::default());
    let transport = transport_settings(number);
    Chord::start(identity, transport, settings, book, Arc::new(Silent)).unwrap()
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Whether all peers are members of one ring and agree on the owners of many keys.
async fn is_formed(peers: &[Chord]) -> bool {
    let is_member = |peer: &Chord| {
        let standing = *peer.standing().borrow();
        standing.phase == Phase::Member && standing.size_estimate as usize == peers.len()
    };
    if !peers.iter().all(is_member) {
        return false;
    }
    for number in 0..16 {
        let key = Key::hash([number]);
        let mut owners = Vec::new();
        for peer in peers {
            owners.push(peer.owners_afresh(key, 2).await.ok());
        }
        let claims = peers.iter().filter(|peer| peer.owns(key)).count();
        if claims != 1 || owners[0].is_none() || owners.iter().any(|other| *other != owners[0]) {
            return false;
        }
    }
    true
}

#[test]
fn a_peer_that_claims_a_wrong_seat_is_refused_by_all() {
    run_apart("seats::all_refuse_a_wrong_seat");
}

#[tokio::test]
#[ignore = "run by the test above in a network namespace"]
async fn all_refuse_a_wrong_seat() {
    if env::var_os(INNER).is_none() {
        return;
    }
    let peers: Vec<Chord> = (1..=5).map(|number| start(number, Seating::OPEN)).collect();
    until("the ring has formed", async || is_formed(&peers).await).await;
    for (number, peer) in (1..).zip(&peers) {
        let seat = peer.standing().borrow().seat;
        assert_eq!(seat.prefix(), Some(prefix(number)));
        assert_eq!(peer.position(peer.me()), Some(seat.key(peer.me())));
        assert_ne!(peer.position(peer.me()), Some(peer.me().key()));
    }
    // A stranger with a key and an address of its own, and the seat of another prefix.
    let identity = Identity::ephemeral().unwrap();
    let id = identity.id();
    let book = AddressBook::default();
    let liar = Transport::start(identity, transport_settings(9), book, Arc::new(Silent)).unwrap();
    let now = Time::from(SystemTime::now());
    let own = Seating::OPEN.seat(prefix(9), 0, now);
    let seats = [
        Seating::OPEN.seat(prefix(3), 1, now),
        Seating::OPEN.seat(Prefix::V4([77, 7, 7]), 0, now),
        Seating::OPEN.seat(prefix(9), 0, now + 2 * Seat::EPOCH),
        Seat::Free,
    ];
    for peer in &peers {
        let at: SocketAddr = peer.transport().local_addresses()[0];
        liar.learn(peer.me(), [at], Source::Told);
        for seat in seats {
            let answer = greet(&liar, peer.me(), seat).await;
            assert_eq!(answer, RingResponse::Misplaced, "{seat:?}");
        }
        assert_eq!(peer.membership(id), Membership::Stranger);
    }
    for peer in &peers {
        assert_eq!(peer.membership(id), Membership::Stranger);
    }
    // With its own seat it is let in: the refusals were about the seat.
    assert_eq!(greet(&liar, peers[0].me(), own).await, RingResponse::Alive);
    assert_eq!(peers[0].position(id), Some(own.key(id)));
}

/// Greets a member as a neighbour would, from this seat.
async fn greet(liar: &Transport, to: PeerId, seat: Seat) -> RingResponse {
    let routes = Routes::new(&[liar.local_addresses()[0].into()]);
    let me = Contact::seated(liar.me(), seat, routes);
    let asker = Introduction::from(&me);
    let hello = Message::Request(RequestId(1), RingRequest::Hello { asker });
    let body = postcard::to_stdvec(&hello).unwrap().into();
    let answer = liar.request(to, Kind::RING, body).await.unwrap();
    match postcard::from_bytes(&answer).unwrap() {
        Message::Response(_, _, response) => response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_member_moves_with_its_epoch_and_the_ring_forms_again() {
    run_apart("seats::members_move_with_their_epochs");
}

#[tokio::test]
#[ignore = "run by the test above in a network namespace"]
async fn members_move_with_their_epochs() {
    if env::var_os(INNER).is_none() {
        return;
    }
    let seating = Seating::Open {
        epoch: Duration::from_secs(60),
    };
    let peers: Vec<Chord> = (1..=4).map(|number| start(number, seating)).collect();
    until("the ring has formed", async || is_formed(&peers).await).await;
    let seats = || -> Vec<Seat> {
        let seat = |peer: &Chord| peer.standing().borrow().seat;
        peers.iter().map(seat).collect()
    };
    let first = seats();
    let all_moved = async || seats().iter().zip(&first).all(|(now, then)| now != then);
    until("all have moved", all_moved).await;
    until("the ring has formed again", async || {
        is_formed(&peers).await
    })
    .await;
    let refused = peers[0].status().await.unwrap().misplaced;
    assert!(refused < 20, "{refused}");
}

#[test]
fn a_newcomer_learns_that_it_can_be_reached() {
    run_apart("seats::a_third_peer_dials_a_newcomer_back");
}

#[tokio::test]
#[ignore = "run by the test above in a network namespace"]
async fn a_third_peer_dials_a_newcomer_back() {
    if env::var_os(INNER).is_none() {
        return;
    }
    let peers: Vec<Chord> = (1..=4).map(|number| start(number, Seating::OPEN)).collect();
    until("the ring has formed", async || is_formed(&peers).await).await;
    // It only knows the first, and asks to be called.
    let identity = Identity::ephemeral().unwrap();
    let book = AddressBook::default();
    let newcomer =
        Transport::start(identity, transport_settings(9), book, Arc::new(Silent)).unwrap();
    let first: SocketAddr = (address(1), 4433).into();
    newcomer.learn(peers[0].me(), [first], Source::Told);
    newcomer.ping(peers[0].me()).await.unwrap();
    assert_eq!(newcomer.arrivals(), 0, "it has been called by nobody");
    let seen: Vec<IpAddr> = newcomer
        .believed_addresses()
        .iter()
        .map(|a| a.ip())
        .collect();
    assert_eq!(seen, [IpAddr::from(address(9))]);
    let call_me = postcard::to_stdvec(&(0u8, 4433u16)).unwrap();
    let answer = newcomer.request(peers[0].me(), Kind::DIAL_BACK, call_me.clone().into());
    assert_eq!(answer.await.unwrap()[..], [0], "answered");
    assert_eq!(newcomer.arrivals(), 1);
    // Nobody is called twice in a minute, whoever asks.
    let answer = newcomer.request(peers[0].me(), Kind::DIAL_BACK, call_me.into());
    assert_eq!(answer.await.unwrap()[..], [2], "not tried");
    // A stranger cannot order calls, whatever it says.
    let victim: SocketAddr = (address(15), 4433).into();
    let call = postcard::to_stdvec(&(1u8, peers[1].me(), victim)).unwrap();
    let answer = newcomer.request(peers[0].me(), Kind::DIAL_BACK, call.into());
    assert_eq!(answer.await.unwrap()[..], [2], "not tried");
    // The members found out by themselves: they were dialled while they joined.
    until("the first is open", async || {
        peers[0].reachability() == Reachability::Open
    })
    .await;
}
