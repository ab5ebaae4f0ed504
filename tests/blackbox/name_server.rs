//! A small DNS server that answers by a script, so that names can lead anywhere and change their
//! mind.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};
use tokio::{net::UdpSocket, task::JoinHandle};

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const HEAD_BYTES: usize = 12;
/// A UDP message without extensions is not longer.
const MAX_BYTES: usize = 512;

/// A running server; dropping it ends it.
pub struct NameServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl NameServer {
    /// Serves `script`, which gives the addresses of a name; a name without any does not exist.
    pub async fn start(script: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static) -> Self {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
        let address = socket.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut query = [0; MAX_BYTES];
            while let Ok((length, from)) = socket.recv_from(&mut query).await {
                if let Some(answer) = answer(&query[..length], &script) {
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        NameServer { address, task }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The answer to a query with one question (RFC 1035 §4); time to live is zero, so that nobody
/// remembers it.
fn answer(query: &[u8], script: &impl Fn(&str) -> Vec<IpAddr>) -> Option<Vec<u8>> {
    let (name, kind, question_end) = question(query)?;
    let addresses = script(&name);
    let records: Vec<Vec<u8>> = addresses
        .iter()
        .filter_map(|address| match (address, kind) {
            (IpAddr::V4(address), TYPE_A) => Some(address.octets().to_vec()),
            (IpAddr::V6(address), TYPE_AAAA) => Some(address.octets().to_vec()),
            _ => None,
        })
        .collect();
    let code = if addresses.is_empty() { 3 } else { 0 };
    let mut reply = query[..2].to_vec();
    reply.extend([0x84 | query[2] & 1, 0x80 | code]);
    for count in [1, records.len() as u16, 0, 0] {
        reply.extend(count.to_be_bytes());
    }
    reply.extend(&query[HEAD_BYTES..question_end]);
    for record in records {
        reply.extend([0xc0, HEAD_BYTES as u8]);
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1, 0, 0, 0, 0]);
        reply.extend((record.len() as u16).to_be_bytes());
        reply.extend(record);
    }
    Some(reply)
}

/// The name and type asked for, and where the question ends.
fn question(query: &[u8]) -> Option<(String, u16, usize)> {
    let (mut labels, mut at) = (Vec::new(), HEAD_BYTES);
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(
            std::str::from_utf8(query.get(at..at + length)?)
                .ok()?
                .to_lowercase(),
        );
        at += length;
    }
    let kind = u16::from_be_bytes([*query.get(at)?, *query.get(at + 1)?]);
    query.get(at + 3)?;
    Some((labels.join("."), kind, at + 4))
}
