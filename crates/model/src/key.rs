//! A position on the 256-bit ring (Apoidea §2.1: peers and keys hash onto one m-bit ring).
//!
//! Arithmetic is modulo 2²⁵⁶ and big-endian, so the byte order of two keys is their order on the
//! ring. Arcs run clockwise and are open at the start and closed at the end, as in Chord: `(from,
//! to]`. People read and write a key as hexadecimal digits; on the wire and on disk it is its 32
//! bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use sha2::{Digest, Sha256};
use std::{fmt, str::FromStr};

/// A position on the ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

/// The text is not the 64 hexadecimal digits of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a key is 64 hexadecimal digits, not {0:?}")]
pub struct InvalidKey(String);

impl Key {
    /// Bits of a position.
    pub const BITS: usize = 256;

    /// The key with exactly these bytes, big-endian.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Key(bytes)
    }

    /// The SHA-256 of some bytes: where a domain name, a page body or a public key lies on the
    /// ring.
    pub fn hash(bytes: impl AsRef<[u8]>) -> Self {
        Key(Sha256::digest(bytes.as_ref()).into())
    }

    /// Big-endian bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The position 2^`exponent` further clockwise, where finger number `exponent` begins.
    pub fn plus_power_of_two(self, exponent: usize) -> Self {
        assert!(
            exponent < Self::BITS,
            "a finger's exponent is below {}",
            Self::BITS
        );
        let mut addend = [0; 32];
        addend[31 - exponent / 8] = 1 << (exponent % 8);
        self.wrapping_add(Key(addend))
    }

    /// Sum modulo 2²⁵⁶.
    pub fn wrapping_add(self, other: Self) -> Self {
        let mut out = [0; 32];
        let mut carry = 0u16;
        for i in (0..32).rev() {
            let sum = u16::from(self.0[i]) + u16::from(other.0[i]) + carry;
            out[i] = sum as u8;
            carry = sum >> 8;
        }
        Key(out)
    }

    /// The distance clockwise from here to `to`, as a key-sized number.
    pub fn distance_to(self, to: Self) -> Self {
        let mut out = [0; 32];
        let mut borrow = 0i16;
        for i in (0..32).rev() {
            let difference = i16::from(to.0[i]) - i16::from(self.0[i]) - borrow;
            out[i] = difference as u8;
            borrow = i16::from(difference < 0);
        }
        Key(out)
    }

    /// Whether this key is in the arc `(from, to]`. The arc from a key to itself is the whole ring.
    pub fn in_arc(self, from: Self, to: Self) -> bool {
        if from < to {
            from < self && self <= to
        } else {
            from < self || self <= to
        }
    }

    /// Whether this key is strictly between `from` and `to`, clockwise. Between a key and itself
    /// lies everything else.
    pub fn between(self, from: Self, to: Self) -> bool {
        self != to && self != from && self.in_arc(from, to)
    }

    /// This number as a share of the whole ring, 0 to 1; meant for distances.
    pub fn fraction(self) -> f64 {
        let high = u64::from_be_bytes([
            self.0[0], self.0[1], self.0[2], self.0[3], self.0[4], self.0[5], self.0[6], self.0[7],
        ]);
        high as f64 / 2f64.powi(64)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let invalid = || InvalidKey(text.chars().take(80).collect());
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| invalid())?;
        }
        Ok(Key(bytes))
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?
                .parse()
                .map_err(D::Error::custom)
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Key)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(low: u8) -> Key {
        let mut bytes = [0; 32];
        bytes[31] = low;
        Key(bytes)
    }

    #[test]
    fn arcs_wrap_around_zero() {
        assert!(key(5).in_arc(key(250), key(10)));
        assert!(key(10).in_arc(key(250), key(10)));
        assert!(!key(250).in_arc(key(250), key(10)));
        assert!(!key(11).in_arc(key(250), key(10)));
        assert!(
            key(7).in_arc(key(3), key(3)),
            "a ring of one owns everything"
        );
        assert!(key(3).in_arc(key(3), key(3)));
        assert!(!key(3).between(key(3), key(3)));
    }

    #[test]
    fn distance_is_the_inverse_of_addition() {
        let (a, b) = (Key::hash("a"), Key::hash("b"));
        assert_eq!(a.wrapping_add(a.distance_to(b)), b);
        assert_eq!(key(1).distance_to(key(0)).to_string(), "f".repeat(64));
    }

    #[test]
    fn fingers_start_at_powers_of_two() {
        assert_eq!(key(0).plus_power_of_two(3), key(8));
        assert_eq!(key(0).plus_power_of_two(255).fraction(), 0.5);
        assert_eq!(key(0).plus_power_of_two(255).plus_power_of_two(255), key(0));
    }

    #[test]
    fn text_form_round_trips_and_bad_text_is_refused() {
        let a = Key::hash("a");
        assert_eq!(a.to_string().parse(), Ok(a));
        assert!("12".parse::<Key>().is_err());
        assert!("é".repeat(32).parse::<Key>().is_err());
    }

    #[test]
    fn people_see_digits_and_machines_bytes() {
        let a = Key::hash("a");
        let text = serde_json::to_string(&a).unwrap();
        assert_eq!(text, format!("\"{a}\""));
        assert_eq!(serde_json::from_str::<Key>(&text).unwrap(), a);
        let wrong = serde_json::from_str::<Key>("\"abc\"")
            .unwrap_err()
            .to_string();
        assert!(wrong.contains("64 hexadecimal digits"), "{wrong}");
        let bytes = postcard::to_stdvec(&a).unwrap();
        assert_eq!(bytes, a.as_bytes());
        assert_eq!(postcard::from_bytes::<Key>(&bytes).unwrap(), a);
    }
}
