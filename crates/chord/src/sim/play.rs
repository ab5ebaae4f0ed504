//! The scenarios: each changes a world and measures it.

use super::{
    Figure, RingSimOptions, Scenario, hostile,
    judge::{Disarray, survey},
    network::{Network, RoundTripMatrix, Wall},
    sessions::Sessions,
    world::World,
};
use crate::{RingEvent, Settings};
use apoidea_model::Time;
use rand::RngExt;
use std::time::Duration;

/// Time for which maintenance is measured.
pub(super) const MEASURED: Duration = Duration::from_secs(300);
/// Longest time for a damaged ring to heal.
const HEALING: Duration = Duration::from_secs(600);
/// Time between two looks at a healing ring.
const LOOK: Duration = Duration::from_secs(5);
/// Time for the last lookups to end.
pub(super) const LAST_LOOKUPS: Duration = Duration::from_secs(40);
/// Time for which the network stays split, and machines sleep.
const AWAY: Duration = Duration::from_secs(600);

/// Plays a scenario and returns what was measured and which invariants broke.
pub fn play(options: &RingSimOptions) -> (Vec<Figure>, Vec<String>) {
    if options.scenario == Scenario::Dead {
        return dead(options);
    }
    let mut world = world(options, &settings(options));
    let figures = match options.scenario {
        Scenario::Steady if options.liars > 0.0 => hostile::among_liars(&mut world, options),
        Scenario::Steady | Scenario::Dead => steady(&mut world, options),
        Scenario::Crash => crash(&mut world, options),
        Scenario::Churn => churn(&mut world, options, Sessions::exponential_hour()),
        Scenario::Weibull => churn(&mut world, options, Sessions::weibull_hour()),
        Scenario::Partition => partition(&mut world, options),
        Scenario::Sleep => sleep(&mut world, options),
        Scenario::Growth => growth(&mut world, options),
    };
    (figures, world.violations)
}

fn settings(options: &RingSimOptions) -> Settings {
    // Every lookup is to travel, so nothing is remembered. Among liars, the damage that they do to
    // the memory is a figure of its own.
    let cached_arcs = if options.liars > 0.0 {
        Settings::default().cached_arcs
    } else {
        0
    };
    Settings {
        successors: options.successors,
        cached_arcs,
        ..Settings::default()
    }
}

fn world(options: &RingSimOptions, settings: &Settings) -> World {
    let network = Network::new(RoundTripMatrix::planetlab(), options.loss);
    World::new(options.seed, settings.clone(), network).with_liars(
        options.liars,
        options.liar_kind,
        options.seed,
    )
}

fn steady(world: &mut World, options: &RingSimOptions) -> Vec<Figure> {
    world.spawn_ring(options.peers);
    world.run_for(Duration::from_secs(30));
    world.tally.reset();
    world.run_for(MEASURED);
    let mut figures = maintenance(world, options.peers, MEASURED);
    let per_second = world.tally.all_messages() as f64 / MEASURED.as_secs_f64();
    world.set_parallel(1);
    look_around(world, options.lookups / 2);
    let expected = expected_hops(options.peers, options.successors);
    figures.push(judge_hops(options, world.tally.mean_hops()));
    figures.push(Figure::new(
        "share of the expected hops",
        world.tally.mean_hops() / expected,
    ));
    figures.push(Figure::new("lookup, median ms", world.tally.lookup_ms(0.5)));
    let wrong = world.tally.lookups_ended() - world.tally.lookups_right;
    figures.push(Figure::new("lookups wrong or failed", wrong as f64).at_most(0.0));
    world.set_parallel(Settings::default().parallel);
    let start = world.now();
    look_around(world, options.lookups / 2);
    let messages = messages_per_lookup(world, start, per_second);
    figures.push(Figure::new("messages per lookup in parallel", messages));
    figures.push(
        Figure::new("hops, three in parallel", world.tally.mean_hops()).at_most(expected * 1.05),
    );
    figures.push(Figure::new(
        "lookup in parallel, mean ms",
        world.tally.mean_ms(),
    ));
    figures.push(Figure::new(
        "lookup in parallel, median ms",
        world.tally.lookup_ms(0.5),
    ));
    figures.push(Figure::new(
        "lookup in parallel, p99 ms",
        world.tally.lookup_ms(0.99),
    ));
    figures.extend(at_rest(survey(world)));
    figures
}

/// ½·log₂N − ½·log₂r + 1 (Chord §4.3.2 with successor lists; N = 1000 and r = 20 give the paper's
/// 3.8).
fn expected_hops(peers: usize, successors: usize) -> f64 {
    0.5 * (peers as f64).log2() - 0.5 * (successors as f64).log2() + 1.0
}

