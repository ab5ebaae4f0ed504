//! The fingerprints of a domain on their way to another peer: 3.3 bytes each instead of eight.
//!
//! A sorted set of numbers below a range can be written as the differences between neighbours, and
//! those take few bits if the range is small (Golomb–Rice coding, as in the block filters of BIP
//! 158). So each fingerprint is reduced to a range of 33 million for each URL: one URL in as many
//! is then mistaken for another. The receiver cannot know the fingerprints themselves; it logs a
//! stand-in for each ([`Reduction::stand_in`]), and asks for the stand-in of a URL besides its
//! fingerprint ([`Reductions`]).

use apoidea_model::UrlHash;
use serde::{Deserialize, Serialize};

/// The reduction of fingerprints on one journey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reduction {
    range: u64,
}

/// All journeys that parts of a domain's log have made. A log that was merged from several replicas
/// has several chains.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reductions(Vec<Vec<Reduction>>);

/// A set of reduced fingerprints in its compact form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReducedSeen {
    count: u32,
    reduction: Reduction,
    bits: Vec<u8>,
}

/// The bytes are not a set that a peer would have made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSeen {
    /// It would take every URL for seen, or has more than a domain may have.
    #[error("a set of {count} fingerprints in a range of {range} is not one that peers make")]
    Range {
        /// Claimed.
        count: u32,
        /// Claimed.
        range: u64,
    },
    /// The bits end before the set does.
    #[error("the set is cut off")]
    Short,
}

/// One URL in 2²⁵ is mistaken for a seen one on each journey.
const RATE_BITS: u32 = 25;
/// Most fingerprints of a domain, which bounds what a stranger makes us allocate.
const MAX_COUNT: u32 = 1 << 24;
/// Longest chain: each link costs a question to the filter. After more journeys the fingerprints
/// are sent as they are.
const MAX_CHAIN: usize = 8;
/// Most chains, one for each merger.
const MAX_CHAINS: usize = 16;

impl Reduction {
    fn reduce(self, hash: UrlHash) -> u64 {
        ((u128::from(hash.0) * u128::from(self.range)) >> 64) as u64
    }

    /// The stand-in that is logged for a reduced fingerprint: spread over all 64 bits (the
    /// finaliser of SplitMix64).
    fn spread(self, reduced: u64) -> UrlHash {
        let mut z = reduced ^ self.range.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        UrlHash(z ^ (z >> 31))
    }

    /// The stand-in that a receiver logs for the fingerprint.
    pub fn stand_in(self, hash: UrlHash) -> UrlHash {
        self.spread(self.reduce(hash))
    }
}

impl Reductions {
    /// Every form under which a log may know a URL: its fingerprint first, then its stand-ins.
    pub fn forms(&self, hash: UrlHash) -> impl Iterator<Item = UrlHash> {
        let stand_ins = self.0.iter().flat_map(move |chain| {
            let starts = 0..chain.len();
            starts.map(move |start| {
                chain[start..]
                    .iter()
                    .fold(hash, |form, step| step.stand_in(form))
            })
        });
        std::iter::once(hash).chain(stand_ins)
    }

    /// The number of forms.
    pub fn form_count(&self) -> usize {
        1 + self.0.iter().map(Vec::len).sum::<usize>()
    }

    /// Whether the log may be reduced once more.
    pub fn has_room(&self) -> bool {
        self.0.iter().all(|chain| chain.len() < MAX_CHAIN)
    }

    /// Of the log after one more journey.
    pub fn after(mut self, reduction: Reduction) -> Self {
        self.0.iter_mut().for_each(|chain| chain.push(reduction));
        if self.0.is_empty() {
            self.0.push(vec![reduction]);
        }
        self
    }

    /// Of a log that is made of two; `None` if it would have to be asked in too many ways.
    pub fn merged(&self, other: &Self) -> Option<Self> {
        let mut all = self.clone();
        all.0.extend(
            other
                .0
                .iter()
                .filter(|chain| !self.0.contains(chain))
                .cloned(),
        );
        (all.0.len() <= MAX_CHAINS).then_some(all)
    }

    /// Whether an honest peer could have made this, and not a stranger who keeps us busy.
    pub fn is_sound(&self) -> bool {
        self.0.len() <= MAX_CHAINS && self.0.iter().all(|chain| chain.len() <= MAX_CHAIN)
    }
}

impl ReducedSeen {
    /// Reduces and packs fingerprints; those that come twice count once. `None` if there are too
    /// many.
    pub fn pack(hashes: impl IntoIterator<Item = UrlHash>) -> Option<Self> {
        let mut hashes: Vec<u64> = hashes.into_iter().map(|hash| hash.0).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let count = u32::try_from(hashes.len())
            .ok()
            .filter(|&count| count <= MAX_COUNT)?;
        let reduction = Reduction {
            range: u64::from(count.max(1)) << RATE_BITS,
        };
        let mut bits = Bits::default();
        let mut last = 0;
        for hash in hashes {
            let value = reduction.reduce(UrlHash(hash));
            bits.push(value - last);
            last = value;
        }
        Some(ReducedSeen {
            count,
            reduction,
            bits: bits.bytes,
        })
    }

    /// The reduction of these fingerprints.
    pub fn reduction(&self) -> Reduction {
        self.reduction
    }

    /// Bytes on the wire.
    pub fn bytes(&self) -> usize {
        self.bits.len()
    }

