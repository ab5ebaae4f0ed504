//! What is kept of a page's content, to compare the next visit with.

use crate::ContentHash;
use serde::{Deserialize, Serialize};

/// A fingerprint of the text that a reader sees. Two versions of a page with the same one differ in
/// their markup alone. It guards against nothing: a page that wants to seem unchanged may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct TextHash([u8; 4]);

/// The beginning of a page's content hash, and the fingerprint of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentMark {
    content: [u8; 8],
    text: TextHash,
}

impl TextHash {
    /// The fingerprint of a text, the same on every computer.
    pub fn of(text: &[u8]) -> Self {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let (words, rest) = text.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let mut hash = text.len() as u64;
        for word in words.iter().chain([&last]) {
            hash = (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        }
        hash ^= hash >> 32;
        let [a, b, c, d, ..] = hash.wrapping_mul(FACTOR).to_be_bytes();
        TextHash([a, b, c, d])
    }
}

impl ContentMark {
    /// The mark of a content with this text.
    pub fn new(content: &ContentHash, text: TextHash) -> Self {
        let bytes = content.as_bytes();
        let content = std::array::from_fn(|place| bytes[place]);
        ContentMark { content, text }
    }

    /// The mark of a content that has no text of its own: all of it counts.
    pub fn of(content: &ContentHash) -> Self {
        ContentMark::new(content, TextHash::of(content.as_bytes()))
    }

    /// Is this the mark of that content?
    pub fn is_of(&self, content: &ContentHash) -> bool {
        content.as_bytes().starts_with(&self.content)
    }

    /// Does a reader see the same in both?
    pub fn reads_like(&self, other: &ContentMark) -> bool {
        self.content == other.content || self.text == other.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_knows_its_content_and_its_text() {
        let (a, b) = (ContentHash::of_body(b"a"), ContentHash::of_body(b"b"));
        let (one, two) = (TextHash::of(b"one"), TextHash::of(b"two"));
        let mark = ContentMark::new(&a, one);
        assert!(mark.is_of(&a) && !mark.is_of(&b));
        assert!(mark.reads_like(&ContentMark::new(&b, one)));
        assert!(!mark.reads_like(&ContentMark::new(&b, two)));
        assert!(!ContentMark::of(&a).reads_like(&ContentMark::of(&b)));
        assert_eq!(postcard::to_stdvec(&mark).unwrap().len(), 12);
    }

    #[test]
    fn every_byte_of_a_text_counts() {
        let text = b"a text of some length, with words";
        let whole = TextHash::of(text);
        for place in 0..text.len() {
            let mut other = *text;
            other[place] ^= 1;
            assert_ne!(TextHash::of(&other), whole, "byte {place}");
            assert_ne!(TextHash::of(&text[..place]), whole);
        }
        assert_ne!(TextHash::of(b"a"), TextHash::of(b"a\0"));
    }
}
