//! Charges what the peer really used to its allowance: CPU time, and the overlay's traffic.

use crate::network::Network;
use apoidea_fetch::Throttle;
use std::sync::Arc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Measures what is used until it is stopped: CPU time, and what the overlay sent and received.
pub(crate) async fn measure(
    throttle: Arc<Throttle>,
    network: Arc<Network>,
    stop: CancellationToken,
) {
    let (mut before, mut rates) = (network.traffic_bytes(), (None, None));
    while stop
        .run_until_cancelled(sleep(throttle.measure_in()))
        .await
        .is_some()
    {
        throttle.measure();
        let now = network.traffic_bytes();
        throttle.charge(now.0 - before.0, now.1 - before.1);
        before = now;
        if rates != throttle.rates() {
            rates = throttle.rates();
            network.limit_bandwidth(rates.0, rates.1);
        }
    }
}
