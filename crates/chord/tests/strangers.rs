//! Arbitrary messages from strangers: no panic, no loop, no growth, and the ring's invariants hold.

use apoidea_chord::{
    Contact, Freshness, Introduction, LookupId, Message, Notice, Predecessor, RequestId, Ring,
    RingAction, RingEvent, RingRequest, RingResponse, Routes, Scale, Seat, Settings, Successors,
    Version,
};
use apoidea_model::{Key, PeerId, Route, Time};
use proptest::prelude::*;
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

/// Actions that one event may lead to: a greeting to every member of the longest list, and a few
/// more.
const MOST_ACTIONS: usize = 200;

fn peer(position: u8) -> Contact {
    let mut bytes = [0; 32];
    bytes[0] = position;
    Contact::new(
        PeerId::at(Key::from_bytes(bytes)),
        &[
            "192.0.2.1:4433".parse().expect("an address"),
            Route::Via { relay: relay() },
        ],
    )
}

fn relay() -> PeerId {
    PeerId::at(Key::hash("relay"))
}

fn contacts() -> impl Strategy<Value = apoidea_chord::Contacts> {
    prop::collection::vec(any::<u8>(), 0..40)
        .prop_map(|positions| apoidea_chord::Contacts::new(positions.into_iter().map(peer)))
}

fn scale() -> impl Strategy<Value = Scale> {
    prop_oneof![Just(Scale::Small), Just(Scale::Large)]
}

fn request() -> impl Strategy<Value = RingRequest> {
    let asker = || Introduction::from(&peer(0));
    prop_oneof![
        Just(RingRequest::Ping),
        Just(RingRequest::Neighbours),
        (any::<u8>(), any::<u8>()).prop_map(|(at, successors)| RingRequest::Find {
            key: peer(at).key(),
            successors
        }),
        any::<u64>().prop_map(move |digest| RingRequest::Roster {
            asker: asker(),
            digest
        }),
        Just(RingRequest::Hello { asker: asker() }),
        (prop::option::of(any::<u32>()), prop::option::of(contacts())).prop_map(
            move |(known, predecessors)| {
                RingRequest::Stabilize {
                    asker: asker(),
                    known: known.map(Version),
                    predecessors,
                }
            }
        ),
    ]
}

fn response() -> impl Strategy<Value = RingResponse> {
    let predecessor = prop_oneof![
        Just(Predecessor::Unknown),
        Just(Predecessor::You),
        any::<u8>().prop_map(|at| Predecessor::Peer(peer(at))),
    ];
    let successors = prop_oneof![
        1 => Just(Successors::Unchanged),
        4 => (any::<u32>(), contacts()).prop_map(|(version, list)| Successors::List(Version(version), list)),
    ];
    prop_oneof![
        Just(RingResponse::Alive),
        Just(RingResponse::Busy),
        Just(RingResponse::Absent),
        (predecessor, successors, scale()).prop_map(|(predecessor, successors, scale)| {
            RingResponse::Neighbours {
                predecessor,
                successors,
                scale,
            }
        }),
        (any::<u8>(), contacts()).prop_map(|(from, successors)| RingResponse::Owner {
            from: peer(from).key(),
            successors
        }),
        (contacts(), contacts()).prop_map(|(before, after)| RingResponse::Closer { before, after }),
        contacts().prop_map(|members| RingResponse::Roster { members }),
    ]
}

/// Answers the newest or an older open request, or any number at all.
#[derive(Debug, Clone)]
enum Move {
    Ask(u8, RingRequest),
    Answer(usize, RingResponse),
    Say(u8, Message),
    Unreachable(u8),
    LookUp(u8),
    Pass(u64),
    Leave,
    Join(u8),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let notice = prop_oneof![
        (prop::option::of(any::<u8>()), contacts()).prop_map(|(before, successors)| {
            Notice::Leaving {
                predecessor: before.map(peer),
                successors,
            }
        }),
        any::<u8>().prop_map(|at| Notice::OtherRing { through: peer(at) }),
    ];
    let one = prop_oneof![
        8 => (any::<u8>(), request()).prop_map(|(from, request)| Move::Ask(from, request)),
        16 => (0usize..8, response()).prop_map(|(which, response)| Move::Answer(which, response)),
        2 => (any::<u8>(), any::<u32>(), response())
            .prop_map(|(from, id, response)| Move::Say(from, Message::Response(RequestId(id), Seat::Free, response))),
        2 => (any::<u8>(), notice).prop_map(|(from, notice)| Move::Say(from, Message::Notice(notice))),
        1 => any::<u8>().prop_map(Move::Unreachable),
        2 => any::<u8>().prop_map(Move::LookUp),
        8 => (0u64..30_000).prop_map(Move::Pass),
        1 => Just(Move::Leave),
        2 => any::<u8>().prop_map(Move::Join),
    ];
    prop::collection::vec(one, 1..120)
}

