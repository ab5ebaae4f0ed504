//! Single steps of a look-up, and what they believe.

use super::*;
use crate::testing::peer;

fn peers<const N: usize>(positions: [u8; N]) -> [Contact; N] {
    positions.map(peer)
}

/// Of one mind with the first peer that names an owner.
const CREDULOUS: Care = Care {
    witnesses: 0,
    zone: None,
};

/// A lookup of position 100.
fn lookup(parallel: usize) -> Lookup {
    Lookup::new(
        1,
        peer(100).key(),
        Goal::Join,
        CREDULOUS,
        parallel,
        Time::ZERO,
    )
}

fn asked(lookup: &mut Lookup) -> Vec<u8> {
    let mut asked = Vec::new();
    while let Step::Ask(contact, _) = lookup.step() {
        asked.push(contact.key().as_bytes()[0]);
    }
    asked
}

#[test]
fn the_nearest_before_the_key_are_asked_first_and_in_parallel() {
    let mut lookup = lookup(3);
    lookup.begin(peer(0).key(), &peers([10, 50, 30, 70, 20]), &[]);
    assert_eq!(asked(&mut lookup), [70, 50, 30]);
    lookup.closer(&peer(50), &peers([90]), &[]);
    assert_eq!(asked(&mut lookup), [90]);
    assert_eq!(lookup.depth(peer(90).id), 2);
}

#[test]
fn the_owner_is_asked_once_someone_before_the_key_names_it() {
    let mut lookup = lookup(1);
    lookup.begin(peer(0).key(), &peers([50]), &[]);
    assert_eq!(asked(&mut lookup), [50]);
    lookup.closer(&peer(50), &[], &peers([110, 120]));
    assert_eq!(asked(&mut lookup), [110]);
}

#[test]
fn a_silent_owner_is_replaced_by_the_next_living_peer() {
    let mut lookup = lookup(1);
    lookup.begin(peer(0).key(), &peers([50]), &[]);
    asked(&mut lookup);
    lookup.closer(&peer(50), &[], &peers([110, 120, 130]));
    asked(&mut lookup);
    lookup.note_dead(peer(110).id);
    assert_eq!(asked(&mut lookup), [120]);
    lookup.closer(&peer(120), &[], &peers([110]));
    let presumed = Step::Presume {
        owners: peers([120, 130]).to_vec(),
        hops: 2,
    };
    assert_eq!(lookup.step(), presumed);
}

#[test]
fn a_slow_owner_is_not_waited_for_alone_but_to_the_end() {
    let mut lookup = lookup(1);
    lookup.begin(peer(0).key(), &peers([50]), &peers([110, 120]));
    assert_eq!(asked(&mut lookup), [110]);
    lookup.note_slow(peer(110).id);
    assert_eq!(asked(&mut lookup), [120]);
    lookup.closer(&peer(120), &[], &peers([110]));
    assert_eq!(lookup.step(), Step::Wait, "110 may still answer");
    lookup.note_dead(peer(110).id);
    assert!(matches!(lookup.step(), Step::Presume { .. }));
}

#[test]
fn when_all_named_are_dead_the_search_goes_on_behind_them() {
    let mut lookup = lookup(1);
    lookup.begin(peer(0).key(), &peers([50]), &[]);
    asked(&mut lookup);
    lookup.closer(&peer(50), &[], &peers([110, 120]));
    for dead in [110, 120] {
        assert_eq!(asked(&mut lookup), [dead]);
        lookup.note_dead(peer(dead).id);
    }
    assert_eq!(asked(&mut lookup), [50]);
    assert!(!lookup.is_on_key());
    assert_eq!(lookup.target(), peer(120).key().plus_power_of_two(0));
    lookup.closer(&peer(50), &[], &peers([110, 130]));
    assert_eq!(asked(&mut lookup), [130], "110 lies before the new target");
}

#[test]
fn when_all_nearer_peers_are_dead_the_nearest_living_one_is_asked_who_else_there_is() {
    let mut lookup = lookup(1);
    lookup.begin(peer(0).key(), &peers([50]), &[]);
    asked(&mut lookup);
    lookup.closer(&peer(50), &peers([90, 80]), &[]);
    asked(&mut lookup);
    lookup.note_dead(peer(90).id);
    assert_eq!(asked(&mut lookup), [80]);
    lookup.note_dead(peer(80).id);
    assert_eq!(lookup.step(), Step::AskAside(peer(50), peer(80).key()));
    lookup.closer(&peer(50), &peers([70]), &peers([80, 95]));
    assert_eq!(
        asked(&mut lookup),
        [95, 70],
        "two at a time, after two were silent"
    );
}

#[test]
fn answers_that_lead_away_are_ignored() {
    let mut lookup = lookup(1);
    lookup.begin(peer(0).key(), &peers([50]), &[]);
    asked(&mut lookup);
    lookup.closer(&peer(50), &peers([50, 40, 10]), &peers([50]));
    assert_eq!(lookup.step(), Step::DeadEnd);
}

