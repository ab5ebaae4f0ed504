//! A running peer as its faces see it: ask how it is, tell it what to do.

mod watching;

pub use watching::WatchRefusal;

pub use crate::{
    crawler::command::{CommandError, SeedReceipt},
    swarm::orders::Stopped,
};

use crate::{
    config::SeedListError,
    crawler::command::{Command, RefusalChange},
    network::{Network, NetworkStatus},
    report::{
        domains::Listing,
        page_feed::PageFeed,
        status::{DomainRow, PageEvent, Status},
    },
    swarm::{
        lending::borrowed::BorrowedDomains, tenancy::Tenancy, trust::book::TrustBook,
        watching::asking::WatchAsker,
    },
    volunteer::{
        membership::{Membership, MembershipError},
        preferences_file::PreferencesError,
        start_list::{StartList, StartSeeds},
        steward::{ChangeError, Steward},
    },
};
use apoidea_governor::{Preferences, SnoozeFor};
use apoidea_model::{Domain, PageUrl, PeerId};
use apoidea_overlay::{AddressPolicy, InvalidInvite, Invite, LookupError};
use apoidea_store::{ReadError, Store, archive::Span};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, net::IpAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// How long an order waits for the status to show it.
const CATCH_UP: Duration = Duration::from_secs(2);

/// Talks to a running peer; clones talk to the same one.
#[derive(Clone)]
pub struct Handle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) pages: PageFeed,
    pub(crate) archive: watch::Receiver<Span>,
    pub(crate) store: Store,
    pub(crate) borrowed: BorrowedDomains,
    pub(crate) tenancy: Arc<Tenancy>,
    pub(crate) network: Arc<Network>,
    pub(crate) book: Arc<TrustBook>,
    pub(crate) steward: Arc<Steward>,
    pub(crate) start_list: StartList,
    pub(crate) asker: Arc<WatchAsker>,
    /// The data folder.
    pub(crate) folder: PathBuf,
    /// Cancelled when somebody asked the whole program to end.
    pub(crate) goodbye: CancellationToken,
}

/// What became of an invite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Joined {
    /// Its peers were called, and are remembered.
    Called {
        /// Peers that it names.
        peers: u64,
        /// Of these, peers that answered.
        answered: u64,
    },
    /// It is for another network, to which this peer belongs from its next start on.
    NextStart {
        /// The network's name.
        network: String,
    },
}

/// Why an invite is not followed.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// It cannot be read.
    #[error(transparent)]
    Invalid(#[from] InvalidInvite),
    /// The volunteer has to agree first.
    #[error(
        "the invite is for another network, {network:?}{private}; say that you agree to change"
    )]
    NotAgreed {
        /// The other network.
        network: String,
        /// A few words more, if it is a private one.
        private: &'static str,
    },
    /// It is this peer's own.
    #[error("this is your own invite; it is for others")]
    Own,
    /// The choice cannot be kept.
    #[error(transparent)]
    Membership(#[from] MembershipError),
}

impl Handle {
    /// An invite to this peer's network.
    pub async fn invite(&self) -> Invite {
        self.network.invite().await
    }

    /// Does an invite lead to the network that this peer is in?
    pub fn is_of_own_network(&self, invite: &Invite) -> bool {
        self.network.kind() == (&invite.network, invite.addresses)
    }

    /// Follows an invite. One for another network counts from the next start on, and only if the
    /// volunteer agrees.
    pub async fn join(&self, invite: &Invite, agreed: bool) -> Result<Joined, JoinError> {
        let me = self.network.overlay().me();
        if invite.peers.iter().all(|peer| peer.id == me) {
            return Err(JoinError::Own);
        }
        let membership = Membership::of(invite);
        if self.is_of_own_network(invite) {
            // Kept before the call, so that the next start calls again.
            membership.save(&self.folder)?;
            let answered = self.network.call(invite).await as u64;
            let peers = invite.peers.len() as u64;
            return Ok(Joined::Called { peers, answered });
        }
        let network = invite.network.to_string();
        if !agreed {
            let private = match invite.addresses {
                AddressPolicy::Private => ", a private one whose peers may name private addresses",
                AddressPolicy::Global => "",
            };
            return Err(JoinError::NotAgreed { network, private });
        }
        membership.save(&self.folder)?;
        Ok(Joined::NextStart { network })
    }

    /// How things stand, at most a second old.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Follows the status.
    pub fn watch_status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Follows the archive: the part of it that is committed, from its oldest file on. A follower
    /// reads with [`apoidea_store::archive::Reader::follow`] up to its end, and forgets what lies
    /// before its beginning.
    pub fn watch_archive(&self) -> watch::Receiver<Span> {
        self.archive.clone()
    }

    /// Follows the pages as they come.
    pub fn watch_pages(&self) -> broadcast::Receiver<PageEvent> {
        self.pages.watch()
    }

    /// The last pages, oldest first.
    pub fn recent_pages(&self) -> Vec<PageEvent> {
        self.pages.recent()
    }

    /// Adds URLs to the crawl. When this returns they are durable, or refused with a reason.
    pub async fn seed(
        &self,
        urls: Vec<PageUrl>,
    ) -> Result<Result<SeedReceipt, CommandError>, Stopped> {
        self.order(|reply| Command::Seed(urls, reply)).await
    }

    /// The URLs where a crawl that knows nothing begins.
    pub fn start_seeds(&self) -> Result<StartSeeds, SeedListError> {
        self.start_list.read()
    }

    /// Puts another list of such URLs in its place, one a line; none takes the volunteer's list back.
    pub fn change_start_seeds(&self, text: Option<&str>) -> Result<StartSeeds, SeedListError> {
        match text {
            Some(text) => self.start_list.write(text),
            None => self.start_list.reset(),
        }
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
    pub fn is_paused_by_hand(&self) -> bool {
        self.steward.is_paused_by_hand()
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
            .order(|reply| Command::Refusal(RefusalChange::Ask, reply))
            .await?;
        Ok(refused.unwrap_or_default())
    }

    /// Crawls a domain and everything below it no more. What waits of it is left to neighbours, or
    /// forgotten where there are none.
    pub async fn refuse(
        &self,
        domain: Domain,
    ) -> Result<Result<BTreeSet<Domain>, CommandError>, Stopped> {
        self.order(|reply| Command::Refusal(RefusalChange::Add(domain), reply))
            .await
    }

    /// Takes a refusal back.
    pub async fn allow(
        &self,
        domain: Domain,
    ) -> Result<Result<BTreeSet<Domain>, CommandError>, Stopped> {
        self.order(|reply| Command::Refusal(RefusalChange::Remove(domain), reply))
            .await
    }

    /// The address under which most others see this peer.
    pub fn own_address(&self) -> Option<IpAddr> {
        self.network.own_address()
    }

    /// The network as seen from this peer.
    pub async fn network(&self) -> NetworkStatus {
        let mut status = self.network.status().await;
        status.standings = self.book.standings();
        status
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
            borrowed: self.borrowed.clone(),
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
