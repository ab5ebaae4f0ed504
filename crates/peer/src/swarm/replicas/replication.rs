//! Sends the changes of domains to their replicas.

use crate::swarm::{
    REPLICATION_FACTOR,
    replicas::{
        message::{DELTAS, Delta, DeltaAnswer, FETCH, MAX_NAMES},
        provenance::Provenance,
        puller::Puller,
        rounds,
    },
    wire,
};
use apoidea_model::{Domain, PeerId};
use apoidea_overlay::{Overlay, RequestError};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{self, Instant},
};

/// A replica that does not answer within this is gone or overloaded, and fetches the changes later:
/// the others must not wait for it.
const WITHIN: Duration = Duration::from_secs(2);

/// So long a round waits for all replicas; then it is enough that each change is at one of them. That
/// one may be a liar's. So each living replica has its time, however busy its computer is.
const TOGETHER: Duration = WITHIN;

/// The reach of a round.
#[derive(Debug, Default)]
pub(crate) struct ReplicationResult {
    /// Domains whose changes reached nobody.
    pub unheld: Vec<Domain>,
}

/// Brings changes to the replicas.
pub(crate) struct Replication {
    pub overlay: Arc<dyn Overlay>,
    pub puller: Puller,
    /// Rung when a replica was not reached: it fetches later what it missed.
    pub sweep: Arc<Notify>,
    pub provenance: Arc<Provenance>,
}

impl Replication {
    /// Sends each change to all replicas but this peer's. When it returns, each has it or did not
    /// answer in time; one that is only slow may still be at it, if another has the change.
    pub(crate) async fn send(self, deltas: Vec<Delta>) -> ReplicationResult {
        let (by_holders, mut unheld) = self.sort(deltas).await;
        let this = Arc::new(self);
        let mut sends: JoinSet<Option<Vec<Domain>>> = JoinSet::new();
        for (holders, deltas) in by_holders {
            let frames: Arc<[Frame]> = this.frames(deltas).into();
            for holder in holders {
                sends.spawn(this.clone().tell(holder, frames.clone()));
            }
        }
        let together = Instant::now() + TOGETHER;
        loop {
            let next = match unheld.is_empty() {
                true => time::timeout_at(together, sends.join_next())
                    .await
                    .ok()
                    .flatten(),
                false => sends.join_next().await,
            };
            let Some(told) = next else { break };
            told.ok()
                .flatten()
                .into_iter()
                .flatten()
                .for_each(|domain| _ = unheld.remove(&domain));
        }
        sends.detach_all();
        ReplicationResult {
            unheld: unheld.into_iter().collect(),
        }
    }

    /// The changes by the peers that have to hold them, and the domains that another peer has to
    /// hold.
    async fn sort(
        &self,
        deltas: Vec<Delta>,
    ) -> (BTreeMap<Vec<PeerId>, Vec<Delta>>, BTreeSet<Domain>) {
        let mut by_holders: BTreeMap<Vec<PeerId>, Vec<Delta>> = BTreeMap::new();
        let mut unheld = BTreeSet::new();
        for delta in deltas {
            let key = delta.domain.key();
            let owners = self.overlay.owners(key, REPLICATION_FACTOR).await;
            let is_known = owners.is_ok();
            let mut holders = owners.unwrap_or_default();
            holders.retain(|owner| *owner != self.overlay.me());
            // With nobody else on the ring there is nobody to have it. A domain that has gone to
            // another peer is not waited for: that peer compares, and fetches what it lacks.
            if self.overlay.owns(key) && (!is_known || !holders.is_empty()) {
                unheld.insert(delta.domain.clone());
            }
            by_holders.entry(holders).or_default().push(delta);
        }
        (by_holders, unheld)
    }

    /// Changes as they are sent, signed and packed once for all peers that hold them.
    fn frames(&self, deltas: Vec<Delta>) -> Vec<Frame> {
        let deltas = deltas.into_iter().map(fitting).collect();
        let portions = wire::portions(deltas, MAX_NAMES).into_iter();
        let frame = |deltas: Vec<Delta>| Frame {
            bytes: wire::encode(&rounds::sign(&self.provenance.signer, &deltas)),
            domains: deltas.into_iter().map(|delta| delta.domain).collect(),
        };
        portions.map(frame).collect()
    }

