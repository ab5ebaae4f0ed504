//! Two or three well-behaved peers.

use crate::peers::*;
use apoidea_chord::{Effort, Toil};
use apoidea_model::{Key, PeerId, Route};
use apoidea_overlay::{
    AddressPolicy, Bandwidth, DialError, Identity, Kind, Limits, Refusal, RequestError, Sockets,
    Source, Transport, TransportSettings,
};
use bytes::Bytes;
use std::{
    num::NonZeroU64,
    sync::atomic::Ordering::SeqCst,
    time::{Duration, Instant},
};

#[tokio::test]
async fn a_request_by_id_reaches_that_peer_and_tells_it_who_asks() {
    let (a, b) = pair(settings());
    let answer = a.request(b.me(), WHO, Bytes::new()).await.unwrap();
    assert_eq!(answer[..32], *b.me().key().as_bytes());
    assert_eq!(answer[32..], *a.me().key().as_bytes());
    let answer = b.request(a.me(), WHO, Bytes::new()).await.unwrap();
    assert_eq!(
        answer[..32],
        *a.me().key().as_bytes(),
        "the same connection serves the other direction"
    );
    assert_eq!((b.traffic().dialled, b.traffic().accepted), (0, 1));
}

#[tokio::test]
async fn bodies_of_every_size_arrive_whole() {
    let (a, b) = pair(settings());
    for size in [0, 1, 1024, 1195, 1200, 60 * 1024, 64 * 1024] {
        let body = Bytes::from((0..size).map(|n| n as u8).collect::<Vec<_>>());
        assert_eq!(
            a.request(b.me(), ECHO, body.clone()).await,
            Ok(body),
            "{size}"
        );
    }
    let error = a
        .request(b.me(), ECHO, Bytes::from(vec![0; 64 * 1024 + 1]))
        .await;
    assert_eq!(error, Err(RequestError::TooLarge(64 * 1024 + 1)));
    let totals = b.traffic().kinds[&ECHO.as_byte()];
    assert_eq!((totals.answered, totals.bytes_in), (7, totals.bytes_out));
}

#[tokio::test]
async fn a_peer_can_ask_itself() {
    let a = peer();
    let answer = a.request(a.me(), ECHO, Bytes::from_static(b"x")).await;
    assert_eq!(answer, Ok(Bytes::from_static(b"x")));
}

#[tokio::test]
async fn a_refusal_says_why() {
    let (a, b) = pair(settings());
    let refused = |refusal| Err(RequestError::Refused(refusal));
    assert_eq!(
        a.request(b.me(), Kind::free(99), Bytes::new()).await,
        refused(Refusal::UnknownKind)
    );
    assert_eq!(
        a.request(b.me(), NONSENSE, Bytes::new()).await,
        refused(Refusal::Malformed)
    );
    assert_eq!((b.traffic().refused, b.traffic().malformed), (2, 1));
}

#[tokio::test]
async fn someone_else_at_the_address_is_not_taken_for_the_peer() {
    let (a, b) = (peer(), peer());
    let absent = PeerId::at(Key::hash("absent"));
    a.learn(absent, [address(&b)], Source::Told);
    let error = a.request(absent, ECHO, Bytes::new()).await.unwrap_err();
    let expected = DialError::WrongPeer(address(&b)).to_string();
    assert_eq!(error, RequestError::Unreachable(expected));
    assert!(!a.is_connected(b.me()));
}

#[tokio::test]
async fn a_relayed_route_is_kept_and_the_dial_goes_on_with_the_next() {
    let (a, b) = (peer(), peer());
    let via = Route::Via { relay: peer().me() };
    a.learn(b.me(), [via], Source::Told);
    let error = a.request(b.me(), ECHO, Bytes::new()).await.unwrap_err();
    let RequestError::Unreachable(reason) = error else {
        panic!("{error:?}")
    };
    assert!(reason.contains("no relays yet"), "{reason}");
    assert_eq!(a.routes(b.me()), [via], "nothing speaks against the route");
    introduce(&a, &b);
    assert_eq!(a.routes(b.me()), [address(&b).into(), via]);
    a.ping(b.me()).await.unwrap();
    assert_eq!(a.peers()[0].route, address(&b).into());
}

