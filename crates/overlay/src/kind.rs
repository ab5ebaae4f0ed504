//! The kind of a request, one byte on the wire.
//!
//! The overlay keeps the first few numbers to itself; all others belong to the crate above, which
//! gives them meaning.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The first byte of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Kind(u8);

impl Kind {
    /// The first exchange on every connection.
    pub const HELLO: Kind = Kind(0);
    /// Asks whether the peer is there. The transport itself answers, with an empty body.
    pub const PING: Kind = Kind(1);
    /// A message of the ring.
    pub const RING: Kind = Kind(2);
    /// Asks to be dialled, or to dial another peer, to find out whether a peer can be reached.
    pub const DIAL_BACK: Kind = Kind(3);
    /// The first number that the crate above may use.
    pub const FIRST_FREE: u8 = 16;
    /// Number of kinds that one byte can tell apart.
    pub const COUNT: usize = 256;

    /// The crate above's kind number `index`, counted from zero; there are 240.
    ///
    /// # Panics
    /// At compile time when used for a constant, if `index` is 240 or more.
    pub const fn free(index: u8) -> Kind {
        assert!(
            index < u8::MAX - Self::FIRST_FREE + 1,
            "there are 240 free kinds"
        );
        Kind(Self::FIRST_FREE + index)
    }

    /// The kind with this number on the wire.
    pub const fn from_byte(byte: u8) -> Kind {
        Kind(byte)
    }

    /// The number on the wire.
    pub const fn as_byte(self) -> u8 {
        self.0
    }

    /// Whether the overlay answers this kind itself.
    pub const fn is_reserved(self) -> bool {
        self.0 < Self::FIRST_FREE
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Kind::HELLO => f.write_str("hello"),
            Kind::PING => f.write_str("ping"),
            Kind::RING => f.write_str("ring"),
            Kind::DIAL_BACK => f.write_str("dial-back"),
            Kind(byte) => write!(f, "{byte}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_kinds_never_collide_with_the_overlay_s_own() {
        for index in 0..240 {
            let kind = Kind::free(index);
            assert!(!kind.is_reserved());
            assert_eq!(Kind::from_byte(kind.as_byte()), kind);
        }
        assert_eq!(Kind::free(239).as_byte(), 255);
        assert!(
            [Kind::HELLO, Kind::PING, Kind::RING, Kind::DIAL_BACK]
                .iter()
                .all(|kind| kind.is_reserved())
        );
    }
}
