//! What a crawler must be told to visit a toy web, as one value that can be printed.

use apoidea_model::PageUrl;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Where a web is and where to begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The name server, UDP and TCP.
    pub dns_address: SocketAddr,
    /// The port of every `http` URL.
    pub http_port: u16,
    /// The port of every `https` URL.
    pub https_port: u16,
    /// Where questions are answered, if anywhere.
    pub control_address: Option<SocketAddr>,
    /// The addresses hosts live at: all that a crawler needs to be allowed to visit.
    pub addresses: Vec<IpAddr>,
    /// Home pages to begin with.
    pub seeds: Vec<PageUrl>,
    /// How many URLs must be fetched.
    pub expected_total: u64,
    /// The certificate authority to trust, as PEM.
    pub ca_pem: String,
}
