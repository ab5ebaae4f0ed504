//! The description of a toy web before it is started.

use crate::{quirk::Quirk, shape::Shape, slowness::Slowness, web::ToyWeb};
use std::{io, net::IpAddr, path::PathBuf, time::Duration};

/// Loopback addresses that hosts are spread over.
const ADDRESSES: u8 = 8;

/// What a web is to be like.
#[derive(Debug, Clone)]
pub struct Builder {
    pub(crate) seed: u64,
    pub(crate) shape: Shape,
    pub(crate) slowness: Slowness,
    pub(crate) addresses: u8,
    /// Where to listen instead of at loopback addresses; none for those.
    pub(crate) listening_at: Vec<IpAddr>,
    pub(crate) quirks: Vec<Quirk>,
    pub(crate) log_file: Option<PathBuf>,
    pub(crate) http_port: u16,
    pub(crate) https_port: u16,
    pub(crate) dns_port: u16,
    /// The control port, if there is to be one.
    pub(crate) control_port: Option<u16>,
}

impl Builder {
    pub(crate) fn new(seed: u64) -> Self {
        Builder {
            seed,
            shape: Shape::default(),
            slowness: Slowness::default(),
            addresses: ADDRESSES,
            listening_at: Vec::new(),
            quirks: Vec::new(),
            log_file: None,
            http_port: 0,
            https_port: 0,
            dns_port: 0,
            control_port: None,
        }
    }

    /// A small web that is pleasant to look at while it is crawled: 24 hosts, 600 pages of moderate
    /// size.
    pub fn demo(mut self) -> Self {
        self.shape = Shape {
            hosts: 24,
            pages: 600,
            mean_bytes: 12_000,
            skew: 0.5,
            ..Shape::default()
        };
        self
    }

    /// A small web with one host, or a few, for every quirk there is.
    pub fn everything(mut self) -> Self {
        self.shape = Shape {
            hosts: 20,
            pages: 400,
            mean_bytes: 8_000,
            https_percent: 20.0,
            ..Shape::default()
        };
        self.quirks = Quirk::ALL.to_vec();
        self
    }

    /// Replaces all numbers at once.
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// How many ordinary hosts.
    pub fn hosts(mut self, hosts: u32) -> Self {
        self.shape.hosts = hosts;
        self
    }

    /// How many pages on all ordinary hosts together.
    pub fn pages(mut self, pages: u32) -> Self {
        self.shape.pages = pages;
        self
    }

    /// Mean size of a page in bytes.
    pub fn mean_bytes(mut self, bytes: u32) -> Self {
        self.shape.mean_bytes = bytes;
        self
    }

    /// How unequal host sizes are, see [`Shape::skew`].
    pub fn skew(mut self, skew: f64) -> Self {
        self.shape.skew = skew;
        self
    }

    /// Leaf pages, in percent, that are copies of others.
    pub fn copies_percent(mut self, percent: f64) -> Self {
        self.shape.copies_percent = percent;
        self
    }

    /// Ordinary hosts, in percent, that are served over HTTPS only.
    pub fn https_percent(mut self, percent: f64) -> Self {
        self.shape.https_percent = percent;
        self
    }

    /// How long each answer takes to begin, as that of a server far away.
    pub fn answers_after(self, wait: Duration) -> Self {
        self.answers_between(wait, wait)
    }

    /// The same where each host takes a time of its own, from the shortest to the longest.
    pub fn answers_between(mut self, least: Duration, most: Duration) -> Self {
        self.slowness = Slowness { least, most };
        self
    }

    /// Listens at these addresses, which this machine must have, instead of at loopback ones. Hosts
    /// are spread over all of them; the name server is at the first.
    pub fn listening_at(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.listening_at = addresses.into_iter().collect();
        self
    }

    /// Over how many loopback addresses hosts are spread; one where the system has only one.
    pub fn addresses(mut self, addresses: u8) -> Self {
        self.addresses = addresses;
        self
    }

    /// Adds hosts with quirks.
    pub fn quirks(mut self, quirks: impl IntoIterator<Item = Quirk>) -> Self {
        self.quirks.extend(quirks);
        self.quirks.sort_unstable();
        self.quirks.dedup();
        self
    }

    /// Also writes the access log to a file, one JSON object per line.
    pub fn log_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.log_file = Some(path.into());
        self
    }

    /// Fixed ports instead of free ones: HTTP, HTTPS, DNS.
    pub fn ports(mut self, http: u16, https: u16, dns: u16) -> Self {
        (self.http_port, self.https_port, self.dns_port) = (http, https, dns);
        self
    }

    /// Also answers questions of other processes at a port of 127.0.0.1 (0 for any free one):
    /// `/.toyweb/config`, `log`, `truth?url=…`, `must-fetch`, `must-keep`, `copies`, `intruders`.
    pub fn control(mut self, port: u16) -> Self {
        self.control_port = Some(port);
        self
    }

    /// Starts serving. Fails if the sockets or the log file cannot be opened.
    pub async fn start(self) -> io::Result<ToyWeb> {
        ToyWeb::start(self).await
    }
}
