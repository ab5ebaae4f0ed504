//! A ring at rest with liars in it: how many look-ups they catch, how many replicas, at which cost.

use super::{
    Figure, LiarKind, RingSimOptions,
    play::{LAST_LOOKUPS, MEASURED, look_around, maintenance, messages_per_lookup},
    world::World,
};
use crate::{Contact, Freshness};
use std::time::Duration;

/// Time for the lies to spread: every list and every finger is renewed several times.
const SPREADING: Duration = Duration::from_secs(900);
/// Honest peers that ask again and again, so that they answer from memory.
const REGULARS: usize = 16;
/// Keys whose replicas are looked at.
const SAMPLED_KEYS: usize = 20_000;
/// Replicas of a domain beside its owner.
const REPLICAS: usize = 2;
/// Successors that an owner lends to.
const HELPERS: usize = 8;
/// The share of liars up to which the targets hold.
const PROMISED_SHARE: f64 = 0.1;

pub(super) fn among_liars(world: &mut World, options: &RingSimOptions) -> Vec<Figure> {
    world.spawn_ring(options.peers);
    world.run_for(SPREADING);
    world.tally.reset();
    world.run_for(MEASURED);
    let mut figures = maintenance(world, options.peers, MEASURED);
    let per_second = world.tally.all_messages() as f64 / MEASURED.as_secs_f64();
    figures.extend(fresh(world, options, per_second));
    figures.extend(cached(world, options));
    figures.extend(neighbourhoods(world, options));
    figures
}

/// Targets are promised up to a tenth of liars; beyond it, the figure is only shown.
fn promised(figure: Figure, options: &RingSimOptions, most: f64) -> Figure {
    if options.liars <= PROMISED_SHARE {
        figure.at_most(most)
    } else {
        figure
    }
}

fn most_hijacked_percent(kind: LiarKind) -> f64 {
    match kind {
        LiarKind::Naive => 0.5,
        LiarKind::Cabal => 3.0,
    }
}

/// Cold lookups from everywhere, as many as half of those asked for.
fn fresh(world: &mut World, options: &RingSimOptions, per_second: f64) -> Vec<Figure> {
    let start = world.now();
    look_around(world, options.lookups / 2);
    let messages = messages_per_lookup(world, start, per_second);
    let tally = &world.tally;
    let wrong = 100.0 * (1.0 - tally.right_share());
    let hijacked = Figure::new("lookups hijacked, %", tally.of_honest.hijacked_percent());
    vec![
        promised(hijacked, options, most_hijacked_percent(options.liar_kind)),
        Figure::new("lookups wrong or failed, %", wrong),
        Figure::new("hops", tally.mean_hops()),
        Figure::new("messages per cold lookup", messages),
        Figure::new("cold lookup, mean ms", tally.mean_ms()),
        Figure::new("cold lookup, median ms", tally.lookup_ms(0.5)),
        Figure::new("cold lookup, p99 ms", tally.lookup_ms(0.99)),
    ]
}

/// A few honest peers ask again and again, and use the arcs that they remember.
fn cached(world: &mut World, options: &RingSimOptions) -> Vec<Figure> {
    let honest = world.living().iter().filter(|&&peer| !world.is_liar(peer));
    let regulars: Vec<u32> = honest.take(REGULARS).copied().collect();
    world.tally.reset();
    for &peer in regulars.iter().cycle().take(options.lookups / 2) {
        let key = world.some_key();
        world.look_up_as(peer, key, Freshness::Cached);
        world.run_for(Duration::from_millis(20));
    }
    world.run_for(LAST_LOOKUPS);
    let (all, remembered) = (world.tally.of_honest, world.tally.from_memory);
    let share = 100.0 * remembered.all as f64 / all.all.max(1) as f64;
    vec![
        promised(
            Figure::new("with a cache, hijacked, %", all.hijacked_percent()),
            options,
            3.0,
        ),
        Figure::new("answered from memory, %", share),
        Figure::new("of these hijacked, %", remembered.hijacked_percent()),
    ]
}

/// The peers after honest owners, as those owners see them.
fn neighbourhoods(world: &mut World, options: &RingSimOptions) -> Vec<Figure> {
    let (mut owners, mut captured, mut helpers, mut hostile) = (0u32, 0u32, 0usize, 0usize);
    for _ in 0..SAMPLED_KEYS {
        let key = world.some_key();
        let owner = world.owner(key).filter(|&owner| !world.is_liar(owner));
        let Some(ring) = owner.and_then(|owner| world.ring(owner)) else {
            continue;
        };
        let lies = |list: &[Contact]| list.iter().filter(|c| world.is_liar_id(c.id)).count();
        let after = ring.successors();
        let next = &after[..HELPERS.min(after.len())];
        owners += 1;
        captured += u32::from(lies(&after[..REPLICAS.min(after.len())]) == REPLICAS);
        helpers += next.len();
        hostile += lies(next);
    }
    let percent = |part: f64, whole: f64| 100.0 * part / whole.max(1.0);
    let both = percent(f64::from(captured), f64::from(owners));
    let share = percent(hostile as f64, helpers as f64);
    vec![
        promised(
            Figure::new("keys with both replicas at liars, %", both),
            options,
            2.0,
        ),
        Figure::new("helpers that are liars, %", share),
    ]
}
