//! Whatever a stranger sends: no panic, no loop, no growth, and the own invariants hold.

use apoidea_chord::{
    Action, Contact, Event, Freshness, LookupId, Message, Notice, Predecessor, Request, RequestId,
    Response, Ring, Scale, Settings, Successors, Version,
};
use apoidea_model::{Key, PeerId, Time};
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
        &["192.0.2.1:4433".parse().expect("an address")],
    )
}

fn contacts() -> impl Strategy<Value = apoidea_chord::Contacts> {
    prop::collection::vec(any::<u8>(), 0..40)
        .prop_map(|positions| apoidea_chord::Contacts::new(positions.into_iter().map(peer)))
}

fn scale() -> impl Strategy<Value = Scale> {
    prop_oneof![Just(Scale::Small), Just(Scale::Large)]
}

fn request() -> impl Strategy<Value = Request> {
    let addresses = || peer(0).addresses;
    prop_oneof![
        Just(Request::Ping),
        Just(Request::Neighbours),
        (any::<u8>(), any::<u8>()).prop_map(|(at, successors)| Request::Find {
            key: peer(at).key(),
            successors
        }),
        any::<u64>().prop_map(move |digest| Request::Roster {
            addresses: addresses(),
            digest
        }),
        Just(Request::Hello {
            addresses: addresses()
        }),
        (prop::option::of(any::<u32>()), prop::option::of(contacts())).prop_map(
            move |(known, predecessors)| {
                Request::Stabilize {
                    addresses: addresses(),
                    known: known.map(Version),
                    predecessors,
                }
            }
        ),
    ]
}

fn response() -> impl Strategy<Value = Response> {
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
        Just(Response::Alive),
        Just(Response::Busy),
        Just(Response::Absent),
        (predecessor, successors, scale()).prop_map(|(predecessor, successors, scale)| {
            Response::Neighbours {
                predecessor,
                successors,
                scale,
            }
        }),
        (any::<u8>(), contacts()).prop_map(|(from, successors)| Response::Owner {
            from: peer(from).key(),
            successors
        }),
        (contacts(), contacts()).prop_map(|(before, after)| Response::Closer { before, after }),
        contacts().prop_map(|members| Response::Roster { members }),
    ]
}

/// Answers the newest or an older open request, or any number at all.
#[derive(Debug, Clone)]
enum Move {
    Ask(u8, Request),
    Answer(usize, Response),
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
            .prop_map(|(from, id, response)| Move::Say(from, Message::Response(RequestId(id), response))),
        2 => (any::<u8>(), notice).prop_map(|(from, notice)| Move::Say(from, Message::Notice(notice))),
        1 => any::<u8>().prop_map(Move::Unreachable),
        2 => any::<u8>().prop_map(Move::LookUp),
        8 => (0u64..30_000).prop_map(Move::Pass),
        1 => Just(Move::Leave),
        2 => any::<u8>().prop_map(Move::Join),
    ];
    prop::collection::vec(one, 1..120)
}

fn check(ring: &Ring, actions: &[Action]) -> Result<(), TestCaseError> {
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
        if let Action::Send(to, message) = action {
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
                    Event::Received(peer(from).id, Message::Request(RequestId(number as u32), request))
                }
                Move::Answer(which, response) => match open.len().checked_sub(1 + which) {
                    Some(at) => {
                        let (from, id) = open.swap_remove(at);
                        Event::Received(from, Message::Response(id, response))
                    }
                    None => Event::Timeout,
                },
                Move::Say(from, message) => Event::Received(peer(from).id, message),
                Move::Unreachable(at) => Event::Unreachable(peer(at).id),
                Move::LookUp(at) => Event::Lookup {
                    id: LookupId(number as u64),
                    key: peer(at).key(),
                    count: number,
                    freshness: if number % 2 == 0 { Freshness::Cached } else { Freshness::Fresh },
                },
                Move::Pass(millis) => {
                    now = now + std::time::Duration::from_millis(millis);
                    Event::Timeout
                }
                Move::Leave => Event::Leave,
                Move::Join(at) => Event::Join(vec![peer(at), peer(at.wrapping_add(50))]),
            };
            let actions = ring.handle(event, now, rng);
            check(&ring, &actions)?;
            let requests = actions.iter().filter_map(|action| match action {
                Action::Send(to, Message::Request(id, _)) => Some((to.id, *id)),
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
            ring.handle(Event::Join(Vec::new()), Time::ZERO, rng);
            let actions = ring.handle(Event::Received(peer(7).id, message), Time::ZERO, rng);
            prop_assert!(actions.len() <= MOST_ACTIONS);
        }
    }
}
