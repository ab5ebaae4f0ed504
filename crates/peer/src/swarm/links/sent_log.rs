//! The links that owners have acknowledged lately, in case one of them turns out to have dropped
//! them, or vanishes.

use crate::{
    clock::now,
    lock::lock,
    swarm::orders::{Orders, Stopped},
};
use apoidea_model::{CrawlId, Link, PeerId, Time};
use apoidea_store::{Commit, ReadError, SentBatch, Store};
use std::{collections::VecDeque, sync::Mutex, time::Duration};

/// Links are kept for so long. The least-checked liar is found after 50 batches on average, by one
/// of many peers that send to it.
const KEPT_FOR: Duration = Duration::from_secs(15 * 60);
/// Batches that are kept at most; some MiB.
const MAX_BATCHES: usize = 4096;
/// Batches read at a time.
const AT_ONCE: usize = 64;
/// A number is a time and a count.
const COUNT_BITS: u32 = 10;

/// Numbers the batches, and forgets the oldest.
pub(crate) struct SentLog(Mutex<VecDeque<u64>>);

impl SentLog {
    /// The links that were kept by earlier runs.
    pub(crate) fn open(store: &Store) -> Result<Self, ReadError> {
        Ok(SentLog(Mutex::new(store.sent_numbers()?.into())))
    }

    /// Keeps links that an owner has acknowledged, in the commit in which they leave the outbox.
    pub(crate) fn keep(
        &self,
        owner: PeerId,
        crawl: CrawlId,
        links: Vec<Link>,
        commit: &mut Commit,
    ) {
        if links.is_empty() {
            return;
        }
        let mut numbers = lock(&self.0);
        let time = number_at(now());
        let number = numbers.back().map_or(time, |last| time.max(last + 1));
        commit.put_sent(&SentBatch {
            number,
            owner,
            crawl,
            links,
        });
        numbers.push_back(number);
        let oldest = number_at(now() - KEPT_FOR);
        while numbers.len() > MAX_BATCHES || numbers.front().is_some_and(|first| *first < oldest) {
            if let Some(first) = numbers.pop_front() {
                commit.remove_sent(first);
            }
        }
    }
}

/// Sends the links again that an owner has taken since some time, to the peer that owns their domains
/// now; gives their number.
pub(crate) async fn send_again(
    store: &Store,
    orders: &Orders,
    owner: PeerId,
    since: Time,
) -> Result<usize, Stopped> {
    let (mut after, mut links) = (Some(number_at(since)), 0);
    loop {
        let batches = match store.sent(after, AT_ONCE) {
            Ok(batches) => batches,
            Err(error) => {
                tracing::warn!(%error, "sent links cannot be read");
                return Ok(links);
            }
        };
        let Some(last) = batches.last() else {
            return Ok(links);
        };
        after = Some(last.number);
        for batch in batches.into_iter().filter(|batch| batch.owner == owner) {
            links += batch.links.len();
            orders.send_again(batch.crawl, batch.links).await?;
            let mut commit = Commit::new();
            commit.remove_sent(batch.number);
            if let Err(error) = store.apply(&commit) {
                tracing::warn!(%error, "links that were sent again are not noted");
                return Ok(links);
            }
        }
    }
}

fn number_at(time: Time) -> u64 {
    time.as_millis() << COUNT_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{TestPeer, link, peer};

    #[test]
    fn batches_are_numbered_in_order_and_the_oldest_go() {
        let (me, _) = TestPeer::new([peer(1), peer(2)]);
        let domain = me.ring.domain_of(peer(2));
        let old = SentBatch {
            number: 7,
            owner: peer(2),
            crawl: CrawlId::OPEN,
            links: vec![link(&domain, 1)],
        };
        let mut commit = Commit::new();
        commit.put_sent(&old);
        me.store.apply(&commit).unwrap();
        let log = SentLog::open(&me.store).unwrap();
        let mut commit = Commit::new();
        for page in 0..3 {
            log.keep(
                peer(2),
                CrawlId::OPEN,
                vec![link(&domain, page)],
                &mut commit,
            );
        }
        log.keep(peer(2), CrawlId::OPEN, Vec::new(), &mut commit);
        me.store.apply(&commit).unwrap();
        let kept = me.store.sent(None, 9).unwrap();
        let pages: Vec<&str> = kept
            .iter()
            .map(|batch| batch.links[0].url.path_and_query())
            .collect();
        assert_eq!(pages, ["/0", "/1", "/2"]);
    }
}