#[test]
fn endless_false_candidates_end_the_lookup() {
    let mut lookup = Lookup::new(
        1,
        Key::from_bytes([255; 32]),
        Goal::Join,
        CREDULOUS,
        1,
        Time::ZERO,
    );
    lookup.begin(peer(0).key(), &peers([1]), &[]);
    for step in 0..u32::MAX {
        let Step::Ask(contact, _) = lookup.step() else {
            break;
        };
        assert!(step < 1000, "still going");
        let mut nearer = *contact.key().as_bytes();
        nearer[31] += 1;
        lookup.closer(
            &contact,
            &[Contact::new(PeerId::at(Key::from_bytes(nearer)), &[])],
            &[],
        );
    }
    assert_eq!(lookup.step(), Step::TooLong);
}

#[test]
fn a_hint_is_asked_first_and_corrects_itself() {
    let mut lookup = lookup(1);
    lookup.begin(peer(0).key(), &peers([50]), &[]);
    lookup.try_first(&peer(120), None);
    assert_eq!(asked(&mut lookup), [120]);
    lookup.closer(&peer(120), &peers([95]), &peers([110]));
    assert_eq!(asked(&mut lookup), [95], "the key's predecessor knows best");
    lookup.closer(&peer(95), &[], &peers([110, 120]));
    assert_eq!(asked(&mut lookup), [110]);
}

/// Three witnesses within a tenth of the ring: positions 75 to 99.
fn careful(parallel: usize) -> Lookup {
    let care = Care {
        witnesses: 3,
        zone: Some(0.1),
    };
    Lookup::new(1, peer(100).key(), Goal::Join, care, parallel, Time::ZERO)
}

#[test]
fn nobody_is_the_owner_by_its_own_word() {
    let mut lookup = careful(3);
    lookup.begin(peer(0).key(), &peers([50, 40]), &[]);
    assert_eq!(asked(&mut lookup), [50, 40]);
    lookup.claim(&peer(50), peer(50).key(), vec![]);
    assert_eq!(lookup.step(), Step::Wait, "the other has not answered");
    lookup.closer(&peer(40), &peers([95, 90, 85, 80]), &peers([110]));
    assert_eq!(asked(&mut lookup), [110, 95, 90, 85]);
    lookup.claim(&peer(110), peer(20).key(), vec![]);
    for witness in [95, 90, 85] {
        assert_eq!(lookup.step(), Step::Wait);
        lookup.closer(&peer(witness), &[], &peers([110]));
    }
    let confirmed = Step::Confirm {
        from: peer(95).key(),
        owners: vec![peer(110)],
        hops: 2,
    };
    assert_eq!(lookup.step(), confirmed, "no more than it surely owns");
}

#[test]
fn a_witness_that_names_another_owner_is_replaced_by_the_next() {
    let mut lookup = careful(3);
    lookup.begin(peer(0).key(), &peers([95, 90, 85, 80]), &peers([110]));
    assert_eq!(asked(&mut lookup), [110, 95, 90, 85]);
    lookup.claim(&peer(110), peer(95).key(), vec![]);
    lookup.closer(&peer(95), &[], &peers([150]));
    assert_eq!(asked(&mut lookup), [80]);
    for witness in [90, 85, 80] {
        lookup.closer(&peer(witness), &[], &peers([110, 150]));
    }
    assert!(matches!(lookup.step(), Step::Confirm { owners, .. } if owners == peers([110])));
}

#[test]
fn answers_thinner_than_the_ring_are_doubted_until_nobody_else_is_there() {
    let mut lookup = careful(1);
    lookup.begin(peer(0).key(), &peers([50, 10]), &[]);
    assert_eq!(asked(&mut lookup), [50]);
    lookup.closer(&peer(50), &peers([60]), &peers([200]));
    assert_eq!(asked(&mut lookup), [60], "nobody owns so much");
    lookup.closer(&peer(60), &[], &peers([200]));
    assert_eq!(asked(&mut lookup), [10], "another way");
    lookup.closer(&peer(10), &peers([95]), &peers([110]));
    assert_eq!(asked(&mut lookup), [110, 95]);
}

#[test]
fn an_owner_known_before_is_believed_but_its_arc_does_not_grow() {
    let mut lookup = careful(1);
    lookup.begin(peer(0).key(), &peers([50]), &[]);
    lookup.try_first(&peer(110), Some(peer(90).key()));
    assert!(matches!(lookup.step(), Step::Ask(contact, Side::After) if contact == peer(110)));
    lookup.claim(&peer(110), peer(20).key(), vec![]);
    let confirmed = lookup.step();
    assert!(matches!(confirmed, Step::Confirm { from, .. } if from == peer(90).key()));
}
