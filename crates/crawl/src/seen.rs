//! Which URLs of one domain were seen (Apoidea §2.2: one filter per domain, so that a domain moves as one small blob).
//!
//! A small domain is remembered exactly; a larger one in a Bloom filter that doubles as the domain grows. A Bloom
//! filter cannot grow by itself: its owner rebuilds it from the domain's log of fingerprints, which is the durable
//! truth and somebody else's. The same fingerprints give the same bytes on every peer and every machine.

use crate::Reductions;
use apoidea_model::UrlHash;
use bloomfilter::Bloom;
use std::hash::{Hash, Hasher};

/// Remembers the URLs of one domain; may mistake a new URL for a seen one, never the other way round.
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

/// The bytes are not a filter that this peer would have made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFilter {
    /// Not the beginning of a filter, or of another version.
    #[error("it does not begin like a seen-filter")]
    Header,
    /// Made for another rate of false positives, which is the same in the whole network.
    #[error("it is made for another rate of false positives")]
    Rate,
    /// Too short, too long, or of a size that no filter has.
    #[error("it is {0} bytes long, which no seen-filter is")]
    Size(usize),
    /// More URLs than fit, or than its bits can stand for.
    #[error("it cannot hold the {0} URLs it claims")]
    Count(u64),
    /// Other hash functions than ours, so that it would recognise nothing.
    #[error("it uses other hash functions")]
    HashFunctions,
    /// More than half of the bits are set: it would take too many URLs for seen.
    #[error("more than half of it is filled")]
    Fill,
    /// The fingerprints are not in order, or one is there twice.
    #[error("its fingerprints are out of order")]
    Order,
}

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

    /// Hundredths of a bit per URL: 1.44 · log₂ of the rate, and a tenth more, because the hash functions are not quite
    /// independent and a full filter shall not be quite half full. A whole number, since a logarithm may differ in its
    /// last digit from machine to machine.
    fn centibits_per_url(self) -> u64 {
        (f64::from(self.0).ln() / std::f64::consts::LN_2.powi(2) * 110.0).round() as u64
    }
}

impl SeenFilter {
    /// Most URLs of a domain that keep the rate; also a bound on what a stranger can make us allocate (55 MB).
    pub const CAPACITY_MAX: u64 = CAPACITY_MIN << 16;

    /// Knows nothing.
    pub fn new(rate: OneIn) -> Self {
        SeenFilter { rate, reductions: Reductions::default(), memory: Memory::Exact(Vec::new()) }
    }

