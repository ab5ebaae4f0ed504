//! The URLs of one domain that were seen (Apoidea §2.2: one filter per domain, so that a domain
//! moves as one small blob).
//!
//! A small domain is remembered exactly; a larger one in a Bloom filter that doubles as the domain
//! grows. A Bloom filter cannot grow by itself: its owner rebuilds it from the domain's log of
//! fingerprints, which is the durable truth and somebody else's; it is also what moves, in a form
//! more compact than any filter ([`crate::ReducedSeen`]).

use crate::Reductions;
use apoidea_model::UrlHash;
use bloomfilter::Bloom;
use std::hash::{Hash, Hasher};

/// Remembers the URLs of one domain; may mistake a new URL for a seen one, never the other way
/// round.
#[derive(Debug, Clone)]
pub struct SeenFilter {
    rate: OneIn,
    /// Under which forms the log may know a URL.
    reductions: Reductions,
    memory: Memory,
}

/// Was the URL seen before?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Certainly not.
    New,
    /// Almost certainly.
    Seen,
}

/// At most one new URL in this many is mistaken for seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OneIn(u32);

#[derive(Debug, Clone)]
enum Memory {
    /// Every fingerprint, sorted.
    Exact(Vec<u64>),
    Bloom(Box<Counted>),
}

#[derive(Debug, Clone)]
struct Counted {
    bloom: Bloom<Part>,
    count: u64,
    capacity: u64,
}

impl Default for OneIn {
    /// The paper takes 1 in 1000; a page never crawled is worth the ten bits more that this costs.
    fn default() -> Self {
        OneIn(100_000)
    }
}

impl OneIn {
    /// One in `urls`, brought into 100 to 1,000,000,000.
    pub fn new(urls: u64) -> Self {
        OneIn(urls.clamp(100, 1_000_000_000) as u32)
    }

    /// So many times as rare.
    pub fn divided_by(self, times: usize) -> Self {
        OneIn::new(u64::from(self.0).saturating_mul(times as u64))
    }

    /// Hundredths of a bit per URL: 1.44 · log₂ of the rate, and a tenth more, because the hash
    /// functions are not quite independent and a full filter shall not be quite half full.
    fn centibits_per_url(self) -> u64 {
        (f64::from(self.0).ln() / std::f64::consts::LN_2.powi(2) * 110.0).round() as u64
    }
}

impl SeenFilter {
    /// Most URLs of a domain that keep the rate; which then takes 55 MB.
    pub const CAPACITY_MAX: u64 = CAPACITY_MIN << 16;

    /// Knows nothing.
    pub fn new(rate: OneIn) -> Self {
        SeenFilter {
            rate,
            reductions: Reductions::default(),
            memory: Memory::Exact(Vec::new()),
        }
    }

    /// Remembers the fingerprints of a domain's log, of which there are `expected`, with room for
    /// more.
    pub fn build(rate: OneIn, expected: u64, hashes: impl IntoIterator<Item = UrlHash>) -> Self {
        let mut filter = SeenFilter::new(rate);
        for hash in hashes {
            filter.insert_expecting(hash, expected);
        }
        filter
    }

    /// Remembers a URL, and says whether it was known.
    pub fn insert(&mut self, hash: UrlHash) -> Sight {
        self.insert_expecting(hash, 0)
    }

    fn insert_expecting(&mut self, hash: UrlHash, expected: u64) -> Sight {
        let known = match &mut self.memory {
            Memory::Bloom(counted) => return counted.insert(hash),
            Memory::Exact(known) => known,
        };
        let Err(at) = known.binary_search(&hash.0) else {
            return Sight::Seen;
        };
        known.insert(at, hash.0);
        if known.len() > EXACT_MAX {
            let mut counted =
                Counted::new(self.rate, capacity_for(expected.max(known.len() as u64)));
            known
                .iter()
                .for_each(|&hash| _ = counted.insert(UrlHash(hash)));
            self.memory = Memory::Bloom(Box::new(counted));
        }
        Sight::New
    }

    /// The same filter, of a log that has made journeys: a URL is known if any of its forms is.
    pub fn asked_as(self, reductions: Reductions) -> Self {
        SeenFilter { reductions, ..self }
    }

