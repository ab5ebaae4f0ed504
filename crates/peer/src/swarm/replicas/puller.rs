//! Fetches replicas of domains from peers that have newer ones.

use crate::{
    lock::lock,
    swarm::{
        orders::Orders,
        replicas::{
            message::{MAX_NAMES, PAGES, PIECE, PagesAsk, PagesPart, Parcel, PieceAsk, REPLICAS},
            replica::Replica,
        },
        wire,
    },
};
use apoidea_model::{Domain, PeerId};
use apoidea_overlay::{Kind, Overlay, RequestError};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{self, Instant},
};

/// Domains that wait to be fetched; more are found by the next sweep.
const MAX_WANTED: usize = 100_000;
/// Domains asked for at a time.
const AT_ONCE: usize = 64;
/// Largest replica that is fetched: the longest queue of the longest URLs is smaller when compressed.
const MAX_REPLICA_BYTES: u32 = 64 << 20;
/// Peers that replicas are fetched from at a time: a slow one must not hold up the others.
const SOURCES: usize = 8;
/// A peer that is asked for replicas has so much time in any case, and more for every byte it sends.
const LEAST_TIME: Duration = Duration::from_secs(15);
/// The slowest line that is waited for: a sixteenth of a slow home line.
const LEAST_BYTES_PER_SECOND: u32 = 16 * 1024;
/// Wishes collect for so long: changes come in bursts.
const COLLECT: Duration = Duration::from_millis(100);

/// The domains to be fetched, by peer; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Puller {
    wanted: Arc<Mutex<Wanted>>,
    bell: Arc<Notify>,
}

#[derive(Default)]
struct Wanted {
    by_peer: BTreeMap<PeerId, BTreeSet<Domain>>,
    /// Peers that are being asked.
    busy: BTreeSet<PeerId>,
}

impl Puller {
    /// Fetches a domain from a peer, soon.
    pub(crate) fn want(&self, domain: Domain, from: PeerId) {
        let mut wanted = lock(&self.wanted);
        if wanted.by_peer.values().map(BTreeSet::len).sum::<usize>() < MAX_WANTED {
            wanted.by_peer.entry(from).or_default().insert(domain);
            self.bell.notify_one();
        }
    }

    /// Fetches until the task is dropped.
    pub(crate) async fn run(self, overlay: Arc<dyn Overlay>, orders: Orders) {
        let mut pulls = JoinSet::new();
        loop {
            while let Some((from, domains)) = self.next() {
                let (this, overlay, orders) = (self.clone(), overlay.clone(), orders.clone());
                pulls.spawn(async move {
                    if let Err(error) = pull(overlay.as_ref(), &orders, from, domains).await {
                        tracing::debug!(?from, %error, "replicas were not fetched");
                    }
                    this.end(from);
                });
            }
            tokio::select! {
                () = self.bell.notified() => time::sleep(COLLECT).await,
                Some(_) = pulls.join_next() => {}
            }
        }
    }

    /// The next peer that is not being asked, and the domains to ask it for.
    fn next(&self) -> Option<(PeerId, Vec<Domain>)> {
        let mut wanted = lock(&self.wanted);
        let Wanted { by_peer, busy } = &mut *wanted;
        if busy.len() >= SOURCES {
            return None;
        }
        let free = by_peer.keys().find(|peer| !busy.contains(peer));
        let from = *free?;
        let all = by_peer.get_mut(&from)?;
        let domains: Vec<Domain> = all.iter().take(AT_ONCE).cloned().collect();
        domains.iter().for_each(|domain| _ = all.remove(domain));
        if all.is_empty() {
            by_peer.remove(&from);
        }
        busy.insert(from);
        Some((from, domains))
    }

    fn end(&self, from: PeerId) {
        lock(&self.wanted).busy.remove(&from);
    }
}

/// The time that a peer has to give replicas: enough for a slow line, not for one that drips.
struct Deadline(Instant);

impl Deadline {
    fn new() -> Self {
        Deadline(Instant::now() + LEAST_TIME)
    }

    /// So many bytes have come.
    fn extend(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.0 += Duration::from_secs(1) * bytes / LEAST_BYTES_PER_SECOND;
    }

    /// Asks the peer, as long as there is time.
    async fn ask(
        &mut self,
        overlay: &dyn Overlay,
        from: PeerId,
        kind: Kind,
        body: Bytes,
    ) -> Result<Bytes, RequestError> {
        let answer = time::timeout_at(self.0, overlay.request(from, kind, body)).await;
        let answer = answer.unwrap_or(Err(RequestError::TimedOut(LEAST_TIME)))?;
        self.extend(answer.len());
        Ok(answer)
    }
}

/// Fetches replicas of domains and hands them to the crawler.
pub(crate) async fn pull(
    overlay: &dyn Overlay,
    orders: &Orders,
    from: PeerId,
    mut domains: Vec<Domain>,
) -> Result<(), RequestError> {
    let mut deadline = Deadline::new();
    while !domains.is_empty() {
        let asked: Vec<Domain> = domains.iter().take(MAX_NAMES).cloned().collect();
        let answer = deadline
            .ask(overlay, from, REPLICAS, wire::encode(&asked))
            .await?;
        let parcels: Vec<Parcel> = wire::decode(&answer)?;
        // The answer is in order and for at least one domain; the rest did not fit.
        let answered = parcels.len().max(1);
        for parcel in parcels {
            let (domain, replica) = match parcel {
                Parcel::Whole(domain, replica) => (domain, Some(replica)),
                Parcel::Unknown(domain) => (domain, None),
                Parcel::Large { domain, id, bytes } => {
                    let replica = pieces(overlay, &mut deadline, from, &domain, id, bytes).await?;
                    (domain, replica)
                }
            };
            let Some(replica) = replica.filter(|_| asked.contains(&domain)) else {
                continue;
            };
            // First, so that a peer with this replica has the records of all pages that it calls
            // done.
            if replica.pages_apart {
                pull_pages(overlay, orders, &mut deadline, from, &domain).await?;
            }
            if orders.adopt(from, domain, replica).await.is_err() {
                return Err(RequestError::Closed);
            }
        }
        domains.drain(..answered.min(domains.len()));
    }
    Ok(())
}

/// Fetches the records of a domain's pages and hands them to the crawler.
async fn pull_pages(
    overlay: &dyn Overlay,
    orders: &Orders,
    deadline: &mut Deadline,
    from: PeerId,
    domain: &Domain,
) -> Result<(), RequestError> {
    let mut after = None;
    loop {
        let ask = PagesAsk {
            domain: domain.clone(),
            after,
        };
        let answer = deadline
            .ask(overlay, from, PAGES, wire::encode(&ask))
            .await?;
        let part: PagesPart = wire::decode(&answer)?;
        let is_further = part.after > after;
        if !part.pages.is_empty() {
            let taken = orders.pages(from, domain.clone(), part.pages).await;
            taken.map_err(|_| RequestError::Closed)?;
        }
        if part.after.is_none() {
            return Ok(());
        }
        if !is_further {
            return Err(RequestError::Malformed);
        }
        after = part.after;
    }
}

async fn pieces(
    overlay: &dyn Overlay,
    deadline: &mut Deadline,
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
        let piece = deadline
            .ask(overlay, from, PIECE, wire::encode(&ask))
            .await?;
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