    /// Remembers the fingerprints of a domain's log, of which there are `expected`, with room for more.
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
        let Err(at) = known.binary_search(&hash.0) else { return Sight::Seen };
        known.insert(at, hash.0);
        if known.len() > EXACT_MAX {
            let mut counted = Counted::new(self.rate, capacity_for(expected.max(known.len() as u64)));
            known.iter().for_each(|&hash| _ = counted.insert(UrlHash(hash)));
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

    /// Is the URL known?
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

    /// Is nothing remembered?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Is it full, so that it has to be built anew from the log before more is inserted? What is inserted nevertheless
    /// is remembered, at the cost of more false positives.
    pub fn needs_growth(&self) -> bool {
        match &self.memory {
            Memory::Exact(_) => false,
            Memory::Bloom(counted) => {
                counted.count >= counted.capacity && counted.capacity < Self::CAPACITY_MAX
            }
        }
    }

    /// So many more URLs can be inserted before it has to grow, with the rate kept. Never zero unless
    /// [`Self::needs_growth`].
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

    /// The filter as bytes, the same on every peer that saw the same URLs.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend(self.rate.0.to_le_bytes());
        bytes.extend(self.len().to_le_bytes());
        match &self.memory {
            Memory::Exact(known) => bytes.extend(known.iter().flat_map(|hash| hash.to_le_bytes())),
            Memory::Bloom(counted) => bytes.extend(counted.bloom.as_slice()),
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote, here or at a stranger's. A filter that is refused can be built from the log.
    pub fn from_bytes(bytes: &[u8], rate: OneIn) -> Result<Self, InvalidFilter> {
        let (version, rest) = bytes.split_first().ok_or(InvalidFilter::Header)?;
        let (one_in, rest) = rest.split_first_chunk().ok_or(InvalidFilter::Header)?;
        let (count, rest) = rest.split_first_chunk().ok_or(InvalidFilter::Header)?;
        if *version != VERSION {
            return Err(InvalidFilter::Header);
        }
        if u32::from_le_bytes(*one_in) != rate.0 {
            return Err(InvalidFilter::Rate);
        }
        let count = u64::from_le_bytes(*count);
        let memory = if count <= EXACT_MAX as u64 {
            Memory::Exact(exact_from_bytes(rest, count)?)
        } else {
            Memory::Bloom(Box::new(Counted::from_bytes(rest, count, rate)?))
        };
        Ok(SeenFilter { rate, reductions: Reductions::default(), memory })
    }
}

/// Version of the byte form.
const VERSION: u8 = 1;

/// Domains of up to so many URLs are remembered exactly: half a KiB, and a Bloom filter of this size would have too
/// many pairs of URLs with the same bits.
const EXACT_MAX: usize = 64;

/// The smallest Bloom filter is for so many URLs; all others for twice as many as another.
const CAPACITY_MIN: u64 = 256;

/// Hash keys, the same on every peer. Fingerprints are SHA-256 already, so these need not be secret: who wants
/// colliding URLs has to find them in 64 bits either way.
const SEED: [u8; 32] = *b"Apoidea seen-URLs filter, keys 1";

/// Each URL is inserted as two independent parts. The library derives all bits of an item from two hashes modulo the
/// size, so in a small filter whole URLs would coincide far more often than the rate allows.
const PARTS: [u8; 2] = [0, 1];

/// One of a URL's parts. Hashed as bytes, since the hash of a number depends on the machine.
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
    (urls + 1).next_power_of_two().clamp(CAPACITY_MIN, SeenFilter::CAPACITY_MAX)
}

fn bitmap_bytes(capacity: u64, rate: OneIn) -> usize {
    (capacity * rate.centibits_per_url()).div_ceil(800) as usize
}

/// An eighth more items than will be inserted, which makes the library choose so few hash functions that a full filter
/// is less than half full.
fn library_items(capacity: u64) -> usize {
    capacity as usize * PARTS.len() * 9 / 8
}

/// The number of hash functions that the library chooses.
fn hash_functions(capacity: u64, rate: OneIn) -> u32 {
    let bits_per_item = bitmap_bytes(capacity, rate) as f64 * 8.0 / library_items(capacity) as f64;
    (bits_per_item * std::f64::consts::LN_2).round() as u32
}

fn exact_from_bytes(bytes: &[u8], count: u64) -> Result<Vec<u64>, InvalidFilter> {
    let (hashes, rest) = bytes.as_chunks();
    if hashes.len() as u64 != count || !rest.is_empty() {
        return Err(InvalidFilter::Size(bytes.len()));
    }
    let known: Vec<u64> = hashes.iter().map(|hash| u64::from_le_bytes(*hash)).collect();
    if known.is_sorted_by(|a, b| a < b) { Ok(known) } else { Err(InvalidFilter::Order) }
}

impl Counted {
    fn new(rate: OneIn, capacity: u64) -> Self {
        let bloom = Bloom::new_with_seed(bitmap_bytes(capacity, rate), library_items(capacity), &SEED)
            .expect("sizes above zero and a given seed always make a filter");
        Counted { bloom, count: 0, capacity }
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
        PARTS.iter().all(|&part| self.bloom.check(&Part::of(hash, part)))
    }

