//! Owners that took links of this peer lately, and may vanish with them.
//!
//! An owner acknowledges links when another peer has them, too. That peer may be the only one that
//! was quick enough, and may be a liar. So if the owner is gone a moment later, its last links are
//! sent again, to the next owner. A link that comes twice does no harm.

use super::sent_log;
use crate::{
    clock::now,
    lock::lock,
    swarm::orders::{Orders, Stopped},
};
use apoidea_model::PeerId;
use apoidea_overlay::{Membership, Overlay};
use apoidea_store::Store;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{self, Instant};

/// After so long all living holders have a link: a round waits for each of them for two seconds, and
/// one that missed it fetches it in the next sweep. The ring takes some seconds to miss a peer.
const FRESH_FOR: Duration = Duration::from_secs(60);
/// How often the ring is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Owners that are remembered. One that is forgotten is found out only if it is distrusted.
const MAX_OWNERS: usize = 4096;

/// The owners that took links lately.
#[derive(Default)]
pub(crate) struct Takers(Mutex<HashMap<PeerId, Taker>>);

struct Taker {
    /// When it took links last.
    at: Instant,
    /// Whether it did not answer afterwards.
    is_silent: bool,
}

impl Takers {
    /// An owner has taken links.
    pub(super) fn note(&self, owner: PeerId) {
        let mut takers = lock(&self.0);
        if takers.len() >= MAX_OWNERS && !takers.contains_key(&owner) {
            return;
        }
        let taker = Taker {
            at: Instant::now(),
            is_silent: false,
        };
        takers.insert(owner, taker);
    }

    /// An owner does not answer.
    pub(super) fn note_silence(&self, owner: PeerId) {
        if let Some(taker) = lock(&self.0).get_mut(&owner) {
            taker.is_silent = true;
        }
    }

    /// Forgets the owners that are gone, and gives them. In a large ring the view does not reach
    /// them all; there, silence has to do.
    fn take_gone(&self, overlay: &dyn Overlay) -> Vec<PeerId> {
        let mut takers = lock(&self.0);
        takers.retain(|_, taker| taker.at.elapsed() < FRESH_FOR);
        let is_gone = |owner: &PeerId, taker: &mut Taker| match overlay.membership(*owner) {
            Membership::Member => false,
            Membership::Stranger => true,
            Membership::Unknown => taker.is_silent,
        };
        let gone = takers.extract_if(is_gone);
        gone.map(|(owner, _)| owner).collect()
    }

    /// Sends the last links of vanished owners again, until the task is dropped.
    pub(crate) async fn watch(
        self: Arc<Self>,
        overlay: Arc<dyn Overlay>,
        store: Store,
        orders: Orders,
    ) {
        loop {
            time::sleep(LOOK).await;
            for owner in self.take_gone(overlay.as_ref()) {
                let since = now() - FRESH_FOR;
                match sent_log::send_again(&store, &orders, owner, since).await {
                    Ok(0) => {}
                    Ok(links) => {
                        tracing::debug!(%owner, links, "an owner is gone: its links go to the next");
                    }
                    Err(Stopped) => return,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        links::sent_log::SentLog,
        testing::{TestPeer, link, obedient_crawler, peer},
    };
    use apoidea_model::CrawlId;
    use apoidea_store::Commit;

    const ME: u8 = 0x20;
    const OWNER: u8 = 0x60;
    const OTHER: u8 = 0xa0;
    const GONE: u8 = 0xe0;

    /// A peer on a ring that one owner has left.
    fn vanished() -> (TestPeer, Arc<Takers>) {
        let (me, inbox) = TestPeer::owner([ME, OWNER, OTHER].map(peer));
        obedient_crawler(inbox);
        (me, Arc::default())
    }

    #[tokio::test(start_paused = true)]
    async fn owners_are_gone_once_and_only_if_they_took_links_lately() {
        let (me, takers) = vanished();
        let gone = || takers.take_gone(me.ring.as_ref());
        takers.note(peer(OWNER));
        assert_eq!(gone(), [], "it is on the ring");
        takers.note(peer(GONE));
        assert_eq!(gone(), [peer(GONE)]);
        assert_eq!(gone(), []);
        takers.note(peer(GONE));
        time::advance(FRESH_FOR).await;
        assert_eq!(gone(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn in_a_large_ring_silence_tells_that_an_owner_is_gone() {
        let (me, takers) = vanished();
        me.ring.set_large();
        takers.note(peer(GONE));
        assert_eq!(takers.take_gone(me.ring.as_ref()), []);
        takers.note_silence(peer(GONE));
        assert_eq!(takers.take_gone(me.ring.as_ref()), [peer(GONE)]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_links_of_a_vanished_owner_are_sent_again() {
        let (me, inbox) = TestPeer::owner([ME, OWNER, OTHER].map(peer));
        let log = obedient_crawler(inbox);
        let takers = Arc::new(Takers::default());
        let sent = SentLog::open(&me.store).unwrap();
        let domain = me.ring.domain_of(peer(OTHER));
        let mut commit = Commit::new();
        for (owner, pages) in [(GONE, 2), (OWNER, 1)] {
            let links = (0..pages).map(|page| link(&domain, page)).collect();
            sent.keep(peer(owner), CrawlId::OPEN, links, &mut commit);
            takers.note(peer(owner));
        }
        me.store.apply(&commit).unwrap();
        let watch = takers.watch(me.ring.clone(), me.store.clone(), me.orders.clone());
        let watch = tokio::spawn(watch);
        time::sleep(LOOK * 3).await;
        assert_eq!(*log.lock().unwrap(), ["send again 2"]);
        let kept = me.store.sent(None, 9).unwrap();
        assert_eq!(kept.len(), 1, "the other owner is there");
        watch.abort();
    }
}
