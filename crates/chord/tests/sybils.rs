//! A party with one /24, all the keys that it wants, and a few domains that it wants to own.

use apoidea_chord::{
    Contact, Prefix, RingEvent, Seat, Seating, Settings,
    sim::{LiarKind, Network, RoundTripMatrix, World},
};
use apoidea_model::{Key, PeerId};
use std::{collections::BTreeSet, net::Ipv4Addr, time::Duration};

const HONEST: usize = 1000;
/// Domains that the party would like to own.
const CHOSEN: usize = 25;
/// Identities that it makes for each of them: one right after the domain, three right before it.
const AIMED: usize = 4;
/// Honest peers that look each of them up.
const ASKERS: usize = 4;

fn chosen(number: usize) -> Key {
    Key::hash(format!("chosen-{number}.example"))
}

/// The id that the party would find after enough tries: this far after the key.
fn ground_id(key: Key, distance: u8) -> PeerId {
    let mut bytes = *key.as_bytes();
    // A 2^-16 of the ring, a sixtieth of the mean gap.
    let low = u16::from_be_bytes([bytes[0], bytes[1]]).wrapping_add(u16::from(distance));
    bytes[..2].copy_from_slice(&low.to_be_bytes());
    PeerId::at(Key::from_bytes(bytes))
}

/// The seat of some other prefix that lies nearest after the key, of so many that were tried.
fn ground_seat(key: Key, seating: Seating, world: &World) -> Seat {
    let tried = (0..5_000u32).map(|n| {
        let [_, a, b, c] = n.to_be_bytes();
        seating.seat(Prefix::V4([20 + a, b, c]), 0, world.now())
    });
    let nearest = tried.min_by_key(|seat| key.distance_to(seat.key(PeerId::at(key))));
    nearest.expect("some were tried")
}

/// The share of look-ups of chosen domains that end at the party.
fn caught(seating: Seating) -> f64 {
    let settings = Settings {
        seating,
        ..Settings::default()
    };
    let network = Network::new(RoundTripMatrix::planetlab(), 0.0);
    let mut world = World::new(7, settings, network).with_liars(0.0, LiarKind::Cabal, 7);
    (0..HONEST).for_each(|_| {
        world.spawn();
    });
    let home = Prefix::V4([198, 41, 0]);
    for number in 0..Seat::PER_PREFIX {
        let seat = seating.seat(home, number, world.now());
        world.spawn_liar(id(number), Ipv4Addr::new(198, 41, 0, number), seat);
    }
    world.place_everyone();
    let entries: Vec<Contact> = (0..3).map(|peer| world.contact(peer).clone()).collect();
    for domain in 0..CHOSEN {
        for aim in 0..AIMED {
            let key = if aim == 0 {
                chosen(domain)
            } else {
                before(chosen(domain), aim)
            };
            let seat = match seating {
                Seating::Private => Seat::Free,
                Seating::Open { .. } => ground_seat(key, seating, &world),
            };
            let id = ground_id(key, 1);
            let peer = world.spawn_liar(id, Ipv4Addr::new(198, 41, 0, 77), seat);
            world.tell(peer, RingEvent::Join(entries.clone()));
        }
    }
    world.run_for(Duration::from_secs(180));
    world.answers = Some(Vec::new());
    for asker in 0..ASKERS {
        for domain in 0..CHOSEN {
            world.look_up((100 + asker * CHOSEN + domain) as u32, chosen(domain));
        }
        world.run_for(Duration::from_secs(40));
    }
    let answers = world.answers.take().expect("they were wanted");
    assert_eq!(answers.len(), ASKERS * CHOSEN);
    let keys = BTreeSet::from_iter(answers.iter().map(|(key, _)| *key));
    assert_eq!(keys.len(), CHOSEN);
    let hostile = answers.iter();
    let hostile = hostile.filter(|(_, owner)| owner.is_some_and(|owner| world.is_liar(owner)));
    hostile.count() as f64 / answers.len() as f64
}

fn id(number: u8) -> PeerId {
    PeerId::of_public_key(&[number])
}

/// A place a little before the key, of so many.
fn before(key: Key, number: usize) -> Key {
    let mut bytes = *key.as_bytes();
    let high = u16::from_be_bytes([bytes[0], bytes[1]]).wrapping_sub(4 * number as u16);
    bytes[..2].copy_from_slice(&high.to_be_bytes());
    Key::from_bytes(bytes)
}

#[test]
fn one_prefix_with_all_keys_that_it_wants_does_not_catch_a_chosen_domain() {
    let caught = caught(Seating::OPEN);
    assert!(caught <= 0.01, "{caught}");
}

/// The same attack where positions are free, to show that it is one.
#[test]
fn where_positions_are_free_the_same_party_catches_what_it_chose() {
    let caught = caught(Seating::Private);
    assert!(caught >= 0.9, "{caught}");
}
