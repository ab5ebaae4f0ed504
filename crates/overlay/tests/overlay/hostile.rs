//! A stranger's bytes never panic, loop, or exhaust memory: they end the stream or the connection,
//! and are counted.

use crate::{
    peers::*,
    stranger::{self, Papers, connect, enter, frame, hello, say},
};
use apoidea_overlay::{Limits, Transport, TransportSettings};
use bytes::Bytes;
use quinn::{Connection, ConnectionError, VarInt};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{net::UdpSocket, time};

async fn reason(connection: &Connection) -> u64 {
    match time::timeout(PATIENCE, connection.closed()).await.unwrap() {
        ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
        other => panic!("{other}"),
    }
}

/// Another peer is served as if nothing had happened.
async fn assert_well(victim: &Transport) {
    let friend = peer();
    introduce(&friend, victim);
    let body = Bytes::from(vec![1; 60_000]);
    assert_eq!(
        friend.request(victim.me(), ECHO, body.clone()).await,
        Ok(body)
    );
}

const WRONG_NETWORK: u64 = 1;
const MALFORMED: u64 = 2;
const BANISHED: u64 = 5;

#[tokio::test]
async fn frames_that_make_no_sense_end_their_stream_and_then_the_connection() {
    let victim = peer();
    let endpoint = stranger::endpoint();
    let connection = enter(&endpoint, address(&victim)).await;
    let tag = ECHO.as_byte();
    let too_long = [&[tag][..], &(64 * 1024 + 1u32).to_be_bytes()].concat();
    let longest = [&[tag][..], &u32::MAX.to_be_bytes()].concat();
    let nonsense = [
        vec![],
        vec![tag],
        vec![tag, 0, 0, 0],
        vec![tag, 0, 0, 0, 9, 1, 2, 3],
        [frame(tag, b"x"), b"y".to_vec()].concat(),
        too_long,
        longest,
    ];
    for (bytes, count) in nonsense.iter().zip(1..) {
        assert!(say(&connection, bytes).await.is_err(), "{bytes:?}");
        until("it is counted", || victim.traffic().malformed == count).await;
        assert_eq!(
            say(&connection, &frame(tag, b"still here")).await.unwrap()[5..],
            *b"still here"
        );
    }
    assert_eq!(nonsense.len() as u32, Limits::STRIKES - 1);
    assert!(
        say(&connection, &hello("test")).await.is_err(),
        "a second hello is one strike too many"
    );
    assert_eq!(reason(&connection).await, MALFORMED);
    assert_well(&victim).await;
}

#[tokio::test]
async fn an_offender_is_kept_out_when_it_comes_back() {
    let victim = peer();
    let (endpoint, config) = (
        stranger::endpoint(),
        stranger::config(Papers::Own, b"apoidea/1"),
    );
    let enter = async || {
        let connecting = endpoint
            .connect_with(config.clone(), address(&victim), "x")
            .unwrap();
        let connection = connecting.await.unwrap();
        let _ = say(&connection, &hello("test")).await;
        connection
    };
    let connection = enter().await;
    for _ in 0..Limits::STRIKES {
        let _ = say(&connection, &frame(NONSENSE.as_byte(), b"")).await;
    }
    assert_eq!(reason(&connection).await, MALFORMED);
    assert_eq!(reason(&enter().await).await, BANISHED);
    assert_well(&victim).await;
}

#[tokio::test]
async fn nobody_gets_in_without_a_proper_hello() {
    let victim = peer();
    let endpoint = stranger::endpoint();
    let nested = postcard::to_stdvec(&vec![vec![vec![0u8; 3]; 3]; 10]).unwrap();
    let bad = [
        vec![],
        frame(0, b""),
        frame(0, &[0xff; 200]),
        frame(0, &[0xff; 5000]),
        frame(0, &nested),
        frame(ECHO.as_byte(), b"too early"),
        [hello("test"), vec![0]].concat(),
        hello("test")[..20].to_vec(),
        hello(""),
        hello(&"x".repeat(65)),
        hello("te\nst"),
    ];
    for (bytes, count) in bad.iter().zip(1..) {
        let connection = connect(&endpoint, address(&victim)).await;
        assert!(say(&connection, bytes).await.is_err(), "{bytes:?}");
        assert_eq!(reason(&connection).await, MALFORMED, "{bytes:?}");
        until("it is counted", || victim.traffic().malformed == count).await;
    }
    let connection = connect(&endpoint, address(&victim)).await;
    assert!(say(&connection, &hello("elsewhere")).await.is_err());
    assert_eq!(reason(&connection).await, WRONG_NETWORK);
    assert!(victim.peers().is_empty());
    assert_well(&victim).await;
}