#[tokio::test]
async fn a_silent_address_explains_more_than_a_relay_that_was_not_tried() {
    let a = peer();
    let (absent, b) = (PeerId::at(Key::hash("absent")), peer());
    a.learn(absent, [Route::Via { relay: b.me() }], Source::Told);
    a.learn(absent, [address(&b)], Source::Told);
    let error = a.request(absent, ECHO, Bytes::new()).await.unwrap_err();
    let expected = DialError::WrongPeer(address(&b)).to_string();
    assert_eq!(error, RequestError::Unreachable(expected));
}

#[tokio::test]
async fn the_round_trip_is_known_while_there_is_a_connection() {
    let (a, b) = pair(settings());
    assert_eq!(a.round_trip(a.me()), Some(Duration::ZERO));
    assert_eq!(a.round_trip(b.me()), None);
    a.ping(b.me()).await.unwrap();
    let round_trip = a.round_trip(b.me()).unwrap();
    assert!(round_trip > Duration::ZERO && round_trip < PATIENCE);
    b.shut_down().await;
    until("the connection is gone", || a.round_trip(b.me()).is_none()).await;
}

#[tokio::test]
async fn a_bootstrap_address_is_met_without_knowing_its_id() {
    let (a, b) = (peer(), peer());
    assert_eq!(a.meet(address(&b)).await, Ok(b.me()));
    assert!(a.is_connected(b.me()));
    assert_eq!(
        a.meet(address(&a)).await,
        Err(DialError::Myself(address(&a)))
    );
    let view = &a.peers()[0];
    assert_eq!(view.version, concat!("apoidea/", env!("CARGO_PKG_VERSION")));
    assert!(view.rtt_ms > 0.0);
    assert_eq!(
        a.observed_routes(),
        [(address(&a).into(), 1)],
        "the other side says where it sees us"
    );
}

#[tokio::test]
async fn another_network_refuses_by_name() {
    let a = peer();
    let (b, _) = start(TransportSettings {
        network: "other".parse().unwrap(),
        ..settings()
    });
    let error = a.meet(address(&b)).await.unwrap_err();
    let DialError::WrongNetwork(reason) = error else {
        panic!("{error:?}")
    };
    assert!(
        reason.contains("other") && reason.contains("test"),
        "{reason}"
    );
    until("it is counted", || b.traffic().wrong_network == 1).await;
    assert!(b.peers().is_empty());
}

#[tokio::test]
async fn inner_addresses_from_others_are_never_dialled_in_the_open_network() {
    let (a, _) = start(TransportSettings {
        addresses: AddressPolicy::Global,
        ..settings()
    });
    let b = peer();
    introduce(&a, &b);
    let error = a.request(b.me(), ECHO, Bytes::new()).await.unwrap_err();
    assert_eq!(
        error,
        RequestError::Unreachable(DialError::NoAddress.to_string())
    );
    a.learn(b.me(), b.local_addresses(), Source::Configured);
    assert!(
        a.ping(b.me()).await.is_ok(),
        "what the user configured is dialled"
    );
}

#[tokio::test]
async fn many_requests_share_one_dial_and_one_connection() {
    let (a, b) = pair(settings());
    let requests = (0..100).map(|n: u8| a.request(b.me(), ECHO, Bytes::from(vec![n])));
    let answers = futures::future::join_all(requests).await;
    for (n, answer) in (0..).zip(answers) {
        assert_eq!(answer, Ok(Bytes::from(vec![n])));
    }
    assert_eq!((a.traffic().dialled, b.traffic().accepted), (1, 1));
}

#[tokio::test]
async fn when_both_dial_at_once_no_request_is_lost_and_both_keep_the_same_connection() {
    let mut crossed = 0;
    for _ in 0..5 {
        let (a, b) = pair(settings());
        introduce(&b, &a);
        let requests = (0..8).flat_map(|_| {
            [
                a.request(b.me(), WHO, Bytes::new()),
                b.request(a.me(), WHO, Bytes::new()),
            ]
        });
        for answer in futures::future::join_all(requests).await {
            assert!(answer.is_ok(), "{answer:?}");
        }
        let diallers = || (a.peers()[0].dialler, b.peers()[0].dialler);
        until("both sides use the same connection", || {
            let (mine, theirs) = diallers();
            mine != theirs
        })
        .await;
        crossed += a.traffic().dialled * b.traffic().dialled;
    }
    assert!(crossed > 0, "both sides did dial at once");
}

