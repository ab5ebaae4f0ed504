//! Any page: its links are bounded in number, canonical, and each there once.

#![no_main]

use apoidea_crawl::{extract, visible_text};
use apoidea_model::PageUrl;
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;

/// As the crawler bounds them.
const MAX_LINKS: usize = 2_000;

/// Types that are read as HTML, with and without an encoding.
const CONTENT_TYPES: [Option<&str>; 4] =
    [None, Some("text/html"), Some("text/html; charset=utf-16le"), Some("text/html; charset=shift_jis")];

fuzz_target!(|input: &[u8]| {
    let Some((choice, body)) = input.split_first() else { return };
    let content_type = CONTENT_TYPES[usize::from(choice % 4)];
    let page = PageUrl::parse("http://a.example/dir/page?x=1").expect("a URL");
    let extracted = extract(&page, content_type, body);
    assert!(extracted.links.len() <= MAX_LINKS);
    assert_eq!(extracted.links.iter().collect::<HashSet<_>>().len(), extracted.links.len());
    for link in &extracted.links {
        assert_eq!(PageUrl::parse(link.as_str()).as_ref(), Ok(link), "a link is canonical");
    }
    visible_text(content_type, body);
});
