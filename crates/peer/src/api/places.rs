//! In which country an address is, from a table that the program carries: nobody is asked over the
//! network.
//!
//! The table is packed and only unpacked when somebody looks at a map: most peers never need it in
//! memory.
//!
//! Data: ip-location-db (geo-whois-asn-country), CC BY 4.0 by the Number Resource Organization,
//! nro.net.

use crate::network::NetworkStatus;
use apoidea_model::PeerId;
use maxminddb::Reader;
use serde::{Deserialize, Serialize};
use std::{io::Read as _, net::IpAddr, sync::OnceLock};

/// With Brotli; empty if the program was built without it.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/countries.mmdb.br"));
/// What the unpacker reads at once.
const UNPACK_BYTES: usize = 64 << 10;

/// The table of countries.
#[derive(Default)]
pub(crate) struct Places {
    table: OnceLock<Option<Reader<Vec<u8>>>>,
}

/// Where this peer and those it is connected to are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct Whereabouts {
    /// The country of this peer, as far as others see its address.
    pub own: Option<Country>,
    /// The countries of connected peers; those in a private network have none.
    pub peers: Vec<(PeerId, Option<Country>)>,
}

/// A country by its two letters in ISO 3166.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct Country(String);

#[derive(Deserialize)]
struct Row<'a> {
    country_code: &'a str,
}

impl Places {
    /// Where everyone is.
    pub(crate) fn map(&self, network: &NetworkStatus, own: Option<IpAddr>) -> Whereabouts {
        let place = |address: IpAddr| self.country(address);
        Whereabouts {
            own: own.and_then(place),
            peers: network
                .connected
                .iter()
                .map(|peer| {
                    let address = peer.route.address();
                    (peer.id, address.and_then(|address| place(address.ip())))
                })
                .collect(),
        }
    }

    /// The table is not to be trusted about addresses that are nowhere.
    fn country(&self, address: IpAddr) -> Option<Country> {
        if !apoidea_model::is_global(address) {
            return None;
        }
        let table = self.table.get_or_init(unpack).as_ref()?;
        let found = table.lookup(address.to_canonical()).ok()?;
        let row: Row<'_> = found.decode().ok()??;
        Some(Country(row.country_code.to_owned()))
    }
}

fn unpack() -> Option<Reader<Vec<u8>>> {
    let mut table = Vec::new();
    brotli_decompressor::Decompressor::new(PACKED, UNPACK_BYTES)
        .read_to_end(&mut table)
        .ok()?;
    table.shrink_to_fit();
    Reader::from_source(table).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_nowhere_has_no_country() {
        let places = Places::default();
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "::1",
            "fe80::1",
            "::ffff:192.168.0.1",
        ] {
            assert_eq!(places.country(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn a_known_address_has_a_country_if_the_table_is_there() {
        let places = Places::default();
        for address in ["193.0.6.139", "2001:638::1"] {
            let found = places.country(address.parse().unwrap());
            let is_code = |country: &Country| {
                country.0.len() == 2 && country.0.bytes().all(|b| b.is_ascii_uppercase())
            };
            assert_eq!(
                found.as_ref().is_some_and(is_code),
                !PACKED.is_empty(),
                "{address}: {found:?}"
            );
        }
    }
}
