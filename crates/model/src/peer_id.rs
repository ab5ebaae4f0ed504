//! A peer's identity: the hash of its public key. In a private network it is also its position on
//! the ring.

use crate::{InvalidKey, Key};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A peer's name, the hash of its public key. Peers are addressed by this, never by address. In the
/// open network a peer's position on the ring follows from its address instead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
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

    /// The hash itself, which is the peer's position in a private network.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn an_id_can_be_a_name_in_json_and_is_32_bytes_elsewhere() {
        let id = PeerId::of_public_key(b"a");
        let named = BTreeMap::from([(id, 7)]);
        let text = serde_json::to_string(&named).unwrap();
        assert_eq!(text, format!("{{\"{id}\":7}}"));
        assert_eq!(
            serde_json::from_str::<BTreeMap<PeerId, u8>>(&text).unwrap(),
            named
        );
        assert_eq!(postcard::to_stdvec(&id).unwrap(), id.key().as_bytes());
    }
}
