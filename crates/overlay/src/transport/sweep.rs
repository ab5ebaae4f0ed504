//! The regular work of the transport: keeping useful connections alive, and noticing that the
//! machine slept.

use super::{Inner, close::Close, link::Link};
use crate::{Kind, clock::Clock};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use tokio::time;

/// A sweep that comes this late means that the machine slept. Longer than a busy machine takes,
/// shorter than the idle time of a connection.
const SLEPT: Duration = Duration::from_secs(30);

impl Inner {
    /// Sweeps until the transport stops.
    pub(crate) async fn sweep(self: Arc<Self>) {
        let mut clock = Clock::start();
        let interval = self.settings.limits.keep_alive() / 3;
        while self
            .stop
            .run_until_cancelled(time::sleep(interval))
            .await
            .is_some()
        {
            if clock.lap() > interval + SLEPT {
                self.wake_up();
            }
            self.keep_alive();
        }
    }

    /// Drops all connections, since the other sides have given them up, and takes new sockets,
    /// since the network may be another one.
    pub(crate) fn wake_up(&self) {
        tracing::info!("the machine slept: connecting afresh");
        let links: Vec<_> = self.table().links().cloned().collect();
        links.iter().for_each(|link| link.close(Close::Slept));
        self.forget_whereabouts();
        for port in &self.ports {
            if let Err(error) = port.rebind() {
                tracing::warn!(%error, "no new socket");
            }
        }
    }

    fn keep_alive(self: &Arc<Self>) {
        let due = |link: &&Arc<Link>| link.unused_for() >= self.settings.limits.keep_alive();
        let table = self.table();
        let useful = table
            .links()
            .filter(|link| table.is_useful(link.peer))
            .filter(due);
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
