//! The first exchange on every connection: network, version, capabilities, and the route on which
//! each side sees the other.

use apoidea_chord::{Effort, Toil};
use apoidea_model::{PeerId, Route};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Names a network; peers of different networks refuse each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NetworkId(Box<str>);

/// The text cannot name a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a network's name is 1 to {max} printable ASCII characters", max = NetworkId::MAX_CHARS)]
pub struct InvalidNetworkId;

impl NetworkId {
    /// Longest name.
    pub const MAX_CHARS: usize = 64;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for NetworkId {
    /// The open network that all volunteers share.
    fn default() -> Self {
        NetworkId("apoidea".into())
    }
}

impl FromStr for NetworkId {
    type Err = InvalidNetworkId;

    fn from_str(text: &str) -> Result<Self, InvalidNetworkId> {
        let is_name = (1..=Self::MAX_CHARS).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic());
        if is_name {
            Ok(NetworkId(text.into()))
        } else {
            Err(InvalidNetworkId)
        }
    }
}

impl TryFrom<String> for NetworkId {
    type Error = InvalidNetworkId;

    fn try_from(text: String) -> Result<Self, InvalidNetworkId> {
        text.parse()
    }
}

impl From<NetworkId> for String {
    fn from(network: NetworkId) -> String {
        network.0.into()
    }
}

impl fmt::Display for NetworkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The services that a peer offers, one bit each. Bits that this version does not know are kept and
/// ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ts_rs::TS)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Takes a position on the ring.
    pub const MEMBER: Capabilities = Capabilities(1);
    /// Forwards streams for peers that cannot be reached.
    pub const RELAY: Capabilities = Capabilities(2);

    /// Both sets together.
    pub const fn with(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }

    /// Whether all of the other's bits are in this set.
    pub const fn contains(self, other: Capabilities) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One side's introduction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The network this peer belongs to.
    pub network: NetworkId,
    /// Drawn anew at every start: a peer that crashed and came back is told from one that dials
    /// twice.
    pub incarnation: u64,
    /// The route to the other side, seen from here.
    pub observed: Route,
    /// The services that this peer offers.
    pub capabilities: Capabilities,
    /// The proof of the work for this peer's identity.
    pub toil: Toil,
    /// Software and version.
    pub version: String,
}

/// Why a hello is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HelloError {
    #[error("the hello could not be read")]
    Malformed,
    #[error("the other has not proven the work for its identity yet")]
    NoToil,
    #[error("this peer belongs to the network {ours}, the other to {theirs}")]
    WrongNetwork { ours: NetworkId, theirs: NetworkId },
}

impl Hello {
    /// Longest version text that is kept.
    const MAX_VERSION_CHARS: usize = 64;
    /// Longest hello that is read: the longest network name and version text, and a little over.
    pub const MAX_BYTES: usize = 272;

    /// The bytes on the wire.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("a hello has no type that postcard cannot write")
    }

    /// Checks that the work was done for the identity that the other side has proven.
    pub fn check_toil(&self, peer: PeerId, effort: Effort) -> Result<(), HelloError> {
        let is_proven = self.toil.proves(peer, effort);
        is_proven.then_some(()).ok_or(HelloError::NoToil)
    }

    /// Reads the other side's hello to `me` and checks that it belongs here.
    pub fn decode(bytes: &[u8], ours: &NetworkId, me: PeerId) -> Result<Hello, HelloError> {
        if bytes.len() > Self::MAX_BYTES {
            return Err(HelloError::Malformed);
        }
        let hello: Hello = postcard::from_bytes(bytes).map_err(|_| HelloError::Malformed)?;
        if !hello.observed.may_lead_to(me) {
            return Err(HelloError::Malformed);
        }
        if hello.network != *ours {
            return Err(HelloError::WrongNetwork {
                ours: ours.clone(),
                theirs: hello.network,
            });
        }
        Ok(Hello {
            version: printable(&hello.version, Self::MAX_VERSION_CHARS),
            ..hello
        })
    }
}

/// A stranger's text, fit to be shown: only printable ASCII, and not too much of it.
pub(crate) fn printable(text: &str, max_chars: usize) -> String {
    let shown = |c: char| {
        if c.is_ascii_graphic() || c == ' ' {
            c
        } else {
            '?'
        }
    };
    text.chars().take(max_chars).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    fn me() -> PeerId {
        PeerId::at(Key::hash("me"))
    }

    fn hello() -> Hello {
        Hello {
            network: NetworkId::default(),
            incarnation: u64::MAX,
            observed: "[2a00::1]:65535".parse().unwrap(),
            capabilities: Capabilities::MEMBER,
            toil: Toil(u64::MAX),
            version: "x".repeat(64),
        }
    }

    #[test]
    fn the_longest_hello_fits_and_round_trips() {
        let relay = PeerId::at(Key::hash("relay"));
        for observed in [hello().observed, Route::Via { relay }] {
            let hello = Hello {
                network: "n".repeat(64).parse().unwrap(),
                observed,
                ..hello()
            };
            let bytes = hello.encode();
            assert!(bytes.len() <= Hello::MAX_BYTES, "{}", bytes.len());
            assert_eq!(Hello::decode(&bytes, &hello.network, me()), Ok(hello));
        }
    }

    #[test]
    fn work_is_asked_for_where_the_network_wants_it() {
        let easy = Effort(4);
        let toil = Toil::find(me(), easy, 0, 1 << 12).unwrap();
        let hello = Hello { toil, ..hello() };
        assert_eq!(hello.check_toil(me(), Effort::NONE), Ok(()));
        assert_eq!(hello.check_toil(me(), easy), Ok(()));
        let far = hello.check_toil(me(), Effort(60));
        assert_eq!(far, Err(HelloError::NoToil));
    }

    #[test]
    fn nobody_is_seen_behind_itself() {
        let hello = Hello {
            observed: Route::Via { relay: me() },
            ..hello()
        };
        let read = Hello::decode(&hello.encode(), &hello.network, me());
        assert_eq!(read, Err(HelloError::Malformed));
    }

    #[test]
    fn another_network_is_named_in_the_refusal() {
        let ours = "toy".parse().unwrap();
        let error = Hello::decode(&hello().encode(), &ours, me()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this peer belongs to the network toy, the other to apoidea"
        );
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = hello().encode();
        for length in 0..bytes.len() {
            let read = Hello::decode(&bytes[..length], &NetworkId::default(), me());
            assert_eq!(read, Err(HelloError::Malformed), "{length}");
        }
    }

    #[test]
    fn a_stranger_s_text_is_made_harmless() {
        let loud = Hello {
            version: "a\u{1b}[31mb\n".repeat(20),
            ..hello()
        };
        let read = Hello::decode(&loud.encode(), &NetworkId::default(), me()).unwrap();
        assert_eq!(read.version.len(), 64);
        assert!(read.version.starts_with("a?[31mb?a?"));
    }

    #[test]
    fn a_network_s_name_is_short_and_printable() {
        for bad in ["", "a b", "é", &"x".repeat(65)] {
            assert!(bad.parse::<NetworkId>().is_err(), "{bad:?}");
        }
    }
}
