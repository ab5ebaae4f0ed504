//! An entry point of the ring, as the user writes it: `id@address`, an address, or a name.

use apoidea_model::PeerId;
use hickory_resolver::{
    TokioResolver,
    proto::rr::{RData, RecordType},
};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

/// A peer through which a newcomer may enter the ring.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EntryPoint {
    /// The peer expected there; without it, any peer that answers is believed once.
    pub id: Option<PeerId>,
    /// The place to find it.
    pub place: EntryPlace,
}

/// The place of an entry point.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EntryPlace {
    /// An address.
    Address(SocketAddr),
    /// A name, looked up in DNS: its service records `_apoidea._udp`, or else its addresses and
    /// this port.
    Name(String, u16),
}

/// The text is not an entry point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an entry point: write id@address:port, address:port, name:port or name")]
pub struct InvalidEntryPoint(String);

impl EntryPoint {
    /// The port where none is written: APOID on a telephone's keys.
    pub const DEFAULT_PORT: u16 = 27643;
    /// Addresses taken from one name.
    pub const MAX_ADDRESSES: usize = 16;
}

impl FromStr for EntryPoint {
    type Err = InvalidEntryPoint;

    fn from_str(text: &str) -> Result<Self, InvalidEntryPoint> {
        let invalid = || InvalidEntryPoint(text.chars().take(100).collect());
        let (id, place) = match text.trim().split_once('@') {
            Some((id, place)) => (Some(id.parse().map_err(|_| invalid())?), place),
            None => (None, text.trim()),
        };
        Ok(EntryPoint {
            id,
            place: parse_place(place).ok_or_else(invalid)?,
        })
    }
}

fn parse_place(text: &str) -> Option<EntryPlace> {
    if let Ok(address) = text.parse() {
        return Some(EntryPlace::Address(address));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(EntryPlace::Address((ip, EntryPoint::DEFAULT_PORT).into()));
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()?),
        None => (text, EntryPoint::DEFAULT_PORT),
    };
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    let is_name = name.len() <= 253
        && name
            .strip_suffix('.')
            .unwrap_or(name)
            .split('.')
            .all(is_label);
    is_name.then(|| EntryPlace::Name(name.to_ascii_lowercase(), port))
}

impl TryFrom<String> for EntryPoint {
    type Error = InvalidEntryPoint;

    fn try_from(text: String) -> Result<Self, InvalidEntryPoint> {
        text.parse()
    }
}

impl From<EntryPoint> for String {
    fn from(entry: EntryPoint) -> String {
        entry.to_string()
    }
}

