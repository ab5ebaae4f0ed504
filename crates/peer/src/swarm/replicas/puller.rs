//! Fetches replicas of domains from peers that have newer ones.

use crate::lock::lock;
use crate::swarm::{
    orders::Orders,
    replicas::{
        message::{MAX_NAMES, PIECE, Parcel, PieceAsk, REPLICAS},
        replica::Replica,
    },
    wire,
};
use apoidea_model::{Domain, PeerId};
use apoidea_overlay::{Overlay, RequestError};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{sync::Notify, time};

/// Domains that wait to be fetched; more are found by the next sweep.
const MAX_WANTED: usize = 100_000;
/// Domains asked for at a time.
const AT_ONCE: usize = 64;
/// Largest replica that is fetched: the longest queue of the longest URLs is smaller when compressed.
const MAX_REPLICA_BYTES: u32 = 64 << 20;
/// Wishes collect for so long: changes come in bursts.
const COLLECT: Duration = Duration::from_millis(100);

/// The domains to be fetched, by peer; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Puller {
    wanted: Arc<Mutex<BTreeMap<PeerId, BTreeSet<Domain>>>>,
    bell: Arc<Notify>,
}

impl Puller {
    /// Fetches a domain from a peer, soon.
    pub(crate) fn want(&self, domain: Domain, from: PeerId) {
        let mut wanted = lock(&self.wanted);
        if wanted.values().map(BTreeSet::len).sum::<usize>() < MAX_WANTED {
            wanted.entry(from).or_default().insert(domain);
            self.bell.notify_one();
        }
    }

    /// Fetches until the task is dropped.
    pub(crate) async fn run(self, overlay: Arc<dyn Overlay>, orders: Orders) {
        loop {
            while let Some((from, domains)) = self.next() {
                if let Err(error) = pull(overlay.as_ref(), &orders, from, domains).await {
                    tracing::debug!(?from, %error, "replicas were not fetched");
                }
            }
            self.bell.notified().await;
            time::sleep(COLLECT).await;
        }
    }

    fn next(&self) -> Option<(PeerId, Vec<Domain>)> {
        let mut wanted = lock(&self.wanted);
        let mut entry = wanted.first_entry()?;
        let from = *entry.key();
        let domains: Vec<Domain> = entry.get().iter().take(AT_ONCE).cloned().collect();
        domains
            .iter()
            .for_each(|domain| _ = entry.get_mut().remove(domain));
        if entry.get().is_empty() {
            entry.remove();
        }
        Some((from, domains))
    }
}

/// Fetches replicas of domains and hands them to the crawler.
pub(crate) async fn pull(
    overlay: &dyn Overlay,
    orders: &Orders,
    from: PeerId,
    mut domains: Vec<Domain>,
) -> Result<(), RequestError> {
    while !domains.is_empty() {
        let asked: Vec<Domain> = domains.iter().take(MAX_NAMES).cloned().collect();
        let answer = overlay
            .request(from, REPLICAS, wire::encode(&asked))
            .await?;
        let parcels: Vec<Parcel> = wire::decode(&answer)?;
        // The answer is in order and for at least one domain; the rest did not fit.
        let answered = parcels.len().max(1);
        for parcel in parcels {
            let (domain, replica) = match parcel {
                Parcel::Whole(domain, replica) => (domain, Some(replica)),
                Parcel::Unknown(domain) => (domain, None),
                Parcel::Large { domain, id, bytes } => {
                    let replica = pieces(overlay, from, &domain, id, bytes).await?;
                    (domain, replica)
                }
            };
            if let Some(replica) = replica.filter(|_| asked.contains(&domain))
                && orders.adopt(from, domain, replica).await.is_err()
            {
                return Err(RequestError::Closed);
            }
        }
        domains.drain(..answered.min(domains.len()));
    }
    Ok(())
}

