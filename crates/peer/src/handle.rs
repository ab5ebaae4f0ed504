//! A running peer as its faces see it: ask how it is, tell it what to do.

use crate::{
    domains::Listing,
    helped::Helped,
    network::{Network, NetworkStatus},
    preferences_file::PreferencesError,
    status::{DomainRow, PageEvent, Status},
    steward::{ChangeError, Steward},
    swarm::{orders::SwarmOrder, tenancy::Tenancy},
};
use apoidea_governor::{Preferences, SnoozeFor};
use apoidea_model::{Domain, PageUrl, PeerId};
use apoidea_overlay::LookupError;
use apoidea_store::{ReadError, Store};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeSet, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Recent pages kept for those who come later.
const RECENT_PAGES: usize = 100;
/// Pages that a slow listener may lag behind before it misses some.
const PAGE_BACKLOG: usize = 256;

/// How long an order waits for the status to show it.
const CATCH_UP: Duration = Duration::from_secs(2);

/// What a face may ask of the crawler.
#[derive(Debug)]
pub(crate) enum Command {
    /// Admit these URLs; answered when they are durable.
    Seed(Vec<PageUrl>, oneshot::Sender<SeedOutcome>),
    /// Change what is refused; answered with all that is.
    Refusal(Refusal, oneshot::Sender<RefusalOutcome>),
    /// What other peers make necessary.
    Swarm(SwarmOrder),
}

/// A change of what this volunteer refuses to crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Change nothing.
    Ask,
    /// Crawl this domain, and what is below it, no more.
    Add(Domain),
    /// Crawl it again, where it is found again.
    Remove(Domain),
}

/// The domains refused by hand, or why a change could not be written.
pub type RefusalOutcome = Result<BTreeSet<Domain>, String>;

/// How many seeds were accepted, and which were refused and why; or why none could be written.
pub type SeedOutcome = Result<(u64, Vec<(PageUrl, String)>), String>;

/// The peer is ending and takes no more orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer is stopping")]
pub struct Stopped;

/// Talks to a running peer; clones talk to the same one.
#[derive(Clone)]
pub struct Handle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) pages: PageFeed,
    pub(crate) store: Store,
    pub(crate) helped: Helped,
    pub(crate) tenancy: Arc<Tenancy>,
    pub(crate) network: Arc<Network>,
    pub(crate) steward: Arc<Steward>,
    /// Cancelled when somebody asked the whole program to end.
    pub(crate) goodbye: CancellationToken,
}

impl Handle {
    /// How things stand, at most a second old.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Follows the status.
    pub fn watch_status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Follows the pages as they come.
    pub fn watch_pages(&self) -> broadcast::Receiver<PageEvent> {
        self.pages.live.subscribe()
    }

    /// The last pages, oldest first.
    pub fn recent_pages(&self) -> Vec<PageEvent> {
        self.pages
            .recent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }

    /// Adds URLs to the crawl. When this returns they are durable, or refused with a reason.
    pub async fn seed(&self, urls: Vec<PageUrl>) -> Result<SeedOutcome, Stopped> {
        self.order(|reply| Command::Seed(urls, reply)).await
    }

    /// Starts no more fetches until told to go on; those under way finish.
    pub async fn pause(&self) -> Result<(), PreferencesError> {
        self.snooze(SnoozeFor::UntilResumed).await
    }

    /// Starts no more fetches for a while.
    pub async fn snooze(&self, length: SnoozeFor) -> Result<(), PreferencesError> {
        self.steward.snooze(Some(length)).await?;
        self.caught_up().await;
        Ok(())
    }

    /// Ends a pause or snooze.
    pub async fn resume(&self) -> Result<(), PreferencesError> {
        self.steward.snooze(None).await?;
        self.caught_up().await;
        Ok(())
    }

    /// Did the volunteer say pause, and not yet go on?
    pub fn is_held(&self) -> bool {
        self.steward.is_held()
    }

    /// Asks the program that runs this peer to stop it and end.
    pub fn ask_to_quit(&self) {
        self.goodbye.cancel();
    }

    /// Waits until somebody asks the program to end.
    pub async fn quit_asked(&self) {
        self.goodbye.cancelled().await;
    }

    /// What the volunteer wants.
    pub fn preferences(&self) -> Preferences {
        self.steward.preferences()
    }

    /// Changes what the volunteer wants, field by field; see [`Preferences::with`].
    pub async fn change_preferences(
        &self,
        changes: &Map<String, Value>,
    ) -> Result<Preferences, ChangeError> {
        let changed = self.steward.change(changes).await?;
        self.caught_up().await;
        Ok(changed)
    }

    /// Waits, but not for long, until the status shows the allowance in force.
    async fn caught_up(&self) {
        let allowance = self.steward.watch().borrow().clone();
        let mut status = self.status.clone();
        let shown = status.wait_for(|status| status.allowance == allowance);
        let _ = tokio::time::timeout(CATCH_UP, shown).await;
    }

    /// The domains refused by hand.
    pub async fn refusals(&self) -> Result<BTreeSet<Domain>, Stopped> {
        let refused = self
            .order(|reply| Command::Refusal(Refusal::Ask, reply))
            .await?;
        Ok(refused.unwrap_or_default())
    }

    /// Crawls a domain and everything below it no more. What waits of it is left to neighbours, or
    /// forgotten where there are none.
    pub async fn refuse(&self, domain: Domain) -> Result<RefusalOutcome, Stopped> {
        self.order(|reply| Command::Refusal(Refusal::Add(domain), reply))
            .await
    }

    /// Takes a refusal back.
    pub async fn allow(&self, domain: Domain) -> Result<RefusalOutcome, Stopped> {
        self.order(|reply| Command::Refusal(Refusal::Remove(domain), reply))
            .await
    }

    /// The address under which most others see this peer.
    pub fn own_address(&self) -> Option<IpAddr> {
        self.network.own_address()
    }

    /// The network as seen from this peer.
    pub async fn network(&self) -> NetworkStatus {
        self.network.status().await
    }

    /// The peers responsible for a domain, its owner first.
    pub async fn owners(&self, domain: &Domain, count: usize) -> Result<Vec<PeerId>, LookupError> {
        self.network.owners(domain, count).await
    }

    /// Domains in alphabetical order, from `after` on.
    pub async fn domains(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DomainRow>, ReadError> {
        let listing = Listing {
            store: self.store.clone(),
            helped: self.helped.clone(),
            tenancy: self.tenancy.clone(),
        };
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        let list = move || listing.rows(&prefix, after.as_deref(), limit);
        tokio::task::spawn_blocking(list)
            .await
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }

    async fn order<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.commands
            .send(command(reply))
            .await
            .map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }
}

/// Pages as they come, and the last ones.
#[derive(Clone)]
pub(crate) struct PageFeed {
    live: broadcast::Sender<PageEvent>,
    recent: Arc<Mutex<VecDeque<PageEvent>>>,
}

impl PageFeed {
    pub(crate) fn new() -> Self {
        PageFeed {
            live: broadcast::Sender::new(PAGE_BACKLOG),
            recent: Arc::default(),
        }
    }

    pub(crate) fn publish(&self, page: PageEvent) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == RECENT_PAGES {
            recent.pop_front();
        }
        recent.push_back(page.clone());
        // Nobody listening is the usual case.
        let _ = self.live.send(page);
    }
}
