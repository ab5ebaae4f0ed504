//! What can be typed after `apoidea`.

use crate::limits::LimitOptions;
use anyhow::Context;
use apoidea_chord::sim::Scenario;
use apoidea_peer::Config;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// A volunteer web crawler: every copy is a peer of one decentralised crawl.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
pub struct Arguments {
    #[command(flatten)]
    pub place: Place,
    #[command(subcommand)]
    pub command: Command,
}

/// Where a peer's files are.
#[derive(Debug, Args)]
pub struct Place {
    /// Folder for what the peer remembers [default: the platform's data folder]
    #[arg(long, global = true, value_name = "FOLDER", env = "APOIDEA_DATA")]
    data: Option<PathBuf>,
    /// Settings file; it need not exist [default: apoidea.toml in the platform's config folder]
    #[arg(long, global = true, value_name = "FILE", env = "APOIDEA_CONFIG")]
    config: Option<PathBuf>,
    /// Change one setting for this run, such as crawl.fetches=8; can be repeated
    #[arg(
        long = "set",
        global = true,
        value_name = "SECTION.FIELD=VALUE",
        env = "APOIDEA_SET",
        value_delimiter = ';'
    )]
    settings: Vec<String>,
}

impl Place {
    /// The data folder.
    pub fn data(&self) -> anyhow::Result<PathBuf> {
        let default = || {
            Some(
                directories::ProjectDirs::from("", "", "apoidea")?
                    .data_local_dir()
                    .to_owned(),
            )
        };
        let found = self.data.clone().or_else(default);
        found.context("this system names no home folder: say where to keep data with --data FOLDER")
    }

    /// The settings in force.
    pub fn config(&self) -> anyhow::Result<Config> {
        Ok(Config::load(&self.config_file()?, &self.settings)?)
    }

