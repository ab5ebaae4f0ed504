//! Messages about the crawl, of every kind: each passes rights and answers, and the crawler does
//! what it says to a real store. An input is a conversation: sender, kind, length and body of each
//! message. The answer of the other peer, when it is asked for its replicas, counts as a kind.
//!
//! No message panics, takes more than 5 ms of the processor, or more than 64 MiB.

#![no_main]

use apoidea_peer::fuzzing::Door;
use cpu_time::ThreadTime;
use libfuzzer_sys::fuzz_target;
use peak_alloc::PeakAlloc;
use std::{cell::RefCell, time::Duration};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The most that one message may cost.
const LONGEST: Duration = Duration::from_millis(5);
const MOST_BYTES: usize = 64 << 20;
/// A peer is used for so many messages. Then all that it took is stored and read again, and a new
/// one starts.
const MESSAGES_OF_A_DOOR: usize = 2000;

/// A peer, and what it was told.
struct Visited {
    door: Door,
    kinds: Vec<u8>,
    messages: usize,
}

/// The most that any message has cost so far, and its kind.
#[derive(Default, Debug)]
struct Record {
    time: (Duration, u8),
    bytes: (usize, u8),
}

thread_local! {
    static VISITED: RefCell<Option<Visited>> = const { RefCell::new(None) };
    static RECORD: RefCell<Record> = RefCell::default();
}

impl Visited {
    fn open() -> Self {
        let door = Door::open();
        let kinds = door.samples().into_iter().map(|(kind, _)| kind).collect();
        Visited { door, kinds, messages: 0 }
    }

    fn bring(&mut self, from: u8, kind: u8, body: &[u8]) {
        self.messages += 1;
        let Some(&kind) = self.kinds.get(usize::from(kind) % (self.kinds.len() + 1)) else {
            return self.door.give(body);
        };
        let (before, began) = (ALLOCATOR.current_usage(), ThreadTime::now());
        ALLOCATOR.reset_peak_usage();
        self.door.bring(from, kind, body);
        let (took, bytes) = (began.elapsed(), ALLOCATOR.peak_usage().saturating_sub(before));
        RECORD.with_borrow_mut(|record| record.note(kind, took, bytes));
        assert!(took <= LONGEST, "a message of kind {kind} took {took:?}");
        assert!(bytes <= MOST_BYTES, "a message of kind {kind} took {bytes} bytes");
    }
}

impl Record {
    fn note(&mut self, kind: u8, took: Duration, bytes: usize) {
        self.time = self.time.max((took, kind));
        self.bytes = self.bytes.max((bytes, kind));
    }
}

/// The first message of a conversation: sender, kind and body; and the rest.
fn split(bytes: &[u8]) -> Option<((u8, u8, &[u8]), &[u8])> {
    let ([from, kind, low, high], rest) = bytes.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (body, rest) = rest.split_at(length);
    Some(((*from, *kind, body), rest))
}

fuzz_target!(|bytes: &[u8]| {
    VISITED.with_borrow_mut(|visited| {
        let peer = visited.get_or_insert_with(Visited::open);
        let mut rest = bytes;
        while let Some(((from, kind, body), next)) = split(rest) {
            peer.bring(from, kind, body);
            rest = next;
        }
        if let Some(used) = visited.take_if(|peer| peer.messages >= MESSAGES_OF_A_DOOR) {
            used.door.close();
            RECORD.with_borrow(|record| eprintln!("{record:?}"));
        }
    });
});
