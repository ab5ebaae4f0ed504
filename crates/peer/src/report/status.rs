//! What a peer says about itself: one snapshot, the same in the API, the command line and the
//! dashboard. It has no sentences where a program would have to read them: [`super::words`] makes
//! them.

use crate::{network::NetworkState, report::outcome::PageOutcome, swarm::lending::borrowed::Help};
use apoidea_crawl::{DropReason, Stop};
use apoidea_governor::{Allowance, Readings};
use apoidea_model::{Domain, PageUrl, Time};
use apoidea_overlay::EntryStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How things stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ts_rs::TS)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// What the peer is doing.
    pub state: State,
    /// The same as a sentence for people.
    pub reason: String,
    /// When this run began.
    pub started: Time,
    /// When this snapshot was taken.
    pub at: Time,
    /// Counted over all runs.
    pub totals: Totals,
    /// Speed and size, now.
    #[serde(flatten)]
    pub usage: Usage,
    /// URLs waiting.
    pub queued: u64,
    /// Links found and not yet accepted by their owner.
    pub outbox: u64,
    /// Domains known, replicas for others included.
    pub domains: u64,
    /// Domains that this peer crawls.
    pub owned_domains: u64,
    /// Fetches under way, those for neighbours among them.
    pub fetching: u64,
    /// Fetches that neighbours do for this peer.
    pub lent: u64,
    /// Hosts whose turn has come, and that wait until a fetch may start.
    pub ready: u64,
    /// Pages under way, from the start of their fetch until they are durable; lent and borrowed
    /// ones among them.
    pub processing: u64,
    /// The peer's place in the network.
    pub network: NetworkState,
    /// The way to other peers and to the web.
    #[serde(flatten)]
    pub door: Door,
    /// What needs the operator's attention, such as a full disk.
    pub attention: Option<Attention>,
    /// What may be used right now, and why not more.
    pub allowance: Allowance,
    /// What the sensors saw last.
    pub readings: Readings,
}

/// The peer's speed and size.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ts_rs::TS)]
pub struct Usage {
    /// Pages per second over the last ten seconds.
    pub pages_per_second: f64,
    /// Bytes per second over the last ten seconds, as sent by the servers.
    pub bytes_per_second: f64,
    /// CPU time in use now, in percent of one core.
    pub cpu_percent: f64,
    /// Bytes in the archive.
    pub archive_bytes: u64,
    /// Memory in use by the process, in bytes.
    pub memory_bytes: u64,
    /// Domains held in memory now.
    pub resident_domains: u64,
    /// Pages that were fetched and are visited again, replicas for others included.
    pub known_pages: u64,
    /// Of these, the pages that have probably not changed since, in percent; none before they were
    /// counted.
    pub current_percent: Option<f64>,
}

/// The way to other peers and to the web.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ts_rs::TS)]
pub struct Door {
    /// What a crawl with others lacks, if anything.
    pub missing: Option<Missing>,
    /// The ways into the ring, in the order in which they are tried.
    pub entry: Vec<EntryStatus>,
    /// Bytes that the rendezvous has sent and received since the start.
    pub rendezvous_bytes: u64,
}

/// What a peer lacks. It goes on by itself as soon as it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Missing {
    /// There is no Internet connection.
    Internet,
    /// The name servers do not answer.
    NameServer,
    /// Most of the peers that this one knew fell silent at once: it is cut off, and others may do
    /// its work.
    Touch,
    /// No other peer was found so far.
    Peers {
        /// Ways that were tried.
        ways: u64,
    },
}

/// What the peer is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Fetching, or waiting for a host's turn.
    Crawling,
    /// Nothing is left to crawl.
    Idle,
    /// Told to pause.
    Paused,
    /// Ending.
    Stopping,
}

/// What needs the operator's attention. The errors are the system's own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Attention {
    /// The store, which remembers the crawl, cannot be read or written.
    Store {
        /// The cause.
        error: String,
    },
    /// Pages cannot be written; the peer tries again until they can.
    Archive {
        /// The cause.
        error: String,
    },
    /// The thread that writes has ended; only a restart helps.
    WriterEnded,
}

