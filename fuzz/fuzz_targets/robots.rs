//! Any robots.txt: read in bounded memory, and `/robots.txt` itself stays allowed.

#![no_main]

use apoidea_crawl::Robots;
use libfuzzer_sys::fuzz_target;

/// Far above what a file of this length can say.
const MOST_MEMORY_PER_BYTE: usize = 512;

fuzz_target!(|file: &[u8]| {
    let robots = Robots::parse(file, "Apoidea/0.1 (+https://example.org)");
    assert!(robots.decide("/robots.txt").allowed);
    let (start, middle) =
        (&file[..file.len().min(200)], &file[file.len() / 2..file.len().min(file.len() / 2 + 200)]);
    for part in [start, middle] {
        let path = format!("/{}", String::from_utf8_lossy(part));
        let verdict = robots.decide(&path);
        assert!(verdict.allowed || verdict.rule.is_some());
    }
    assert!(robots.crawl_delay().is_none_or(|delay| delay <= Robots::MAX_CRAWL_DELAY));
    assert!(robots.memory_bytes() <= 4096 + MOST_MEMORY_PER_BYTE * file.len());
});
