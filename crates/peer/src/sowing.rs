//! Sowing: a peer that knows nothing, in a ring that tells it nothing, begins at the start list.
//!
//! A peer that finds others first waits for what they hand over. Every newcomer of a young ring may
//! sow the same list: each URL goes to the owner of its domain, which takes it once.

use crate::{
    handle::Handle,
    network::NetworkState,
    report::status::{State, Status},
};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Time in which a ring hands the domains of an arc over to a newcomer, and other peers send links.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(15);

/// Waits until this peer knows nothing and nobody tells it anything; then sows, once.
pub(crate) async fn sow_when_empty(handle: Handle, stop: CancellationToken) {
    let sow = async {
        if is_empty_for_long(&handle).await {
            sow(&handle).await;
        }
    };
    stop.run_until_cancelled(sow).await;
}

/// Ends with true when it is time to sow, and with false when there is something to crawl.
async fn is_empty_for_long(handle: &Handle) -> bool {
    let mut statuses = handle.watch_status();
    loop {
        let is_settled = |status: &Status| readiness(status) != Readiness::Wait;
        let now = match statuses.wait_for(is_settled).await {
            Ok(status) => readiness(&status),
            Err(_) => return false,
        };
        match now {
            Readiness::Known | Readiness::Wait => return false,
            Readiness::Alone => return true,
            Readiness::Newcomer => {}
        }
        let until = Instant::now() + HANDED_OVER_WITHIN;
        let moved = |status: &Status| readiness(status) != Readiness::Newcomer;
        if timeout_at(until, statuses.wait_for(moved)).await.is_err() {
            return true;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readiness {
    /// It is not known yet whether there are others, or the volunteer wants a pause.
    Wait,
    /// There is something to crawl.
    Known,
    /// There is nothing, and nobody to tell of anything.
    Alone,
    /// There is nothing yet, but others may hand something over.
    Newcomer,
}

fn readiness(status: &Status) -> Readiness {
    let is_known = status.domains + status.queued + status.outbox + status.totals.admitted > 0;
    match (status.state, status.network) {
        _ if is_known => Readiness::Known,
        // Before the first look round, the network counts as joining.
        (State::Paused | State::Stopping, _)
        | (_, NetworkState::Outside | NetworkState::Joining) => Readiness::Wait,
        (_, NetworkState::Alone) => Readiness::Alone,
        (_, NetworkState::Member { .. } | NetworkState::Fixed { .. }) => Readiness::Newcomer,
    }
}

async fn sow(handle: &Handle) {
    let seeds = match handle.start_seeds() {
        Ok(seeds) => seeds,
        Err(error) => return tracing::error!(%error, "the crawl has no beginning"),
    };
    tracing::info!(origin = ?seeds.origin, count = seeds.urls.len(), "nothing is known yet: sowing");
    match handle.seed(seeds.urls).await {
        Ok(Ok(receipt)) => {
            for (url, why) in receipt.refused {
                tracing::info!(%url, why, "the seed is refused");
            }
        }
        Ok(Err(why)) => tracing::error!(%why, "the seeds could not be written"),
        Err(stopped) => tracing::debug!(%stopped, "the seeds were not taken"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Time;

    fn with(change: impl FnOnce(&mut Status)) -> Readiness {
        let mut status = Status {
            state: State::Idle,
            ..Status::starting(Time::ZERO)
        };
        change(&mut status);
        readiness(&status)
    }

    #[test]
    fn a_peer_sows_when_it_is_alone_and_knows_nothing() {
        assert_eq!(with(|_| ()), Readiness::Wait, "it looks for others first");
        let alone = |status: &mut Status| status.network = NetworkState::Alone;
        assert_eq!(with(alone), Readiness::Alone);
        let paused = |status: &mut Status| {
            alone(status);
            status.state = State::Paused;
        };
        assert_eq!(with(paused), Readiness::Wait);
        let member = |status: &mut Status| status.network = NetworkState::Member { peers: 3 };
        assert_eq!(with(member), Readiness::Newcomer);
        let seeded = |status: &mut Status| {
            alone(status);
            status.outbox = 1;
        };
        assert_eq!(with(seeded), Readiness::Known);
    }
}