    /// Under which forms the log may know a URL.
    pub fn reductions(&self) -> &Reductions {
        &self.reductions
    }

    /// Whether the URL is known.
    pub fn contains(&self, hash: UrlHash) -> bool {
        self.reductions.forms(hash).any(|form| self.knows(form))
    }

    fn knows(&self, hash: UrlHash) -> bool {
        match &self.memory {
            Memory::Exact(known) => known.binary_search(&hash.0).is_ok(),
            Memory::Bloom(counted) => counted.contains(hash),
        }
    }

    /// URLs remembered.
    pub fn len(&self) -> u64 {
        match &self.memory {
            Memory::Exact(known) => known.len() as u64,
            Memory::Bloom(counted) => counted.count,
        }
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is full, so that it has to be built anew from the log before more is inserted.
    /// What is inserted nevertheless is remembered, at the cost of more false positives.
    pub fn needs_growth(&self) -> bool {
        match &self.memory {
            Memory::Exact(_) => false,
            Memory::Bloom(counted) => {
                counted.count >= counted.capacity && counted.capacity < Self::CAPACITY_MAX
            }
        }
    }

    /// So many more URLs can be inserted before it has to grow, with the rate kept. Never zero
    /// unless [`Self::needs_growth`].
    pub fn room(&self) -> u64 {
        match &self.memory {
            Memory::Exact(known) => CAPACITY_MIN - known.len() as u64,
            Memory::Bloom(counted) if counted.capacity >= Self::CAPACITY_MAX => u64::MAX,
            Memory::Bloom(counted) => counted.capacity.saturating_sub(counted.count),
        }
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let heap = match &self.memory {
            Memory::Exact(known) => known.capacity() * size_of::<u64>(),
            Memory::Bloom(counted) => size_of::<Counted>() + counted.bloom.as_slice().len(),
        };
        size_of::<Self>() + heap
    }
}

/// Domains of up to so many URLs are remembered exactly: half a KiB, and a Bloom filter of this
/// size would have too many pairs of URLs with the same bits.
const EXACT_MAX: usize = 64;

/// The smallest Bloom filter is for so many URLs; all others for twice as many as another.
const CAPACITY_MIN: u64 = 256;

/// Hash keys. Fingerprints are SHA-256 already, so these need not be secret: who wants
/// colliding URLs has to find them in 64 bits either way.
const SEED: [u8; 32] = *b"Apoidea seen-URLs filter, keys 1";

/// Each URL is inserted as two independent parts. The library derives all bits of an item from two
/// hashes modulo the size, so in a small filter whole URLs would coincide far more often than the
/// rate allows.
const PARTS: [u8; 2] = [0, 1];

/// One of a URL's parts.
#[derive(Clone)]
struct Part([u8; 9]);

impl Part {
    fn of(hash: UrlHash, part: u8) -> Self {
        let mut bytes = [part; 9];
        bytes[..8].copy_from_slice(&hash.0.to_le_bytes());
        Part(bytes)
    }
}

impl Hash for Part {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

/// The smallest capacity with room beyond so many URLs.
fn capacity_for(urls: u64) -> u64 {
    let capacity = urls.saturating_add(1).checked_next_power_of_two();
    capacity
        .unwrap_or(u64::MAX)
        .clamp(CAPACITY_MIN, SeenFilter::CAPACITY_MAX)
}

fn bitmap_bytes(capacity: u64, rate: OneIn) -> usize {
    (capacity * rate.centibits_per_url()).div_ceil(800) as usize
}

/// An eighth more items than will be inserted, which makes the library choose so few hash functions
/// that a full filter is less than half full.
fn library_items(capacity: u64) -> usize {
    capacity as usize * PARTS.len() * 9 / 8
}

impl Counted {
    fn new(rate: OneIn, capacity: u64) -> Self {
        let bloom =
            Bloom::new_with_seed(bitmap_bytes(capacity, rate), library_items(capacity), &SEED)
                .expect("sizes above zero and a given seed always make a filter");
        Counted {
            bloom,
            count: 0,
            capacity,
        }
    }

