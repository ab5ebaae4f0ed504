//! In which country an address is, from a table that the program carries: nobody is asked over the network.
//!
//! Data: ip-location-db (geo-whois-asn-country), CC BY 4.0 by the Number Resource Organization, nro.net.

use crate::network::NetworkStatus;
use apoidea_model::PeerId;
use maxminddb::Reader;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Empty if the program was built without it.
const TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/countries.mmdb"));

/// The table of countries.
pub(crate) struct Places {
    table: Option<Reader<&'static [u8]>>,
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
    pub(crate) fn open() -> Self {
        Places { table: Reader::from_source(TABLE).ok() }
    }

    /// Where everyone is.
    pub(crate) fn map(&self, network: &NetworkStatus, own: Option<IpAddr>) -> Whereabouts {
        let place = |address: IpAddr| self.country(address);
        Whereabouts {
            own: own.and_then(place),
            peers: network.connected.iter().map(|peer| (peer.id, place(peer.address.ip()))).collect(),
        }
    }

    /// The table is not to be trusted about addresses that are nowhere.
    fn country(&self, address: IpAddr) -> Option<Country> {
        if !apoidea_model::is_global(address) {
            return None;
        }
        let found = self.table.as_ref()?.lookup(address.to_canonical()).ok()?;
        let row: Row<'_> = found.decode().ok()??;
        Some(Country(row.country_code.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_nowhere_has_no_country() {
        let places = Places::open();
        for address in ["127.0.0.1", "10.1.2.3", "::1", "fe80::1", "::ffff:192.168.0.1"] {
            assert_eq!(places.country(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn a_known_address_has_a_country_if_the_table_is_there() {
        let places = Places::open();
        for address in ["193.0.6.139", "2001:638::1"] {
            let found = places.country(address.parse().unwrap());
            let is_code =
                |country: &Country| country.0.len() == 2 && country.0.bytes().all(|b| b.is_ascii_uppercase());
            assert_eq!(found.as_ref().is_some_and(is_code), places.table.is_some(), "{address}: {found:?}");
        }
    }
}
