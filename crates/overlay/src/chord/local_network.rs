//! Finding peers on the local network by multicast DNS (RFC 6762), so that two machines in one home
//! need no configuration.
//!
//! Anybody in the same café can announce anything. So an announcement is only a list of addresses
//! on this very link, to be tried; the peer that answers there proves its own id. The announcement
//! of this peer carries no id, and its name changes, so that nobody recognises a laptop by it.

use crate::NetworkId;
use apoidea_model::{AddressRange, Key};
use if_addrs::IfAddr;
use mdns_sd::{Receiver, ResolvedService, ServiceDaemon, ServiceEvent, ServiceInfo};
use std::net::{IpAddr, SocketAddr};

/// The service's name on the local network.
const SERVICE: &str = "_apoidea._udp.local.";
/// Addresses taken from one announcement.
const MAX_ADDRESSES: usize = 4;
/// Characters of a name; a label has 63 at most.
const NAME_CHARS: usize = 32;

/// Announces this peer and listens for others.
pub(crate) struct LocalNetwork {
    daemon: ServiceDaemon,
    events: Receiver<ServiceEvent>,
    network: NetworkId,
    port: u16,
    /// The full name under which this peer is announced now.
    name: String,
}

impl LocalNetwork {
    /// Begins to announce and to listen on all interfaces.
    pub fn join(network: NetworkId, port: u16) -> Result<Self, mdns_sd::Error> {
        let daemon = ServiceDaemon::new()?;
        let announcement = announcement(&network, port)?.enable_addr_auto();
        let name = announcement.get_fullname().to_owned();
        daemon.register(announcement)?;
        let events = daemon.browse(SERVICE)?;
        Ok(LocalNetwork {
            daemon,
            events,
            network,
            port,
            name,
        })
    }

    /// Goes on under another name.
    pub fn rename(&mut self) -> Result<(), mdns_sd::Error> {
        let announcement = announcement(&self.network, self.port)?.enable_addr_auto();
        let name = announcement.get_fullname().to_owned();
        let old = std::mem::replace(&mut self.name, name);
        self.daemon.unregister(&old)?;
        self.daemon.register(announcement)
    }

    /// Asks again who is there. Peers that were announced already are found once more.
    pub fn ask_again(&mut self) -> Result<(), mdns_sd::Error> {
        self.events = self.daemon.browse(SERVICE)?;
        Ok(())
    }

    /// The addresses of the next peer that is announced; none when listening has ended.
    pub async fn next(&self) -> Option<Vec<SocketAddr>> {
        loop {
            let event = self.events.recv_async().await.ok()?;
            let ServiceEvent::ServiceResolved(service) = event else {
                continue;
            };
            if service.fullname != self.name
                && let Some(found) = judge(&service, &self.network, &links())
            {
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

/// The announcement of this peer under a new name, its addresses still to be filled in.
fn announcement(network: &NetworkId, port: u16) -> Result<ServiceInfo, mdns_sd::Error> {
    let name = Key::from_bytes(rand::random()).to_string();
    let name = &name[..NAME_CHARS];
    let properties = [("network", network.as_str())];
    ServiceInfo::new(
        SERVICE,
        name,
        &format!("{name}.local."),
        "",
        port,
        &properties[..],
    )
}

/// The networks that this computer reaches without a router.
fn links() -> Vec<AddressRange> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let links = interfaces.iter().map(|interface| match &interface.addr {
        IfAddr::V4(v4) => AddressRange::around(v4.ip.into(), v4.prefixlen),
        IfAddr::V6(v6) => AddressRange::around(v6.ip.into(), v6.prefixlen),
    });
    links.collect()
}

/// The addresses of an announcement that are on these links, if it is one of the same network.
fn judge(
    service: &ResolvedService,
    network: &NetworkId,
    links: &[AddressRange],
) -> Option<Vec<SocketAddr>> {
    let property = |key| service.txt_properties.get_property_val_str(key);
    if property("network") != Some(network.as_str()) {
        return None;
    }
    let is_on_link = |ip: &IpAddr| links.iter().any(|link| link.contains(*ip));
    let addresses = service.addresses.iter().map(|ip| ip.to_ip_addr());
    let addresses: Vec<SocketAddr> = addresses
        .filter(is_on_link)
        .map(|ip| SocketAddr::new(ip, service.port))
        .take(MAX_ADDRESSES)
        .collect();
    (!addresses.is_empty()).then_some(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(addresses: &str, network: &str, links: &[&str]) -> Option<Vec<SocketAddr>> {
        let properties = [("network", network)];
        let info = ServiceInfo::new(SERVICE, "x", "x.local.", addresses, 1003, &properties[..]);
        let links: Vec<AddressRange> = links.iter().map(|link| link.parse().unwrap()).collect();
        let service = info.unwrap().as_resolved_service();
        judge(&service, &"here".parse().unwrap(), &links)
    }

    #[test]
    fn only_addresses_on_the_link_of_the_same_network_are_found() {
        let links = ["192.168.77.0/24", "127.0.0.0/8"];
        let found = heard("192.168.77.2", "here", &links);
        assert_eq!(found, Some(vec!["192.168.77.2:1003".parse().unwrap()]));
        assert_eq!(heard("192.168.77.2", "elsewhere", &links), None);
        assert_eq!(
            heard("93.184.216.34,10.0.0.1,192.168.78.2", "here", &links),
            None
        );
        let mixed = heard("93.184.216.34,192.168.77.9", "here", &links);
        assert_eq!(mixed, Some(vec!["192.168.77.9:1003".parse().unwrap()]));
    }

    #[test]
    fn addresses_are_boundedly_many() {
        let ips: Vec<String> = (1..=40).map(|n| format!("127.0.0.{n}")).collect();
        let found = heard(&ips.join(","), "here", &["127.0.0.0/8"]).unwrap();
        assert_eq!(found.len(), MAX_ADDRESSES);
        assert!(
            found.iter().all(|address| address.port() == 1003),
            "{found:?}"
        );
    }

    #[test]
    fn an_announcement_says_nothing_that_stays_the_same() {
        let network = "here".parse().unwrap();
        let [first, second] = [(); 2].map(|()| announcement(&network, 1003).unwrap());
        assert_ne!(first.get_fullname(), second.get_fullname());
        assert_ne!(first.get_hostname(), second.get_hostname());
        let told: Vec<_> = first
            .get_properties()
            .iter()
            .map(|told| told.key())
            .collect();
        assert_eq!(told, ["network"]);
    }
}
