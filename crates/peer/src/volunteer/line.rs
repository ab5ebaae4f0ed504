//! The line into the Internet, as far as it can be judged without asking anybody: is there a route,
//! and is a name server heard?

use apoidea_fetch::Resolver;
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Addresses that stand for the Internet in documents (RFC 5737, RFC 3849). A socket for datagrams
/// that is told to send there sends nothing, but the system looks for a route.
const SOMEWHERE: [SocketAddr; 2] = [
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9),
    SocketAddr::new(
        std::net::IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        9,
    ),
];

/// The line of this peer.
pub(crate) struct Line {
    resolver: Resolver,
    has_route: AtomicBool,
}

/// The trouble with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineTrouble {
    /// There is no way into the Internet.
    NoRoute,
    /// There is one, but no name server answers.
    NoNameServer,
}

impl Line {
    pub(crate) fn new(resolver: Resolver) -> Self {
        Line {
            resolver,
            has_route: AtomicBool::new(has_route()),
        }
    }

    /// The reason why nothing can be fetched, if there is one.
    pub(crate) fn trouble(&self) -> Option<LineTrouble> {
        self.resolver.is_silent().then(|| match self.has_route() {
            true => LineTrouble::NoNameServer,
            false => LineTrouble::NoRoute,
        })
    }

    /// Looks again; while no name server is heard, one is asked.
    pub(crate) async fn look(&self) {
        self.has_route.store(has_route(), Relaxed);
        if self.resolver.is_silent() {
            self.resolver.listen_again().await;
        }
    }

    fn has_route(&self) -> bool {
        self.has_route.load(Relaxed)
    }
}

fn has_route() -> bool {
    SOMEWHERE.iter().any(|somewhere| {
        let here: SocketAddr = match somewhere {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        UdpSocket::bind(here).is_ok_and(|socket| socket.connect(somewhere).is_ok())
    })
}
