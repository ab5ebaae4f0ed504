//! Which URLs of one domain were seen (Apoidea §2.2: one filter per domain, so that a domain moves as one small blob).
//!
//! A small domain is remembered exactly; a larger one in a Bloom filter that doubles as the domain grows. A Bloom
//! filter cannot grow by itself: its owner rebuilds it from the domain's log of fingerprints, which is the durable
//! truth and somebody else's. The same fingerprints give the same bytes on every peer and every machine.

use apoidea_model::UrlHash;
use bloomfilter::Bloom;
use std::hash::{Hash, Hasher};

/// Remembers the URLs of one domain; may mistake a new URL for a seen one, never the other way round.
#[derive(Debug, Clone)]
pub struct SeenFilter {
    rate: OneIn,
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

    /// Bits per URL: 1.44 · log₂ of the rate, and a tenth more, because the hash functions are not quite independent
    /// and a full filter shall not be quite half full.
    fn bits_per_url(self) -> f64 {
        f64::from(self.0).ln() / std::f64::consts::LN_2.powi(2) * 1.1
    }
}

impl SeenFilter {
    /// Most URLs of a domain that keep the rate; also a bound on what a stranger can make us allocate (55 MB).
    pub const CAPACITY_MAX: u64 = CAPACITY_MIN << 16;

    /// Knows nothing.
    pub fn new(rate: OneIn) -> Self {
        SeenFilter { rate, memory: Memory::Exact(Vec::new()) }
    }

    /// Remembers the fingerprints of a domain's log, of which there are about `expected`, with room for as many again.
    pub fn build(rate: OneIn, expected: u64, hashes: impl IntoIterator<Item = UrlHash>) -> Self {
        let mut filter = SeenFilter::new(rate);
        if expected > EXACT_MAX as u64 {
            filter.memory = Memory::Bloom(Box::new(Counted::new(rate, capacity_for(expected))));
        }
        for hash in hashes {
            filter.insert(hash);
        }
        filter
    }

    /// Remembers a URL, and says whether it was known.
    pub fn insert(&mut self, hash: UrlHash) -> Sight {
        match &mut self.memory {
            Memory::Exact(known) => match known.binary_search(&hash.0) {
                Ok(_) => Sight::Seen,
                Err(at) if known.len() < EXACT_MAX => {
                    known.insert(at, hash.0);
                    Sight::New
                }
                Err(_) => {
                    let mut counted = Counted::new(self.rate, capacity_for(EXACT_MAX as u64));
                    known.iter().for_each(|&hash| _ = counted.insert(UrlHash(hash)));
                    let sight = counted.insert(hash);
                    self.memory = Memory::Bloom(Box::new(counted));
                    sight
                }
            },
            Memory::Bloom(counted) => counted.insert(hash),
        }
    }

    /// Is the URL known?
    pub fn contains(&self, hash: UrlHash) -> bool {
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
        Ok(SeenFilter { rate, memory })
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
    (capacity as f64 * rate.bits_per_url() / 8.0).ceil() as usize
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
