//! The way to a peer: an address of its own, or another peer that forwards to it.
//!
//! A peer behind a router has no address that others could dial. It is named by its id all the
//! same, and a route says how to get there. Dialling is left to the transport.

use crate::{InvalidKey, PeerId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, net::SocketAddr, str::FromStr};

/// One way to reach a peer. People read and write it as `192.0.2.1:4433` or `via 64 digits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// The peer itself listens at this address.
    Direct(SocketAddr),
    /// This other peer forwards to it.
    Via {
        /// The peer that forwards.
        relay: PeerId,
    },
}

/// The text is not a route.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRoute {
    /// It is no address.
    #[error("a route is an address with a port, or \"via\" and the id of a relay")]
    Address,
    /// It begins with "via", but no id follows.
    #[error("the relay of a route: {0}")]
    Relay(#[from] InvalidKey),
}

/// The form of a route on the wire and on disk.
#[derive(Serialize, Deserialize)]
enum Encoded {
    Direct(SocketAddr),
    Via(PeerId),
}

/// The word before a relay's id.
const VIA: &str = "via ";

impl Route {
    /// The address to dial; none if the peer is behind a relay.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Route::Direct(address) => Some(address),
            Route::Via { .. } => None,
        }
    }

    /// The peer that forwards; none if the peer itself listens.
    pub fn relay(self) -> Option<PeerId> {
        match self {
            Route::Direct(_) => None,
            Route::Via { relay } => Some(relay),
        }
    }

    /// Whether this can be a route to `peer`: a peer is not its own relay.
    pub fn may_lead_to(self, peer: PeerId) -> bool {
        self.relay() != Some(peer)
    }
}

impl From<SocketAddr> for Route {
    fn from(address: SocketAddr) -> Self {
        Route::Direct(address)
    }
}

impl From<Route> for Encoded {
    fn from(route: Route) -> Self {
        match route {
            Route::Direct(address) => Encoded::Direct(address),
            Route::Via { relay } => Encoded::Via(relay),
        }
    }
}

impl From<Encoded> for Route {
    fn from(encoded: Encoded) -> Self {
        match encoded {
            Encoded::Direct(address) => Route::Direct(address),
            Encoded::Via(relay) => Route::Via { relay },
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Direct(address) => fmt::Display::fmt(address, f),
            Route::Via { relay } => write!(f, "{VIA}{relay}"),
        }
    }
}

impl FromStr for Route {
    type Err = InvalidRoute;

    fn from_str(text: &str) -> Result<Self, InvalidRoute> {
        match text.strip_prefix(VIA) {
            Some(relay) => Ok(Route::Via {
                relay: relay.parse()?,
            }),
            None => text
                .parse()
                .map(Route::Direct)
                .map_err(|_| InvalidRoute::Address),
        }
    }
}

impl Serialize for Route {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            Encoded::from(*self).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Route {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            text.parse().map_err(de::Error::custom)
        } else {
            Encoded::deserialize(deserializer).map(Route::from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> [Route; 3] {
        let relay = PeerId::of_public_key(b"a");
        [
            Route::Direct("192.0.2.1:4433".parse().unwrap()),
            Route::Direct("[2001:db8::1]:4433".parse().unwrap()),
            Route::Via { relay },
        ]
    }

    #[test]
    fn a_route_is_text_for_people_and_a_few_bytes_on_the_wire() {
        for route in routes() {
            assert_eq!(route.to_string().parse(), Ok(route));
            let json = serde_json::to_string(&route).unwrap();
            assert_eq!(json, format!("\"{route}\""));
            assert_eq!(serde_json::from_str::<Route>(&json).unwrap(), route);
            let bytes = postcard::to_stdvec(&route).unwrap();
            assert!(bytes.len() <= 33, "{route}: {}", bytes.len());
            assert_eq!(postcard::from_bytes::<Route>(&bytes).unwrap(), route);
        }
    }

    #[test]
    fn a_route_has_an_address_or_a_relay_and_never_both() {
        for route in routes() {
            assert_ne!(route.address().is_some(), route.relay().is_some());
        }
    }

    #[test]
    fn a_peer_is_not_its_own_relay() {
        let [direct, _, via] = routes();
        let relay = via.relay().unwrap();
        assert!(direct.may_lead_to(relay) && !via.may_lead_to(relay));
        assert!(via.may_lead_to(PeerId::of_public_key(b"b")));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "192.0.2.1", "example.com:1", "via", "via 12", "via  "] {
            assert!(text.parse::<Route>().is_err(), "{text:?}");
        }
    }
}