#[tokio::test]
async fn a_key_without_its_private_half_or_another_protocol_ends_the_handshake() {
    let victim = peer();
    let endpoint = stranger::endpoint();
    let refused = [
        stranger::config(Papers::Stolen(stranger::public_key()), b"apoidea/1"),
        stranger::config(Papers::Stolen(vec![0x30; 44]), b"apoidea/1"),
        stranger::config(Papers::Stolen(vec![]), b"apoidea/1"),
        stranger::config(Papers::None, b"apoidea/1"),
        stranger::config(Papers::Own, b"apoidea/2"),
        stranger::config(Papers::Own, b"h3"),
    ];
    for (config, count) in refused.into_iter().zip(1..) {
        let error = match endpoint
            .connect_with(config, address(&victim), "x")
            .unwrap()
            .await
        {
            Ok(connection) => time::timeout(PATIENCE, connection.closed()).await.unwrap(),
            Err(error) => error,
        };
        assert!(
            matches!(error, ConnectionError::ConnectionClosed(_)),
            "{error}"
        );
        until("it is counted", || {
            victim.traffic().handshakes_failed == count
        })
        .await;
    }
    assert!(victim.peers().is_empty());
    assert_well(&victim).await;
}

#[tokio::test]
async fn who_never_says_hello_is_shown_out() {
    let limits = Limits {
        dial_deadline_ms: 3000,
        ..Limits::default()
    };
    let (victim, _) = start(TransportSettings {
        limits,
        ..settings()
    });
    let endpoint = stranger::endpoint();
    let mut silent = Vec::new();
    for _ in 0..Limits::HANDSHAKES_UNDER_LOAD + 4 {
        silent.push(connect(&endpoint, address(&victim)).await);
    }
    let count = silent.len() as u64;
    assert_well(&victim).await;
    assert!(
        victim.traffic().retried > 0,
        "under load newcomers prove their addresses"
    );
    until("all were shown out", || {
        victim.traffic().handshakes_failed == count
    })
    .await;
    for connection in silent {
        time::timeout(PATIENCE, connection.closed()).await.unwrap();
    }
    assert_well(&victim).await;
}

#[tokio::test]
async fn datagrams_of_noise_are_ignored() {
    let victim = peer();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut noise = 1u64;
    for length in (0..1400).step_by(7) {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                noise = noise
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                (noise >> 56) as u8
            })
            .collect();
        socket.send_to(&bytes, address(&victim)).await.unwrap();
    }
    assert_well(&victim).await;
}

/// Forwards datagrams between one client and a peer and keeps the client's.
async fn wiretap(to: SocketAddr) -> (SocketAddr, Arc<UdpSocket>, Arc<Mutex<Vec<Vec<u8>>>>) {
    let outside = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let inside = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let (address, kept) = (
        outside.local_addr().unwrap(),
        Arc::new(Mutex::new(Vec::new())),
    );
    let (tap, socket) = (kept.clone(), inside.clone());
    tokio::spawn(async move {
        let (mut up, mut down, mut client) = ([0; 2000], [0; 2000], None);
        loop {
            tokio::select! {
                Ok((length, from)) = outside.recv_from(&mut up) => {
                    client = Some(from);
                    tap.lock().unwrap().push(up[..length].to_vec());
                    let _ = socket.send_to(&up[..length], to).await;
                }
                Ok((length, _)) = socket.recv_from(&mut down) => {
                    if let Some(client) = client {
                        let _ = outside.send_to(&down[..length], client).await;
                    }
                }
            }
        }
    });
    (address, inside, kept)
}

