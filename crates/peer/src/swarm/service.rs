//! The peer service: answers the requests of other peers about the crawl. Everything that comes in is
//! a stranger's.
//!
//! Each conversation answers its own kinds of messages, in the file `answer.rs` of its folder.

use crate::{
    lock::lock,
    page::{content::LocalIndex, proof::Prover},
    swarm::{
        addresses::{self, clocks::AddressClocks},
        budgets::Budgets,
        content, lending, links,
        orders::Orders,
        replicas::{self, large::LargeReplicas, provenance::Provenance, puller::Puller},
        rights::{Rights, Sender},
        tenancy::Tenancy,
        trust::{self, checker::Checks, held_links::HeldLinks},
        watching::{self, watchlist::Watchlist},
    },
};
use apoidea_model::PeerId;
use apoidea_overlay::{Overlay, Refusal, Request, Service, Signer};
use apoidea_store::Store;
use bytes::Bytes;
use futures::future::BoxFuture;
use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::{self, Instant};

/// A peer that takes over from a leaving one asks at least this often.
const QUIET: Duration = Duration::from_millis(300);

/// The service; it answers once the rest of the peer has started.
#[derive(Default)]
pub(crate) struct PeerService(OnceLock<Answering>);

/// The means of answering.
pub(crate) struct Answering {
    pub overlay: Arc<dyn Overlay>,
    pub store: Store,
    pub orders: Orders,
    pub rights: Rights,
    /// What other peers have used of this one.
    pub budgets: Budgets,
    pub tenancy: Arc<Tenancy>,
    pub index: Arc<LocalIndex>,
    pub puller: Puller,
    /// Tells where replicas come from.
    pub provenance: Arc<Provenance>,
    /// Shows that this peer keeps what it is said to keep.
    pub prover: Arc<Prover>,
    /// Replicas larger than a frame that a peer is fetching.
    pub large: Mutex<LargeReplicas>,
    pub leaving: Leaving,
    pub clocks: Arc<AddressClocks>,
    /// Signs for links that were taken.
    pub signer: Signer,
    pub held: Arc<HeldLinks>,
    pub checks: Checks,
    /// The volunteer's own watches.
    pub watchlist: Arc<Watchlist>,
}

/// The progress of others in taking over from a peer that leaves.
#[derive(Default)]
pub(crate) struct Leaving {
    /// Is this peer leaving?
    pub is_leaving: AtomicBool,
    /// Censuses that were read to the end since.
    pub censuses: AtomicU64,
    last_question: Mutex<Option<Instant>>,
}

impl Leaving {
    /// A peer asks for what this one knows.
    pub(in crate::swarm) fn note_question(&self) {
        *lock(&self.last_question) = Some(Instant::now());
    }

    /// The time of the last such question.
    fn last_question(&self) -> Option<Instant> {
        *lock(&self.last_question)
    }
}

impl PeerService {
    /// Begins to answer. The first call counts.
    pub(crate) fn open(&self, answering: Answering) {
        let _ = self.0.set(answering);
    }

    /// The means of answering, once the service is open.
    pub(crate) fn answering(&self) -> Option<&Answering> {
        self.0.get()
    }
}

impl Service for PeerService {
    fn answer(&self, from: PeerId, request: Request) -> BoxFuture<'_, Result<Bytes, Refusal>> {
        Box::pin(async move {
            let answering = self.0.get().ok_or(Refusal::Busy)?;
            answering.answer(from, &request).await
        })
    }
}

impl Answering {
    /// Resolves when a peer has asked what this one holds, and none has asked for more for a
    /// moment.
    pub(crate) async fn taken_over(&self) {
        loop {
            time::sleep(QUIET / 4).await;
            let is_quiet = self
                .leaving
                .last_question()
                .is_some_and(|last| last.elapsed() > QUIET);
            if is_quiet && self.leaving.censuses.load(Relaxed) > 0 {
                return;
            }
        }
    }

    async fn answer(&self, from: PeerId, request: &Request) -> Result<Bytes, Refusal> {
        let sender = self.rights.check(from, request.kind).await?;
        if !self.budgets.has_time(from) {
            return Err(Refusal::Busy);
        }
        self.budgets
            .metered(from, self.converse(&sender, request))
            .await
    }

    async fn converse(&self, sender: &Sender<'_>, request: &Request) -> Result<Bytes, Refusal> {
        if let Some(answer) = links::answer::answer(self, sender, request).await {
            return answer;
        }
        if let Some(answer) = content::answer::answer(self, sender, request).await {
            return answer;
        }
        if let Some(answer) = addresses::answer::answer(self, sender, request) {
            return answer;
        }
        if let Some(answer) = trust::answer::answer(self, sender, request).await {
            return answer;
        }
        if let Some(answer) = watching::answer::answer(self, sender, request).await {
            return answer;
        }
        if let Some(answer) = replicas::answer::answer(self, sender, request).await {
            return answer;
        }
        let answer = lending::answer::answer(self, sender, request).await;
        answer.unwrap_or(Err(Refusal::UnknownKind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        replicas::message::{CENSUS, CensusAsk},
        tenancy::whole_ring,
        testing::{TestPeer, ask, obedient_crawler, peer},
    };
    use apoidea_overlay::Kind;
    use futures::FutureExt;

    const MEMBERS: [u8; 6] = [0x20, 0x40, 0x60, 0x80, 0xa0, 0xc0];

    #[tokio::test]
    async fn a_kind_that_no_conversation_knows_is_refused() {
        let (me, _inbox) = TestPeer::new([peer(1)]);
        let answer = ask(&me.service(), peer(2), Kind::free(200), &0u8).await;
        assert_eq!(answer, Err(Refusal::UnknownKind));
    }

    #[tokio::test]
    async fn nothing_is_answered_before_the_rest_of_the_peer_has_started() {
        let service = PeerService::default();
        let answer = ask(&service, peer(2), Kind::free(200), &0u8).await;
        assert_eq!(answer, Err(Refusal::Busy));
        assert!(service.answering().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_leaving_peer_is_taken_over_once_a_census_was_read_and_no_more_is_asked() {
        let (me, inbox) = TestPeer::new(MEMBERS.map(peer));
        obedient_crawler(inbox);
        let service = me.service();
        let answering = service.answering().unwrap();
        let census = CensusAsk {
            arc: whole_ring(),
            after: None,
        };
        let mut taken_over = Box::pin(answering.taken_over());
        ask(&service, peer(0x40), CENSUS, &census).await.unwrap();
        let early = time::timeout(QUIET * 3, &mut taken_over).await;
        assert!(
            early.is_err(),
            "a census before the peer leaves does not count"
        );
        answering.leaving.is_leaving.store(true, Relaxed);
        for _ in 0..5 {
            ask(&service, peer(0x40), CENSUS, &census).await.unwrap();
            time::advance(QUIET / 2).await;
            assert_eq!((&mut taken_over).now_or_never(), None);
        }
        time::timeout(QUIET * 3, taken_over).await.unwrap();
    }
}
