//! The settings of a peer: one TOML file, every field optional, each default beside its reason.
//!
//! A value out of range is refused while parsing, so the message carries the file, the line, the
//! field and the range that would be right. What good citizenship fixes (user agent, robots,
//! politeness towards global addresses) is deliberately not a setting.

mod seed_source;

pub(crate) use seed_source::parse as parse_seeds;
pub use seed_source::{SeedListError, SeedSource};

use apoidea_crawl::Home;
use apoidea_fetch::FetchConfig;
use apoidea_governor::Switch;
use apoidea_model::{AddressRange, Domain};
use apoidea_overlay::{EntryPlace, EntryPoint, LocalDiscovery, Member, NetworkId};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

/// All settings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the local API and the dashboard listen.
    pub api: ApiConfig,
    /// What is crawled, and how hard.
    pub crawl: CrawlConfig,
    /// What is kept of the pages.
    pub archive: ArchiveConfig,
    /// How pages are kept current.
    pub freshness: FreshnessConfig,
    /// How this peer finds and meets the others.
    pub network: NetworkConfig,
    /// What the volunteer's computer may be used for, until the volunteer says otherwise through
    /// the API: a preset, single fields, or both. Empty is a computer without a user: always,
    /// without limits.
    pub preferences: toml::Table,
    /// Whether the volunteer has agreed; asked by whoever starts the peer, and no setting.
    #[serde(skip)]
    pub consent: Consent,
}

/// Has the volunteer agreed to take part?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    /// Starting the peer said so.
    #[default]
    Given,
    /// The peer starts paused and looks for nobody, until it is told to go on.
    Awaited,
}

/// The local API. It always listens on loopback only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApiConfig {
    /// Port on 127.0.0.1; 0 lets the system choose one. The default is a port no well-known program
    /// uses.
    pub port: u16,
}

impl Default for ApiConfig {
    fn default() -> Self {
        ApiConfig { port: 7717 }
    }
}

/// What is crawled, and how hard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrawlConfig {
    /// Where the crawl begins: a list of URLs (`[]` for none), the name of a file with one a line,
    /// or "built-in", the list in the program, for a peer that knows nothing and is told nothing.
    pub seeds: SeedSource,
    /// Only these domains and their subdomains are crawled; empty means the open web.
    pub only: Vec<Domain>,
    /// Domains (with their subdomains) that this volunteer refuses to crawl.
    pub refuse: Vec<Domain>,
    /// Files with one refused domain a line, such as a public category list.
    pub refuse_lists: Vec<PathBuf>,
    /// Ports that may be contacted. A crawler that can be sent to any port is a port scanner.
    pub ports: Vec<u16>,
    /// Fetches at the same time, each of another host. 32 saturate a home connection with pages of
    /// usual size.
    pub fetches: Bounded<1, 4096>,
    /// URLs of one domain that wait at most; the least important beyond that are dropped and
    /// counted.
    pub queue_per_domain: Bounded<100, 100_000_000>,
    /// URLs that wait at most in all. 20 million take about 2 GiB of disk.
    pub queue_total: Bounded<1000, 1_000_000_000>,
    /// Links followed from a seed at most. Nothing that people link to is further away; traps are.
    pub depth: Bounded<0, 10_000>,
    /// Domains in memory at a time; all others wait on disk. 4,096 take about 8 MiB.
    pub resident_domains: Bounded<16, 1_000_000>,
    /// One page in this many may be mistaken for seen. Apoidea §3.1 takes 1,000; a page never
    /// crawled costs more than the 10 bits a URL that buy a hundred times fewer of them.
    pub seen_false_positives: Bounded<100, 1_000_000_000>,
    /// Memory for seen-filters of the domains in use, in MiB; cold ones are rebuilt from disk.
    pub seen_memory_mib: Bounded<1, 4096>,
    /// Networks that count as the operator's own (an intranet, a test): their addresses may be
    /// contacted, at their own pace. Everything else that is not global is never contacted.
    pub private_networks: Vec<AddressRange>,
    /// Least time between two requests to one private host, in milliseconds.
    pub private_delay_ms: Bounded<0, 3_600_000>,
    /// Least time between two requests to one private address, in milliseconds.
    pub private_address_delay_ms: Bounded<0, 3_600_000>,
    /// Let all peers together ask a private address no faster than one. Its clock is then kept by
    /// some peer of the swarm, which so learns the address: only where all peers are the operator's.
    pub share_private_addresses: bool,
    /// Least wait after 429, 503 and failures of private hosts, in milliseconds.
    pub private_backoff_ms: Bounded<0, 86_400_000>,
    /// Name servers; empty means those of the system.
    pub dns: Vec<SocketAddr>,
    /// Certificates (PEM) trusted in addition to the system's, for an intranet.
    pub trusted_certificates: Vec<PathBuf>,
    /// End the program when nothing is left to crawl, as batch jobs want.
    pub exit_when_done: bool,
}