    /// The stand-ins to be logged, checked as a stranger's.
    pub fn unpack(&self) -> Result<Vec<UrlHash>, InvalidSeen> {
        let ReducedSeen {
            count,
            reduction,
            bits,
        } = self;
        let range = reduction.range;
        if *count > MAX_COUNT || range != u64::from((*count).max(1)) << RATE_BITS {
            return Err(InvalidSeen::Range {
                count: *count,
                range,
            });
        }
        // Every number takes more bits than this, so the count cannot make us allocate more than
        // came.
        if bits.len() * 8 < *count as usize * (RATE_BITS as usize + 1) {
            return Err(InvalidSeen::Short);
        }
        let mut reader = BitReader { bytes: bits, at: 0 };
        let mut last = 0u64;
        let mut stand_ins = Vec::with_capacity(*count as usize);
        for _ in 0..*count {
            last = last.saturating_add(reader.read().ok_or(InvalidSeen::Short)?);
            if last >= range {
                return Err(InvalidSeen::Range {
                    count: *count,
                    range,
                });
            }
            stand_ins.push(reduction.spread(last));
        }
        Ok(stand_ins)
    }
}

/// Rice code: the high part in unary, then [`RATE_BITS`] low bits.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: usize,
}

impl Bits {
    fn push(&mut self, number: u64) {
        for _ in 0..number >> RATE_BITS {
            self.bit(1);
        }
        self.bit(0);
        for shift in (0..RATE_BITS).rev() {
            self.bit((number >> shift & 1) as u8);
        }
    }

    fn bit(&mut self, bit: u8) {
        if self.used.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= bit << (7 - self.used % 8);
        }
        self.used += 1;
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    fn read(&mut self) -> Option<u64> {
        let mut high = 0u64;
        while self.bit()? == 1 {
            high += 1;
        }
        let mut number = high;
        for _ in 0..RATE_BITS {
            number = number << 1 | u64::from(self.bit()?);
        }
        Some(number)
    }

    fn bit(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hash(number: u64) -> UrlHash {
        let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        UrlHash(z ^ (z >> 27))
    }

    #[test]
    fn a_seen_url_takes_less_than_three_and_a_half_bytes_in_domains_of_every_size() {
        for count in [10, 50, 1000, 100_000] {
            let packed = ReducedSeen::pack((0..count).map(hash)).unwrap();
            let per_url = packed.bytes() as f64 / count as f64;
            assert!(per_url < 3.5, "{per_url} bytes for each of {count}");
        }
    }

    #[test]
    fn everything_seen_is_known_after_several_journeys_and_next_to_nothing_else() {
        let mut log: Vec<UrlHash> = (0..500).map(hash).collect();
        let mut reductions = Reductions::default();
        for journey in 1..=3 {
            let packed = ReducedSeen::pack(log.iter().copied()).unwrap();
            reductions = reductions.after(packed.reduction());
            log = packed.unpack().unwrap();
            log.extend((journey * 500..(journey + 1) * 500).map(hash));
        }
        log.sort_unstable_by_key(|hash| hash.0);
        let knows = |url: u64| {
            reductions
                .forms(hash(url))
                .any(|form| log.binary_search_by_key(&form.0, |hash| hash.0).is_ok())
        };
        assert!((0..2000).all(knows));
        assert!((2000..102_000).filter(|&url| knows(url)).count() <= 3);
        assert_eq!(reductions.form_count(), 4);
    }

    #[test]
    fn a_merged_log_is_asked_in_the_ways_of_both() {
        let (a, b): (Vec<_>, Vec<_>) =
            ((0..100).map(hash).collect(), (100..200).map(hash).collect());
        let (one, two) = (
            ReducedSeen::pack(a).unwrap(),
            ReducedSeen::pack(b.into_iter().chain([hash(7)])).unwrap(),
        );
        let first = Reductions::default().after(one.reduction());
        let both = first
            .merged(&Reductions::default().after(two.reduction()))
            .unwrap();
        let log: Vec<UrlHash> = [one.unpack().unwrap(), two.unpack().unwrap()].concat();
        assert!((0..200).all(|url| both.forms(hash(url)).any(|form| log.contains(&form))));
        assert_eq!(first.merged(&first), Some(first.clone()));
    }

    #[test]
    fn sets_that_would_silence_a_domain_are_refused() {
        let good = ReducedSeen::pack((0..100).map(hash)).unwrap();
        assert_eq!(good.unpack().unwrap().len(), 100);
        let narrow = ReducedSeen {
            reduction: Reduction { range: 100 },
            ..good.clone()
        };
        assert!(matches!(narrow.unpack(), Err(InvalidSeen::Range { .. })));
        let huge = ReducedSeen {
            count: u32::MAX,
            ..good.clone()
        };
        assert!(matches!(huge.unpack(), Err(InvalidSeen::Range { .. })));
        let short = ReducedSeen {
            bits: good.bits[..good.bits.len() / 2].to_vec(),
            ..good.clone()
        };
        assert_eq!(short.unpack(), Err(InvalidSeen::Short));
        let ones = ReducedSeen {
            bits: vec![0xff; good.bits.len()],
            ..good
        };
        assert!(ones.unpack().is_err());
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(numbers in proptest::collection::vec(any::<u64>(), 0..300)) {
            let packed = ReducedSeen::pack(numbers.iter().copied().map(UrlHash)).unwrap();
            let stand_ins = packed.unpack().unwrap();
            for number in numbers {
                prop_assert!(stand_ins.contains(&packed.reduction().stand_in(UrlHash(number))));
            }
        }
    }
}
