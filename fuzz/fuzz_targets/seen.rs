//! Sets of seen URLs that came from a stranger: refused, or unpacked into no more than their bytes
//! can stand for.

#![no_main]

use apoidea_crawl::{OneIn, ReducedSeen, SeenFilter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(set) = postcard::from_bytes::<ReducedSeen>(bytes) else { return };
    let Ok(stand_ins) = set.unpack() else { return };
    assert!(stand_ins.len() * 21 <= bytes.len() * 8, "each takes 21 bits at least");
    let filter = SeenFilter::build(OneIn::default(), stand_ins.len() as u64, stand_ins.iter().copied());
    assert!(stand_ins.iter().all(|&hash| filter.contains(hash)));
});