    fn insert(&mut self, hash: UrlHash) -> Sight {
        let [first, second] = PARTS.map(|part| self.bloom.check_and_set(&Part::of(hash, part)));
        if first && second {
            return Sight::Seen;
        }
        self.count += 1;
        Sight::New
    }

    fn contains(&self, hash: UrlHash) -> bool {
        PARTS
            .iter()
            .all(|&part| self.bloom.check(&Part::of(hash, part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fingerprints of distinct URLs: a bijection of the numbers that looks random (the finaliser
    /// of SplitMix64).
    fn hash(number: u64) -> UrlHash {
        let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        UrlHash(z ^ (z >> 31))
    }

    fn filled(rate: OneIn, urls: u64) -> SeenFilter {
        SeenFilter::build(rate, urls, (0..urls).map(hash))
    }

    /// The fullest filter of at least so many URLs, just before it grows.
    fn full(rate: OneIn, urls: u64) -> SeenFilter {
        let capacity = capacity_for(urls);
        SeenFilter::build(rate, capacity - 1, (0..capacity).map(hash))
    }

    /// Of so many URLs that were never inserted, how many does it take for seen?
    fn mistakes(filter: &SeenFilter, probes: u64) -> usize {
        let strangers = (1 << 40)..(1 << 40) + probes;
        strangers
            .filter(|&number| filter.contains(hash(number)))
            .count()
    }

    fn check_rate(urls: u64, probes: u64) {
        let filter = full(OneIn::default(), urls);
        let found = mistakes(&filter, probes);
        println!(
            "{} URLs: {found} mistakes in {probes}, {} bytes",
            filter.len(),
            filter.memory_bytes()
        );
        assert!(
            found as u64 <= probes / 100_000,
            "{found} mistakes at {} URLs",
            filter.len()
        );
    }

    #[test]
    fn at_most_one_url_in_a_hundred_thousand_is_mistaken_at_every_size() {
        for urls in [65, 256, 1000, 10_000, 100_000] {
            check_rate(urls, 2_000_000);
        }
    }

    #[test]
    #[ignore = "takes a minute; run after changing sizes or hash functions"]
    fn at_most_one_url_in_a_hundred_thousand_is_mistaken_at_great_sizes() {
        for (urls, probes) in [
            (65, 100_000_000),
            (1_000_000, 20_000_000),
            (10_000_000, 20_000_000),
        ] {
            check_rate(urls, probes);
        }
    }

    #[test]
    fn other_rates_are_kept_too() {
        for one_in in [100, 1000, 10_000] {
            let found = mistakes(&full(OneIn::new(one_in), 10_000), 1_000_000);
            assert!(found as u64 <= 1_000_000 / one_in, "1 in {one_in}: {found}");
        }
    }

    #[test]
    fn nothing_seen_is_ever_taken_for_new() {
        for urls in [1, 64, 65, 128, 5000] {
            let mut filter = filled(OneIn::default(), urls);
            assert_eq!(filter.len(), urls);
            assert!((0..urls).all(|number| filter.insert(hash(number)) == Sight::Seen));
        }
    }

    #[test]
    fn a_small_domain_takes_little_memory() {
        let filter = filled(OneIn::default(), 10);
        assert!(
            filter.memory_bytes() < 256,
            "{} bytes",
            filter.memory_bytes()
        );
        assert_eq!(mistakes(&filter, 10_000), 0);
    }

    #[test]
    fn a_log_shorter_than_expected_is_remembered_exactly() {
        let filter = SeenFilter::build(OneIn::default(), 5000, (0..10).map(hash));
        assert_eq!(
            filter.memory_bytes(),
            filled(OneIn::default(), 10).memory_bytes()
        );
        assert_eq!(mistakes(&filter, 10_000), 0);
    }

    #[test]
    fn it_says_when_it_is_full_and_grows_from_the_log() {
        let mut filter = SeenFilter::new(OneIn::default());
        let mut sizes = vec![filter.memory_bytes()];
        for number in 0..2000 {
            filter.insert(hash(number));
            if filter.needs_growth() {
                filter = filled(OneIn::default(), filter.len());
                sizes.push(filter.memory_bytes());
                assert!(!filter.needs_growth());
            }
        }
        assert_eq!((filter.len(), sizes.len()), (2000, 4));
        assert!(sizes.is_sorted());
    }
}
