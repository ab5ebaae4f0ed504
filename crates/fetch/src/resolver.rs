//! Names to addresses: many queries outstanding at once, answers and failures cached by their time
//! to live.
//!
//! A name with *any* answer that may not be contacted is refused as a whole, so a site cannot hide
//! a private address among public ones. Before the first name, and every hour, the network is asked
//! for the prefix of its gateway from IPv6 to IPv4 (RFC 7050), since addresses with that prefix may
//! be private ones.
//!
//! A name that nobody answers for may be the name's fault or the line's. The same question tells
//! them apart: if it is not answered either, no name server is heard, and names wait instead of
//! failing.

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
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
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
    servers: Arc<RwLock<Option<Servers>>>,
    /// Name servers of the settings; none means those of the system, which change.
    named: Vec<SocketAddr>,
    contactable: Contactable,
    turns: Arc<Semaphore>,
    home: Home,
    /// When the network is asked for its gateways again.
    translators_due: Arc<Mutex<Option<Instant>>>,
    is_silent: Arc<AtomicBool>,
}

/// The name servers that are asked.
#[derive(Clone)]
struct Servers {
    answers: TokioResolver,
    /// Remembers no answers: an old one would be that of another network.
    probe: TokioResolver,
}

/// Why there is no address to connect to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The name does not exist, or nobody answers for it.
    #[error("the name does not resolve: {0}")]
    Unresolved(String),
    /// No name server is heard.
    #[error("no name server answers")]
    Silent,
    /// It leads where this peer does not go.
    #[error(transparent)]
    Refused(#[from] ContactRefused),
}

impl Resolver {
    /// A resolver asking the configured name servers, or the system's. A system that names none now
    /// may do so later.
    pub fn new(config: &FetchConfig, contactable: Contactable) -> Result<Self, ResolveError> {
        let servers = match Servers::new(&config.dns) {
            Err(error) if !config.dns.is_empty() => return Err(error),
            servers => servers.ok(),
        };
        Ok(Resolver {
            servers: Arc::new(RwLock::new(servers)),
            named: config.dns.clone(),
            contactable,
            turns: Arc::new(Semaphore::new(LOOKUPS_AT_ONCE)),
            home: config.home.clone(),
            translators_due: Arc::default(),
            is_silent: Arc::default(),
        })
    }

    /// The network is another one now: its name servers are asked, and for its gateways before the
    /// next name.
    pub async fn on_moved(&self) {
        self.change_servers();
        *self.translators_due.lock().await = None;
    }

    /// Is no name server heard at the moment?
    pub fn is_silent(&self) -> bool {
        self.is_silent.load(Relaxed)
    }

    /// Asks whether a name server is heard again; after a while without any, the system's may be
    /// others.
    pub async fn listen_again(&self) {
        self.change_servers();
        if self.is_heard().await {
            *self.translators_due.lock().await = None;
        }
    }

    fn change_servers(&self) {
        if self.named.is_empty()
            && let Ok(servers) = Servers::new(&self.named)
        {
            let mut current = self.servers.write().unwrap_or_else(PoisonError::into_inner);
            *current = Some(servers);
        }
    }

    fn servers(&self) -> Option<Servers> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.clone()
    }

    /// Asks for a name that every network may be asked for. Any answer tells that a server is heard.
    async fn is_heard(&self) -> bool {
        let is_heard = match self.servers() {
            Some(servers) => {
                let name = format!("{}.", Translator::WELL_KNOWN_NAME);
                let answer = timeout(TRANSLATORS_WITHIN, servers.probe.ipv6_lookup(name)).await;
                answer.is_ok_and(|answer| answer.as_ref().err().is_none_or(is_answer))
            }
            None => false,
        };
        self.is_silent.store(!is_heard, Relaxed);
        is_heard
    }

    /// Asks for the gateways, if it is time to. Names that come meanwhile wait for the answer.
    async fn learn_translators(&self) {
        let mut due = self.translators_due.lock().await;
        if due.is_some_and(|due| Instant::now() < due) {
            return;
        }
        let name = format!("{}.", Translator::WELL_KNOWN_NAME);
        let Some(servers) = self.servers() else {
            return;
        };
        let answer = timeout(TRANSLATORS_WITHIN, servers.probe.ipv6_lookup(name)).await;
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
        let servers = self.servers().ok_or_else(|| {
            self.is_silent.store(true, Relaxed);
            ResolveError::Silent
        })?;
        // The final dot keeps the system's search list out of it.
        let answer = match servers.answers.lookup_ip(format!("{domain}.")).await {
            Ok(answer) => answer,
            Err(error) if is_answer(&error) || self.is_heard().await => {
                return Err(ResolveError::Unresolved(error.to_string()));
            }
            Err(_) => return Err(ResolveError::Silent),
        };
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

impl Servers {
    fn new(named: &[SocketAddr]) -> Result<Self, ResolveError> {
        Ok(Servers {
            answers: asking(named, CACHED_ANSWERS)?,
            probe: asking(named, 0)?,
        })
    }
}

/// Did a name server say so, rather than nobody anything?
fn is_answer(error: &NetError) -> bool {
    matches!(error, NetError::Dns(_) | NetError::Proto(_))
}

/// Asks the configured name servers, or the system's, and remembers so many answers.
fn asking(named: &[SocketAddr], cached: u64) -> Result<TokioResolver, ResolveError> {
    let unusable = |error: NetError| ResolveError::Unresolved(error.to_string());
    let provider = TokioRuntimeProvider::default();
    let mut builder = if named.is_empty() {
        TokioResolver::builder(provider).map_err(unusable)?
    } else {
        let servers = named.iter().map(|&address| name_server(address)).collect();
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
