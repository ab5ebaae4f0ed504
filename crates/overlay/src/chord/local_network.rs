//! Finding peers on the local network by multicast DNS (RFC 6762), so that two machines in one home need no
//! configuration. What is found is a hint like any other: whoever answers must prove its id.

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
        Self::over(ServiceDaemon::new()?, me, network, port)
    }

    fn over(
        daemon: ServiceDaemon,
        me: PeerId,
        network: NetworkId,
        port: u16,
    ) -> Result<Self, mdns_sd::Error> {
        let id = me.to_string();
        // A label has 63 characters at most; the whole id is in the properties.
        let name = &id[..32];
        let properties = [("id", id.as_str()), ("network", network.as_str())];
        let info = ServiceInfo::new(SERVICE, name, &format!("{name}.local."), "", port, &properties[..])?;
        daemon.register(info.enable_addr_auto())?;
        let events = daemon.browse(SERVICE)?;
        Ok(LocalNetwork { daemon, events, me, network })
    }

    /// The next peer found; none when listening has ended.
    pub async fn next(&self) -> Option<(PeerId, Vec<SocketAddr>)> {
        loop {
            let event = self.events.recv_async().await.ok()?;
            let ServiceEvent::ServiceResolved(service) = event else { continue };
            if let Some(found) = self.judge(&service) {
                return Some(found);
            }
        }
    }

    fn judge(&self, service: &ResolvedService) -> Option<(PeerId, Vec<SocketAddr>)> {
        let property = |key| service.txt_properties.get_property_val_str(key);
        let id: PeerId = property("id")?.parse().ok()?;
        if id == self.me || property("network") != Some(self.network.as_str()) {
            return None;
        }
        let addresses = service.addresses.iter().map(|ip| SocketAddr::new(ip.to_ip_addr(), service.port));
        Some((id, addresses.take(MAX_ADDRESSES).collect()))
    }
}

impl Drop for LocalNetwork {
    fn drop(&mut self) {
        // Says goodbye to the others; if the daemon has ended already there is nothing to say.
        let _ = self.daemon.shutdown();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;
    use mdns_sd::IfKind;
    use std::time::Duration;
    use tokio::time;

    /// A daemon that multicasts on loopback only, on a port of the tests' own.
    fn daemon() -> ServiceDaemon {
        let daemon = ServiceDaemon::new_with_port(53_535).unwrap();
        daemon.disable_interface(IfKind::All).unwrap();
        daemon.enable_interface(IfKind::LoopbackV4).unwrap();
        daemon
    }

    #[tokio::test]
    async fn peers_of_one_network_find_each_other_and_no_others() {
        let join = |name: &str, network: &str, port| {
            let id = PeerId::at(Key::hash(name));
            (id, LocalNetwork::over(daemon(), id, network.parse().unwrap(), port).unwrap())
        };
        let (_, a) = join("a", "here", 1001);
        let (_stranger, _elsewhere) = join("b", "elsewhere", 1002);
        let (c_id, _c) = join("c", "here", 1003);
        let (found, addresses) = time::timeout(Duration::from_secs(20), a.next()).await.unwrap().unwrap();
        assert_eq!(found, c_id);
        assert!(
            addresses.iter().all(|address| address.port() == 1003 && address.ip().is_loopback()),
            "{addresses:?}"
        );
    }
}
