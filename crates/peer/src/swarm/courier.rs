//! Carries links from the outbox to the owners of their domains, in batches.
//!
//! A link leaves the outbox when its owner has acknowledged it, which the owner does when it is
//! durable there. The outbox is read from the front again and again, so an owner that cannot be
//! reached holds nobody else up.

use super::{orders::Orders, wire};
use crate::crawler::Finding;
use apoidea_model::{CrawlId, Domain, Link, LinkBatch, PeerId};
use apoidea_overlay::Overlay;
use apoidea_store::{Commit, CommitError, OutboxRecord, Store};
use futures::{StreamExt, stream};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc},
    time,
};

/// Links collect for so long, so that batches are large; a link is in no hurry.
const COLLECT: Duration = Duration::from_secs(1);
/// After an owner could not be reached.
const AGAIN: Duration = Duration::from_secs(1);
/// Records read at a time.
const AT_ONCE: usize = 512;
/// Batches under way at a time.
const PARALLEL: usize = 8;

/// Empties the outbox.
pub(crate) struct Courier {
    pub overlay: Arc<dyn Overlay>,
    pub store: Store,
    pub orders: Orders,
    pub findings: mpsc::UnboundedSender<Finding>,
    /// Rung when there is something to carry.
    pub bell: Arc<Notify>,
}

/// How a round went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Clear,
    SomeLeft,
}

/// Where a link stands in what was read: record and place.
type Place = (usize, usize);

impl Courier {
    /// Carries until the task is dropped.
    pub(crate) async fn run(self) {
        loop {
            let round = self.empty().await;
            let again = if round == Round::SomeLeft {
                AGAIN
            } else {
                Duration::from_secs(60)
            };
            tokio::select! {
                () = self.bell.notified() => {}
                () = time::sleep(again) => {}
            }
            time::sleep(COLLECT).await;
        }
    }

    /// Goes through the outbox once. What comes meanwhile is left to collect.
    async fn empty(&self) -> Round {
        let (mut after, mut round, mut is_last) = (None, Round::Clear, false);
        while !is_last {
            let records = match self.store.outbox(after, AT_ONCE) {
                Ok(records) => records,
                Err(error) => {
                    tracing::warn!(%error, "the outbox cannot be read");
                    return Round::SomeLeft;
                }
            };
            is_last = records.len() < AT_ONCE;
            after = records.last().map(|record| record.sequence);
            if self.carry(records).await == Round::SomeLeft {
                round = Round::SomeLeft;
            }
        }
        round
    }

    async fn carry(&self, records: Vec<OutboxRecord>) -> Round {
        let batches = self.sort(&records).await;
        let sends = batches
            .into_iter()
            .map(|(owner, places)| self.send(owner, &records, places));
        let mut sends = pin!(stream::iter(sends).buffer_unordered(PARALLEL));
        let mut delivery = Delivery::of(&records);
        // Whatever is delivered is settled at once: one owner that does not answer holds up nobody
        // else's links.
        while let Some(accepted) = sends.next().await {
            let delivered = delivery.accept(accepted);
            if !delivered.is_empty() && self.settle(delivered).is_err() {
                return Round::SomeLeft;
            }
        }
        self.keep_rest(&records, &delivery)
    }

    /// Which links go to whom, in batches.
    async fn sort(&self, records: &[OutboxRecord]) -> Vec<(PeerId, Vec<Place>)> {
        let mut owners: HashMap<Domain, Option<PeerId>> = HashMap::new();
        let mut by_owner: HashMap<PeerId, Vec<Place>> = HashMap::new();
        for (r, record) in records.iter().enumerate() {
            for (l, link) in record.links.iter().enumerate() {
                let domain = link.url.domain();
                let owner = match owners.get(&domain) {
                    Some(owner) => *owner,
                    None => {
                        let found = self.overlay.owners(domain.key(), 1).await.ok();
                        let owner = found.and_then(|found| found.first().copied());
                        owners.insert(domain, owner);
                        owner
                    }
                };
                if let Some(owner) = owner {
                    by_owner.entry(owner).or_default().push((r, l));
                }
            }
        }
        let batches = by_owner.into_iter().flat_map(|(owner, places)| {
            batches(records, places)
                .into_iter()
                .map(move |batch| (owner, batch))
        });
        batches.collect()
    }