    /// The domains that the replica has the changes of; none if it was not reached.
    async fn tell(self: Arc<Self>, replica: PeerId, frames: Arc<[Frame]>) -> Option<Vec<Domain>> {
        let sent = send(self.overlay.as_ref(), &self.puller, replica, &frames).await;
        if let Err(error) = &sent {
            tracing::debug!(%error, "changes were not delivered to all replicas");
            self.sweep.notify_one();
        }
        sent.ok()
    }
}

/// A part of a round that fits into one message.
struct Frame {
    domains: Vec<Domain>,
    bytes: Bytes,
}

/// Sends changes to a replica; gives the domains whose changes are there then. A replica that takes
/// this peer for a stranger has none of them.
async fn send(
    overlay: &dyn Overlay,
    puller: &Puller,
    replica: PeerId,
    frames: &[Frame],
) -> Result<Vec<Domain>, RequestError> {
    let (mut held, mut behind): (Vec<Domain>, Vec<Domain>) = Default::default();
    for Frame { domains, bytes } in frames {
        let answer = ask(overlay, replica, DELTAS, bytes.clone()).await?;
        let answers: Vec<DeltaAnswer> = wire::decode(&answer)?;
        for (domain, answer) in domains.iter().zip(answers) {
            if matches!(answer, DeltaAnswer::Ahead | DeltaAnswer::Apart) {
                puller.want(domain.clone(), replica);
            }
            if matches!(answer, DeltaAnswer::Behind | DeltaAnswer::Apart) {
                behind.push(domain.clone());
            }
            if answer != DeltaAnswer::Stranger {
                held.push(domain.clone());
            }
        }
    }
    for names in wire::portions(behind, MAX_NAMES) {
        ask(overlay, replica, FETCH, wire::encode(&names)).await?;
    }
    Ok(held)
}

async fn ask(
    overlay: &dyn Overlay,
    replica: PeerId,
    kind: apoidea_overlay::Kind,
    body: Bytes,
) -> Result<Bytes, RequestError> {
    time::timeout(WITHIN, overlay.request(replica, kind, body))
        .await
        .unwrap_or(Err(RequestError::TimedOut(WITHIN)))
}

