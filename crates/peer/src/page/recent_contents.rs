//! Content that this peer was first to show a moment ago, before it is in the archive.

use crate::lock::lock;
use apoidea_model::ContentHash;
use std::{collections::HashSet, mem, sync::Mutex};

/// Content in one of the two generations: more than a peer processes in the time that the disk takes.
const GENERATION: usize = 4096;

/// The last few thousand content hashes, in two generations.
#[derive(Default)]
pub(crate) struct RecentContents(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashSet<ContentHash>,
    old: HashSet<ContentHash>,
}

impl RecentContents {
    /// Remembers content.
    pub(crate) fn insert(&self, content: &ContentHash) {
        let mut all = lock(&self.0);
        if all.young.len() >= GENERATION {
            all.old = mem::take(&mut all.young);
        }
        all.young.insert(*content);
    }

    /// Was it shown here lately?
    pub(crate) fn contains(&self, content: &ContentHash) -> bool {
        let all = lock(&self.0);
        all.young.contains(content) || all.old.contains(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(number: usize) -> ContentHash {
        ContentHash::of_body(format!("page {number}").as_bytes())
    }

    #[test]
    fn the_last_few_thousand_are_remembered_and_no_more() {
        let recent = RecentContents::default();
        (0..3 * GENERATION).for_each(|number| recent.insert(&content(number)));
        assert!((2 * GENERATION..3 * GENERATION).all(|number| recent.contains(&content(number))));
        assert!(!(0..GENERATION).any(|number| recent.contains(&content(number))));
    }
}
