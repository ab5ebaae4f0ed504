//! Finding peers on the local network by multicast DNS (RFC 6762), so that two machines in one home
//! need no configuration. A peer found there is a hint like any other: it must still prove its id.

use crate::NetworkId;
use apoidea_model::PeerId;
use mdns_sd::{Receiver, ResolvedService, ServiceDaemon, ServiceEvent, ServiceInfo};
use std::net::SocketAddr;

/// The service's name on the local network.
const SERVICE: &str = "_apoidea._udp.local.";
/// Addresses taken from one announcement.
const MAX_ADDRESSES: usize = 8;

/// Announces this peer and listens for others.
pub(crate) struct LocalNetwork {
    daemon: ServiceDaemon,
    events: Receiver<ServiceEvent>,
    me: PeerId,
    network: NetworkId,
}

impl LocalNetwork {
    /// Begins to announce and to listen on all interfaces.
    pub fn join(me: PeerId, network: NetworkId, port: u16) -> Result<Self, mdns_sd::Error> {
        let daemon = ServiceDaemon::new()?;
        daemon.register(announcement(me, &network, port)?.enable_addr_auto())?;
        let events = daemon.browse(SERVICE)?;
        Ok(LocalNetwork {
            daemon,
            events,
            me,
            network,
        })
    }

    /// The next peer found; none when listening has ended.
    pub async fn next(&self) -> Option<(PeerId, Vec<SocketAddr>)> {
        loop {
            let event = self.events.recv_async().await.ok()?;
            let ServiceEvent::ServiceResolved(service) = event else {
                continue;
            };
            if let Some(found) = judge(&service, self.me, &self.network) {
                return Some(found);
            }
        }
    }
}

impl Drop for LocalNetwork {
    fn drop(&mut self) {
        // Says goodbye to the others; if the daemon has ended already there is nothing to say.
        let _ = self.daemon.shutdown();
    }
}

/// The announcement of this peer, its addresses still to be filled in.
fn announcement(me: PeerId, network: &NetworkId, port: u16) -> Result<ServiceInfo, mdns_sd::Error> {
    let id = me.to_string();
    // A label has 63 characters at most; the whole id is in the properties.
    let name = &id[..32];
    let properties = [("id", id.as_str()), ("network", network.as_str())];
    ServiceInfo::new(
        SERVICE,
        name,
        &format!("{name}.local."),
        "",
        port,
        &properties[..],
    )
}

/// The peer that an announcement names, if it is another one of the same network.
fn judge(
    service: &ResolvedService,
    me: PeerId,
    network: &NetworkId,
) -> Option<(PeerId, Vec<SocketAddr>)> {
    let property = |key| service.txt_properties.get_property_val_str(key);
    let id: PeerId = property("id")?.parse().ok()?;
    if id == me || property("network") != Some(network.as_str()) {
        return None;
    }
    let addresses = service
        .addresses
        .iter()
        .map(|ip| SocketAddr::new(ip.to_ip_addr(), service.port));
    Some((id, addresses.take(MAX_ADDRESSES).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    fn peer(name: &str) -> PeerId {
        PeerId::at(Key::hash(name))
    }

    #[test]
    fn only_other_peers_of_the_same_network_are_found() {
        let (here, elsewhere): (NetworkId, NetworkId) =
            ("here".parse().unwrap(), "elsewhere".parse().unwrap());
        let heard = |who: &str, network: &NetworkId| {
            let service = announcement(peer(who), network, 1003)
                .unwrap()
                .as_resolved_service();
            judge(&service, peer("me"), &here)
        };
        assert_eq!(heard("other", &here), Some((peer("other"), vec![])));
        assert_eq!(heard("other", &elsewhere), None);
        assert_eq!(heard("me", &here), None);
    }

    #[test]
    fn addresses_carry_the_announced_port_and_are_boundedly_many() {
        let ips = (1..=40)
            .map(|n| format!("127.0.0.{n}"))
            .collect::<Vec<_>>()
            .join(",");
        let id = peer("other").to_string();
        let properties = [("id", id.as_str()), ("network", "here")];
        let info = ServiceInfo::new(
            SERVICE,
            "x",
            "x.local.",
            ips.as_str(),
            1003,
            &properties[..],
        )
        .unwrap();
        let found = judge(
            &info.as_resolved_service(),
            peer("me"),
            &"here".parse().unwrap(),
        );
        let (_, addresses) = found.unwrap();
        assert_eq!(addresses.len(), MAX_ADDRESSES);
        assert!(
            addresses.iter().all(|address| address.port() == 1003),
            "{addresses:?}"
        );
    }

    #[test]
    fn an_announcement_without_a_proper_id_is_ignored() {
        for id in ["", "12", "not an id"] {
            let properties = [("id", id), ("network", "here")];
            let info =
                ServiceInfo::new(SERVICE, "x", "x.local.", "127.0.0.1", 1003, &properties[..])
                    .unwrap();
            assert_eq!(
                judge(
                    &info.as_resolved_service(),
                    peer("me"),
                    &"here".parse().unwrap()
                ),
                None,
                "{id:?}"
            );
        }
    }
}
