//! Rings of a few to a few hundred peers, driven by the simulator: the invariants that no event may
//! break.

use apoidea_chord::{
    ArcChange, RingEvent, Settings,
    sim::{Network, RoundTripMatrix, World, survey},
};
use apoidea_model::Key;
use proptest::prelude::*;
use std::time::Duration;

const R: usize = 3;
const ROUND: Duration = Duration::from_secs(10);

fn world(seed: u64, loss: f64) -> World {
    let settings = Settings {
        successors: R,
        ..Settings::default()
    };
    World::new(
        seed,
        settings,
        Network::new(RoundTripMatrix::planetlab(), loss),
    )
}

/// Joins through up to three of the living, and lets nothing happen meanwhile.
fn join(world: &mut World) -> u32 {
    let entries = world
        .living()
        .iter()
        .take(3)
        .map(|&peer| world.contact(peer).clone())
        .collect();
    let newcomer = world.spawn();
    world.tell(newcomer, RingEvent::Join(entries));
    newcomer
}

fn ring_of(count: usize, seed: u64) -> World {
    let mut world = world(seed, 0.0);
    for _ in 0..count {
        join(&mut world);
        world.run_for(Duration::from_secs(2));
    }
    settle(&mut world);
    world
}

/// Lets the ring come to rest, and says so if it does not.
fn settle(world: &mut World) {
    for _ in 0..720 {
        world.run_for(ROUND);
        if survey(world).is_fixpoint() {
            break;
        }
    }
    let disarray = survey(world);
    assert!(
        disarray.is_fixpoint(),
        "not at rest after two hours: {disarray:?}{}",
        portrait(world)
    );
    assert!(world.violations.is_empty(), "{:?}", world.violations);
}

/// The neighbours of every peer, for a failure's message.
fn portrait(world: &World) -> String {
    let mut order = world.living().to_vec();
    order.sort_by_key(|&peer| world.contact(peer).id);
    let line = |peer: u32| {
        let status = world.ring(peer).expect("a living peer has a ring").status();
        let (me, leaves) = (status.me, status.leaves);
        format!(
            "\n{peer} {me:?} {:?} {:?} {:?}: {leaves:?}",
            status.phase, status.scale, status.arc
        )
    };
    order.into_iter().map(line).collect()
}

#[derive(Debug, Clone, Copy)]
enum Happening {
    Join,
    Leave(usize),
    Crash(usize),
    Return(usize),
    Doze(usize),
    Wait(u64),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        4 => Just(Happening::Join),
        1 => any::<usize>().prop_map(Happening::Leave),
        2 => any::<usize>().prop_map(Happening::Crash),
        1 => any::<usize>().prop_map(Happening::Return),
        1 => any::<usize>().prop_map(Happening::Doze),
        4 => (1u64..20_000).prop_map(Happening::Wait),
    ];
    prop::collection::vec(one, 1..40)
}

fn happen(world: &mut World, happening: Happening, dead: &mut Vec<u32>) {
    let pick = |world: &World, at: usize| world.living()[at % world.living().len()];
    let several = world.living().len() > 1;
    match happening {
        Happening::Join => {
            join(world);
        }
        Happening::Leave(at) if several => world.leave(pick(world, at)),
        Happening::Crash(at) if several => {
            let victim = pick(world, at);
            world.kill(victim);
            dead.push(victim);
        }
        Happening::Return(at) if !dead.is_empty() => {
            let peer = dead.swap_remove(at % dead.len());
            let entries = world
                .living()
                .iter()
                .take(3)
                .map(|&peer| world.contact(peer).clone())
                .collect();
            world.revive(peer);
            world.tell(peer, RingEvent::Join(entries));
        }
        Happening::Doze(at) => {
            let peer = pick(world, at);
            world.sleep(peer);
            world.run_for(Duration::from_secs(1 + at as u64 % 90));
            world.rouse(peer);
        }
        Happening::Wait(millis) => world.run_for(Duration::from_millis(millis)),
        _ => {}
    }
}

fn owners(world: &World, key: Key) -> Vec<u32> {
    let owns = |&&peer: &&u32| {
        world
            .ring(peer)
            .is_some_and(|ring| ring.arc().is_some_and(|arc| arc.contains(key)))
    };
    world.living().iter().filter(owns).copied().collect()
}

/// A ring of `before` peers, after all that happens to it, at rest.
fn rest_after(seed: u64, lossy: bool, before: usize, happenings: Vec<Happening>) -> World {
    let mut world = world(seed, 0.0);
    for _ in 0..before {
        join(&mut world);
        world.run_for(Duration::from_millis(500));
    }
    if lossy {
        world.network = Network::new(RoundTripMatrix::planetlab(), 0.02);
    }
    let mut dead = Vec::new();
    happenings
        .into_iter()
        .for_each(|happening| happen(&mut world, happening, &mut dead));
    world.network = Network::new(RoundTripMatrix::planetlab(), 0.0);
    // A newcomer whose entry peers have all died needs another one.
    let entry = world.contact(world.living()[0]).clone();
    for peer in world.living().to_vec() {
        world.tell(peer, RingEvent::Learned(vec![entry.clone()]));
    }
    settle(&mut world);
    world
}