/// Counted over all runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ts_rs::TS)]
#[serde(default)]
pub struct Totals {
    /// Pages fetched with their body.
    pub pages: u64,
    /// Of these, pages whose content was known already.
    pub duplicates: u64,
    /// Bytes received as bodies.
    pub bytes: u64,
    /// Links found on pages.
    pub links: u64,
    /// URLs admitted to queues.
    pub admitted: u64,
    /// Links that other peers sent.
    pub received: u64,
    /// Pages left to neighbours, because this peer had enough to do or refuses their domain.
    pub lent: u64,
    /// Pages fetched for neighbours, and kept here.
    pub borrowed: u64,
    /// Pages whose bodies went to the disk while the ring was asked whether their content is known.
    pub put_aside: u64,
    /// URLs that robots.txt forbids.
    pub disallowed: u64,
    /// Pages that were visited again.
    pub revisits: u64,
    /// Of these, pages that their servers called unchanged, without sending them.
    pub not_modified: u64,
    /// Of these, pages that read differently.
    pub changed: u64,
    /// Bytes that were not sent so.
    pub saved_bytes: u64,
    /// Sites that called changed pages unchanged, each time that one was found out.
    pub liars: u64,
    /// Fetches without a page, by outcome.
    #[ts(type = "Partial<Record<PageOutcome, number>>")]
    pub failures: BTreeMap<PageOutcome, u64>,
    /// URLs not admitted, by reason; those seen already are not counted.
    #[ts(as = "BTreeMap<String, u64>")]
    pub dropped: BTreeMap<DropReason, u64>,
}

/// Something that just happened to a URL, for the list of recent pages and the event stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct PageEvent {
    /// When.
    pub at: Time,
    /// What was fetched.
    pub url: PageUrl,
    /// How the fetch ended.
    pub outcome: PageOutcome,
    /// Bytes of the body.
    pub bytes: u64,
    /// Links found.
    pub links: u64,
    /// Milliseconds the fetch took.
    pub millis: u64,
}

/// What a peer is to a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It crawls the domain.
    Owner,
    /// It holds a copy of what the owner knows.
    Holder,
    /// It keeps nothing of the domain, but fetched pages of it for the owner.
    Helper,
}

/// A domain in a listing. Of one that this peer only helps with, the numbers are its own; otherwise
/// they are the owner's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct DomainRow {
    /// The domain.
    pub domain: Domain,
    /// What this peer is to it.
    pub role: Role,
    /// What this peer fetched for its owner.
    pub helped: Option<Help>,
    /// Pages fetched.
    pub fetched: u64,
    /// URLs waiting.
    pub queued: u64,
    /// Fetches that failed.
    pub failed: u64,
    /// Bytes received.
    pub bytes: u64,
    /// When it was asked last; zero if never.
    pub visited: Time,
    /// When it may next be asked.
    pub next: Time,
    /// The pause after the last request, in milliseconds.
    pub delay_ms: u64,
    /// What becomes of it.
    pub state: DomainStatus,
    /// What is known of its robots.txt.
    pub robots: RobotsStatus,
}

/// What becomes of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DomainStatus {
    /// Its URLs are fetched, each in its turn.
    Crawling,
    /// No URL of it waits.
    Done,
    /// It is left alone for a while.
    Rests {
        /// The end of its rest.
        until: Time,
    },
    /// It is not asked any more.
    Stopped {
        /// The reason.
        why: StopReason,
    },
    /// The volunteer refuses it, or a domain that it is part of.
    Refused,
    /// Its owner crawls it; this peer only helps.
    Helped,
}

/// Why a domain is not asked any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It forbids us.
    Forbidden,
    /// It wants to see a human.
    Challenged,
    /// It did not answer for a week.
    Unreachable,
}

impl From<Stop> for StopReason {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Forbidden => StopReason::Forbidden,
            Stop::Challenged => StopReason::Challenged,
            Stop::Unreachable => StopReason::Unreachable,
        }
    }
}

/// What is known of a domain's robots.txt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RobotsStatus {
    /// It was not asked for yet.
    NotAsked,
    /// The host did not answer.
    Silent {
        /// When it is asked again.
        until: Time,
    },
    /// It is known.
    Known {
        /// The pause between requests that it asks for, in milliseconds.
        delay_ms: Option<u64>,
    },
    /// The owner heeds it; this peer only helps.
    LeftToOwner,
}
