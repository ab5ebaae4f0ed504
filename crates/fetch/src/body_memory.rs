//! Memory for bodies on their way, counted before it is taken.
//!
//! Bodies are what makes a crawl's memory jump: a thousand fetches hold two gigabytes within
//! seconds, sooner than anything shrinks. So a fetch begins when there is room for a body of the
//! size that was usual lately, and reads beyond that while there is room at all; the rest stays
//! with the system and the server. A few of those that wait always go on, so that somebody ends.

use crate::request::Wanted;
use apoidea_governor::Allowance;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// The part of the memory limit that bodies may have. The database, the domains and what is being
/// written have the rest.
const SHARE: f64 = 0.35;
/// What a connection takes besides: the HTTP client reads up to 408 KiB at a time, but seldom.
const BUFFER_BYTES: u64 = 128 << 10;
/// A body is expected to be this large before any was seen: too large for most, so that a crawl
/// begins with few fetches.
const FIRST_GUESS_BYTES: f64 = 1_048_576.0;
/// Bodies over which the expected size is averaged, about: it grows at once and shrinks slowly.
const GROWS_OVER: f64 = 2.0;
const SHRINKS_OVER: f64 = 20.0;
/// How many go on without room: with the largest bodies, 8 MiB beyond the limit.
const MAX_AHEAD: usize = 4;

/// What all bodies on their way take together.
#[derive(Debug, Default)]
pub struct BodyMemory {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    limit: Option<u64>,
    is_paused: bool,
    taken: u64,
    expected: f64,
    /// Who goes on although there is no room.
    ahead: Vec<u64>,
    entered: u64,
}

/// What one body takes, from its request to the end of its processing.
#[derive(Debug)]
pub struct Holding {
    memory: Arc<BodyMemory>,
    number: u64,
    wanted: Wanted,
    /// What it was expected to take, and what is there.
    reserved: u64,
    bytes: u64,
}

impl Default for State {
    fn default() -> Self {
        State {
            limit: None,
            is_paused: false,
            taken: 0,
            expected: FIRST_GUESS_BYTES,
            ahead: Vec::new(),
            entered: 0,
        }
    }
}

impl BodyMemory {
    /// Keeps to a part of the memory that the whole process may take.
    pub fn allow(&self, allowance: &Allowance) {
        let limit = allowance
            .memory_bytes
            .map(|bytes| (bytes as f64 * SHARE) as u64);
        let mut state = self.state();
        if (state.limit, state.is_paused) != (limit, allowance.is_paused()) {
            (state.limit, state.is_paused) = (limit, allowance.is_paused());
            drop(state);
            self.freed.notify_waiters();
        }
    }

    /// Waits until there is room for another body. Whoever had to wait does not begin in a pause.
    pub async fn enter(self: &Arc<Self>, wanted: Wanted) -> Holding {
        let mut has_waited = false;
        let entered = self.wait_until(|state| {
            let is_held = std::mem::replace(&mut has_waited, true) && state.is_paused;
            if is_held { None } else { state.enter() }
        });
        let (number, reserved) = entered.await;
        Holding {
            memory: self.clone(),
            number,
            wanted,
            reserved,
            bytes: 0,
        }
    }

    async fn wait_until<T>(&self, mut attempt: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if let Some(done) = attempt(&mut self.state()) {
                return done;
            }
            freed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_room(&self, more: u64) -> bool {
        self.limit.is_none_or(|limit| self.taken + more <= limit)
    }

    /// A limit that is less than one body takes lets one in at a time.
    fn enter(&mut self) -> Option<(u64, u64)> {
        let reserved = self.expected as u64 + BUFFER_BYTES;
        if self.taken > 0 && !self.has_room(reserved) {
            return None;
        }
        self.taken += reserved;
        self.entered += 1;
        Some((self.entered, reserved))
    }

    fn go_on(&mut self, number: u64) -> Option<()> {
        if self.has_room(0) || self.ahead.contains(&number) {
            return Some(());
        }
        (self.ahead.len() < MAX_AHEAD).then(|| self.ahead.push(number))
    }

    /// A body has gone that took so much.
    fn learn(&mut self, bytes: u64) {
        let difference = bytes as f64 - self.expected;
        let over = if difference > 0.0 {
            GROWS_OVER
        } else {
            SHRINKS_OVER
        };
        self.expected += difference / over;
    }
}

impl Holding {
    /// Notes bytes that are there.
    pub fn note(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.expect(self.bytes);
    }

    /// Notes how large the body is going to be, if it is larger than expected.
    pub fn expect(&mut self, bytes: u64) {
        let more = (bytes + BUFFER_BYTES).saturating_sub(self.reserved);
        self.reserved += more;
        self.memory.state().taken += more;
    }

    /// The body went to the disk; before it comes back, there has to be room again.
    pub fn put_aside(&mut self) {
        let reserved = std::mem::take(&mut self.reserved);
        let mut state = self.memory.state();
        state.taken -= reserved;
        state.ahead.retain(|number| *number != self.number);
        drop(state);
        self.memory.freed.notify_waiters();
    }

    /// Waits until there is room for a body that was put aside, and takes it.
    pub async fn bring_back(&mut self) {
        self.memory
            .wait_until(|state| state.go_on(self.number))
            .await;
        self.expect(self.bytes);
    }

