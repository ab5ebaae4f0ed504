//! Names to addresses: many queries outstanding at once, answers and failures cached by their time
//! to live.
//!
//! A name with *any* answer that may not be contacted is refused as a whole, so a site cannot hide
//! a private address among public ones.

use crate::config::FetchConfig;
use apoidea_crawl::{ContactRefused, Contactable};
use apoidea_model::Domain;
use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts},
    net::runtime::TokioRuntimeProvider,
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Semaphore;

/// Answers kept in the cache.
const CACHED_ANSWERS: u64 = 8192;
/// Queries outstanding to one name server.
const OUTSTANDING_QUERIES: usize = 256;
/// Names looked up at a time; all others wait. Each takes sockets and memory until it is answered,
/// which with a server that never answers is long, and a domain that comes into memory is looked up
/// at once.
const LOOKUPS_AT_ONCE: usize = 64;
/// An answer is used for at least this long, whatever its time to live: a host is asked about every
/// few seconds.
const LEAST_TTL: Duration = Duration::from_secs(60);
/// And for at most this long: sites move.
const MOST_TTL: Duration = Duration::from_secs(24 * 3600);
/// A failure is remembered for at most this long, so that a name that comes into being is found the
/// same day.
const MOST_NEGATIVE_TTL: Duration = Duration::from_secs(3600);

/// Resolves names.
#[derive(Clone)]
pub struct Resolver {
    inner: TokioResolver,
    contactable: Contactable,
    turns: Arc<Semaphore>,
}

/// Why there is no address to connect to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The name does not exist, or nobody answers for it.
    #[error("the name does not resolve: {0}")]
    Unresolved(String),
    /// It leads where this peer does not go.
    #[error(transparent)]
    Refused(#[from] ContactRefused),
}

impl Resolver {
    /// A resolver asking the configured name servers, or the system's.
    pub fn new(config: &FetchConfig, contactable: Contactable) -> Result<Self, ResolveError> {
        let unusable =
            |error: hickory_resolver::net::NetError| ResolveError::Unresolved(error.to_string());
        let provider = TokioRuntimeProvider::default();
        let mut builder = if config.dns.is_empty() {
            TokioResolver::builder(provider).map_err(unusable)?
        } else {
            let servers = config
                .dns
                .iter()
                .map(|&address| name_server(address))
                .collect();
            TokioResolver::builder_with_config(ResolverConfig::from_name_servers(servers), provider)
        };
        set_options(builder.options_mut());
        let turns = Arc::new(Semaphore::new(LOOKUPS_AT_ONCE));
        Ok(Resolver {
            inner: builder.build().map_err(unusable)?,
            contactable,
            turns,
        })
    }

    /// All addresses of a domain, each of which may be contacted.
    pub async fn resolve(&self, domain: &Domain) -> Result<Vec<IpAddr>, ResolveError> {
        if let Some(address) = domain.ip() {
            self.contactable.check_address(address)?;
            return Ok(vec![address]);
        }
        let _turn = self
            .turns
            .acquire()
            .await
            .expect("the semaphore is never closed");
        // The final dot keeps the system's search list out of it.
        let answer = self.inner.lookup_ip(format!("{domain}.")).await;
        let answer = answer.map_err(|error| ResolveError::Unresolved(error.to_string()))?;
        let addresses: Vec<IpAddr> = answer.iter().collect();
        addresses
            .iter()
            .try_for_each(|&address| self.contactable.check_address(address))?;
        if addresses.is_empty() {
            return Err(ResolveError::Unresolved("it has no address".to_owned()));
        }
        Ok(addresses)
    }
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let at_port = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    let connections = vec![
        at_port(ConnectionConfig::udp()),
        at_port(ConnectionConfig::tcp()),
    ];
    NameServerConfig::new(address.ip(), true, connections)
}

fn set_options(options: &mut ResolverOpts) {
    options.cache_size = CACHED_ANSWERS;
    options.max_active_requests = OUTSTANDING_QUERIES;
    options.positive_min_ttl = Some(LEAST_TTL);
    options.negative_min_ttl = Some(LEAST_TTL);
    options.positive_max_ttl = Some(MOST_TTL);
    options.negative_max_ttl = Some(MOST_NEGATIVE_TTL);
    // Names from strangers must not reach what the volunteer's hosts file names.
    options.use_hosts_file = ResolveHosts::Never;
}
