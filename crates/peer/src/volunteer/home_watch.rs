//! Keeps what is known of the networks around this peer up to date: laptops move, and others tell
//! only in time at which address they see this peer.

use crate::{network::Network, volunteer::line::Line};
use apoidea_crawl::{Change, Home};
use apoidea_fetch::{Resolver, own_networks};
use std::{sync::Arc, time::Duration};
use tokio::time;
use tokio_util::sync::CancellationToken;

/// A look takes a tenth of a millisecond. A laptop that came into another network looks round
/// before it has fetched much there.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Without a line, a look costs a packet or none, and a volunteer waits.
const LISTEN_EVERY: Duration = Duration::from_secs(2);

/// Watches the interfaces of this computer and the peer's standing with others.
pub(crate) struct HomeWatch {
    pub home: Home,
    pub resolver: Resolver,
    pub network: Arc<Network>,
    pub line: Arc<Line>,
}

impl HomeWatch {
    /// Looks round until cancelled.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let round = async || {
            let pause = match self.resolver.is_silent() {
                true => LISTEN_EVERY,
                false => LOOK_EVERY,
            };
            time::sleep(pause).await;
            self.look().await;
        };
        // A look may wait for a name server; a peer that stops does not.
        while stop.run_until_cancelled(round()).await.is_some() {}
    }

    /// Looks round once.
    pub(crate) async fn look(&self) {
        let networks = own_networks(&self.network.own_addresses());
        if self.home.set_own(networks) == Change::Moved {
            self.resolver.on_moved().await;
        }
        self.line.look().await;
    }
}
