//! The slow comparison of everything held with those who should hold it: what the quick ways
//! missed, it finds.
//!
//! Owners and holders of copies offer what they have to each other; whoever holds something that is
//! not for it any more offers it to the owner and forgets it once the owner has it. An offer is a
//! name and its versions; who lacks it fetches it.

use super::{
    COPIES,
    orders::{Orders, SwarmOrder},
    puller::Puller,
    ring_index::send_facts,
    tenancy::{Tenancy, whole_ring},
    wire::{self, OfferAnswer},
};
use crate::admitter::decode_state;
use apoidea_crawl::Versions;
use apoidea_model::{Domain, Key, PeerId};
use apoidea_overlay::{Arc as RingArc, Overlay};
use apoidea_store::{Commit, Store};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{sync::Notify, time};

/// How often everything is compared although nothing seems to have changed. 100,000 domains take 2
/// MB each time.
const EVERY: Duration = Duration::from_secs(600);
/// How often the neighbourhood is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// After the neighbourhood changed, the ring is given this long to settle.
const SETTLE: Duration = Duration::from_secs(1);
/// Neighbours that are known, for them to help: as many as the ring remembers successors.
const NEIGHBOURS: usize = 8;
/// Domains and facts read at a time.
const AT_ONCE: usize = 500;

/// Compares; clones share the work.
#[derive(Clone)]
pub(crate) struct Sweeper {
    pub overlay: Arc<dyn Overlay>,
    pub store: Store,
    pub tenancy: Arc<Tenancy>,
    pub orders: Orders,
    pub puller: Puller,
    pub bell: Arc<Notify>,
}

type Offers = Vec<(Domain, Versions)>;

impl Sweeper {
    /// Asks for a comparison soon.
    pub(crate) fn hurry(&self) {
        self.bell.notify_one();
    }

    /// Compares until the task is dropped.
    pub(crate) async fn run(self) {
        let mut neighbours = Vec::new();
        let mut next = time::Instant::now() + EVERY;
        loop {
            tokio::select! {
                () = time::sleep(LOOK) => {}
                () = self.bell.notified() => next = next.min(time::Instant::now() + SETTLE),
            }
            if let Some(now) = self.neighbours().await.filter(|now| *now != neighbours) {
                let holders = |peers: &[PeerId]| peers[..peers.len().min(COPIES + 1)].to_vec();
                if holders(&now) != holders(&neighbours) {
                    next = next.min(time::Instant::now() + SETTLE);
                }
                neighbours = now;
                let me = self.overlay.me();
                self.tenancy
                    .note_neighbours(neighbours.iter().copied().filter(|peer| *peer != me));
            }
            if time::Instant::now() >= next {
                next = time::Instant::now() + EVERY;
                if neighbours.len() > 1 {
                    self.compare_domains(whole_ring(), None).await;
                    self.compare_facts().await;
                }
            }
        }
    }

    /// This peer and the next ones; none if the ring does not say just now.
    async fn neighbours(&self) -> Option<Vec<PeerId>> {
        let me = self.overlay.me();
        self.overlay.owners(me.key(), NEIGHBOURS + 1).await.ok()
    }

    /// Offers what is held of an arc to its new owner.
    pub(crate) async fn offer_arc(&self, arc: RingArc, to: PeerId) {
        self.compare_domains(arc, Some(to)).await;
    }

    async fn compare_domains(&self, arc: RingArc, only: Option<PeerId>) {
        let mut after: Option<Domain> = None;
        loop {
            let page = match self.store.domains("", after.as_ref(), AT_ONCE) {
                Ok(page) => page,
                Err(error) => return tracing::warn!(%error, "domains cannot be read"),
            };
            let Some((last, _)) = page.last() else { return };
            after = Some(last.clone());
            let mut offers: BTreeMap<(PeerId, Role), Offers> = BTreeMap::new();
            for (domain, bytes) in page {
                if !arc.contains(domain.key()) {
                    continue;
                }
                let versions = decode_state(&domain, &bytes).versions;
                for (to, role) in self.addressees(domain.key(), only).await {
                    offers
                        .entry((to, role))
                        .or_default()
                        .push((domain.clone(), versions.clone()));
                }
            }
            for ((to, role), offers) in offers {
                self.offer(to, role, offers).await;
            }
        }
    }

    /// To whom something at this key is offered, and in which role of this peer.
    async fn addressees(&self, key: Key, only: Option<PeerId>) -> Vec<(PeerId, Role)> {
        if let Some(to) = only {
            return vec![(to, Role::Holder)];
        }
        let me = self.overlay.me();
        let Ok(owners) = self.overlay.owners(key, COPIES).await else {
            return Vec::new();
        };
        let Some((&owner, holders)) = owners.split_first() else {
            return Vec::new();
        };
        match () {
            () if owner == me => holders
                .iter()
                .map(|holder| (*holder, Role::Owner))
                .collect(),
            // A holder may have been the owner for a moment, and know what nobody else does.
            () if holders.contains(&me) => vec![(owner, Role::Holder)],
            () => vec![(owner, Role::Former)],
        }
    }

    async fn offer(&self, to: PeerId, role: Role, offers: Offers) {
        for offers in wire::portions(offers, wire::MAX_NAMES) {
            let answer = self
                .overlay
                .request(to, wire::OFFER, wire::encode(&offers))
                .await;
            let Some(answers) = answer
                .ok()
                .and_then(|answer| wire::decode::<Vec<OfferAnswer>>(&answer).ok())
            else {
                return;
            };
            for ((domain, versions), answer) in offers.into_iter().zip(answers) {
                match (answer, role) {
                    (OfferAnswer::Newer, Role::Owner | Role::Holder) => {
                        self.puller.want(domain, to)
                    }
                    (OfferAnswer::Held | OfferAnswer::Newer, Role::Former) => {
                        self.orders.tell(SwarmOrder::Forget(domain, versions)).await;
                    }
                    _ => {}
                }
            }
        }
    }

    /// Sends content facts that are not for this peer any more to their owner, and forgets them.
    async fn compare_facts(&self) {
        let everything = whole_ring();
        let mut from = everything.from;
        loop {
            let Ok(page) = self.store.facts_in(from, everything.to, AT_ONCE) else {
                return;
            };
            let Some((last, _)) = page.last() else { return };
            from = last.key();
            let is_end = page.len() < AT_ONCE || from == everything.to;
            let mut moving: BTreeMap<PeerId, wire::Facts> = BTreeMap::new();
            for (content, fact) in page {
                let Ok(owners) = self.overlay.owners(content.key(), COPIES).await else {
                    continue;
                };
                let is_ours = owners.contains(&self.overlay.me());
                if let Some(&owner) = owners.first().filter(|_| !is_ours) {
                    moving.entry(owner).or_default().push((content, fact));
                }
            }
            for (owner, facts) in moving {
                self.move_facts(owner, facts).await;
            }
            if is_end {
                return;
            }
        }
    }

    async fn move_facts(&self, owner: PeerId, facts: wire::Facts) {
        if !send_facts(self.overlay.as_ref(), owner, facts.clone()).await {
            return;
        }
        let mut commit = Commit::new();
        facts
            .iter()
            .for_each(|(content, _)| commit.remove_fact(content));
        if let Err(error) = self.store.apply(&commit) {
            tracing::warn!(%error, "content facts that moved away stay here too");
        }
    }
}

/// In which role a copy is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// By its owner to the holders of copies.
    Owner,
    /// By a holder, or by who was the owner a moment ago, to the owner.
    Holder,
    /// By someone who is to hold it no longer, to the owner.
    Former,
}