#[tokio::test]
async fn a_recorded_conversation_played_again_has_no_effect() {
    let victim = peer();
    let (tapped, inside, kept) = wiretap(address(&victim)).await;
    let endpoint = stranger::endpoint();
    let connection = enter(&endpoint, tapped).await;
    let answer = say(&connection, &frame(ECHO.as_byte(), b"once"))
        .await
        .unwrap();
    assert_eq!(answer[5..], *b"once");
    let answered = || victim.traffic().kinds[&ECHO.as_byte()].answered;
    until("it was answered once", || answered() == 1).await;
    let recorded = kept.lock().unwrap().clone();
    let elsewhere = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for datagram in &recorded {
        inside.send_to(datagram, address(&victim)).await.unwrap();
        elsewhere.send_to(datagram, address(&victim)).await.unwrap();
    }
    let answer = say(&connection, &frame(ECHO.as_byte(), b"twice"))
        .await
        .unwrap();
    assert_eq!(answer[5..], *b"twice", "the conversation itself goes on");
    assert_well(&victim).await;
    assert_eq!(
        answered(),
        3,
        "the two of the stranger and the one of the friend"
    );
    assert_eq!(victim.traffic().accepted, 2);
}

#[tokio::test]
async fn one_way_streams_and_datagrams_are_not_part_of_the_protocol() {
    let victim = peer();
    let endpoint = stranger::endpoint();
    let connection = enter(&endpoint, address(&victim)).await;
    assert!(
        time::timeout(Duration::from_millis(200), connection.open_uni())
            .await
            .is_err()
    );
    assert!(connection.send_datagram(Bytes::from_static(b"x")).is_err());
}

/// Memory of this process in bytes.
#[cfg(target_os = "linux")]
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[cfg(not(target_os = "linux"))]
fn resident_bytes() -> usize {
    0
}

/// Streams opened at once; a few below the limit, since credit for used ones comes back in
/// portions.
const STREAMS: u64 = Limits::STREAMS as u64 / 2;

/// The memory that one abusive connection may cost, with room for the other tests that run beside
/// this one.
const FLAT_BYTES: usize = 64 << 20;

#[tokio::test]
async fn a_reader_that_never_reads_costs_a_window_and_no_more() {
    let limits = Limits {
        request_deadline_ms: 700,
        ..Limits::default()
    };
    let (victim, _) = start(TransportSettings {
        limits,
        ..settings()
    });
    let endpoint = stranger::endpoint();
    let before = resident_bytes();
    let config = stranger::narrow(stranger::config(Papers::Own, b"apoidea/1"));
    let connection = endpoint
        .connect_with(config, address(&victim), "x")
        .unwrap()
        .await
        .unwrap();
    say(&connection, &hello("test")).await.unwrap();
    let request = frame(ECHO.as_byte(), &vec![0; 60_000]);
    let mut unread = Vec::new();
    for _ in 0..STREAMS {
        let (mut send, receive) = connection.open_bi().await.unwrap();
        send.write_all(&request).await.unwrap();
        send.finish().unwrap();
        unread.push(receive);
    }
    until("the answers were given up", || {
        victim.traffic().slow == STREAMS
    })
    .await;
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < FLAT_BYTES, "{grown}");
    assert_well(&victim).await;
}

#[tokio::test]
async fn a_writer_that_never_finishes_is_given_up() {
    let limits = Limits {
        request_deadline_ms: 500,
        ..Limits::default()
    };
    let (victim, _) = start(TransportSettings {
        limits,
        ..settings()
    });
    let endpoint = stranger::endpoint();
    let connection = enter(&endpoint, address(&victim)).await;
    let mut open = Vec::new();
    for n in 0..STREAMS {
        let (mut send, receive) = connection.open_bi().await.unwrap();
        let promise = [&[ECHO.as_byte()][..], &60_000u32.to_be_bytes(), &[0; 100]].concat();
        send.write_all(if n % 2 == 0 { &promise } else { &promise[..3] })
            .await
            .unwrap();
        open.push((send, receive));
    }
    until("all were given up", || victim.traffic().slow == STREAMS).await;
    assert_well(&victim).await;
}