    /// Sends one batch; gives what was accepted.
    async fn send(
        &self,
        owner: PeerId,
        records: &[OutboxRecord],
        places: Vec<Place>,
    ) -> Vec<Place> {
        let links = places
            .iter()
            .map(|&(r, l)| records[r].links[l].clone())
            .collect();
        let declined = self.offer(owner, links).await;
        let is_accepted = |at: usize| u16::try_from(at).is_ok_and(|at| !declined.contains(&at));
        match declined.contains(&ALL) {
            true => Vec::new(),
            false => places
                .into_iter()
                .enumerate()
                .filter(|(at, _)| is_accepted(*at))
                .map(|(_, p)| p)
                .collect(),
        }
    }

    async fn offer(&self, owner: PeerId, links: Vec<Link>) -> HashSet<u16> {
        let batch = LinkBatch {
            crawl: CrawlId::OPEN,
            links,
        };
        let answer = if owner == self.overlay.me() {
            self.orders.admit(batch).await.ok()
        } else {
            match self
                .overlay
                .request(owner, wire::LINKS, wire::encode(&batch))
                .await
            {
                Ok(answer) => wire::decode(&answer).ok(),
                Err(error) => {
                    tracing::debug!(?owner, %error, "links were not delivered");
                    None
                }
            }
        };
        answer.map_or_else(
            || HashSet::from([ALL]),
            |answer: wire::LinksAnswer| answer.declined.into_iter().collect(),
        )
    }

    /// Drops records whose links are all with their owners.
    fn settle(&self, delivered: Vec<u64>) -> Result<(), CommitError> {
        let mut commit = Commit::new();
        delivered
            .iter()
            .for_each(|&sequence| commit.remove_outbox(sequence));
        self.apply(&commit)?;
        // Nobody listens any more when the peer has stopped.
        let _ = self.findings.send(Finding::Delivered(delivered));
        Ok(())
    }

    /// Keeps what is left of records of which some links are with their owners.
    fn keep_rest(&self, records: &[OutboxRecord], delivery: &Delivery) -> Round {
        let (mut commit, mut round) = (Commit::new(), Round::Clear);
        for (r, record) in records.iter().enumerate() {
            let left: Vec<Link> = delivery.left(r).map(|l| record.links[l].clone()).collect();
            if !left.is_empty() {
                round = Round::SomeLeft;
            }
            if !left.is_empty() && left.len() < record.links.len() {
                commit.put_outbox(record.sequence, &left);
            }
        }
        if self.apply(&commit).is_err() {
            Round::SomeLeft
        } else {
            round
        }
    }

    fn apply(&self, commit: &Commit) -> Result<(), CommitError> {
        let applied = self.store.apply(commit);
        if let Err(error) = &applied {
            tracing::warn!(%error, "delivered links stay in the outbox");
        }
        applied
    }
}

/// Which links of some records are not with their owners yet.
struct Delivery {
    sequences: Vec<u64>,
    left: Vec<BTreeSet<usize>>,
}

impl Delivery {
    fn of(records: &[OutboxRecord]) -> Self {
        let sequences = records.iter().map(|record| record.sequence).collect();
        Delivery {
            sequences,
            left: records
                .iter()
                .map(|record| (0..record.links.len()).collect())
                .collect(),
        }
    }

    /// Takes in what an owner accepted; gives the records that are delivered by that.
    fn accept(&mut self, accepted: Vec<Place>) -> Vec<u64> {
        let mut delivered = Vec::new();
        for (r, l) in accepted {
            if self.left[r].remove(&l) && self.left[r].is_empty() {
                delivered.push(self.sequences[r]);
            }
        }
        delivered
    }

    fn left(&self, record: usize) -> impl Iterator<Item = usize> {
        self.left[record].iter().copied()
    }
}

/// Cuts the links for one owner into batches that fit into a frame.
fn batches(records: &[OutboxRecord], places: Vec<Place>) -> Vec<Vec<Place>> {
    let mut batches: Vec<Vec<Place>> = Vec::new();
    let mut room = 0;
    for (r, l) in places {
        let bytes = wire::plain_bytes(&records[r].links[l]);
        match batches.last_mut() {
            Some(batch) if bytes <= room && batch.len() < LinkBatch::MAX_LINKS => {
                batch.push((r, l))
            }
            _ => {
                batches.push(vec![(r, l)]);
                room = wire::FRAME_BYTES;
            }
        }
        room = room.saturating_sub(bytes);
    }
    batches
}

/// Stands for every link of a batch.
const ALL: u16 = u16::MAX;
