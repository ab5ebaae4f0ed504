//! Names to addresses: many queries outstanding at once, answers and failures cached by their time
//! to live.
//!
//! A name with *any* answer that may not be contacted is refused as a whole, so a site cannot hide
//! a private address among public ones. Before the first name, and every hour, the network is asked
//! for the prefix of its gateway from IPv6 to IPv4 (RFC 7050), since addresses with that prefix may
//! be private ones.

use crate::config::FetchConfig;
use apoidea_crawl::{ContactRefused, Contactable, Home};
use apoidea_model::{Domain, Translator};
use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts},
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::rr::RData,
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, timeout},
};

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
/// The network may be another one after this.
const TRANSLATORS_EVERY: Duration = Duration::from_secs(3600);
/// A network that did not tell is asked again after this.
const TRANSLATORS_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// It has so long to tell; meanwhile names wait.
const TRANSLATORS_WITHIN: Duration = Duration::from_secs(3);

/// Resolves names.
#[derive(Clone)]
pub struct Resolver {
    inner: TokioResolver,
    contactable: Contactable,
    turns: Arc<Semaphore>,
    home: Home,
    /// Remembers no answers: an old one would be that of another network.
    probe: TokioResolver,
    /// When the network is asked for its gateways again.
    translators_due: Arc<Mutex<Option<Instant>>>,
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
        Ok(Resolver {
            inner: asking(config, CACHED_ANSWERS)?,
            contactable,
            turns: Arc::new(Semaphore::new(LOOKUPS_AT_ONCE)),
            home: config.home.clone(),
            probe: asking(config, 0)?,
            translators_due: Arc::default(),
        })
    }

    /// The network is another one now: its gateways are asked for before the next name.
    pub async fn on_moved(&self) {
        *self.translators_due.lock().await = None;
    }

    /// Asks for the gateways, if it is time to. Names that come meanwhile wait for the answer.
    async fn learn_translators(&self) {
        let mut due = self.translators_due.lock().await;
        if due.is_some_and(|due| Instant::now() < due) {
            return;
        }
        let name = format!("{}.", Translator::WELL_KNOWN_NAME);
        let answer = timeout(TRANSLATORS_WITHIN, self.probe.ipv6_lookup(name)).await;
        let told = match answer {
            Ok(Ok(answer)) => Some(
                answer
                    .answers()
                    .iter()
                    .filter_map(|record| match record.data {
                        RData::AAAA(address) => Some(address.0),
                        _ => None,
                    })
                    .flat_map(Translator::told_by)
                    .collect(),
            ),
            Ok(Err(error)) => error.is_no_records_found().then(Vec::new),
            Err(_) => None,
        };
        let again = told
            .as_ref()
            .map_or(TRANSLATORS_AGAIN_AFTER, |_| TRANSLATORS_EVERY);
        *due = Some(Instant::now() + again);
        if let Some(translators) = told {
            self.home.set_translators(translators);
        }
    }

    /// All addresses of a domain, each of which may be contacted.
    pub async fn resolve(&self, domain: &Domain) -> Result<Vec<IpAddr>, ResolveError> {
        self.learn_translators().await;
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

/// Asks the configured name servers, or the system's, and remembers so many answers.
fn asking(config: &FetchConfig, cached: u64) -> Result<TokioResolver, ResolveError> {
    let unusable = |error: NetError| ResolveError::Unresolved(error.to_string());
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
    builder.options_mut().cache_size = cached;
    builder.build().map_err(unusable)
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
    options.max_active_requests = OUTSTANDING_QUERIES;
    options.positive_min_ttl = Some(LEAST_TTL);
    options.negative_min_ttl = Some(LEAST_TTL);
    options.positive_max_ttl = Some(MOST_TTL);
    options.negative_max_ttl = Some(MOST_NEGATIVE_TTL);
    // Names from strangers must not reach what the volunteer's hosts file names.
    options.use_hosts_file = ResolveHosts::Never;
}