impl Default for CrawlConfig {
    fn default() -> Self {
        CrawlConfig {
            seeds: SeedSource::BuiltIn,
            only: Vec::new(),
            refuse: Vec::new(),
            refuse_lists: Vec::new(),
            ports: vec![80, 443],
            fetches: Bounded(32),
            queue_per_domain: Bounded(100_000),
            queue_total: Bounded(20_000_000),
            depth: Bounded(20),
            resident_domains: Bounded(4096),
            seen_false_positives: Bounded(100_000),
            seen_memory_mib: Bounded(16),
            private_networks: Vec::new(),
            private_delay_ms: Bounded(1000),
            private_address_delay_ms: Bounded(500),
            share_private_addresses: false,
            private_backoff_ms: Bounded(300_000),
            dns: Vec::new(),
            trusted_certificates: Vec::new(),
            exit_when_done: false,
        }
    }
}

impl CrawlConfig {
    /// The part that fetching depends on.
    pub(crate) fn for_fetching(&self, home: &Home) -> FetchConfig {
        FetchConfig {
            home: home.clone(),
            ports: self.ports.clone(),
            private_networks: self.private_networks.clone(),
            private_delay: self.private_delay_ms.as_millis(),
            private_address_delay: self.private_address_delay_ms.as_millis(),
            dns: self.dns.clone(),
            trusted_certificates: self.trusted_certificates.clone(),
        }
    }
}

/// What is kept of the pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveConfig {
    /// Whether pages are kept at all.
    pub keep: bool,
    /// All archive files together, in MiB; the oldest go first. 2 GiB is what a volunteer does not
    /// notice.
    pub quota_mib: Bounded<16, 100_000_000>,
    /// One archive file, in MiB.
    pub file_mib: Bounded<1, 4096>,
    /// Disk space that always stays free, in MiB.
    pub keep_free_mib: Bounded<0, 100_000_000>,
}

impl Default for ArchiveConfig {
    fn default() -> Self {
        ArchiveConfig {
            keep: true,
            quota_mib: Bounded(2048),
            file_mib: Bounded(64),
            keep_free_mib: Bounded(1024),
        }
    }
}

/// How pages are kept current.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FreshnessConfig {
    /// Visits of known pages in a hundred fetches, and more when there is nothing new to fetch; 0
    /// fetches every page once. At 30 a crawl still grows, and ages slowly.
    pub revisit_share: Bounded<0, 100>,
    /// Least time between two visits of a page in private networks, in milliseconds. On the Internet
    /// it is a day, whatever this says.
    pub private_least_ms: Bounded<1, 86_400_000>,
    /// Longest time between two visits where all crawled pages are in private networks, in
    /// milliseconds: half a year, and in tests less. Everything that takes days shrinks with it.
    pub private_most_ms: Bounded<1000, 15_552_000_000>,
}

impl Default for FreshnessConfig {
    fn default() -> Self {
        FreshnessConfig {
            revisit_share: Bounded(30),
            private_least_ms: Bounded(86_400_000),
            private_most_ms: Bounded(15_552_000_000),
        }
    }
}