fn check(ring: &Ring, actions: &[RingAction]) -> Result<(), TestCaseError> {
    prop_assert!(actions.len() <= MOST_ACTIONS, "{} actions", actions.len());
    let me = ring.me().key();
    let mut last = me;
    prop_assert!(ring.successors().len() <= 4);
    for successor in ring.successors() {
        prop_assert!(
            successor.key() != me && successor.key().between(last, me),
            "{:?}",
            ring.successors()
        );
        last = successor.key();
    }
    for action in actions {
        if let RingAction::Send(to, message) = action {
            prop_assert!(to.id != ring.me().id, "a message to oneself: {message:?}");
            let bytes = postcard::to_stdvec(message).expect("every message encodes");
            prop_assert!(bytes.len() <= Message::MAX_BYTES);
            prop_assert_eq!(
                &postcard::from_bytes::<Message>(&bytes).expect("and decodes"),
                message
            );
        }
    }
    let status = ring.status();
    prop_assert!(status.size_estimate.is_finite() && status.size_estimate >= 1.0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_ring_survives_any_conversation(seed in any::<u64>(), moves in moves()) {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut ring = Ring::new(peer(100), Settings { successors: 4, cached_arcs: 4, ..Settings::default() });
        let mut now = Time::from_millis(1);
        let mut open: Vec<(PeerId, RequestId)> = Vec::new();
        for (number, step) in moves.into_iter().enumerate() {
            let event = match step {
                Move::Ask(from, request) => {
                    RingEvent::Received(peer(from).id, None, Message::Request(RequestId(number as u32), request))
                }
                Move::Answer(which, response) => match open.len().checked_sub(1 + which) {
                    Some(at) => {
                        let (from, id) = open.swap_remove(at);
                        RingEvent::Received(from, None, Message::Response(id, Seat::Free, response))
                    }
                    None => RingEvent::Timeout,
                },
                Move::Say(from, message) => RingEvent::Received(peer(from).id, None, message),
                Move::Unreachable(at) => RingEvent::Unreachable(peer(at).id),
                Move::LookUp(at) => RingEvent::Lookup {
                    id: LookupId(number as u64),
                    key: peer(at).key(),
                    count: number,
                    freshness: if number % 2 == 0 { Freshness::Cached } else { Freshness::Fresh },
                },
                Move::Pass(millis) => {
                    now = now + std::time::Duration::from_millis(millis);
                    RingEvent::Timeout
                }
                Move::Leave => RingEvent::Leave,
                Move::Join(at) => RingEvent::Join(vec![peer(at), peer(at.wrapping_add(50))]),
            };
            let actions = ring.handle(event, now, rng);
            check(&ring, &actions)?;
            let requests = actions.iter().filter_map(|action| match action {
                RingAction::Send(to, Message::Request(id, _)) => Some((to.id, *id)),
                _ => None,
            });
            open.extend(requests);
        }
    }

    #[test]
    fn random_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        if let Ok(message) = postcard::from_bytes::<Message>(&bytes) {
            let rng = &mut Xoshiro256PlusPlus::seed_from_u64(1);
            let mut ring = Ring::new(peer(100), Settings::default());
            ring.handle(RingEvent::Join(Vec::new()), Time::ZERO, rng);
            let actions = ring.handle(RingEvent::Received(peer(7).id, None, message), Time::ZERO, rng);
            prop_assert!(actions.len() <= MOST_ACTIONS);
        }
    }
}

#[test]
fn an_asker_that_calls_itself_its_relay_is_kept_without_that_route() {
    let rng = &mut Xoshiro256PlusPlus::seed_from_u64(1);
    let mut ring = Ring::new(peer(100), Settings::default());
    ring.handle(RingEvent::Join(vec![]), Time::ZERO, rng);
    let asker = peer(7).id;
    let (own, other) = (Route::Via { relay: asker }, Route::Via { relay: relay() });
    let routes = Routes::new(&[own, other]);
    let seat = Seat::Free;
    let hello = RingRequest::Hello {
        asker: Introduction { routes, seat },
    };
    let hello = Message::Request(RequestId(1), hello);
    ring.handle(RingEvent::Received(asker, None, hello), Time::ZERO, rng);
    let [successor] = ring.successors() else {
        panic!("{:?}", ring.successors())
    };
    assert_eq!(successor.id, asker);
    assert_eq!(successor.routes.as_slice(), [other]);
}
