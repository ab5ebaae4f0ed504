//! The settings of the transport, and the limits that keep a stranger from using this peer up.

use super::{AddressPolicy, Capabilities, NetworkId};
use apoidea_chord::Effort;
use serde::{Deserialize, Serialize};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

/// The settings of the transport.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransportSettings {
    /// Only peers of the same network talk to each other.
    pub network: NetworkId,
    /// The addresses to listen on, at most one per family: dual-stack sockets are not the default
    /// everywhere. A family that the machine does not have is left out, as long as one remains.
    pub listen: Vec<SocketAddr>,
    /// The addresses supplied by others that may be dialled.
    pub addresses: AddressPolicy,
    /// The software's name and version, told to every peer.
    pub version: String,
    /// The services that this peer offers.
    pub capabilities: Capabilities,
    /// The work that every peer must have done for its identity. None in a private network.
    pub effort: Effort,
    /// The way to talk to the operating system.
    pub sockets: Sockets,
    /// The resources that strangers may use.
    pub limits: Limits,
}

impl Default for TransportSettings {
    fn default() -> Self {
        TransportSettings {
            network: NetworkId::default(),
            listen: vec![
                (Ipv4Addr::UNSPECIFIED, 0).into(),
                (Ipv6Addr::UNSPECIFIED, 0).into(),
            ],
            addresses: AddressPolicy::default(),
            version: concat!("apoidea/", env!("CARGO_PKG_VERSION")).into(),
            capabilities: Capabilities::default(),
            effort: Effort::NONE,
            sockets: Sockets::default(),
            limits: Limits::default(),
        }
    }
}

/// The socket calls that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sockets {
    /// Many datagrams per call, congestion marks and path MTU discovery where the system has them,
    /// else plain.
    #[default]
    Best,
    /// One datagram per call and no options, which works on every system and in every emulator.
    Plain,
}

/// The resources that strangers may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// From asking to the whole answer. QUIC gives up on a silent path after about as long.
    pub request_deadline_ms: u64,
    /// From the first packet to the end of the hello, over all addresses of a peer. Six initial
    /// probe timeouts of RFC 9002 (1 s, doubling) do not fit; two lost packets do.
    pub dial_deadline_ms: u64,
    /// A connection without traffic ends after this; three missed keep-alives.
    pub idle_ms: u64,
    /// Useful connections are pinged this often; below the 30 s after which home routers forget a
    /// mapping.
    pub keep_alive_ms: u64,
    /// Connections held at once. An idle pair of ends takes 75 KiB (measured in memory), so this is
    /// about 10 MiB.
    pub max_connections: usize,
    /// Connections from one origin (a /24, a /48, or one relayed peer) held at once, so that one
    /// network cannot crowd out the others.
    pub max_connections_per_origin: usize,
    /// Requests per second of one peer; a crawling peer sends a few batches per second.
    pub peer_rate: Rate,
    /// Requests per second of one origin: several volunteers may live in one /24.
    pub origin_rate: Rate,
    /// New connections per second of one origin. A handshake costs about 0.5 ms.
    pub newcomer_rate: Rate,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            request_deadline_ms: 10_000,
            dial_deadline_ms: 5_000,
            idle_ms: 45_000,
            keep_alive_ms: 15_000,
            max_connections: 256,
            max_connections_per_origin: 64,
            peer_rate: Rate {
                per_second: 200.0,
                burst: 400.0,
            },
            origin_rate: Rate {
                per_second: 1000.0,
                burst: 2000.0,
            },
            newcomer_rate: Rate {
                per_second: 20.0,
                burst: 200.0,
            },
        }
    }
}

impl Limits {
    /// Streams that a peer may have open to this one; none of them one-way.
    pub const STREAMS: u32 = 64;
    /// Bytes of one stream that wait to be read: a whole frame, so that one request never stalls on
    /// itself.
    pub const STREAM_WINDOW_BYTES: u32 = 72 * 1024;
    /// Bytes of one connection that wait to be read.
    pub const RECEIVE_WINDOW_BYTES: u32 = 512 * 1024;
    /// Bytes of one connection that wait to be acknowledged.
    pub const SEND_WINDOW_BYTES: u64 = 512 * 1024;
    /// Handshakes under way at once.
    pub const HANDSHAKES: usize = 64;
    /// Handshakes under way at once from one origin.
    pub const HANDSHAKES_PER_ORIGIN: usize = 32;
    /// Handshakes under way from which on a newcomer must prove its address first, which costs it a
    /// round trip.
    pub const HANDSHAKES_UNDER_LOAD: usize = 16;
    /// Bytes kept of one connection attempt before it is looked at, and of all together.
    pub const INCOMING_BYTES: u64 = 16 * 1024;
    /// See [`Self::INCOMING_BYTES`].
    pub const INCOMING_BYTES_TOTAL: u64 = 1024 * 1024;
    /// Requests in the service's hands at once, over all peers.
    pub const SERVING: usize = 256;
    /// Requests in the service's hands at once, of one peer.
    pub const SERVING_PER_PEER: usize = 32;
    /// Bytes of large requests held at once while they arrive and are answered, over all peers.
    pub const BODIES_BYTES: usize = 32 * 1024 * 1024;
    /// Connections that can be marked useful; fewer than connections, so that there is always one
    /// to evict.
    pub const USEFUL: usize = 96;
    /// Dials under way at once.
    pub const DIALS: usize = 64;
    /// Malformed frames until the connection is closed.
    pub const STRIKES: u32 = 8;

    pub(crate) fn request_deadline(&self) -> Duration {
        Duration::from_millis(self.request_deadline_ms)
    }

    pub(crate) fn dial_deadline(&self) -> Duration {
        Duration::from_millis(self.dial_deadline_ms)
    }

    pub(crate) fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms)
    }

    pub(crate) fn keep_alive(&self) -> Duration {
        Duration::from_millis(self.keep_alive_ms)
    }
}

/// The rate of a token bucket: its filling speed and its size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Tokens per second.
    pub per_second: f64,
    /// Tokens when full.
    pub burst: f64,
}
