//! Readable text: names, titles and a pool of paragraphs that pages are cut from.
//!
//! The pool is made once per web; a page copies paragraphs out of it, which is why a page costs
//! microseconds.

use crate::draw::{Draw, Use};
use std::sync::LazyLock;

static ADJECTIVES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    include_str!("../../../assets/toyweb/adjectives.txt")
        .split_whitespace()
        .collect()
});
static NOUNS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    include_str!("../../../assets/toyweb/nouns.txt")
        .split_whitespace()
        .collect()
});
static TOPICS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    include_str!("../../../assets/toyweb/topics.txt")
        .split_whitespace()
        .collect()
});
static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    include_str!("../../../assets/toyweb/prose.txt")
        .split_whitespace()
        .collect()
});

/// Paragraphs in the pool: enough that two pages rarely look alike, few enough to stay in the
/// processor's cache.
const PARAGRAPHS: u64 = 512;

pub(crate) fn adjective(draw: &mut Draw) -> &'static str {
    draw.pick(&ADJECTIVES)
}

pub(crate) fn noun(draw: &mut Draw) -> &'static str {
    draw.pick(&NOUNS)
}

pub(crate) fn topic(draw: &mut Draw) -> &'static str {
    draw.pick(&TOPICS)
}

/// The pool of paragraphs of one web.
pub(crate) struct Prose(Vec<String>);

impl Prose {
    /// Writes the pool of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Prose(
            (0..PARAGRAPHS)
                .map(|n| paragraph(&mut Draw::new(seed, Use::Prose, n, 0)))
                .collect(),
        )
    }

    /// Some paragraph.
    pub(crate) fn paragraph(&self, draw: &mut Draw) -> &str {
        &self.0[draw.below(PARAGRAPHS) as usize]
    }
}

fn paragraph(draw: &mut Draw) -> String {
    let sentences = 3 + draw.below(6);
    (0..sentences)
        .map(|_| sentence(draw))
        .collect::<Vec<_>>()
        .join(" ")
}

fn sentence(draw: &mut Draw) -> String {
    let words = 6 + draw.below(14);
    let mut text = (0..words)
        .map(|_| draw.pick(&WORDS))
        .collect::<Vec<_>>()
        .join(" ");
    text[..1].make_ascii_uppercase();
    text.push('.');
    text
}