#[tokio::test]
async fn a_flood_of_streams_is_slowed_down_and_costs_no_memory() {
    let victim = peer();
    let endpoint = stranger::endpoint();
    let connection = enter(&endpoint, address(&victim)).await;
    let before = resident_bytes();
    let start = Instant::now();
    let mut opened = 0;
    while start.elapsed() < Duration::from_secs(2) {
        let Ok(Ok((mut send, _))) =
            time::timeout(Duration::from_millis(500), connection.open_bi()).await
        else {
            break;
        };
        opened += 1;
        let _ = send.write(&[ECHO.as_byte(), 0, 0]).await;
        let _ = send.reset(VarInt::from_u32(9));
    }
    assert!(
        victim.traffic().throttled > 0,
        "{opened} streams in {:?}",
        start.elapsed()
    );
    let rate = Limits::default().peer_rate;
    let most = rate.burst
        + rate.per_second * start.elapsed().as_secs_f64()
        + f64::from(Limits::STREAMS) * 2.0;
    assert!(
        f64::from(opened) <= most,
        "{opened} streams in {:?}",
        start.elapsed()
    );
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < FLAT_BYTES, "{grown}");
    assert_eq!(
        victim.traffic().malformed,
        0,
        "a cancelled request is no offence"
    );
    assert_well(&victim).await;
}

#[tokio::test]
async fn one_neighbourhood_cannot_take_all_connections() {
    let limits = Limits {
        max_connections_per_origin: 5,
        ..Limits::default()
    };
    let (victim, _) = start(TransportSettings {
        limits,
        ..settings()
    });
    let endpoint = stranger::endpoint();
    let mut held = Vec::new();
    for _ in 0..20 {
        let connection = connect(&endpoint, address(&victim)).await;
        let _ = say(&connection, &hello("test")).await;
        held.push(connection);
    }
    until("the others were turned away", || {
        victim.traffic().turned_away == 15
    })
    .await;
    assert_eq!(victim.peers().len(), 5);
    let friend = peer();
    introduce(&victim, &friend);
    assert!(
        victim.ping(friend.me()).await.is_ok(),
        "whom the peer itself wants to reach is not affected"
    );
}

#[tokio::test]
async fn newcomers_above_their_rate_are_turned_away_before_any_cryptography() {
    let limits = Limits {
        newcomer_rate: apoidea_overlay::Rate {
            per_second: 0.1,
            burst: 3.0,
        },
        ..Limits::default()
    };
    let (victim, _) = start(TransportSettings {
        limits,
        ..settings()
    });
    let endpoint = stranger::endpoint();
    let mut let_in = 0;
    for _ in 0..10 {
        let config = stranger::config(Papers::Own, b"apoidea/1");
        let_in += usize::from(
            endpoint
                .connect_with(config, address(&victim), "x")
                .unwrap()
                .await
                .is_ok(),
        );
    }
    assert_eq!(let_in, 3);
    assert_eq!(victim.traffic().turned_away, 7);
}

/// First packets that nobody follows up, as those with a forged sender are.
async fn knock_in_the_name_of_others(victim: SocketAddr, times: usize) {
    let catcher = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let endpoint = stranger::endpoint();
    let mut packet = [0; 2048];
    for _ in 0..times {
        let config = stranger::config(Papers::Own, b"apoidea/1");
        let connecting = endpoint.connect_with(config, catcher.local_addr().unwrap(), "x");
        let (length, _) = catcher.recv_from(&mut packet).await.unwrap();
        drop(connecting);
        let forger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        forger.send_to(&packet[..length], victim).await.unwrap();
    }
}

#[tokio::test]
async fn knocks_with_a_forged_sender_do_not_keep_its_neighbours_out() {
    let limits = Limits {
        newcomer_rate: apoidea_overlay::Rate {
            per_second: 0.1,
            burst: 3.0,
        },
        ..Limits::default()
    };
    let (victim, _) = start(TransportSettings {
        limits,
        ..settings()
    });
    knock_in_the_name_of_others(address(&victim), 40).await;
    let endpoint = stranger::endpoint();
    let connecting = connect(&endpoint, address(&victim));
    let connection = time::timeout(Duration::from_secs(2), connecting).await;
    assert!(
        connection.is_ok(),
        "a neighbour of the forged sender is kept out"
    );
}