/// Hops against their expectation: within 5 % of it, or below it where the ring is not much larger
/// than the neighbourhood that every peer knows, which shortens most ways and which the formula
/// leaves out.
fn judge_hops(options: &RingSimOptions, hops: f64) -> Figure {
    const MUCH_LARGER: usize = 32;
    let expected = expected_hops(options.peers, options.successors);
    let figure = Figure::new("hops, one request at a time", hops);
    if options.peers > MUCH_LARGER * options.successors {
        figure.within(expected * 0.95, expected * 1.05)
    } else {
        figure.at_most(expected * 1.05)
    }
}

pub(super) fn maintenance(world: &World, peers: usize, measured: Duration) -> Vec<Figure> {
    let peer_seconds = peers as f64 * measured.as_secs_f64();
    vec![
        Figure::new(
            "maintenance, messages per peer and second",
            world.tally.all_messages() as f64 / peer_seconds,
        )
        .at_most(1.5),
        Figure::new(
            "maintenance, bytes per peer and second",
            world.tally.bytes as f64 / peer_seconds,
        )
        .at_most(500.0),
    ]
}

/// The messages of each lookup since `start`, without those that keep the ring.
pub(super) fn messages_per_lookup(world: &World, start: Time, maintenance_per_second: f64) -> f64 {
    let seconds = world.now().since(start).as_secs_f64();
    let messages = world.tally.all_messages() as f64 - maintenance_per_second * seconds;
    messages / world.tally.lookups_ended().max(1) as f64
}

/// Lets so many lookups run, spread over time, and counts only them.
pub(super) fn look_around(world: &mut World, lookups: usize) {
    world.tally.reset();
    for _ in 0..lookups {
        world.look_up_something();
        world.run_for(Duration::from_millis(2));
    }
    world.run_for(LAST_LOOKUPS);
}

/// Ten to fifty per cent are dead and nobody has noticed yet.
fn dead(options: &RingSimOptions) -> (Vec<Figure>, Vec<String>) {
    let never = Duration::from_secs(1 << 30);
    let settings = Settings {
        stabilize_every: never,
        check_every: never,
        parallel: 1,
        ..settings(options)
    };
    let (mut figures, mut violations) = (Vec::new(), Vec::new());
    for percent in [10, 20, 30, 40, 50] {
        let mut world = world(options, &settings);
        world.spawn_ring(options.peers);
        kill_share(&mut world, percent);
        look_around(&mut world, options.lookups);
        let failed =
            world.tally.lookups_ended() - world.tally.lookups_right + world.lookups_open() as u64;
        figures.push(Figure::new(
            format!("{percent} % dead, hops"),
            world.tally.mean_hops(),
        ));
        figures.push(
            Figure::new(format!("{percent} % dead, failed lookups"), failed as f64).at_most(0.0),
        );
        figures.push(Figure::new(
            format!("{percent} % dead, lookup median ms"),
            world.tally.lookup_ms(0.5),
        ));
        violations.append(&mut world.violations);
    }
    (figures, violations)
}

fn kill_share(world: &mut World, percent: usize) {
    let dying = world.living().len() * percent / 100;
    for _ in 0..dying {
        let victim = world.someone();
        world.kill(victim);
    }
}

fn crash(world: &mut World, options: &RingSimOptions) -> Vec<Figure> {
    world.spawn_ring(options.peers);
    world.run_for(Duration::from_secs(30));
    kill_share(world, 50);
    let mut figures = heal(world, HEALING);
    look_around(world, options.lookups.min(2000));
    figures
        .push(Figure::new("lookups right afterwards", world.tally.right_share()).at_least(0.9999));
    figures
}

/// Waits until the ring is perfect, and says how long it took.
fn heal(world: &mut World, patience: Duration) -> Vec<Figure> {
    let start = world.now();
    let (mut perfect, mut settled) = (None, None);
    let mut disarray = survey(world);
    while world.now().since(start) < patience && settled.is_none() {
        world.run_for(LOOK);
        disarray = survey(world);
        let elapsed = world.now().since(start).as_secs_f64();
        perfect = if disarray.is_perfect_ring() {
            perfect.or(Some(elapsed))
        } else {
            None
        };
        settled = disarray.is_settled().then_some(elapsed);
    }
    let limit = patience.as_secs_f64();
    vec![
        Figure::new("orphans", disarray.orphans as f64).at_most(0.0),
        Figure::new(
            "seconds to a perfect ring",
            perfect.unwrap_or(f64::INFINITY),
        )
        .at_most(limit),
        Figure::new("seconds to perfect lists", settled.unwrap_or(f64::INFINITY)).at_most(limit),
    ]
}

fn at_rest(disarray: Disarray) -> Vec<Figure> {
    vec![
        Figure::new("orphans", disarray.orphans as f64).at_most(0.0),
        Figure::new(
            "wrong first successors or predecessors",
            disarray.wrong_pointers as f64,
        )
        .at_most(0.0),
        Figure::new("wrong lists", disarray.wrong_lists as f64).at_most(0.0),
        Figure::new("wrong fingers", disarray.wrong_fingers as f64).at_most(0.0),
    ]
}