    fn from_bytes(bytes: &[u8], count: u64, rate: OneIn) -> Result<Self, InvalidFilter> {
        if count > SeenFilter::CAPACITY_MAX {
            return Err(InvalidFilter::Count(count));
        }
        let bloom: Bloom<Part> = Bloom::from_slice(bytes).map_err(|_| InvalidFilter::Size(bytes.len()))?;
        // A full filter may be sent just before it grows.
        let capacities = [capacity_for(count - 1), capacity_for(count)];
        let fits = |&capacity: &u64| bloom.len() == bitmap_bytes(capacity, rate) as u64 * 8;
        let capacity = capacities.into_iter().find(fits).ok_or(InvalidFilter::Size(bytes.len()))?;
        if bloom.seed() != SEED || bloom.number_of_hash_functions() != hash_functions(capacity, rate) {
            return Err(InvalidFilter::HashFunctions);
        }
        let bits = &bytes[bytes.len() - bitmap_bytes(capacity, rate)..];
        let ones: u64 = bits.iter().map(|byte| u64::from(byte.count_ones())).sum();
        if ones > bloom.len() / 2 {
            return Err(InvalidFilter::Fill);
        }
        if ones > count * (PARTS.len() as u64) * u64::from(bloom.number_of_hash_functions()) {
            return Err(InvalidFilter::Count(count));
        }
        Ok(Counted { bloom, count, capacity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Fingerprints of distinct URLs: a bijection of the numbers that looks random (the finaliser of SplitMix64).
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
        strangers.filter(|&number| filter.contains(hash(number))).count()
    }

    fn check_rate(urls: u64, probes: u64) {
        let filter = full(OneIn::default(), urls);
        let found = mistakes(&filter, probes);
        println!("{} URLs: {found} mistakes in {probes}, {} bytes", filter.len(), filter.memory_bytes());
        assert!(found as u64 <= probes / 100_000, "{found} mistakes at {} URLs", filter.len());
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
        for (urls, probes) in [(65, 100_000_000), (1_000_000, 20_000_000), (10_000_000, 20_000_000)] {
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
        assert!(filter.memory_bytes() < 256, "{} bytes", filter.memory_bytes());
        assert_eq!(filter.to_bytes().len(), 93);
        assert_eq!(mistakes(&filter, 10_000), 0);
    }

    #[test]
    fn a_log_shorter_than_expected_is_remembered_exactly() {
        let filter = SeenFilter::build(OneIn::default(), 5000, (0..10).map(hash));
        assert_eq!(filter.to_bytes(), filled(OneIn::default(), 10).to_bytes());
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

    #[test]
    fn the_same_urls_give_the_same_bytes() {
        for urls in [10, 64, 65, 1000] {
            let forwards = filled(OneIn::default(), urls);
            let backwards = SeenFilter::build(OneIn::default(), urls, (0..urls).rev().map(hash));
            assert_eq!(forwards.to_bytes(), backwards.to_bytes());
        }
        let bytes = filled(OneIn::default(), 1000).to_bytes();
        let sum = bytes.iter().fold(0_u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        assert_eq!(
            sum, 9_895_048_392_638_527_250,
            "these bytes are understood by all peers, so they never change"
        );
    }

    #[test]
    fn bytes_are_read_back() {
        for urls in [0, 1, 64, 65, 255, 256, 5000] {
            let filter = filled(OneIn::default(), urls);
            let copy = SeenFilter::from_bytes(&filter.to_bytes(), OneIn::default()).unwrap();
            assert_eq!(copy.to_bytes(), filter.to_bytes());
            assert_eq!((copy.len(), copy.needs_growth()), (urls, filter.needs_growth()));
            assert!((0..urls).all(|number| copy.contains(hash(number))));
        }
        let full = full(OneIn::default(), 300);
        let copy = SeenFilter::from_bytes(&full.to_bytes(), OneIn::default()).unwrap();
        assert!(copy.needs_growth());
    }

    #[test]
    fn a_strangers_bytes_are_refused_with_their_reason() {
        let read = |bytes: &[u8]| SeenFilter::from_bytes(bytes, OneIn::default()).map(|_| ()).unwrap_err();
        let good = filled(OneIn::default(), 1000).to_bytes();
        let changed = |at: usize, to: &[u8]| {
            let mut bytes = good.clone();
            bytes[at..at + to.len()].copy_from_slice(to);
            read(&bytes)
        };
        assert_eq!(read(&[]), InvalidFilter::Header);
        assert_eq!(changed(0, &[9]), InvalidFilter::Header);
        assert_eq!(changed(1, &[1]), InvalidFilter::Rate);
        assert_eq!(changed(5, &u64::MAX.to_le_bytes()), InvalidFilter::Count(u64::MAX));
        assert_eq!(changed(5, &5000_u64.to_le_bytes()), InvalidFilter::Size(good.len() - 13));
        assert_eq!(changed(13 + 9, &17_u32.to_le_bytes()), InvalidFilter::HashFunctions);
        assert_eq!(changed(13 + 13, &[0; 32]), InvalidFilter::HashFunctions);
        assert_eq!(changed(good.len() - 3000, &[255; 3000]), InvalidFilter::Fill);
        assert_eq!(changed(5, &520_u64.to_le_bytes()), InvalidFilter::Count(520));
        let mut small = filled(OneIn::default(), 2).to_bytes();
        small.copy_within(13..21, 21);
        assert_eq!(read(&small), InvalidFilter::Order);
        assert_eq!(read(&small[..20]), InvalidFilter::Size(7));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            urls in 0_u64..400,
            at in 0_usize..80,
            with in proptest::collection::vec(any::<u8>(), 0..20),
            cut in 0_usize..2000,
        ) {
            let mut bytes = filled(OneIn::default(), urls).to_bytes();
            for (byte, with) in bytes.iter_mut().skip(at).zip(with) {
                *byte = with;
            }
            bytes.truncate(bytes.len().saturating_sub(cut.saturating_sub(1000)));
            if let Ok(mut filter) = SeenFilter::from_bytes(&bytes, OneIn::default()) {
                filter.insert(hash(7));
                prop_assert!(filter.contains(hash(7)));
            }
        }
    }
}
