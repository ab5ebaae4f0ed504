//! The budgets of other peers: the part of this peer's processor and disk that the messages of each
//! of them may take. A flood hurts the peer that sends it, and no other.
//!
//! Links have a budget of their own, in the crawler ([`apoidea_crawl::Shares`] of the queue). The
//! transport counts requests and bytes before anything is read.

use crate::lock::lock;
use apoidea_crawl::Shares;
use apoidea_model::{PeerId, Time};
use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    pin::pin,
    sync::Mutex,
    time::{Duration, Instant},
};

/// The part of one core that the answers to one peer may take, over time.
const TIME_SHARE: f64 = 0.25;
/// The time that they may take at once.
const TIME_BURST: Duration = Duration::from_secs(1);
/// Peers whose use is remembered. Those that have used least are forgotten first.
const MAX_PEERS: usize = 4096;
/// New content facts of one peer in about a day, 200 MB of them: 23 new pages in a second that one
/// peer fetched and another has to remember.
const FACTS: u64 = 2_000_000;
/// URLs that one owner puts into the replicas here in about a day: five times as many as its queues
/// hold.
const REPLICA_URLS: u64 = 100_000_000;

/// What each peer has used lately.
pub(crate) struct Budgets {
    time: Mutex<HashMap<PeerId, Used>>,
    facts: Mutex<Shares>,
    replicas: Mutex<Shares>,
}

/// The time that was used, less what has passed since.
#[derive(Clone, Copy)]
struct Used {
    time: f64,
    at: Instant,
}

impl Default for Budgets {
    fn default() -> Self {
        Budgets {
            time: Mutex::default(),
            facts: Mutex::new(Shares::of_each(FACTS)),
            replicas: Mutex::new(Shares::of_each(REPLICA_URLS)),
        }
    }
}

impl Budgets {
    /// Has the peer any time left?
    pub(in crate::swarm) fn has_time(&self, peer: PeerId) -> bool {
        let used = lock(&self.time).get(&peer).copied();
        used.is_none_or(|used| used.left(Instant::now()) < TIME_BURST.as_secs_f64())
    }

    /// Does work for a peer, and counts the time that it takes, without the waiting. Work that is
    /// given up half-way counts, too.
    pub(in crate::swarm) async fn metered<T>(
        &self,
        peer: PeerId,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let began = Instant::now();
            let polled = work.as_mut().poll(context);
            self.note_time(peer, began);
            polled
        })
        .await
    }

    fn note_time(&self, peer: PeerId, began: Instant) {
        let (now, took) = (Instant::now(), began.elapsed().as_secs_f64());
        let mut all = lock(&self.time);
        if all.len() >= MAX_PEERS && !all.contains_key(&peer) {
            all.retain(|_, used| used.left(now) > 0.0);
        }
        // So many peers cannot all be near. One that is not counted now is counted next time.
        if all.len() < MAX_PEERS || all.contains_key(&peer) {
            let used = all.entry(peer).or_insert(Used { time: 0.0, at: now });
            *used = Used {
                time: used.left(now) + took,
                at: now,
            };
        }
    }

    /// New content facts that a peer may still bring.
    pub(in crate::swarm) fn room_for_facts(&self, peer: PeerId, now: Time) -> u64 {
        lock(&self.facts).room(peer, now)
    }

    /// A peer has brought so many new facts.
    pub(in crate::swarm) fn note_facts(&self, peer: PeerId, facts: u64, now: Time) {
        lock(&self.facts).fill(peer, facts, now);
    }

    /// Counts URLs that an owner puts into the replicas here, unless they are too many.
    pub(in crate::swarm) fn take_replica_urls(&self, peer: PeerId, urls: u64, now: Time) -> bool {
        let mut shares = lock(&self.replicas);
        let is_room = urls <= shares.room(peer, now);
        if is_room {
            shares.fill(peer, urls, now);
        }
        is_room
    }
}

impl Used {
    fn left(&self, now: Instant) -> f64 {
        let passed = now.duration_since(self.at).as_secs_f64();
        (self.time - passed * TIME_SHARE).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::peer;
    use std::{thread, time::Duration};

    const LIAR: u8 = 1;
    const OTHER: u8 = 2;

    fn spend(budgets: &Budgets, time: Duration) {
        let began = Instant::now().checked_sub(time).unwrap();
        budgets.note_time(peer(LIAR), began);
    }

    #[test]
    fn a_peer_that_takes_too_much_time_waits_and_others_do_not() {
        let budgets = Budgets::default();
        assert!(budgets.has_time(peer(LIAR)));
        spend(&budgets, TIME_BURST + Duration::from_millis(10));
        assert!(!budgets.has_time(peer(LIAR)));
        assert!(budgets.has_time(peer(OTHER)));
        thread::sleep(Duration::from_millis(10).div_f64(TIME_SHARE) + Duration::from_millis(20));
        assert!(
            budgets.has_time(peer(LIAR)),
            "a quarter of the time is free"
        );
    }

    #[tokio::test]
    async fn waiting_takes_no_time_and_work_that_is_given_up_does() {
        let budgets = Budgets::default();
        let waits = tokio::time::sleep(Duration::from_millis(100));
        budgets.metered(peer(LIAR), waits).await;
        let used = |budgets: &Budgets| lock(&budgets.time)[&peer(LIAR)].time;
        assert!(used(&budgets) < 0.05, "{}", used(&budgets));
        let work = async {
            thread::sleep(Duration::from_millis(60));
            std::future::pending::<()>().await;
        };
        let given_up = budgets.metered(peer(LIAR), work);
        let _ = tokio::time::timeout(Duration::from_millis(1), given_up).await;
        assert!(used(&budgets) > 0.05, "{}", used(&budgets));
    }

    #[test]
    fn the_number_of_peers_is_bounded() {
        let budgets = Budgets::default();
        for number in 0..MAX_PEERS as u32 + 10 {
            let key = apoidea_model::Key::hash(number.to_be_bytes());
            budgets.note_time(PeerId::at(key), Instant::now());
        }
        assert!(lock(&budgets.time).len() <= MAX_PEERS);
    }

    #[test]
    fn facts_and_urls_of_replicas_are_bounded_for_each_peer() {
        let (budgets, now) = (Budgets::default(), Time::from_millis(1));
        budgets.note_facts(peer(LIAR), FACTS, now);
        assert_eq!(budgets.room_for_facts(peer(LIAR), now), 0);
        assert_eq!(budgets.room_for_facts(peer(OTHER), now), FACTS);
        assert!(budgets.take_replica_urls(peer(LIAR), REPLICA_URLS, now));
        assert!(!budgets.take_replica_urls(peer(LIAR), 1, now));
        assert!(budgets.take_replica_urls(peer(OTHER), 1, now));
    }
}
