//! Noise at the peer's door: random bytes, and messages of every kind that were damaged on the way,
//! all the way from the service to the crawler and its store.
//!
//! No case may panic, with overflow checks on, and none may take long. The fuzz target `crawl` does
//! the same for hours, with a fuzzer that knows which code it reached.

use super::{
    door::{Door, framed, plain, senders},
    testing::{TestCrawler, me, other},
};
use crate::{
    crawler::testing::url,
    swarm::{
        lending::message::{LentPage, LoanAnswer, LoanResult, RESULT},
        replicas::replica::Replica,
        testing::{TestPeer, versions, waiting_url},
    },
};
use apoidea_crawl::{Effort, Outcome};
use apoidea_model::Pending;
use apoidea_overlay::Kind;
use apoidea_store::Commit;
use bytes::Bytes;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

const SEED: u64 = 4;
/// Peers that are asked one after the other, and the messages to each: 10,000 in all.
const DOORS: usize = 4;
const CASES_OF_A_DOOR: usize = 2500;
/// One message, in a build without optimisation on a busy machine.
const LONGEST: Duration = Duration::from_secs(2);
/// Largest numbers of every width, as the wire writes them.
const LARGE: [&[u8]; 4] = [
    &[0xff],
    &[0xff, 0xff, 0x03],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
];

/// Damages a message in one or a few places.
fn damage(bytes: &mut Vec<u8>, others: &[(Kind, Vec<u8>)], random: &mut StdRng) {
    for _ in 0..random.random_range(1..3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        let end = (at + random.random_range(1..9)).min(bytes.len());
        match random.random_range(0..7) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            5 => {
                let large = LARGE.choose(random).unwrap();
                bytes.splice(at..=at, large.iter().copied());
            }
            _ => {
                let (_, other) = others.choose(random).unwrap();
                let from = random.random_range(0..other.len());
                bytes.splice(at..end, other[from..].iter().copied().take(16));
            }
        }
    }
}

/// Random bytes in a random form.
fn noise(random: &mut StdRng) -> Bytes {
    let length = random.random_range(0..300);
    let mut bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
    if let Some(form) = bytes.first_mut() {
        *form = random.random_range(0..3);
    }
    bytes.into()
}

/// Brings messages to a new door, the first of them about the fetch that was lent.
async fn make_noise(random: &mut StdRng, tally: &mut Tally) {
    let mut door = Door::new().await;
    let replicas = door.replicas();
    let samples = door.samples();
    let result = samples.iter().position(|(kind, _)| *kind == RESULT);
    for case in 0..CASES_OF_A_DOOR {
        let number = random.random_range(0..samples.len());
        let (kind, mut bytes) = samples[result.filter(|_| case < 3).unwrap_or(number)].clone();
        let body = if case % 4 == 3 {
            noise(random)
        } else {
            damage(&mut bytes, &samples, random);
            framed(bytes)
        };
        let mut given = replicas.clone();
        damage(&mut given, &samples, random);
        door.give(given);
        let from = *senders().choose(random).unwrap();
        let begun = Instant::now();
        let is_taken = door.bring(from, kind, body).await;
        let took = begun.elapsed();
        assert!(took < LONGEST, "{took:?} for {kind}");
        tally.slowest = tally.slowest.max((took, kind.as_byte()));
        *tally.taken.entry(kind).or_default() += usize::from(is_taken);
    }
    door.use_all().await;
}

/// What came of the messages.
#[derive(Default)]
struct Tally {
    /// The longest time, and the kind of message that took it.
    slowest: (Duration, u8),
    /// Messages that were taken, by kind.
    taken: BTreeMap<Kind, usize>,
}

#[tokio::test]
async fn no_message_of_a_stranger_panics_or_takes_long() {
    let mut random = StdRng::seed_from_u64(SEED);
    let mut tally = Tally::default();
    for _ in 0..DOORS {
        make_noise(&mut random, &mut tally).await;
    }
    println!("slowest: {:?}; taken: {:?}", tally.slowest, tally.taken);
    // Most are refused; those that are not reach the crawler.
    assert!(tally.taken.values().sum::<usize>() > DOORS * CASES_OF_A_DOOR / 20);
}

/// A run of this prints its seed, and goes on for as many seconds as `APOIDEA_NOISE_SECONDS` says.
#[tokio::test]
#[ignore = "ten minutes"]
async fn no_message_of_a_stranger_panics_in_ten_minutes() {
    let seconds = std::env::var("APOIDEA_NOISE_SECONDS").ok();
    let seconds = seconds.map_or(600, |seconds| seconds.parse().unwrap());
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut tally = Tally::default();
    let mut messages = 0;
    while Instant::now() < until {
        let seed = rand::random();
        println!(
            "seed {seed} after {messages} messages, slowest {:?}",
            tally.slowest
        );
        make_noise(&mut StdRng::seed_from_u64(seed), &mut tally).await;
        messages += CASES_OF_A_DOOR;
    }
    println!("{messages} messages; taken: {:?}", tally.taken);
}

#[tokio::test]
async fn the_largest_numbers_of_a_helper_are_borne() {
    let mut door = Door::new().await;
    door.crawler.totals.bytes = 1;
    let LoanResult { fetch, answer } = door.result();
    let LoanAnswer::Page {
        outcome,
        page: Some(page),
        ..
    } = answer
    else {
        panic!("a page was lent");
    };
    let answer = LoanAnswer::Page {
        outcome,
        effort: Effort {
            took: Duration::MAX,
            bytes: u64::MAX,
        },
        page: Some(LentPage {
            link_count: u64::MAX,
            bytes: u64::MAX,
            millis: u64::MAX,
            ..page
        }),
    };
    let result = plain(&LoanResult { fetch, answer });
    assert!(door.bring(other(), RESULT, framed(result)).await);
    door.crawler.save().await;
    assert_eq!(door.crawler.waiting(&door.lent.url.domain()), [""; 0]);
}

#[tokio::test]
async fn the_greatest_depth_of_a_replica_is_borne() {
    let mut crawler = TestCrawler::alone();
    let (own, giver) = (crawler.own(0), TestPeer::owner([other(), me()]).0);
    let deepest = Pending {
        depth: u16::MAX,
        ..waiting_url(&own, 1)
    };
    giver.hold(&own, &versions(&[(other(), 3)]), 0);
    let mut commit = Commit::new();
    commit.put_pending(&own, &deepest);
    giver.store.apply(&commit).unwrap();
    let replica = Replica::read(&giver.store, &own).unwrap().unwrap();
    crawler.adopt_replica(&own, replica).await;
    let redirect = Outcome::Redirect(url(&own, 2));
    crawler.fetched(&deepest, redirect).await;
}