    /// Waits until more may be read; gives how long that took. What was reserved may be.
    pub async fn wait_for_room(&self) -> Duration {
        if self.bytes + BUFFER_BYTES < self.reserved {
            return Duration::ZERO;
        }
        let begun = Instant::now();
        self.memory
            .wait_until(|state| state.go_on(self.number))
            .await;
        begun.elapsed()
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let mut state = self.memory.state();
        state.taken -= self.reserved;
        state.ahead.retain(|number| *number != self.number);
        // Those of robots.txt say nothing about pages.
        if self.wanted == Wanted::Page && self.bytes > 0 {
            state.learn(self.bytes);
        }
        drop(state);
        self.memory.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_governor::Pace;
    use futures::FutureExt;

    const MIB: u64 = 1 << 20;

    fn limited(limit: u64) -> Arc<BodyMemory> {
        let memory = Arc::new(BodyMemory::default());
        memory.allow(&allowance(Some((limit as f64 / SHARE).ceil() as u64)));
        memory
    }

    fn allowance(memory_bytes: Option<u64>) -> Allowance {
        Allowance {
            memory_bytes,
            ..Allowance::default()
        }
    }

    /// As many as may begin at once.
    fn entered(memory: &Arc<BodyMemory>) -> Vec<Holding> {
        std::iter::from_fn(|| memory.enter(Wanted::Page).now_or_never())
            .take(10_000)
            .collect()
    }

    #[tokio::test]
    async fn fetches_wait_for_room_and_begin_when_others_end() {
        let memory = limited(3 * MIB);
        let mut holdings = entered(&memory);
        assert_eq!(holdings.len(), 2);
        let mut next = std::pin::pin!(memory.enter(Wanted::Page));
        assert!(next.as_mut().now_or_never().is_none());
        holdings.pop();
        drop(next.await);
        drop(holdings);
        assert_eq!(memory.state().taken, 0);
    }

    #[tokio::test]
    async fn how_many_begin_follows_how_large_bodies_are() {
        let memory = limited(100 * MIB);
        let first = entered(&memory).len();
        for _ in 0..200 {
            memory.enter(Wanted::Page).await.note(20_000);
        }
        let small = entered(&memory).len();
        for _ in 0..10 {
            memory.enter(Wanted::Page).await.note(2 * MIB);
        }
        let large = entered(&memory).len();
        assert!(
            small > 5 * first && large < first,
            "{first}, {small}, {large}"
        );
        assert!(large >= 45, "{large}");
    }

    #[tokio::test]
    async fn without_room_a_few_go_on_until_they_end() {
        let memory = limited(20 * MIB);
        let mut holdings = entered(&memory);
        holdings
            .iter_mut()
            .for_each(|holding| holding.note(2 * MIB));
        let go_on: Vec<bool> = holdings
            .iter()
            .map(|holding| holding.wait_for_room().now_or_never().is_some())
            .collect();
        assert_eq!(go_on.iter().filter(|goes| **goes).count(), MAX_AHEAD);
        let waiting = holdings.pop().unwrap();
        assert!(waiting.wait_for_room().now_or_never().is_none());
        holdings.remove(0);
        assert!(waiting.wait_for_room().now_or_never().is_some());
    }

    #[tokio::test]
    async fn what_is_put_aside_makes_room_for_others() {
        let memory = limited(3 * MIB);
        let mut holdings = entered(&memory);
        holdings
            .iter_mut()
            .for_each(|holding| holding.note(2 * MIB));
        assert!(memory.enter(Wanted::Page).now_or_never().is_none());
        let mut aside = holdings.pop().unwrap();
        aside.put_aside();
        holdings.clear();
        assert_eq!(memory.state().taken, 0);
        let other = memory
            .enter(Wanted::Page)
            .now_or_never()
            .expect("there is room");
        aside.bring_back().await;
        assert!(memory.state().taken > 3 * MIB);
        drop((other, aside));
        assert_eq!(memory.state().taken, 0);
    }

    #[tokio::test]
    async fn a_higher_limit_counts_at_once_and_none_is_no_limit() {
        let memory = limited(1);
        let first = memory
            .enter(Wanted::Page)
            .now_or_never()
            .expect("one is always let in");
        let mut second = std::pin::pin!(memory.enter(Wanted::Page));
        assert!(second.as_mut().now_or_never().is_none());
        memory.allow(&allowance(None));
        second.await.note(1 << 40);
        drop(first);
        assert!(memory.enter(Wanted::Page).now_or_never().is_some());
    }

    #[tokio::test]
    async fn whoever_waits_does_not_begin_in_a_pause() {
        let memory = limited(1);
        let first = memory.enter(Wanted::Page).await;
        let mut second = std::pin::pin!(memory.enter(Wanted::Page));
        assert!(second.as_mut().now_or_never().is_none());
        memory.allow(&Allowance {
            pace: Pace::Paused,
            ..allowance(None)
        });
        drop(first);
        assert!(second.as_mut().now_or_never().is_none());
        memory.allow(&allowance(None));
        assert!(second.now_or_never().is_some());
    }
}