/// A question to a peer that a neighbour had named got lost, and the neighbour named it only once.
#[test]
fn a_neighbour_whose_greeting_was_lost_is_met_later() {
    use Happening::{Crash, Doze, Join, Leave, Return, Wait};
    let happenings = vec![
        Leave(10076806732378824245),
        Join,
        Leave(3360948860348004882),
        Join,
        Leave(10882946542308611554),
        Join,
        Leave(10073977121002763884),
        Wait(17596),
        Leave(10805167511402333963),
        Crash(6015184691292084993),
        Crash(10391994509106999335),
        Wait(6928),
        Leave(1533690916235405870),
        Wait(10971),
        Join,
        Wait(10787),
        Return(133118334408590366),
        Join,
        Wait(1871),
        Doze(10182829289202053469),
        Return(1863219962573675601),
        Wait(14490),
    ];
    rest_after(11913968900766192449, true, 11, happenings);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    /// With r = 3 a ring is small up to seven peers, so these cross that border in both directions.
    #[test]
    fn whatever_happens_the_ring_comes_to_rest_with_one_owner_per_key(
        seed in any::<u64>(),
        lossy in any::<bool>(),
        before in 1usize..12,
        happenings in happenings(),
        keys in prop::collection::vec(any::<[u8; 32]>(), 8),
    ) {
        let world = rest_after(seed, lossy, before, happenings);
        for key in keys.into_iter().map(Key::from_bytes) {
            prop_assert_eq!(owners(&world, key), Vec::from_iter(world.owner(key)), "{:?}{}", key, portrait(&world));
        }
    }

    #[test]
    fn a_join_moves_keys_only_to_the_newcomer(seed in any::<u64>(), count in 2usize..14) {
        let mut world = ring_of(count, seed);
        world.arc_changes = Some(Vec::new());
        let newcomer = join(&mut world);
        settle(&mut world);
        let arc = world.ring(newcomer).and_then(|ring| ring.arc()).expect("a settled member owns an arc");
        for (peer, change) in world.arc_changes.take().unwrap_or_default() {
            match change {
                ArcChange::Gained { arc: gained, .. } => prop_assert_eq!((peer, gained), (newcomer, arc)),
                ArcChange::Lost { arc: lost, to } => {
                    prop_assert_eq!(to, Some(world.contact(newcomer).id));
                    prop_assert_eq!(lost, arc);
                }
            }
        }
    }

    #[test]
    fn a_leave_moves_keys_only_from_the_leaver(seed in any::<u64>(), count in 2usize..14) {
        let mut world = ring_of(count, seed);
        let leaver = world.living()[seed as usize % count];
        let (id, arc) = (world.contact(leaver).id, world.ring(leaver).and_then(|ring| ring.arc()));
        world.arc_changes = Some(Vec::new());
        world.leave(leaver);
        settle(&mut world);
        for (peer, change) in world.arc_changes.take().unwrap_or_default() {
            match change {
                ArcChange::Gained { arc: gained, from } => {
                    prop_assert!(peer != leaver);
                    prop_assert_eq!((from, Some(gained)), (Some(id), arc));
                }
                ArcChange::Lost { arc: lost, .. } => prop_assert_eq!((peer, Some(lost)), (leaver, arc)),
            }
        }
    }
}

