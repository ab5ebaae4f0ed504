//! Seen-filters that came from a stranger: refused, or usable and written as they were read.

#![no_main]

use apoidea_crawl::{OneIn, SeenFilter};
use apoidea_model::UrlHash;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut filter) = SeenFilter::from_bytes(bytes, OneIn::new(100_000)) else { return };
    assert_eq!(filter.to_bytes(), bytes);
    let hash = UrlHash(bytes.iter().fold(0, |sum, byte| u64::rotate_left(sum, 7) ^ u64::from(*byte)));
    filter.insert(hash);
    assert!(filter.contains(hash));
});