impl fmt::Display for EntryPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = self.id {
            write!(f, "{id}@")?;
        }
        match &self.place {
            EntryPlace::Address(address) => write!(f, "{address}"),
            EntryPlace::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

impl EntryPlace {
    /// The addresses of the place; none if the name cannot be looked up now.
    pub(crate) async fn addresses(&self, resolver: Option<&TokioResolver>) -> Vec<SocketAddr> {
        match (self, resolver) {
            (EntryPlace::Address(address), _) => vec![*address],
            (EntryPlace::Name(name, port), Some(resolver)) => look_up(resolver, name, *port).await,
            (EntryPlace::Name(..), None) => Vec::new(),
        }
    }
}

/// Looks a name up. Names are complete: the search domains of the user's machine are not appended.
async fn look_up(resolver: &TokioResolver, name: &str, port: u16) -> Vec<SocketAddr> {
    let name = &format!("{}.", name.trim_end_matches('.'));
    let mut found = Vec::new();
    for (host, port) in services(resolver, name).await {
        found.extend(hosts(resolver, &host, port).await);
    }
    if found.is_empty() {
        found = hosts(resolver, name, port).await;
    }
    found.truncate(EntryPoint::MAX_ADDRESSES);
    found
}

async fn services(resolver: &TokioResolver, name: &str) -> Vec<(String, u16)> {
    let Ok(answer) = resolver
        .lookup(format!("_apoidea._udp.{name}"), RecordType::SRV)
        .await
    else {
        return Vec::new();
    };
    let services = answer
        .answers()
        .iter()
        .filter_map(|record| match &record.data {
            RData::SRV(service) => Some((service.target.to_utf8(), service.port)),
            _ => None,
        });
    services.take(EntryPoint::MAX_ADDRESSES).collect()
}

async fn hosts(resolver: &TokioResolver, name: &str, port: u16) -> Vec<SocketAddr> {
    match resolver.lookup_ip(name).await {
        Ok(answer) => answer.iter().map(|ip| SocketAddr::new(ip, port)).collect(),
        Err(error) => {
            tracing::debug!(name, %error, "an entry point's name was not found");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;
    use hickory_resolver::{
        config::{ConnectionConfig, NameServerConfig, ResolverConfig},
        net::runtime::TokioRuntimeProvider,
        proto::{
            op::{Message, OpCode},
            rr::{Name, Record, rdata::SRV},
        },
    };
    use std::net::Ipv4Addr;
    use tokio::net::UdpSocket;

    #[test]
    fn every_way_to_write_an_entry_point_round_trips() {
        let id = PeerId::at(Key::hash("a"));
        for (text, id, place) in [
            ("127.0.0.1:1".into(), None, "127.0.0.1:1"),
            ("127.0.0.1".into(), None, "127.0.0.1:27643"),
            ("[::1]:1".into(), None, "[::1]:1"),
            ("::1".into(), None, "[::1]:27643"),
            (format!("{id}@127.0.0.1:1"), Some(id), "127.0.0.1:1"),
            ("Entry.Example.".into(), None, "entry.example.:27643"),
            (
                format!("{id}@entry.example:99"),
                Some(id),
                "entry.example:99",
            ),
        ] {
            let entry: EntryPoint = text.parse().unwrap();
            let id = id.map(|id| format!("{id}@")).unwrap_or_default();
            assert_eq!(entry.to_string(), format!("{id}{place}"), "{text}");
            assert_eq!(entry.to_string().parse(), Ok(entry));
        }
    }

    /// A name server on loopback that knows one service, one host and nothing else; and a resolver
    /// that asks it.
    async fn resolver() -> TokioResolver {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let port = socket.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut buffer = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let question = Message::from_vec(&buffer[..length]).unwrap();
                socket
                    .send_to(&answer(&question).to_vec().unwrap(), from)
                    .await
                    .unwrap();
            }
        });
        let mut connection = ConnectionConfig::udp();
        connection.port = port;
        connection.bind_addr = Some("127.0.0.1:0".parse().unwrap());
        let mut server = NameServerConfig::udp("127.0.0.1".parse().unwrap());
        server.connections = vec![connection];
        let config = ResolverConfig::from_parts(None, vec![], vec![server]);
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            .build()
            .unwrap()
    }

    fn answer(question: &Message) -> Message {
        let query = &question.queries[0];
        let host = Name::from_ascii("host.example.").unwrap();
        let data = match (query.name().to_ascii().as_str(), query.query_type()) {
            ("_apoidea._udp.ring.example.", RecordType::SRV) => {
                Some(RData::SRV(SRV::new(0, 0, 4000, host)))
            }
            ("host.example.", RecordType::A) => {
                Some(RData::A("127.0.0.9".parse::<Ipv4Addr>().unwrap().into()))
            }
            _ => None,
        };
        let mut answer = Message::response(question.metadata.id, OpCode::Query);
        answer.add_query(query.clone());
        answer.add_answers(data.map(|data| Record::from_rdata(query.name().clone(), 60, data)));
        answer
    }

    #[tokio::test]
    async fn a_name_leads_to_its_services_or_else_to_its_own_addresses() {
        let resolver = resolver().await;
        for (name, addresses) in [
            ("ring.example", vec!["127.0.0.9:4000"]),
            ("host.example", vec!["127.0.0.9:27643"]),
            ("host.example:99", vec!["127.0.0.9:99"]),
            ("nobody.example", vec![]),
        ] {
            let entry: EntryPoint = name.parse().unwrap();
            let addresses: Vec<SocketAddr> =
                addresses.iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(
                entry.place.addresses(Some(&resolver)).await,
                addresses,
                "{name}"
            );
            assert!(entry.place.addresses(None).await.is_empty());
        }
    }

    #[test]
    fn what_is_no_entry_point_is_refused() {
        for text in [
            "",
            "@",
            "x@127.0.0.1:1",
            "a b",
            "a..b",
            "a:99999",
            "a:",
            "http://a/",
            &"a".repeat(64),
        ] {
            assert!(text.parse::<EntryPoint>().is_err(), "{text:?}");
        }
    }
}