/// The event sequences that broke the published protocol in Zave's analyses (arXiv 1502.06461 §3
/// and §4, 1610.01140 §3), each in a ring that is kept as a roster and in one that is kept by
/// Chord.
#[test]
fn the_known_anomalies_do_not_happen() {
    type Anomaly = (&'static str, fn(&mut World));
    let in_order = |world: &World| {
        let mut order = world.living().to_vec();
        order.sort_by_key(|&peer| world.contact(peer).id);
        order
    };
    let anomalies: [Anomaly; 8] = [
        ("two join at once between the same neighbours", |world| {
            join(world);
            join(world);
        }),
        ("a newcomer's successor dies before it is told", |world| {
            let newcomer = join(world);
            world.run_for(Duration::from_millis(700));
            let successor = world
                .ring(newcomer)
                .and_then(|ring| ring.successors().first().cloned());
            if let Some(successor) = successor {
                let number = *world
                    .members()
                    .get(&successor.key())
                    .expect("a successor is a member");
                world.kill(number);
            }
        }),
        ("a newcomer dies as soon as it is in the lists", |world| {
            let newcomer = join(world);
            world.run_for(ROUND);
            world.kill(newcomer);
        }),
        ("a peer dies and returns at once under its id", |world| {
            let peer = world.living()[1];
            let entry = world.contact(world.living()[0]).clone();
            world.kill(peer);
            world.revive(peer);
            world.tell(peer, RingEvent::Join(vec![entry]));
        }),
        ("two neighbours die together", |world| {
            let mut order = world.living().to_vec();
            order.sort_by_key(|&peer| world.contact(peer).id);
            world.kill(order[0]);
            world.kill(order[1]);
        }),
        ("as many neighbours die as the list is long", |world| {
            let mut order = world.living().to_vec();
            order.sort_by_key(|&peer| world.contact(peer).id);
            order.truncate(R.min(order.len() - 1));
            order.into_iter().for_each(|peer| world.kill(peer));
        }),
        ("all but one die", |world| {
            while world.living().len() > 1 {
                world.kill(world.living()[0]);
            }
        }),
        (
            "a neighbour leaves while another joins and a third dies",
            |world| {
                let mut order = world.living().to_vec();
                order.sort_by_key(|&peer| world.contact(peer).id);
                join(world);
                world.leave(order[0]);
                world.kill(order[1]);
            },
        ),
    ];
    for (size, seed) in [(3, 1), (3, 2), (7, 3), (8, 4), (9, 5), (12, 6)] {
        for (name, anomaly) in anomalies {
            let mut world = ring_of(size, seed);
            anomaly(&mut world);
            for _ in 0..180 {
                world.run_for(ROUND);
            }
            assert!(
                survey(&world).is_fixpoint(),
                "{name}, {size} peers, seed {seed}: {:?}",
                survey(&world)
            );
            assert_eq!(
                world.violations,
                Vec::<String>::new(),
                "{name}, {size} peers, seed {seed}"
            );
            assert_eq!(in_order(&world).len(), world.members().len());
        }
    }
}

#[test]
fn two_founders_that_hear_of_each_other_become_one_ring() {
    let mut world = world(7, 0.0);
    for _ in 0..2 {
        let founder = world.spawn();
        world.tell(founder, RingEvent::Join(Vec::new()));
    }
    world.run_for(ROUND);
    assert_eq!(survey(&world).orphans, 1, "two rings of one");
    let other = world.contact(1).clone();
    world.arc_changes = Some(Vec::new());
    world.tell(0, RingEvent::Learned(vec![other]));
    settle(&mut world);
    let changes = world.arc_changes.take().unwrap_or_default();
    for (peer, other) in [(0, 1), (1, 0)] {
        let arc = world.ring(peer).and_then(|ring| ring.arc()).unwrap();
        let from = Some(world.contact(other).id);
        let told = changes.iter().filter(|(teller, _)| *teller == peer);
        let told: Vec<ArcChange> = told.map(|(_, change)| *change).collect();
        assert!(
            matches!(told[..], [ArcChange::Lost { to, .. }, ArcChange::Lost { to: None, .. }, gain]
                if to == from && gain == ArcChange::Gained { arc, from }),
            "each takes its place anew: {told:?}"
        );
    }
}

#[test]
fn peers_that_all_start_at_once_and_only_know_each_other_find_together() {
    let mut world = world(8, 0.0);
    let peers: Vec<u32> = (0..20).map(|_| world.spawn()).collect();
    let everyone: Vec<_> = peers
        .iter()
        .map(|&peer| world.contact(peer).clone())
        .collect();
    peers
        .into_iter()
        .for_each(|peer| world.tell(peer, RingEvent::Join(everyone.clone())));
    settle(&mut world);
}

/// Ten sites 10 ms apart, but for the last, which is 2.5 s away from all others.
fn one_site_is_far() -> RoundTripMatrix {
    let tenths =
        |row: u32| (row + 1..10).map(|column: u32| if column == 9 { 25_000u16 } else { 100 });
    let bytes: Vec<u8> = (0..10)
        .flat_map(tenths)
        .flat_map(u16::to_le_bytes)
        .collect();
    RoundTripMatrix::from_bytes(&bytes).expect("ten sites have 45 pairs")
}

#[test]
fn a_ring_of_one_is_found_however_far_away_it_is() {
    let mut world = world(9, 0.0);
    world.network = Network::new(one_site_is_far(), 0.0);
    for _ in 0..9 {
        join(&mut world);
        world.run_for(Duration::from_secs(2));
    }
    settle(&mut world);
    let loner = world.spawn();
    world.tell(loner, RingEvent::Join(Vec::new()));
    let loner = world.contact(loner).clone();
    for peer in 0..9 {
        world.tell(peer, RingEvent::Learned(vec![loner.clone()]));
    }
    settle(&mut world);
}

/// Twice as many as a roster holds, or three times: a peer that has counted them must not count
/// them again and again.
#[test]
fn many_that_join_at_once_cost_each_other_few_messages() {
    for (count, seed) in [(40, 1), (60, 2), (100, 3)] {
        let network = Network::new(RoundTripMatrix::planetlab(), 0.0);
        let mut world = World::new(seed, Settings::default(), network);
        let founder = join(&mut world);
        world.run_for(ROUND);
        let entry = world.contact(founder).clone();
        for _ in 1..count {
            let newcomer = world.spawn();
            world.tell(newcomer, RingEvent::Join(vec![entry.clone()]));
        }
        world.run_for(18 * ROUND);
        assert!(
            survey(&world).is_perfect_ring(),
            "{count} peers: {:?}",
            survey(&world)
        );
        let each = world.tally.all_messages() / count;
        assert!(each < 400, "{count} peers: {each} messages each");
    }
}
