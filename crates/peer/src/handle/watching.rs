//! The volunteer's watches, as the faces of a peer see them.

use super::{CommandError, Handle, Stopped};
use crate::{
    clock::unblocked,
    swarm::watching::watchlist::{OwnWatch, WatchError, WatchTarget, WatchedChange},
};
use apoidea_model::Time;
use apoidea_store::ReadError;
use tokio::sync::broadcast;

/// Why something is not watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchRefusal {
    /// It cannot be part of the crawl.
    #[error("it cannot be crawled: {0}")]
    Crawl(String),
    /// The list of watches does not take it.
    #[error(transparent)]
    List(#[from] WatchError),
    /// The crawl cannot be written.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The peer is ending.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Handle {
    /// Watches a page or a site from now on. The owner of the page has to know it: it becomes part
    /// of the crawl.
    pub async fn watch(&self, target: WatchTarget, until: Time) -> Result<OwnWatch, WatchRefusal> {
        let seeded = self.seed(target.seeds()).await?;
        let seeded = seeded?;
        if let (0, Some((_, why))) = (seeded.accepted, seeded.refused.into_iter().next()) {
            return Err(WatchRefusal::Crawl(why));
        }
        let watchlist = self.asker.watchlist.clone();
        Ok(unblocked(move || watchlist.begin(target, until)).await?)
    }

    /// Ends a watch; false if there was none.
    pub async fn end_watch(&self, target: WatchTarget) -> Result<bool, WatchRefusal> {
        let (watchlist, of) = (self.asker.watchlist.clone(), target.clone());
        let ended = unblocked(move || watchlist.end(&of)).await?;
        if ended.is_some() {
            self.asker.end(&target);
        }
        Ok(ended.is_some())
    }

    /// The volunteer's watches.
    pub fn watches(&self) -> Vec<OwnWatch> {
        self.asker.watchlist.list()
    }

    /// The last changes of what is watched, latest first.
    pub fn watched_changes(&self) -> Result<Vec<WatchedChange>, ReadError> {
        self.asker.watchlist.changes()
    }

    /// Follows these changes as they come.
    pub fn follow_changes(&self) -> broadcast::Receiver<WatchedChange> {
        self.asker.watchlist.follow()
    }
}
