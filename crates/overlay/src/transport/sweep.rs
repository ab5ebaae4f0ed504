//! What has to be done from time to time: keeping useful connections alive, and noticing that the machine slept.

use super::{Inner, close::Close, link::Link};
use crate::Kind;
use bytes::Bytes;
use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use tokio::time;

/// How far the wall clock may run ahead of the monotonic one between two sweeps before the machine must have slept.
/// Longer than any step that a clock service makes while running, shorter than the idle time of a connection.
const SLEPT: Duration = Duration::from_secs(30);

impl Inner {
    /// Sweeps until the transport stops.
    pub(crate) async fn sweep(self: Arc<Self>) {
        let mut clocks = Clocks::now();
        let interval = self.settings.limits.keep_alive() / 3;
        while self.stop.run_until_cancelled(time::sleep(interval)).await.is_some() {
            let before = std::mem::replace(&mut clocks, Clocks::now());
            if clocks.slept_since(&before, interval) {
                self.wake_up();
            }
            self.keep_alive();
        }
    }

    /// Drops all connections, which the other sides have given up, and takes new sockets, since the network may be
    /// another one.
    pub(crate) fn wake_up(&self) {
        tracing::info!("the machine slept: connecting afresh");
        let links: Vec<_> = self.table().links().cloned().collect();
        links.iter().for_each(|link| link.close(Close::Slept));
        for port in &self.ports {
            if let Err(error) = port.rebind() {
                tracing::warn!(%error, "no new socket");
            }
        }
    }

    fn keep_alive(self: &Arc<Self>) {
        let due = |link: &&Arc<Link>| link.unused_for() >= self.settings.limits.keep_alive();
        let table = self.table();
        let useful = table.links().filter(|link| table.is_useful(link.peer)).filter(due);
        for link in useful.cloned() {
            self.spawn(self.clone().check(link));
        }
    }

    async fn check(self: Arc<Self>, link: Arc<Link>) {
        let answer = link.ask(Kind::PING, Bytes::new());
        match time::timeout(self.settings.limits.request_deadline(), answer).await {
            Ok(Ok(_)) => self.counters.asked(Kind::PING, 0, 0),
            _ => link.close(Close::Unresponsive),
        }
    }
}

/// Both clocks at one moment.
struct Clocks {
    monotonic: Instant,
    wall: SystemTime,
}

impl Clocks {
    fn now() -> Self {
        Clocks { monotonic: Instant::now(), wall: SystemTime::now() }
    }

    /// On some systems the monotonic clock stops during sleep and the wall clock runs ahead; on others it goes on and
    /// the interval was far too long.
    fn slept_since(&self, before: &Clocks, interval: Duration) -> bool {
        let monotonic = self.monotonic.saturating_duration_since(before.monotonic);
        let wall = self.wall.duration_since(before.wall).unwrap_or_default();
        monotonic.max(wall) > interval + SLEPT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_shows_on_either_clock_and_a_clock_set_back_does_not_count() {
        let interval = Duration::from_secs(5);
        let before = Clocks::now();
        let later = |monotonic: u64, wall: i64| {
            let wall_step = Duration::from_secs(wall.unsigned_abs());
            let wall = if wall < 0 { before.wall - wall_step } else { before.wall + wall_step };
            Clocks { monotonic: before.monotonic + Duration::from_secs(monotonic), wall }
        };
        assert!(!later(5, 5).slept_since(&before, interval));
        assert!(!later(20, 20).slept_since(&before, interval), "a busy machine");
        assert!(!later(5, -3600).slept_since(&before, interval));
        assert!(later(5, 3600).slept_since(&before, interval));
        assert!(later(3600, 3600).slept_since(&before, interval));
    }
}