    /// The settings file.
    pub fn config_file(&self) -> anyhow::Result<PathBuf> {
        let default = || {
            Some(
                directories::ProjectDirs::from("", "", "apoidea")?
                    .config_dir()
                    .join("apoidea.toml"),
            )
        };
        let found = self.config.clone().or_else(default);
        found.context("this system names no home folder: name the settings file with --config FILE")
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a peer until it is told to stop
    Run(RunOptions),
    /// Crawl a small web made up on the spot, without any network
    Demo(DemoOptions),
    /// Show how the running peer is doing
    Status(Output),
    /// Give the running peer URLs to begin from
    Seed {
        /// http or https URLs; `-` reads them from standard input, one a line
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Show where a crawl that knows nothing begins, or set it
    Seeds(SeedsOptions),
    /// Be told when a page or a site changes; without one, list what is watched and what changed
    Watch(WatchOptions),
    /// Let the running peer leave the ring and end, the tray app too
    Quit,
    /// Let the running peer start no more fetches
    Pause,
    /// Let the running peer go on
    Resume,
    /// Let the running peer start no more fetches for a while
    Snooze {
        /// 15m, 1h, 4h…, "until tomorrow" or "until resumed"
        #[arg(required = true, value_name = "TIME")]
        length: Vec<String>,
    },
    /// Show what the running peer may use of this computer, or set it
    Limits(Box<LimitOptions>),
    /// List the domains that the running peer knows
    Domains {
        /// Only names that begin so
        #[arg(default_value = "")]
        prefix: String,
        /// At most so many
        #[arg(long, default_value_t = 100)]
        limit: usize,
        #[command(flatten)]
        output: Output,
    },
    /// Show the network as the running peer sees it
    Peers(Output),
    /// Make a link and a QR code that invite somebody to the running peer's network
    Invite(Output),
    /// Follow an invite, found a private network, or return to the one of the settings
    Join(JoinOptions),
    /// Say which peers are responsible for a domain, its owner first
    Owners {
        /// The domain
        domain: String,
        /// The owner and the holders of copies, together
        #[arg(long, default_value_t = 3)]
        count: usize,
        #[command(flatten)]
        output: Output,
    },
    /// Simulate a ring of many peers and print how it did
    Simulate(SimulateOptions),
    /// List the pages fetched last
    Pages(Output),
    /// Print a link that opens the running peer's dashboard once
    Dashboard,
    /// Print the settings in force, as a settings file
    Config,
    /// Write archived pages to a new WARC file
    Export(ExportOptions),
    /// Print the canonical form of a URL
    Canonical {
        /// An absolute URL
        url: String,
    },
    /// Print the links of an HTML file, canonical and in order
    Links {
        /// The URL that the file would have
        base: String,
        /// The file; `-` is standard input
        file: PathBuf,
    },
    /// Say whether a robots.txt lets an agent fetch a URL; exits with 0 if it does, with 1 if not
    Robots {
        /// The robots.txt; `-` is standard input
        file: PathBuf,
        /// The agent's product token, such as Apoidea
        agent: String,
        /// A URL or a path
        url: String,
    },
    /// Write the manual pages and the shells' completions, for packages
    #[command(hide = true)]
    Manual {
        /// The folder to write them to
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct RunOptions {
    /// Begin from this URL too; can be repeated
    #[arg(long = "seed", value_name = "URL")]
    pub seeds: Vec<String>,
    /// End when nothing is left to crawl
    #[arg(long)]
    pub exit_when_done: bool,
}

#[derive(Debug, Args)]
pub struct SeedsOptions {
    /// Begin at the URLs of this file instead, one a line; `-` reads them from standard input
    #[arg(long, value_name = "FILE", conflicts_with = "reset")]
    pub replace: Option<PathBuf>,
    /// Begin at the given list again
    #[arg(long)]
    pub reset: bool,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct WatchOptions {
    /// The URL of a page, https://…, or the name of a site, such as example.org
    #[arg(value_name = "URL|SITE")]
    pub target: Option<String>,
    /// Watch until then: a number of days, such as 30d, or a date, such as 2026-12-31; 90d if it is
    /// not named, 366d at most
    #[arg(long, value_name = "TIME", requires = "target")]
    pub until: Option<String>,
    /// Watch it no more
    #[arg(long, requires = "target", conflicts_with = "until")]
    pub end: bool,
    /// Give the feed of changes another address; the old one shows nothing any more
    #[arg(long, conflicts_with = "target")]
    pub new_feed: bool,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct JoinOptions {
    /// The invite, `apoidea:…`
    #[arg(required_unless_present_any = ["found", "leave"])]
    pub link: Option<String>,
    /// Go to another network than the present one without being asked again
    #[arg(long, requires = "link")]
    pub yes: bool,
    /// Found a private network of this name, from the next start on
    #[arg(long, value_name = "NAME", conflicts_with_all = ["link", "leave"])]
    pub found: Option<String>,
    /// Return to the network of the settings, from the next start on
    #[arg(long, conflicts_with = "link")]
    pub leave: bool,
}

#[derive(Debug, Args)]
pub struct DemoOptions {
    /// Peers that crawl it together, each in a process of its own; keys kill and add some
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub peers: u8,
    /// Hosts of the made-up web
    #[arg(long, default_value_t = 60)]
    pub hosts: u32,
    /// Pages of the made-up web
    #[arg(long, default_value_t = 6000)]
    pub pages: u32,
    /// Another number gives another web
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Milliseconds between two requests to one host
    #[arg(long, default_value_t = 200)]
    pub delay: u64,
    /// End when everything is crawled
    #[arg(long)]
    pub exit_when_done: bool,
}

#[derive(Debug, Args)]
pub struct SimulateOptions {
    /// What happens: steady, dead, crash, churn, weibull, partition, sleep or growth
    #[arg(long, default_value = "steady")]
    pub scenario: Scenario,
    /// How many peers
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub peers: u64,
    /// Where all randomness comes from; the same number gives the same run
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Length of the successor lists
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub successors: u64,
    /// Lookups that are measured
    #[arg(long, default_value_t = 10_000)]
    pub lookups: usize,
    /// Simulated minutes, where the scenario has no natural end
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1440))]
    pub minutes: u64,
    /// Share of messages lost, 0 to 0.5
    #[arg(long, default_value_t = 0.0)]
    pub loss: f64,
    /// Share of the peers that lie, 0 to 0.5: on a ring they claim every key for themselves; in a
    /// crawl they drop links, do no work for others, and hold no replicas
    #[arg(long, default_value_t = 0.0)]
    pub liars: f64,
    /// Let the liars work together: they name only each other
    #[arg(long)]
    pub cabal: bool,
    /// Let the peers crawl a made-up web of this many pages instead, on a ring that stays as it is
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub crawl: Option<u64>,
    /// Hosts of that web
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub hosts: u64,
    /// Fetches that each peer of that crawl may have under way
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub fetches: u64,
    /// Ring successors that each peer of that crawl may lend fetches to
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=64))]
    pub helpers: u64,
    /// Peers of that crawl that crash for good, two in each second
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub crashes: u64,
    /// Compare rules about coming back to pages on real changes instead: lines of a page, a tab,
    /// and the Unix times of its changes, separated by commas; packed with gzip or not
    #[arg(long, value_name = "FILE", conflicts_with = "crawl")]
    pub changes: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct ExportOptions {
    /// The file to write; must not exist yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only pages of this domain
    #[arg(long)]
    pub domain: Option<String>,
    /// Only pages fetched at or after this time, such as 2026-11-16 or 2026-11-16T08:00:00Z
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only pages fetched before this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
}

/// For whom an answer is written.
#[derive(Debug, Clone, Copy, Args)]
pub struct Output {
    /// Answer in JSON, for scripts
    #[arg(long)]
    pub json: bool,
}
