//! What a page says, as a hash: two pages with the same [`ContentHash`] are copies of each other.

use crate::Key;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// SHA-256 of a page's normalised body (Apoidea §2.2, Seen-Content).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes a body without its byte-order mark and surrounding white space and with every line end as `\n`, the
    /// differences that servers and editors introduce without changing what a page says.
    pub fn of_body(body: &[u8]) -> Self {
        if Self::is_verbatim(body) {
            return ContentHash(Sha256::digest(body).into());
        }
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii();
        let mut hasher = Sha256::new();
        let mut lines = body.split_inclusive(|&b| b == b'\r').peekable();
        while let Some(line) = lines.next() {
            match line.strip_suffix(b"\r") {
                Some(line) => {
                    hasher.update(line);
                    let line_feed_follows = lines.peek().is_some_and(|next| next.starts_with(b"\n"));
                    if !line_feed_follows {
                        hasher.update(b"\n");
                    }
                }
                None => hasher.update(line),
            }
        }
        ContentHash(hasher.finalize().into())
    }

    /// Would [`Self::of_body`] hash these bytes exactly as they are? Then the hash is also the body's SHA-256.
    pub fn is_verbatim(body: &[u8]) -> bool {
        body.trim_ascii().len() == body.len() && !body.starts_with(b"\xef\xbb\xbf") && !body.contains(&b'\r')
    }

    /// The hash with exactly these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        ContentHash(bytes)
    }

    /// The hash's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Where the fact "this content is known" lives on the ring.
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
    fn line_ends_byte_order_mark_and_surrounding_space_do_not_matter() {
        let plain = ContentHash::of_body(b"a\nb");
        for same in [&b"a\r\nb"[..], b"a\rb", b"\xef\xbb\xbfa\nb\n", b"  a\nb\r\n\r\n"] {
            assert_eq!(ContentHash::of_body(same), plain, "{same:?}");
            assert!(!ContentHash::is_verbatim(same));
        }
        assert!(ContentHash::is_verbatim(b"a\nb"));
        assert_eq!(plain.as_bytes()[..], Sha256::digest(b"a\nb")[..]);
    }

    #[test]
    fn everything_else_matters() {
        let plain = ContentHash::of_body(b"a\nb");
        for other in [&b"a b"[..], b"a\n\nb", b"a\r\r\nb", b"A\nb", b""] {
            assert_ne!(ContentHash::of_body(other), plain, "{other:?}");
        }
    }
}
