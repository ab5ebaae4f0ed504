//! One QUIC endpoint for one address family.
//!
//! The endpoint outlives its socket: after a change of network the socket is replaced and the
//! connections go on. If the system takes the socket away, the endpoint stops, and a new one is
//! made.

use super::{Limits, Sockets, frame::MAX_BODY_BYTES, socket};
use crate::lock::lock;
use quinn::{
    Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

/// An endpoint and how to make it again.
#[derive(Debug)]
pub(crate) struct Port {
    listen: SocketAddr,
    sockets: Sockets,
    server: ServerConfig,
    endpoint: Mutex<Endpoint>,
}

impl Port {
    /// Begins to listen.
    pub fn open(listen: SocketAddr, sockets: Sockets, server: ServerConfig) -> io::Result<Self> {
        let endpoint = endpoint(listen, sockets, &server)?;
        // Keep the port that the system chose, so that the address stays the same across rebinding.
        let listen = endpoint.local_addr()?;
        Ok(Port {
            listen,
            sockets,
            server,
            endpoint: Mutex::new(endpoint),
        })
    }

    /// The endpoint now.
    pub fn endpoint(&self) -> Endpoint {
        lock(&self.endpoint).clone()
    }

    /// Whether this port can reach the address.
    pub fn reaches(&self, address: SocketAddr) -> bool {
        self.listen.is_ipv4() == address.is_ipv4()
    }

    /// Takes a new socket on any free port. Connections that this side dialled follow; the others
    /// learn the new address when this side dials them again.
    pub fn rebind(&self) -> io::Result<()> {
        let anywhere = SocketAddr::new(self.listen.ip(), 0);
        self.endpoint()
            .rebind_abstract(socket::open(anywhere, self.sockets)?)
    }

    /// Makes a new endpoint in place of one that has stopped.
    pub fn reopen(&self) -> io::Result<()> {
        let fresh = endpoint(self.listen, self.sockets, &self.server).or_else(|_| {
            endpoint(
                SocketAddr::new(self.listen.ip(), 0),
                self.sockets,
                &self.server,
            )
        })?;
        *lock(&self.endpoint) = fresh;
        Ok(())
    }
}

fn endpoint(listen: SocketAddr, sockets: Sockets, server: &ServerConfig) -> io::Result<Endpoint> {
    let socket = socket::open(listen, sockets)?;
    let config = EndpointConfig::default();
    Endpoint::new_with_abstract_socket(config, Some(server.clone()), socket, Arc::new(TokioRuntime))
}

/// The limits as QUIC knows them.
pub(crate) fn transport_config(limits: &Limits) -> TransportConfig {
    const { assert!(Limits::STREAM_WINDOW_BYTES as usize > MAX_BODY_BYTES) };
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(Limits::STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .stream_receive_window(VarInt::from_u32(Limits::STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(Limits::RECEIVE_WINDOW_BYTES))
        .send_window(Limits::SEND_WINDOW_BYTES)
        .max_idle_timeout(IdleTimeout::try_from(limits.idle()).ok())
        .keep_alive_interval(None);
    config
}

/// Bounds the bytes kept of connections that were not looked at yet.
pub(crate) fn limit_incoming(config: &mut ServerConfig) {
    config
        .max_incoming(Limits::HANDSHAKES)
        .incoming_buffer_size(Limits::INCOMING_BYTES)
        .incoming_buffer_size_total(Limits::INCOMING_BYTES_TOTAL);
}
