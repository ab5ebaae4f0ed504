//! The slow comparison of all replicas: it finds the differences that the quick ways missed.
//!
//! Owners and replicas offer their domains to each other. A peer whose place is not near a domain
//! any more offers its replica to the owner, and forgets it once the owner has it. An offer is a
//! name and its versions; the peer that lacks something fetches it.

use crate::{
    state_codec::decode_state,
    swarm::{
        REPLICATION_FACTOR,
        content::{message::Facts, ring_index::send_facts},
        orders::{Orders, SwarmOrder},
        replicas::{
            message::{MAX_NAMES, OFFER, OfferAnswer},
            puller::Puller,
        },
        tenancy::{Tenancy, whole_ring},
        wire,
    },
};
use apoidea_crawl::Versions;
use apoidea_model::{Domain, Key, PeerId};
use apoidea_overlay::{Arc as RingArc, Overlay, Refusal, RequestError};
use apoidea_store::{Commit, Store};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{sync::Notify, time};

/// How often everything is compared although nothing seems to have changed. 100,000 domains take 2
/// MB each time.
const EVERY: Duration = Duration::from_secs(600);
/// How often the neighbourhood is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// After the neighbourhood changed, the ring is given this long to come to rest.
const REST: Duration = Duration::from_secs(1);
/// Neighbours that are known, as helpers: as many as the ring remembers successors.
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
                () = self.bell.notified() => next = next.min(time::Instant::now() + REST),
            }
            if let Some(now) = self.neighbours().await.filter(|now| *now != neighbours) {
                let nearest =
                    |peers: &[PeerId]| peers[..peers.len().min(REPLICATION_FACTOR + 1)].to_vec();
                if nearest(&now) != nearest(&neighbours) {
                    next = next.min(time::Instant::now() + REST);
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
        let position = self.overlay.position(self.overlay.me())?;
        self.overlay.owners(position, NEIGHBOURS + 1).await.ok()
    }

    /// Offers the replicas of an arc to its new owner.
    pub(crate) async fn offer_arc(&self, arc: RingArc, to: PeerId) {
        self.compare_domains(arc, Some(to)).await;
    }

    async fn compare_domains(&self, arc: RingArc, only: Option<PeerId>) {
        for page in self.store.domain_batches(AT_ONCE) {
            let page = match page {
                Ok(page) => page,
                Err(error) => return tracing::warn!(%error, "domains cannot be read"),
            };
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

    /// The peers to which a replica at this key is offered, and the role of this peer.
    async fn addressees(&self, key: Key, only: Option<PeerId>) -> Vec<(PeerId, Role)> {
        if let Some(to) = only {
            return vec![(to, Role::Replica)];
        }
        let me = self.overlay.me();
        let Ok(owners) = self.overlay.owners(key, REPLICATION_FACTOR).await else {
            return Vec::new();
        };
        let Some((&owner, replicas)) = owners.split_first() else {
            return Vec::new();
        };
        match () {
            () if owner == me => replicas
                .iter()
                .map(|replica| (*replica, Role::Owner))
                .collect(),
            // A replica may have been the owner's for a moment, and contain changes that no other
            // one does.
            () if replicas.contains(&me) => vec![(owner, Role::Replica)],
            () => vec![(owner, Role::Former)],
        }
    }

    async fn offer(&self, to: PeerId, role: Role, offers: Offers) {
        for offers in wire::portions(offers, MAX_NAMES) {
            let answer = self.overlay.request(to, OFFER, wire::encode(&offers)).await;
            let Some(answers) = answer
                .ok()
                .and_then(|answer| wire::decode::<Vec<OfferAnswer>>(&answer).ok())
            else {
                return;
            };
            for ((domain, versions), answer) in offers.into_iter().zip(answers) {
                match (answer, role) {
                    (OfferAnswer::Newer, Role::Owner | Role::Replica) => {
                        self.puller.want(domain, to)
                    }
                    (OfferAnswer::Held | OfferAnswer::Newer, Role::Former) => {
                        self.orders.tell(SwarmOrder::Forget(domain, versions)).await;
                    }
                    (OfferAnswer::Stranger, Role::Former) => {
                        self.orders.tell(SwarmOrder::PassOn(domain, versions)).await;
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
            let mut moving: BTreeMap<PeerId, Facts> = BTreeMap::new();
            for (content, fact) in page {
                let Ok(owners) = self.overlay.owners(content.key(), REPLICATION_FACTOR).await
                else {
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

    async fn move_facts(&self, owner: PeerId, facts: Facts) {
        match send_facts(self.overlay.as_ref(), owner, facts.clone()).await {
            // The owner takes nothing from a peer so far away. A fact that is lost costs a second
            // copy of a page.
            Ok(()) | Err(RequestError::Refused(Refusal::NotYours)) => {}
            Err(_) => return,
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

/// The role of the peer that offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// The owner, to a replica.
    Owner,
    /// A replica or the owner of a moment ago, to the owner.
    Replica,
    /// A peer that is to have no replica any more, to the owner.
    Former,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        content::message::FACTS,
        replicas::message::REPLICAS,
        testing::{Log, TestPeer, fact, obedient_crawler, peer, versions},
    };

    const ME: u8 = 0x20;
    const NEXT: u8 = 0x60;
    const LAST: u8 = 0xa0;
    const FAR: u8 = 0xe0;

    /// This peer with a replica of one domain of each member, and its crawler's log.
    fn holding() -> (TestPeer, Log) {
        let (me, inbox) = TestPeer::owner([ME, NEXT, LAST, FAR].map(peer));
        for owner in [ME, NEXT, LAST, FAR] {
            let domain = me.ring.domain_of(peer(owner));
            me.hold(&domain, &versions(&[(peer(owner), 2)]), 1);
        }
        (me, obedient_crawler(inbox))
    }

    /// All other members answer this to every offer.
    fn answer(me: &TestPeer, answer: OfferAnswer) {
        me.ring.answer_with(move |_, kind, body| {
            if kind != OFFER {
                return Ok(Default::default());
            }
            let offers: Offers = wire::decode(&body)?;
            Ok(wire::encode(&vec![answer; offers.len()]))
        });
    }

    fn offered(me: &TestPeer, to: u8) -> Vec<Domain> {
        let mut names: Vec<Domain> = me
            .ring
            .sent::<Offers>(peer(to), OFFER)
            .into_iter()
            .flatten()
            .map(|(domain, _)| domain)
            .collect();
        names.sort();
        names
    }

    fn names(me: &TestPeer, owners: &[u8]) -> Vec<Domain> {
        let mut names: Vec<Domain> = owners
            .iter()
            .map(|owner| me.ring.domain_of(peer(*owner)))
            .collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn an_owner_offers_to_its_replicas_and_all_others_to_the_owner() {
        let (me, _log) = holding();
        answer(&me, OfferAnswer::Wanted);
        me.sweeper().compare_domains(whole_ring(), None).await;
        assert_eq!(offered(&me, NEXT), names(&me, &[ME, NEXT]));
        assert_eq!(offered(&me, LAST), names(&me, &[ME, LAST]));
        assert_eq!(offered(&me, FAR), names(&me, &[FAR]));
    }

    #[tokio::test]
    async fn a_replica_that_is_not_for_this_peer_any_more_is_forgotten_once_the_owner_has_it() {
        let (me, log) = holding();
        // The replicas of the next peer's domains are at the two after it, not here.
        let former = me.ring.domain_of(peer(NEXT));
        answer(&me, OfferAnswer::Wanted);
        me.sweeper().compare_domains(whole_ring(), None).await;
        assert!(log.lock().unwrap().is_empty());
        for has_it in [OfferAnswer::Held, OfferAnswer::Newer] {
            answer(&me, has_it);
            me.sweeper().compare_domains(whole_ring(), None).await;
            tokio::task::yield_now().await;
            assert_eq!(
                log.lock().unwrap().drain(..).collect::<Vec<_>>(),
                [format!("forget {former}")]
            );
        }
    }

    #[tokio::test]
    async fn nothing_is_forgotten_when_the_owner_cannot_be_reached() {
        let (me, log) = holding();
        me.sweeper().compare_domains(whole_ring(), None).await;
        tokio::task::yield_now().await;
        assert!(log.lock().unwrap().is_empty());
        assert_eq!(offered(&me, FAR).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_newer_replica_elsewhere_is_fetched() {
        let (me, _log) = holding();
        answer(&me, OfferAnswer::Newer);
        me.sweeper().compare_domains(whole_ring(), None).await;
        tokio::spawn(me.puller.clone().run(me.ring.clone(), me.orders.clone()));
        time::sleep(Duration::from_secs(1)).await;
        let pulled = |from| {
            let asked: Vec<Vec<Domain>> = me.ring.sent(peer(from), REPLICAS);
            asked.concat()
        };
        assert_eq!(pulled(NEXT), names(&me, &[ME]));
        assert_eq!(pulled(FAR), names(&me, &[FAR]));
    }

    #[tokio::test]
    async fn the_new_owner_of_an_arc_is_offered_what_is_held_of_it() {
        let (me, log) = holding();
        answer(&me, OfferAnswer::Held);
        let arc = RingArc {
            from: peer(NEXT).key(),
            to: peer(LAST).key(),
        };
        me.sweeper().offer_arc(arc, peer(LAST)).await;
        assert_eq!(offered(&me, LAST), names(&me, &[LAST]));
        assert_eq!(me.ring.asked(OFFER), [peer(LAST)]);
        tokio::task::yield_now().await;
        assert!(
            log.lock().unwrap().is_empty(),
            "it may still be a replica's place"
        );
    }

    #[tokio::test]
    async fn facts_that_are_not_for_this_peer_any_more_move_to_their_owner() {
        let (me, _log) = holding();
        let facts = [ME, NEXT, FAR].map(|owner| me.ring.contents_of(peer(owner), 1)[0]);
        facts
            .iter()
            .for_each(|content| me.know(content, fact("a.test")));
        me.sweeper().compare_facts().await;
        assert!(
            me.store.fact(&facts[1]).unwrap().is_some(),
            "the owner does not have it yet"
        );
        me.ring.answer_with(|_, _, _| Ok(Default::default()));
        me.ring.requests.lock().unwrap().clear();
        me.sweeper().compare_facts().await;
        let moved: Vec<Facts> = me.ring.sent(peer(NEXT), FACTS);
        assert_eq!(moved, [vec![(facts[1], fact("a.test"))]]);
        assert_eq!(me.ring.asked(FACTS), [peer(NEXT)]);
        let stay = facts.map(|content| me.store.fact(&content).unwrap().is_some());
        assert_eq!(stay, [true, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn everything_is_compared_soon_after_the_neighbourhood_changed_and_then_seldom() {
        let (me, _log) = holding();
        answer(&me, OfferAnswer::Held);
        tokio::spawn(me.sweeper().run());
        let mut sweeps = Vec::new();
        for step in [LOOK * 4, EVERY / 2, LOOK * 4, EVERY] {
            if sweeps.len() == 2 {
                me.ring.set_members([ME, NEXT, FAR].map(peer));
            }
            time::sleep(step).await;
            let offers = me.ring.asked(OFFER);
            sweeps.push(offers.iter().filter(|to| **to == peer(FAR)).count());
            me.ring.requests.lock().unwrap().clear();
        }
        assert!(
            sweeps[0] > 0 && sweeps[1] == 0 && sweeps[2] > 0 && sweeps[3] > 0,
            "{sweeps:?}"
        );
        assert_eq!(*me.tenancy.neighbours(), [NEXT, FAR].map(peer));
    }
}
