//! The content of a page as a hash: two pages with the same [`ContentHash`] say the same.

use crate::Key;
use memchr::memchr;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// SHA-256 of a page's normalised body (Apoidea §2.2, Seen-Content).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes a body without its byte-order mark and surrounding white space and with every line
    /// end as `\n`, the differences that servers and editors introduce without changing what a page
    /// says.
    pub fn of_body(body: &[u8]) -> Self {
        Self::with_digest(body).0
    }

    /// The same, and the body's own SHA-256 where it is a by-product: for all but pages with a
    /// byte-order mark, white space at the beginning, or line ends of another kind.
    pub fn with_digest(body: &[u8]) -> (Self, Option<[u8; 32]>) {
        let trimmed = body
            .strip_prefix(BYTE_ORDER_MARK)
            .unwrap_or(body)
            .trim_ascii();
        if memchr(b'\r', trimmed).is_some() {
            return (Self::of_lines(Sha256::new(), trimmed), None);
        }
        let hasher = Sha256::new_with_prefix(trimmed);
        let content: [u8; 32] = hasher.clone().finalize().into();
        let digest = match body.strip_prefix(trimmed) {
            Some(b"") => Some(content),
            Some(end) => Some(hasher.chain_update(end).finalize().into()),
            None => None,
        };
        (ContentHash(content), digest)
    }

    /// Hashes a key and then a body, the body as [`ContentHash::of_body`] does: equal for all bodies
    /// with the same content, and unknown to a peer that has none of them.
    pub fn keyed(key: &[u8], body: &[u8]) -> Self {
        let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
        Self::of_lines(Sha256::new_with_prefix(key), body.trim_ascii())
    }

    /// Hashes with every line end as `\n`.
    fn of_lines(mut hasher: Sha256, body: &[u8]) -> Self {
        let mut lines = body.split_inclusive(|&b| b == b'\r').peekable();
        while let Some(line) = lines.next() {
            match line.strip_suffix(b"\r") {
                Some(line) => {
                    hasher.update(line);
                    let line_feed_follows =
                        lines.peek().is_some_and(|next| next.starts_with(b"\n"));
                    if !line_feed_follows {
                        hasher.update(b"\n");
                    }
                }
                None => hasher.update(line),
            }
        }
        ContentHash(hasher.finalize().into())
    }

    /// The hash with exactly these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        ContentHash(bytes)
    }

    /// The hash's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The place on the ring of the fact "this content is known".
    pub const fn key(self) -> Key {
        Key::from_bytes(self.0)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.key(), f)
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.key(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyed_hash_is_the_same_for_the_same_content_only() {
        let keyed = |key: &[u8], body: &[u8]| ContentHash::keyed(key, body);
        let plain = keyed(b"key", b"one\ntwo");
        for same in [
            &b" one\r\ntwo\n"[..],
            b"\xef\xbb\xbfone\rtwo",
            b"one\ntwo\n\n",
        ] {
            assert_eq!(keyed(b"key", same), plain);
        }
        assert_ne!(keyed(b"key", b"one two"), plain);
        assert_ne!(keyed(b"other", b"one\ntwo"), plain);
        assert_ne!(ContentHash::of_body(b"one\ntwo"), plain);
    }

    #[test]
    fn line_ends_byte_order_mark_and_surrounding_space_do_not_matter() {
        let plain = ContentHash::of_body(b"a\nb");
        for same in [
            &b"a\r\nb"[..],
            b"a\rb",
            b"\xef\xbb\xbfa\nb\n",
            b"  a\nb\r\n\r\n",
        ] {
            assert_eq!(ContentHash::of_body(same), plain, "{same:?}");
        }
        assert_eq!(plain.as_bytes()[..], Sha256::digest(b"a\nb")[..]);
    }

    #[test]
    fn the_digest_of_the_body_is_right_wherever_it_is_given() {
        for (body, is_given) in [
            (&b"a\nb"[..], true),
            (b"a\nb\n\n ", true),
            (b"", true),
            (b"\n", true),
            (b" a", false),
            (b"\xef\xbb\xbfa", false),
            (b"a\r\nb", false),
        ] {
            let (content, digest) = ContentHash::with_digest(body);
            assert_eq!(content, ContentHash::of_body(body));
            assert_eq!(digest.is_some(), is_given, "{body:?}");
            assert!(
                digest.is_none_or(|digest| digest[..] == Sha256::digest(body)[..]),
                "{body:?}"
            );
        }
    }

    #[test]
    fn everything_else_matters() {
        let plain = ContentHash::of_body(b"a\nb");
        for other in [&b"a b"[..], b"a\n\nb", b"a\r\r\nb", b"A\nb", b""] {
            assert_ne!(ContentHash::of_body(other), plain, "{other:?}");
        }
    }
}
