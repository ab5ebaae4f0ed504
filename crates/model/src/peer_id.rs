//! Who a peer is: the hash of its public key, and so its position on the ring.

use crate::{InvalidKey, Key};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A peer's name and ring position, the hash of its public key. Peers are addressed by this, never by address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PeerId(Key);

impl PeerId {
    /// The id that belongs to a public key.
    pub fn of_public_key(key: &[u8]) -> Self {
        PeerId(Key::hash(key))
    }

    /// The peer that would sit exactly at `key`.
    pub const fn at(key: Key) -> Self {
        PeerId(key)
    }

    /// The peer's position on the ring.
    pub const fn key(self) -> Key {
        self.0
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for PeerId {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        text.parse().map(PeerId)
    }
}