/// A change that does not fit into a frame is only announced: the other peer then fetches the whole
/// replica.
fn fitting(delta: Delta) -> Delta {
    if wire::plain_bytes(&delta) <= wire::FRAME_BYTES {
        return delta;
    }
    Delta::announcement(delta.domain, delta.versions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{
        TestPeer, answer_deltas, obedient_crawler, peer, versions, waiting_url,
    };
    use futures::FutureExt;

    const ME: u8 = 0x20;
    const NEXT: u8 = 0x60;
    const LAST: u8 = 0xa0;
    const FAR: u8 = 0xe0;

    struct Fixture {
        me: TestPeer,
        domains: Vec<Domain>,
        sweep: Arc<Notify>,
    }

    impl Fixture {
        /// An owner of three domains, whose replicas are at the next two peers.
        fn new() -> Self {
            let (me, inbox) = TestPeer::owner([ME, NEXT, LAST, FAR].map(peer));
            obedient_crawler(inbox);
            let domains = me.ring.domains_of(peer(ME), 3);
            let sweep = Arc::default();
            Fixture { me, domains, sweep }
        }

        /// All replicas answer this to every change.
        fn answer(&self, answer: DeltaAnswer) {
            self.me.ring.answer_with(move |_, kind, body| {
                if kind != DELTAS {
                    return Ok(Bytes::new());
                }
                Ok(answer_deltas(&body, answer))
            });
        }

        fn deltas(&self) -> Vec<Delta> {
            let changes = versions(&[(peer(ME), 2)]);
            let domains = self.domains.iter().cloned();
            domains
                .map(|domain| Delta::announcement(domain, changes.clone()))
                .collect()
        }

        async fn send(&self, deltas: Vec<Delta>) -> Vec<Domain> {
            let replication = Replication {
                overlay: self.me.ring.clone(),
                puller: self.me.puller.clone(),
                sweep: self.sweep.clone(),
                provenance: self.me.provenance.clone(),
            };
            replication.send(deltas).await.unheld
        }

        fn sorted(&self) -> Vec<Domain> {
            let mut domains = self.domains.clone();
            domains.sort();
            domains
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_change_reaches_each_replica_in_one_message() {
        let fixture = Fixture::new();
        fixture.answer(DeltaAnswer::Applied);
        assert_eq!(fixture.send(fixture.deltas()).await, []);
        for replica in [NEXT, LAST] {
            let sent = fixture.me.ring.sent_deltas(peer(replica));
            assert_eq!(sent, [fixture.deltas()]);
        }
        assert_eq!(fixture.me.ring.requests.lock().unwrap().len(), 2);
        assert_eq!(fixture.sweep.notified().now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_that_reaches_nobody_is_unheld_and_a_sweep_is_asked_for() {
        let fixture = Fixture::new();
        assert_eq!(fixture.send(fixture.deltas()).await, fixture.sorted());
        assert_eq!(fixture.sweep.notified().now_or_never(), Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_that_nobody_takes_from_a_stranger_is_unheld() {
        let fixture = Fixture::new();
        fixture.answer(DeltaAnswer::Stranger);
        assert_eq!(fixture.send(fixture.deltas()).await, fixture.sorted());
        fixture
            .me
            .ring
            .answer_with(|_, _, _| Ok(wire::encode(&Vec::<DeltaAnswer>::new())));
        assert_eq!(fixture.send(fixture.deltas()).await, fixture.sorted());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_view_of_the_ring_nothing_is_held() {
        let fixture = Fixture::new();
        fixture.answer(DeltaAnswer::Applied);
        fixture.me.ring.set_lost(true);
        assert_eq!(fixture.send(fixture.deltas()).await, fixture.sorted());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_alone_on_the_ring_has_nobody_to_tell() {
        let fixture = Fixture::new();
        fixture.me.ring.set_members([peer(ME)]);
        assert_eq!(fixture.send(fixture.deltas()).await, []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_that_is_behind_fetches_before_the_round_ends() {
        let fixture = Fixture::new();
        fixture.answer(DeltaAnswer::Behind);
        assert_eq!(fixture.send(fixture.deltas()).await, []);
        for replica in [NEXT, LAST] {
            let fetches: Vec<Vec<Domain>> = fixture.me.ring.sent(peer(replica), FETCH);
            assert_eq!(fetches, std::slice::from_ref(&fixture.domains));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_that_is_ahead_is_pulled_and_one_that_is_apart_is_pulled_and_fetches() {
        for (answer, fetches) in [(DeltaAnswer::Ahead, 0), (DeltaAnswer::Apart, 2)] {
            let fixture = Fixture::new();
            fixture.answer(answer);
            assert_eq!(fixture.send(fixture.deltas()).await, []);
            let me = &fixture.me;
            assert_eq!(me.ring.asked(FETCH).len(), fetches);
            tokio::spawn(me.puller.clone().run(me.ring.clone(), me.orders.clone()));
            time::sleep(Duration::from_secs(1)).await;
            let mut pulled = me.ring.asked(crate::swarm::replicas::message::REPLICAS);
            pulled.sort();
            pulled.dedup();
            assert_eq!(pulled, [NEXT, LAST].map(peer));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_waits_for_a_slow_replica_for_a_moment_only_if_another_has_the_changes() {
        let fixture = Fixture::new();
        fixture.answer(DeltaAnswer::Applied);
        fixture.me.ring.silence(peer(LAST));
        let begun = Instant::now();
        assert_eq!(fixture.send(fixture.deltas()).await, []);
        assert_eq!(begun.elapsed(), TOGETHER);
        time::sleep(WITHIN).await;
        assert_eq!(fixture.sweep.notified().now_or_never(), Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_waits_for_the_only_replica_that_may_have_the_changes() {
        let fixture = Fixture::new();
        for replica in [NEXT, LAST] {
            fixture.me.ring.silence(peer(replica));
        }
        let begun = Instant::now();
        assert_eq!(fixture.send(fixture.deltas()).await, fixture.sorted());
        assert!(begun.elapsed() >= WITHIN);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_larger_than_a_frame_is_only_announced() {
        let fixture = Fixture::new();
        fixture.answer(DeltaAnswer::Behind);
        let announced = fixture.deltas().remove(0);
        let large = Delta {
            puts: (0..4000)
                .map(|number| waiting_url(&announced.domain, number))
                .collect(),
            ..announced.clone()
        };
        assert_eq!(fixture.send(vec![large]).await, []);
        let sent = fixture.me.ring.sent_deltas(peer(NEXT));
        assert_eq!(sent, [vec![announced]]);
        assert_eq!(fixture.me.ring.asked(FETCH).len(), 2);
    }
}