#[tokio::test]
async fn a_peer_that_restarts_under_the_same_name_is_reached_again() {
    let a = peer();
    let identity = Identity::ephemeral().unwrap();
    let (b, _) = start_as(identity.clone(), settings());
    b.learn(a.me(), a.local_addresses(), Source::Told);
    b.ping(a.me()).await.unwrap();
    b.shut_down().await;
    let (b, _) = start_as(identity, settings());
    b.learn(a.me(), a.local_addresses(), Source::Told);
    b.ping(a.me()).await.unwrap();
    let answer = a.request(b.me(), WHO, Bytes::new()).await.unwrap();
    assert_eq!(answer[..32], *b.me().key().as_bytes());
}

#[tokio::test]
async fn a_silent_peer_fails_a_request_within_its_deadline() {
    let limits = Limits {
        request_deadline_ms: 1000,
        dial_deadline_ms: 300,
        ..Limits::default()
    };
    let (a, _) = start(TransportSettings {
        limits,
        ..settings()
    });
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let absent = PeerId::at(Key::hash("absent"));
    a.learn(absent, [silent.local_addr().unwrap()], Source::Told);
    let start = Instant::now();
    let error = a.request(absent, ECHO, Bytes::new()).await.unwrap_err();
    assert!(error.is_absence(), "{error}");
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_service_that_hangs_fails_the_request_and_is_cancelled() {
    let limits = Limits {
        request_deadline_ms: 500,
        ..Limits::default()
    };
    let (a, _) = start(TransportSettings {
        limits,
        ..settings()
    });
    let (b, hanging) = start(settings());
    introduce(&a, &b);
    let error = a.request(b.me(), HANG, Bytes::new()).await.unwrap_err();
    assert_eq!(error, RequestError::TimedOut(Duration::from_millis(500)));
    until("the service's future is dropped", || {
        hanging.load(SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn a_dropped_request_is_cancelled_at_the_other_end() {
    let a = peer();
    let (b, hanging) = start(settings());
    introduce(&a, &b);
    let (asker, to) = (a.clone(), b.me());
    let request = tokio::spawn(async move { asker.request(to, HANG, Bytes::new()).await });
    until("the request is being served", || hanging.load(SeqCst) == 1).await;
    request.abort();
    until("the service's future is dropped", || {
        hanging.load(SeqCst) == 0
    })
    .await;
    assert!(a.ping(b.me()).await.is_ok());
    assert_eq!(
        b.traffic().malformed,
        0,
        "a cancelled request is not a malformed one"
    );
}

#[tokio::test]
async fn a_peer_serves_boundedly_many_requests_at_a_time() {
    let a = peer();
    let (b, hanging) = start(settings());
    introduce(&a, &b);
    let (asker, to) = (a.clone(), b.me());
    let requests = tokio::spawn(async move {
        futures::future::join_all((0..200).map(|_| asker.request(to, HANG, Bytes::new()))).await
    });
    until("the slots are full", || {
        hanging.load(SeqCst) == Limits::SERVING_PER_PEER
    })
    .await;
    let (c, most) = (peer(), Limits::SERVING_PER_PEER);
    introduce(&c, &b);
    assert!(
        c.request(b.me(), ECHO, Bytes::new()).await.is_ok(),
        "one peer's requests do not block another's"
    );
    assert_eq!(hanging.load(SeqCst), most);
    requests.abort();
}

#[tokio::test]
async fn a_peer_above_its_rate_waits_and_is_served_all_the_same() {
    let limits = Limits {
        peer_rate: apoidea_overlay::Rate {
            per_second: 50.0,
            burst: 5.0,
        },
        ..Limits::default()
    };
    let (a, b) = pair(TransportSettings {
        limits,
        ..settings()
    });
    let start = Instant::now();
    for _ in 0..20 {
        a.request(b.me(), ECHO, Bytes::new()).await.unwrap();
    }
    assert!(
        start.elapsed() > Duration::from_millis(250),
        "{:?}",
        start.elapsed()
    );
    assert!(b.traffic().throttled > 0);
}

#[tokio::test]
async fn the_volunteer_s_bandwidth_slows_the_crawler_and_not_the_overlay() {
    let (a, b) = pair(settings());
    a.ping(b.me()).await.unwrap();
    a.limit_bandwidth(Bandwidth {
        up: NonZeroU64::new(100_000),
        down: None,
    });
    let start = Instant::now();
    for _ in 0..4 {
        a.request(b.me(), ECHO, Bytes::from(vec![0; 50_000]))
            .await
            .unwrap();
    }
    assert!(
        start.elapsed() > Duration::from_millis(400),
        "{:?}",
        start.elapsed()
    );
    let start = Instant::now();
    a.ping(b.me()).await.unwrap();
    assert!(
        start.elapsed() < Duration::from_millis(400),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn the_least_useful_connection_makes_room() {
    let limits = Limits {
        max_connections: 3,
        ..Limits::default()
    };
    let (a, _) = start(TransportSettings {
        limits,
        ..settings()
    });
    let others: Vec<_> = (0..4).map(|_| peer()).collect();
    a.mark_useful([others[0].me()]);
    for other in &others {
        introduce(&a, other);
        a.ping(other.me()).await.unwrap();
    }
    until("one was evicted", || a.peers().len() == 3).await;
    assert!(
        a.is_connected(others[0].me()),
        "the useful one stays, though it is the oldest"
    );
    assert!(!a.is_connected(others[1].me()));
    assert_eq!(a.traffic().evicted, 1);
    assert!(
        a.ping(others[1].me()).await.is_ok(),
        "the evicted one is reached again when needed"
    );
}

#[tokio::test]
async fn useful_connections_are_kept_alive_and_others_end() {
    let limits = Limits {
        idle_ms: 600,
        keep_alive_ms: 150,
        ..Limits::default()
    };
    let (a, b) = pair(TransportSettings {
        limits: limits.clone(),
        ..settings()
    });
    let (c, _) = start(TransportSettings {
        limits,
        ..settings()
    });
    introduce(&a, &c);
    a.mark_useful([b.me()]);
    a.ping(b.me()).await.unwrap();
    a.ping(c.me()).await.unwrap();
    until("the other one has ended", || !a.is_connected(c.me())).await;
    let pings = || a.traffic().kinds[&Kind::PING.as_byte()].asked;
    let before = pings();
    until("the useful one was pinged several times more", || {
        pings() > before + 6
    })
    .await;
    assert!(a.is_connected(b.me()));
    assert_eq!(a.traffic().dialled, 2, "it is still the first connection");
}

#[tokio::test]
async fn a_useful_peer_that_died_is_noticed() {
    let limits = Limits {
        keep_alive_ms: 150,
        request_deadline_ms: 300,
        ..Limits::default()
    };
    let (a, b) = pair(TransportSettings {
        limits,
        ..settings()
    });
    a.mark_useful([b.me()]);
    a.ping(b.me()).await.unwrap();
    b.shut_down().await;
    until("the connection is gone", || !a.is_connected(b.me())).await;
    assert!(a.ping(b.me()).await.unwrap_err().is_absence());
}

#[tokio::test]
async fn connections_survive_a_change_of_address() {
    let (a, b) = pair(settings());
    a.ping(b.me()).await.unwrap();
    let before = address(&a);
    a.rebind().unwrap();
    assert_ne!(address(&a), before);
    let answer = a.request(b.me(), ECHO, Bytes::from_static(b"moved")).await;
    assert_eq!(answer, Ok(Bytes::from_static(b"moved")));
    assert_eq!(a.traffic().dialled, 1, "it is still the first connection");
    until("the other side sees the new address", || {
        b.peers()[0].route == address(&a).into()
    })
    .await;
}

#[tokio::test]
async fn after_sleep_peers_are_reached_on_new_connections() {
    let (a, b) = pair(settings());
    a.ping(b.me()).await.unwrap();
    a.wake_up();
    let answer = a.request(b.me(), ECHO, Bytes::from_static(b"awake")).await;
    assert_eq!(answer, Ok(Bytes::from_static(b"awake")));
    assert_eq!(a.traffic().dialled, 2);
}

#[tokio::test]
async fn plain_sockets_carry_everything_too() {
    let (a, b) = pair(TransportSettings {
        sockets: Sockets::Plain,
        ..settings()
    });
    let body = Bytes::from(vec![7; 64 * 1024]);
    let requests = (0..20).map(|_| a.request(b.me(), ECHO, body.clone()));
    assert!(
        futures::future::join_all(requests)
            .await
            .iter()
            .all(|answer| answer.as_ref() == Ok(&body))
    );
    a.rebind().unwrap();
    assert_eq!(a.request(b.me(), ECHO, body.clone()).await, Ok(body));
}

#[tokio::test]
async fn both_address_families_share_a_port_number() {
    let v4 = peer();
    let port = address(&v4).port();
    v4.shut_down().await;
    drop(v4);
    let listen = vec![
        format!("127.0.0.1:{port}").parse().unwrap(),
        format!("[::1]:{port}").parse().unwrap(),
    ];
    let (a, _) = start(TransportSettings {
        listen: vec!["127.0.0.1:0".parse().unwrap(), "[::1]:0".parse().unwrap()],
        ..settings()
    });
    let (b, _) = start(TransportSettings {
        listen,
        ..settings()
    });
    for address in b.local_addresses() {
        assert_eq!(a.meet(address).await, Ok(b.me()), "{address}");
    }
}

#[tokio::test]
async fn a_snapshot_of_the_address_book_leads_back_to_the_peers() {
    let (a, b) = pair(settings());
    a.ping(b.me()).await.unwrap();
    let bytes = postcard::to_stdvec(&a.address_book()).unwrap();
    a.shut_down().await;
    let c = peer();
    for entry in postcard::from_bytes::<Vec<apoidea_overlay::KnownPeer>>(&bytes).unwrap() {
        entry
            .routes
            .iter()
            .for_each(|(route, source)| c.learn(entry.id, [*route], *source));
    }
    assert!(c.ping(b.me()).await.is_ok());
}

#[tokio::test]
async fn a_transport_that_is_dropped_stops() {
    let (a, b) = pair(settings());
    b.learn(a.me(), a.local_addresses(), Source::Told);
    b.ping(a.me()).await.unwrap();
    let freed = address(&a);
    drop(a);
    until("the other side has heard it", || b.peers().is_empty()).await;
    until("the port is free again", || {
        std::net::UdpSocket::bind(freed).is_ok()
    })
    .await;
}

#[tokio::test]
async fn nothing_is_answered_after_shutting_down() {
    let (a, b) = pair(settings());
    a.ping(b.me()).await.unwrap();
    a.shut_down().await;
    assert_eq!(a.ping(b.me()).await, Err(RequestError::Closed));
    until("the other side has heard it", || !b.is_connected(a.me())).await;
}

#[tokio::test]
async fn where_work_is_asked_for_a_peer_that_has_not_done_it_is_turned_away() {
    let effort = Effort(14);
    let (a, b) = pair(TransportSettings {
        effort,
        ..settings()
    });
    let work = |peer: &Transport| Toil::find(peer.me(), effort, 0, 1 << 20).unwrap();
    b.show_toil(work(&b));
    let error = a.ping(b.me()).await.unwrap_err().to_string();
    assert!(error.contains("the work for this identity"), "{error}");
    a.show_toil(Toil(work(&a).0 + 1));
    assert!(
        a.ping(b.me()).await.is_err(),
        "another number proves nothing"
    );
    a.show_toil(work(&a));
    introduce(&a, &b);
    a.ping(b.me()).await.unwrap();
    b.show_toil(Toil(0));
    let (c, _) = start(TransportSettings {
        effort,
        ..settings()
    });
    c.show_toil(work(&c));
    introduce(&c, &b);
    // Either side may close first, so the reason is not always told.
    assert!(
        c.ping(b.me()).await.is_err(),
        "the dialled peer has shown nothing"
    );
    b.show_toil(work(&b));
    introduce(&c, &b);
    c.ping(b.me()).await.unwrap();
}