/// The cue for another lookup; all others are the numbers of peers whose sessions end.
const LOOK_UP: u32 = u32::MAX;

/// Peers come and go all the time: first with lookups, then without, to see what keeping the ring
/// costs by itself.
fn churn(world: &mut World, options: &RingSimOptions, sessions: Sessions) -> Vec<Figure> {
    world.spawn_ring(options.peers);
    for peer in 0..options.peers as u32 {
        let rest = sessions.remaining(&mut world.rng);
        world.cue(rest, peer);
    }
    let pace = options.duration.div_f64(options.lookups.max(1) as f64);
    world.cue(pace, LOOK_UP);
    let joins = come_and_go(world, options.duration, &sessions, Some(pace));
    let orphans = survey(world).orphans;
    let peer_seconds = options.peers as f64 * options.duration.as_secs_f64();
    let mut figures = vec![
        Figure::new("joins", f64::from(joins)),
        Figure::new("lookups", world.tally.lookups_ended() as f64),
        Figure::new("lookups right", world.tally.right_share()).at_least(0.999),
        Figure::new(
            "lookups hijacked, %",
            world.tally.of_honest.hijacked_percent(),
        ),
        Figure::new("hops", world.tally.mean_hops()),
        Figure::new("lookup, median ms", world.tally.lookup_ms(0.5)),
        Figure::new("lookup, p99 ms", world.tally.lookup_ms(0.99)),
        Figure::new("peers not on the ring at the end", orphans as f64),
        Figure::new(
            "with lookups, messages per peer and second",
            world.tally.all_messages() as f64 / peer_seconds,
        ),
        Figure::new(
            "with lookups, bytes per peer and second",
            world.tally.bytes as f64 / peer_seconds,
        ),
    ];
    come_and_go(world, LAST_LOOKUPS, &sessions, None);
    world.tally.reset();
    come_and_go(world, MEASURED, &sessions, None);
    figures.extend(maintenance(world, options.peers, MEASURED));
    figures
}

/// Lets so much time pass. A newcomer replaces each peer that dies. Lookups run at this pace.
/// Returns the number of newcomers.
fn come_and_go(
    world: &mut World,
    lasting: Duration,
    sessions: &Sessions,
    pace: Option<Duration>,
) -> u32 {
    let end = world.now() + lasting;
    let mut joins = 0;
    while let Some(cue) = world.run_until(end) {
        if cue != LOOK_UP {
            replace(world, cue, sessions);
            joins += 1;
        } else if let Some(pace) = pace {
            world.look_up_something();
            world.cue(pace, LOOK_UP);
        }
    }
    joins
}

fn replace(world: &mut World, peer: u32, sessions: &Sessions) {
    if sessions.says_goodbye(&mut world.rng) {
        world.leave(peer);
    } else {
        world.kill(peer);
    }
    let newcomer = join_one(world);
    let session = sessions.whole(&mut world.rng);
    world.cue(session, newcomer);
}

/// A new peer joins through some that are alive.
fn join_one(world: &mut World) -> u32 {
    let entries = (0..3.min(world.living().len()))
        .map(|_| world.someone())
        .collect::<Vec<_>>();
    let entries = entries
        .into_iter()
        .map(|entry| world.contact(entry).clone())
        .collect();
    let newcomer = world.spawn();
    world.tell(newcomer, RingEvent::Join(entries));
    newcomer
}

fn partition(world: &mut World, options: &RingSimOptions) -> Vec<Figure> {
    world.spawn_ring(options.peers);
    world.run_for(Duration::from_secs(30));
    world.set_wall(Wall::Up);
    world.run_for(AWAY);
    let apart = survey(world).orphans as f64 / options.peers as f64;
    world.set_wall(Wall::Down);
    let mut figures = vec![Figure::new(
        "share of peers in the other ring while split",
        apart,
    )];
    figures.extend(heal(world, HEALING));
    figures
}

fn sleep(world: &mut World, options: &RingSimOptions) -> Vec<Figure> {
    world.spawn_ring(options.peers);
    world.run_for(Duration::from_secs(30));
    let mut sleepers = Vec::new();
    for peer in 0..options.peers as u32 {
        if world.rng.random_bool(0.2) {
            world.sleep(peer);
            sleepers.push(peer);
        }
    }
    world.run_for(AWAY);
    sleepers.into_iter().for_each(|peer| world.rouse(peer));
    heal(world, HEALING)
}

/// Everyone joins within five minutes, after a single founder.
fn growth(world: &mut World, options: &RingSimOptions) -> Vec<Figure> {
    let founder = world.spawn();
    world.tell(founder, RingEvent::Join(Vec::new()));
    let pace = MEASURED.div_f64(options.peers.max(1) as f64);
    for _ in 1..options.peers {
        join_one(world);
        world.run_for(pace);
    }
    heal(world, HEALING)
}