/// How this peer finds and meets the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// The lookup system: "chord", a ring that anyone may join, or "fixed", a list of members known
    /// beforehand.
    pub overlay: OverlayChoice,
    /// Only peers of the same network talk to each other.
    pub name: NetworkId,
    /// UDP port; 0 lets the system choose. If it is taken, as by a second peer on the machine, any
    /// other is used.
    pub port: u16,
    /// Addresses to listen on, at most one of each family; empty means all.
    pub listen: Vec<IpAddr>,
    /// Where to enter the ring: `id@address:port`, `address:port`, or a name in DNS.
    pub entry_points: Vec<EntryPoint>,
    /// Are peers looked for on the local network (by multicast DNS)? "on" or "off".
    pub local_network: LocalDiscovery,
    /// Are peers looked for, and this one announced, in BitTorrent's public DHT, if nobody is found
    /// otherwise? "on" or "off"; off in any case for a private network, and for a peer that listens
    /// on this computer alone.
    pub rendezvous: Switch,
    /// Nodes where that DHT begins.
    pub rendezvous_nodes: Vec<EntryPoint>,
    /// Addresses under which others can reach this peer, if it cannot find them out itself.
    pub advertise: Vec<SocketAddr>,
    /// Is this a network of one home, one company or one test, where private addresses may be
    /// dialled on a peer's word?
    pub is_private: bool,
    /// Mean time between two looks at the neighbours on the ring, in milliseconds. 10 s finds a
    /// crash within the time that a crawler waits for a slow site; a small network on fast wires
    /// can afford less.
    pub stabilize_ms: Bounded<100, 600_000>,
    /// Mean time between two searches for a ring that was split off, in milliseconds. Splits last
    /// minutes to hours.
    pub check_ms: Bounded<1000, 86_400_000>,
    /// All members of a fixed network, this one among them.
    pub members: Vec<Member>,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        NetworkConfig {
            overlay: OverlayChoice::Chord,
            name: NetworkId::default(),
            port: EntryPoint::DEFAULT_PORT,
            listen: Vec::new(),
            entry_points: Vec::new(),
            local_network: LocalDiscovery::On,
            rendezvous: Switch::On,
            rendezvous_nodes: rendezvous_nodes(),
            advertise: Vec::new(),
            is_private: false,
            stabilize_ms: Bounded(10_000),
            check_ms: Bounded(300_000),
            members: Vec::new(),
        }
    }
}

impl NetworkConfig {
    /// The nodes where the rendezvous begins; none if there is to be no rendezvous.
    pub(crate) fn rendezvous(&self) -> Vec<EntryPoint> {
        let is_local = !self.listen.is_empty() && self.listen.iter().all(IpAddr::is_loopback);
        match self.rendezvous == Switch::On && !self.is_private && !is_local {
            true => self.rendezvous_nodes.clone(),
            false => Vec::new(),
        }
    }
}

/// Nodes of the DHT that have had these names for many years.
fn rendezvous_nodes() -> Vec<EntryPoint> {
    let names = [
        ("router.bittorrent.com", 6881),
        ("dht.transmissionbt.com", 6881),
        ("dht.libtorrent.org", 25401),
        ("router.utorrent.com", 6881),
    ];
    let nodes = names.into_iter().map(|(name, port)| EntryPoint {
        id: None,
        place: EntryPlace::Name(name.to_owned(), port),
    });
    nodes.collect()
}

/// Which lookup system (PeerCrawl: the overlay is a part that can be replaced).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverlayChoice {
    /// A ring that anyone may join.
    #[default]
    Chord,
    /// Consistent hashing over a list of members.
    Fixed,
}

/// A whole number with its accepted range in its type.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bounded<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Bounded<MIN, MAX> {
    /// The number, or the range it is not in.
    pub fn new(value: u64) -> Result<Self, OutOfRange> {
        if (MIN..=MAX).contains(&value) {
            Ok(Bounded(value))
        } else {
            Err(OutOfRange {
                value,
                min: MIN,
                max: MAX,
            })
        }
    }

    /// The number.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The number, for counts and sizes in memory.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number taken as milliseconds.
    pub const fn as_millis(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// The number taken as MiB, in bytes.
    pub const fn mib_as_bytes(self) -> u64 {
        self.0 << 20
    }
}

/// A number outside its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value} is out of range: accepted are {min} to {max}")]
pub struct OutOfRange {
    value: u64,
    min: u64,
    max: u64,
}

impl<const MIN: u64, const MAX: u64> fmt::Debug for Bounded<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer).map_err(|error| {
            de::Error::custom(format!(
                "{error}; accepted are whole numbers from {MIN} to {MAX}"
            ))
        })?;
        let value = u64::try_from(number).map_err(|_| {
            de::Error::custom(format!(
                "{number} is out of range: accepted are {MIN} to {MAX}"
            ))
        })?;
        Bounded::new(value).map_err(de::Error::custom)
    }
}

/// Why settings were refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the settings in {path}: {source}", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file's text is not right.
    #[error("the settings in {path} are not usable:\n{source}", path = .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Line, field and accepted range.
        source: Box<toml::de::Error>,
    },
    /// A setting given on the command line or in the environment is not right.
    #[error("the setting {setting:?} is not usable: {why}")]
    Override {
        /// As given.
        setting: String,
        /// What is wrong.
        why: String,
    },
}