async fn pieces(
    overlay: &dyn Overlay,
    from: PeerId,
    domain: &Domain,
    id: u64,
    bytes: u32,
) -> Result<Option<Replica>, RequestError> {
    if bytes > MAX_REPLICA_BYTES {
        return Ok(None);
    }
    let mut whole: Vec<u8> = Vec::new();
    while whole.len() < bytes as usize {
        let ask = PieceAsk {
            domain: domain.clone(),
            id,
            offset: whole.len() as u32,
        };
        let piece = overlay.request(from, PIECE, wire::encode(&ask)).await?;
        if piece.is_empty() {
            return Err(RequestError::Malformed);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(postcard::from_bytes(&whole).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{TestPeer, obedient_crawler, peer, versions};
    use apoidea_overlay::Refusal;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    const ME: u8 = 0x20;
    const OTHER: u8 = 0x80;
    /// URLs that certainly do not fit into a frame.
    const MANY: u64 = 3000;

    /// This peer and one with replicas of some domains, that many URLs waiting in each.
    fn beside(waiting: &[u64]) -> (TestPeer, crate::swarm::testing::Log, TestPeer, Vec<Domain>) {
        let (me, inbox) = TestPeer::owner([ME, OTHER].map(peer));
        let log = obedient_crawler(inbox);
        let (other, _inbox) = TestPeer::owner([OTHER, ME].map(peer));
        let domains = me.ring.domains_of(peer(ME), waiting.len());
        for (domain, waiting) in domains.iter().zip(waiting) {
            other.hold(domain, &versions(&[(peer(OTHER), 1)]), *waiting);
        }
        me.ring.answer_from(peer(OTHER), other.service());
        (me, log, other, domains)
    }

    async fn pulled(me: &TestPeer, domains: &[Domain]) -> Result<(), RequestError> {
        pull(me.ring.as_ref(), &me.orders, peer(OTHER), domains.to_vec()).await
    }

    #[tokio::test]
    async fn all_replicas_are_fetched_in_several_answers_if_need_be() {
        let (me, log, _other, domains) = beside(&[900, 900, 900, 1]);
        pulled(&me, &domains).await.unwrap();
        let counts = [900, 900, 900, 1].iter().zip(&domains);
        let lines: Vec<String> = counts
            .map(|(count, domain)| format!("adopt {domain} {count}"))
            .collect();
        assert_eq!(*log.lock().unwrap(), lines);
        assert!(me.ring.asked(REPLICAS).len() > 1);
    }

    #[tokio::test]
    async fn many_large_replicas_are_all_fetched() {
        let (me, log, _other, domains) = beside(&[MANY; 7]);
        pulled(&me, &domains).await.unwrap();
        let lines: Vec<String> = domains
            .iter()
            .map(|domain| format!("adopt {domain} {MANY}"))
            .collect();
        assert_eq!(*log.lock().unwrap(), lines);
    }

    #[tokio::test]
    async fn a_domain_that_the_other_peer_does_not_know_is_no_failure() {
        let (me, log, other, domains) = beside(&[1]);
        let unknown = other.ring.domain_of(peer(OTHER));
        pulled(&me, &[unknown, domains[0].clone()]).await.unwrap();
        assert_eq!(*log.lock().unwrap(), [format!("adopt {} 1", domains[0])]);
    }

    #[tokio::test]
    async fn a_large_replica_that_was_driven_out_is_a_failure() {
        let (me, log, other, domains) = beside(&[MANY]);
        let service = other.service();
        me.ring.answer_with(move |_, kind, body| {
            if kind == PIECE {
                return Err(Refusal::Busy.into());
            }
            let request = apoidea_overlay::Request { kind, body };
            let answer = apoidea_overlay::Service::answer(&service, peer(ME), request);
            Ok(futures::FutureExt::now_or_never(answer).unwrap()?)
        });
        let refused = Err(RequestError::Refused(Refusal::Busy));
        assert_eq!(pulled(&me, &domains).await, refused);
        assert!(log.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_replica_that_was_not_asked_for_is_not_taken() {
        let (me, log, other, domains) = beside(&[1, 1]);
        let replica = Replica::read(&other.store, &domains[0]).unwrap().unwrap();
        let parcel = wire::encode(&vec![Parcel::Whole(domains[0].clone(), replica)]);
        me.ring.answer_with(move |_, _, _| Ok(parcel.clone()));
        pulled(&me, &domains[1..]).await.unwrap();
        assert!(log.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_replica_that_claims_to_be_huge_is_not_fetched() {
        let (me, log, _other, domains) = beside(&[1]);
        let parcel = wire::encode(&vec![Parcel::Large {
            domain: domains[0].clone(),
            id: 1,
            bytes: u32::MAX,
        }]);
        me.ring.answer_with(move |_, kind, _| match kind {
            REPLICAS => Ok(parcel.clone()),
            _ => Err(RequestError::Busy),
        });
        pulled(&me, &domains).await.unwrap();
        assert!(log.lock().unwrap().is_empty() && me.ring.asked(PIECE).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn wishes_of_one_moment_are_fetched_together_and_a_failure_stops_nothing() {
        let (me, log, other, domains) = beside(&[1, 1, 1]);
        let puller = me.puller.clone();
        let is_away = Arc::new(AtomicBool::new(true));
        let (service, away) = (other.service(), is_away.clone());
        me.ring.answer_with(move |_, kind, body| {
            if away.load(Relaxed) {
                return Err(RequestError::Unreachable(String::new()));
            }
            let request = apoidea_overlay::Request { kind, body };
            let answer = apoidea_overlay::Service::answer(&service, peer(ME), request);
            Ok(futures::FutureExt::now_or_never(answer).unwrap()?)
        });
        tokio::spawn(puller.clone().run(me.ring.clone(), me.orders.clone()));
        puller.want(domains[0].clone(), peer(OTHER));
        time::sleep(COLLECT * 2).await;
        is_away.store(false, Relaxed);
        puller.want(domains[1].clone(), peer(OTHER));
        time::sleep(COLLECT / 2).await;
        puller.want(domains[2].clone(), peer(OTHER));
        time::sleep(COLLECT * 2).await;
        assert_eq!(me.ring.asked(REPLICAS).len(), 2);
        assert_eq!(log.lock().unwrap().len(), 2);
    }
}
