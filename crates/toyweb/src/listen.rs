//! Sockets: the same port on several loopback addresses, so that hosts live at different addresses
//! and URLs need only one port.

use crate::{atlas::Ports, builder::Builder};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};
use tokio::net::{TcpListener, UdpSocket};

/// Attempts to find a port that is free on every address.
const ATTEMPTS: usize = 50;
/// Most addresses of a web: one network of 254.
const MAX_ADDRESSES: u8 = 254;

/// Everything a web listens at, before anybody serves it.
pub(crate) struct Sockets {
    /// The web's own addresses.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) http: Vec<TcpListener>,
    pub(crate) https: Vec<TcpListener>,
    /// Some share the web's ports and differ by address, one shares an address and differs by port:
    /// what keeps a crawler out is one check alone.
    pub(crate) honeypots: Vec<TcpListener>,
}

impl Sockets {
    pub(crate) async fn open(plan: &Builder) -> io::Result<Self> {
        let addresses = match plan.listening_at.is_empty() {
            true => addresses(plan.addresses).await,
            false => plan.listening_at.clone(),
        };
        let all = [&addresses[..], &honeypots(&addresses).await].concat();
        let mut http = everywhere(&all, plan.http_port).await?;
        let mut https = everywhere(&all, plan.https_port).await?;
        let mut honeypots = http.split_off(addresses.len());
        honeypots.extend(https.split_off(addresses.len()));
        honeypots.push(TcpListener::bind((addresses[0], 0)).await?);
        Ok(Sockets {
            addresses,
            http,
            https,
            honeypots,
        })
    }

    /// The ports that URLs carry.
    pub(crate) fn ports(&self) -> io::Result<Ports> {
        let port =
            |listeners: &[TcpListener]| Ok::<_, io::Error>(listeners[0].local_addr()?.port());
        Ok(Ports {
            http: port(&self.http)?,
            https: port(&self.https)?,
        })
    }
}

/// Listens at a port of 127.0.0.1 only.
pub(crate) async fn local(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// The address of the n-th server. 127.77.0.0/24 is apart from 127.0.0.1, so that a crawler can be
/// allowed to visit the toy web and nothing else on this machine.
fn address(n: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 77, 0, n + 1))
}

/// The addresses that can be listened at: as many as wanted, or only 127.0.0.1 where the system has
/// no other.
async fn addresses(wanted: u8) -> Vec<IpAddr> {
    let wanted = wanted.clamp(1, MAX_ADDRESSES);
    match TcpListener::bind((address(wanted - 1), 0)).await {
        Ok(_) => (0..wanted).map(address).collect(),
        Err(_) => vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
    }
}

/// Listens at one port of every address; port 0 stands for any that is free everywhere.
async fn everywhere(addresses: &[IpAddr], port: u16) -> io::Result<Vec<TcpListener>> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match at_once(addresses, port).await {
            Err(error) if port == 0 && attempts < ATTEMPTS => drop(error),
            result => return result,
        }
    }
}

/// Addresses for honeypots: those of this machine that are not the web's own.
async fn honeypots(own: &[IpAddr]) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for address in [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ] {
        if !own.contains(&address) && TcpListener::bind((address, 0)).await.is_ok() {
            addresses.push(address);
        }
    }
    addresses
}

async fn at_once(addresses: &[IpAddr], port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::with_capacity(addresses.len());
    let mut port = port;
    for &address in addresses {
        let listener = TcpListener::bind((address, port)).await?;
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Where the name server is: where hosts are only if these are not at loopback addresses.
pub(crate) fn names_at(plan: &Builder) -> IpAddr {
    let first = plan.listening_at.first();
    first.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |first| *first)
}

/// A UDP and a TCP socket at the same port, as DNS needs.
pub(crate) async fn for_dns(at: SocketAddr) -> io::Result<(UdpSocket, TcpListener, SocketAddr)> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let udp = UdpSocket::bind(at).await?;
        let address = udp.local_addr()?;
        match TcpListener::bind(address).await {
            Ok(tcp) => return Ok((udp, tcp, address)),
            Err(error) if at.port() != 0 || attempts >= ATTEMPTS => return Err(error),
            Err(_) => {}
        }
    }
}