impl Config {
    /// Reads the file, if there is one, and puts the overrides (`section.field=value`) on top.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ConfigError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => {
                return Err(ConfigError::Unreadable {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let invalid = |source| ConfigError::Invalid {
            path: path.to_owned(),
            source: Box::new(source),
        };
        let mut config: Config = toml::from_str(&text).map_err(invalid)?;
        for setting in overrides {
            config = config.with(setting)?;
        }
        Ok(config)
    }

    /// The same for a computer with a user in front of it: the balanced preset, where the settings
    /// name none.
    pub fn with_a_user(mut self) -> Self {
        self.preferences
            .entry("preset")
            .or_insert_with(|| "balanced".into());
        self
    }

    /// All settings as the text of a settings file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("numbers, texts and lists always serialise")
    }

    /// The same settings with one changed, written `section.field=value`.
    pub fn with(&self, setting: &str) -> Result<Self, ConfigError> {
        let refuse = |why: String| ConfigError::Override {
            setting: setting.to_owned(),
            why,
        };
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            refuse("it should look like section.field=value, such as crawl.fetches=8".to_owned())
        })?;
        let (section, field) = name.trim().split_once('.').ok_or_else(|| {
            refuse("the name should be section.field, such as crawl.fetches".to_owned())
        })?;
        let mut all = toml::Table::try_from(self).map_err(|error| refuse(error.to_string()))?;
        let table = all.get_mut(section).and_then(toml::Value::as_table_mut);
        let table = table.ok_or_else(|| refuse(format!("there is no section {section:?}")))?;
        table.insert(field.to_owned(), override_value(value.trim()));
        toml::from_str(&all.to_string()).map_err(|error| refuse(error.message().to_owned()))
    }
}

/// A value as TOML would read it; what is not TOML is taken as text, so that shells need no double
/// quoting.
fn override_value(text: &str) -> toml::Value {
    let document = format!("value = {text}");
    let parsed = toml::from_str::<toml::Table>(&document)
        .ok()
        .and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("apoidea.toml");
        std::fs::write(&path, text).unwrap();
        Config::load(&path, &[])
    }

    #[test]
    fn an_empty_or_missing_file_gives_the_defaults() {
        assert_eq!(load("").unwrap(), Config::default());
        assert_eq!(
            Config::load(Path::new("/nonexistent/apoidea.toml"), &[]).unwrap(),
            Config::default()
        );
    }

    #[test]
    fn a_bad_value_is_refused_with_file_line_field_and_range() {
        let message = load("[crawl]\nseeds = []\nfetches = 0\n")
            .unwrap_err()
            .to_string();
        for part in ["apoidea.toml", "line 3", "fetches = 0", "1 to 4096"] {
            assert!(message.contains(part), "{part:?} is missing in: {message}");
        }
        let message = load("[crawl]\nfetches = \"many\"\n")
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("line 2") && message.contains("1 to 4096"),
            "{message}"
        );
    }

    #[test]
    fn an_unknown_field_is_refused_with_the_known_ones() {
        let message = load("[crawl]\nfetchs = 3\n").unwrap_err().to_string();
        assert!(
            message.contains("fetchs") && message.contains("`fetches`"),
            "{message}"
        );
        let message = load("[crawl]\nseeds = [\"mailto:x\"]\n")
            .unwrap_err()
            .to_string();
        assert!(message.contains("only http and https"), "{message}");
    }

    #[test]
    fn a_peer_that_nobody_could_reach_does_not_go_to_the_rendezvous() {
        let config = NetworkConfig::default();
        assert_eq!(config.rendezvous().len(), 4);
        for setting in [
            "network.rendezvous=off",
            "network.is_private=true",
            "network.listen=[\"127.0.0.1\"]",
        ] {
            let config = Config::default().with(setting).unwrap();
            assert_eq!(config.network.rendezvous(), [], "{setting}");
        }
    }

    #[test]
    fn overrides_win_and_are_checked_alike() {
        let config = Config::default().with("crawl.fetches=8").unwrap();
        assert_eq!(config.crawl.fetches.value(), 8);
        let config = config.with("crawl.seeds=[\"http://a.example/\"]").unwrap();
        assert_eq!(
            (
                config.crawl.seeds.urls().unwrap().len(),
                config.crawl.fetches.value()
            ),
            (1, 8)
        );
        for (bad, part) in [
            ("crawl.fetches=0", "1 to 4096"),
            ("crawl.fetches", "section.field=value"),
            ("fetches=1", "section.field"),
            ("crowl.fetches=1", "no section"),
            ("crawl.fetchs=1", "unknown field"),
        ] {
            let message = config.with(bad).unwrap_err().to_string();
            assert!(message.contains(part), "{bad}: {message}");
        }
    }
}
