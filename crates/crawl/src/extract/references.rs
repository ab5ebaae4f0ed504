//! The references found on a page, each once, until its base is known and they can be resolved.
//!
//! Most links of a page are repeated and many differ in the fragment only, so they are compared
//! before the costly step of resolving them.

use super::{MAX_LINKS, base::Base};
use apoidea_model::PageUrl;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use memchr::memchr;
use std::borrow::Cow;

/// Most distinct references that are remembered; more than links, for some turn out to be `mailto:`
/// or the like.
const MAX_REFERENCES: usize = 2 * MAX_LINKS;

/// References in order of first occurrence.
#[derive(Default)]
pub(super) struct References<'a> {
    /// A quick hash: an attacker who finds texts that collide gains little, since there are few.
    distinct: IndexSet<Cow<'a, str>, RandomState>,
}

impl<'a> References<'a> {
    /// Adds a reference.
    pub(super) fn add(&mut self, reference: Cow<'a, str>) {
        let reference = without_fragment(reference);
        if reference.len() <= PageUrl::MAX_BYTES && self.distinct.len() < MAX_REFERENCES {
            self.distinct.insert(reference);
        }
    }

    /// The pages they lead to.
    pub(super) fn resolve(&self, base: &Base) -> Vec<PageUrl> {
        let room = self.distinct.len().min(MAX_LINKS);
        let mut links = IndexSet::with_capacity_and_hasher(room, RandomState::default());
        for link in self
            .distinct
            .iter()
            .filter_map(|reference| base.resolve(reference))
        {
            links.insert(link);
            if links.len() == MAX_LINKS {
                break;
            }
        }
        links.into_iter().collect()
    }
}

/// The part that names a page. White space before the `#` counts only as long as something follows
/// it.
fn without_fragment(reference: Cow<'_, str>) -> Cow<'_, str> {
    let Some(end) = memchr(b'#', reference.as_bytes()) else {
        return reference;
    };
    if reference[..end].ends_with(|c: char| c <= ' ') {
        return reference;
    }
    match reference {
        Cow::Borrowed(reference) => Cow::Borrowed(&reference[..end]),
        Cow::Owned(mut reference) => {
            reference.truncate(end);
            Cow::Owned(reference)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_the_fragment_out_never_changes_the_page() {
        let page = PageUrl::parse("https://example.com/a/b?c").unwrap();
        let pieces = [
            "",
            " ",
            "#",
            "a",
            "/",
            "?",
            "\t",
            "//h.example",
            "http:",
            "\\",
            "é",
            "%2e",
            "..",
            ":",
            "mailto:",
        ];
        for (a, b, c, d) in sequences(&pieces) {
            let reference = [a, b, c, d].concat();
            let base = Base::new(&page, None);
            let stripped = base.resolve(&without_fragment(Cow::Borrowed(&reference)));
            assert_eq!(stripped, base.resolve(&reference), "{reference:?}");
        }
    }

    /// All sequences of four pieces.
    fn sequences<'p>(
        pieces: &'p [&'p str],
    ) -> impl Iterator<Item = (&'p str, &'p str, &'p str, &'p str)> {
        let count = pieces.len();
        let piece = move |number: usize, place: u32| pieces[number / count.pow(place) % count];
        (0..count.pow(4)).map(move |n| (piece(n, 3), piece(n, 2), piece(n, 1), piece(n, 0)))
    }
}
