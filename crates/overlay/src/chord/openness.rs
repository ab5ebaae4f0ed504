//! Can strangers reach this peer? Only one that they can reach announces itself at the rendezvous.

use super::dial_back::Reachability;
use crate::Transport;
use apoidea_model::is_global;
use std::net::SocketAddr;

/// The port at which strangers reach this peer, if some did: they were asked to dial it.
pub(super) fn open_port(
    transport: &Transport,
    advertise: &[SocketAddr],
    reachability: Reachability,
) -> Option<u16> {
    let told = advertise.iter().find(|address| is_global(address.ip()));
    if let Some(address) = told {
        return Some(address.port());
    }
    let is_open = reachability == Reachability::Open;
    is_open.then(|| own_port(transport)).flatten()
}

/// The port at which others would reach this peer: the one that most of them see, or else the one
/// that it listens on.
pub(super) fn own_port(transport: &Transport) -> Option<u16> {
    let observed = transport.observed_routes();
    let observed = observed.iter().filter_map(|(route, _)| route.address());
    let local = transport.local_addresses();
    observed
        .filter(SocketAddr::is_ipv4)
        .chain(local.into_iter().filter(SocketAddr::is_ipv4))
        .map(|address| address.port())
        .find(|port| *port != 0)
}
