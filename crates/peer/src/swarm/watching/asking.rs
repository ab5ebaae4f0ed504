//! Asking the owners of watched pages for changes.

use super::{
    message::{WATCH, WatchAnswer, WatchAsk},
    watchlist::{WatchTarget, Watchlist},
};
use crate::{
    clock::now,
    swarm::{
        orders::Orders,
        tenancy::{Claim, Tenancy},
        wire,
    },
};
use apoidea_model::Time;
use apoidea_overlay::Overlay;
use futures::{StreamExt, stream};
use std::{sync::Arc, time::Duration};
use tokio::time;

/// Owners that are asked at a time.
const AT_ONCE: usize = 8;
/// The time for a look-up and an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Rounds of questions are so far apart at least, whoever rings.
const LEAST_PAUSE: Duration = Duration::from_millis(500);
/// A peer asks itself so often: one that is alone at its start owns everything for a moment.
const OWN_EVERY: Duration = Duration::from_secs(10);
/// The longest between two looks at the clock.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The task that asks.
pub(crate) struct WatchAsker {
    pub overlay: Arc<dyn Overlay>,
    pub tenancy: Arc<Tenancy>,
    pub orders: Orders,
    pub watchlist: Arc<Watchlist>,
}

impl WatchAsker {
    /// Asks whenever it is time, until the peer ends.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let next = self.ask_all().await;
            let wait = next.since(now()).clamp(LEAST_PAUSE, LONGEST_PAUSE);
            let _ = time::timeout(wait, self.watchlist.bell.notified()).await;
            time::sleep(LEAST_PAUSE).await;
        }
    }

    /// Asks all owners whose turn has come, and says when the next one's does.
    async fn ask_all(&self) -> Time {
        let (asks, _) = self.watchlist.due(now());
        stream::iter(asks)
            .for_each_concurrent(AT_ONCE, async |(target, ask)| {
                let answer = self.ask(ask).await;
                if let Err(error) = self.watchlist.note(&target, answer, now()) {
                    tracing::warn!(%error, %target, "what changed could not be written");
                }
                if self.tenancy.claim(target.domain().key()) == Claim::Owned {
                    self.watchlist.ask_soon(&target, now() + OWN_EVERY);
                }
            })
            .await;
        self.watchlist.due(now()).1
    }

    /// Tells an owner that a watch is over. One that does not hear it finds out when it next has
    /// something to tell.
    pub(crate) fn end(self: &Arc<Self>, target: &WatchTarget) {
        let ask = WatchAsk {
            domain: target.domain(),
            subject: target.subject(),
            until: Time::ZERO,
            told: Time::ZERO,
        };
        let asker = self.clone();
        tokio::spawn(async move { asker.ask(ask).await });
    }

    /// The owner's answer; none if it gave none.
    async fn ask(&self, ask: WatchAsk) -> Option<WatchAnswer> {
        let key = ask.domain.key();
        if self.tenancy.claim(key) == Claim::Owned {
            return self.orders.watch(self.overlay.me(), ask).await.ok();
        }
        let answer = async {
            let owner = *self.overlay.owners(key, 1).await.ok()?.first()?;
            if owner == self.overlay.me() {
                return None;
            }
            let request = self.overlay.request(owner, WATCH, wire::encode(&ask));
            wire::decode(&request.await.ok()?).ok()
        };
        time::timeout(ANSWER_WITHIN, answer).await.ok().flatten()
    }
}
