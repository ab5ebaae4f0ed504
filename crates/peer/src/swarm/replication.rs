//! Sends changes to the holders of copies.

use super::{
    COPIES,
    change::Delta,
    puller::Puller,
    wire::{self, DeltaAnswer},
};
use apoidea_model::{Domain, PeerId};
use apoidea_overlay::{Overlay, RequestError};
use bytes::Bytes;
use futures::future;
use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};
use tokio::time;

/// Whoever does not answer within this is gone or overloaded, and fetches a copy later: the others must not wait for it.
const WITHIN: Duration = Duration::from_secs(2);

/// Who was reached.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// Was somebody not reached?
    pub has_missed: bool,
    /// Domains whose changes reached nobody.
    pub unheld: Vec<Domain>,
}

/// Sends each change to all holders but this peer. When it returns, each has it, or did not answer in time.
pub(crate) async fn replicate(overlay: &dyn Overlay, puller: &Puller, deltas: Vec<Delta>) -> Reach {
    let mut by_holder: HashMap<PeerId, Vec<&Delta>> = HashMap::new();
    let mut unheld: BTreeSet<&Domain> = BTreeSet::new();
    for delta in &deltas {
        let owners = overlay.owners(delta.domain.key(), COPIES).await;
        let holders = owners.iter().flatten().filter(|owner| **owner != overlay.me());
        holders.clone().for_each(|holder| by_holder.entry(*holder).or_default().push(delta));
        // With nobody else on the ring there is nobody to have it.
        if owners.is_err() || holders.count() > 0 {
            unheld.insert(&delta.domain);
        }
    }
    let sends = by_holder.into_iter().map(|(holder, deltas)| async move {
        let domains: Vec<&Domain> = deltas.iter().map(|delta| &delta.domain).collect();
        (domains, send(overlay, puller, holder, deltas).await)
    });
    let mut has_missed = false;
    for (domains, sent) in future::join_all(sends).await {
        match sent {
            Ok(()) => domains.into_iter().for_each(|domain| _ = unheld.remove(domain)),
            Err(error) => {
                tracing::debug!(%error, "changes were not delivered to everybody");
                has_missed = true;
            }
        }
    }
    Reach { has_missed, unheld: unheld.into_iter().cloned().collect() }
}

async fn send(
    overlay: &dyn Overlay,
    puller: &Puller,
    holder: PeerId,
    deltas: Vec<&Delta>,
) -> Result<(), RequestError> {
    let deltas = deltas.into_iter().map(fitting).collect();
    let mut behind: Vec<Domain> = Vec::new();
    for frame in wire::portions(deltas, wire::MAX_NAMES) {
        let answer = ask(overlay, holder, wire::DELTAS, wire::encode(&frame)).await?;
        for (delta, answer) in frame.into_iter().zip(wire::decode::<Vec<DeltaAnswer>>(&answer)?) {
            if matches!(answer, DeltaAnswer::Ahead | DeltaAnswer::Apart) {
                puller.want(delta.domain.clone(), holder);
            }
            if matches!(answer, DeltaAnswer::Behind | DeltaAnswer::Apart) {
                behind.push(delta.domain);
            }
        }
    }
    for names in wire::portions(behind, wire::MAX_NAMES) {
        ask(overlay, holder, wire::FETCH, wire::encode(&names)).await?;
    }
    Ok(())
}

async fn ask(
    overlay: &dyn Overlay,
    holder: PeerId,
    kind: apoidea_overlay::Kind,
    body: Bytes,
) -> Result<Bytes, RequestError> {
    time::timeout(WITHIN, overlay.request(holder, kind, body))
        .await
        .unwrap_or(Err(RequestError::TimedOut(WITHIN)))
}

/// A change that does not fit into a frame is only announced: the holder then fetches the whole copy.
fn fitting(delta: &Delta) -> Delta {
    if wire::plain_bytes(delta) <= wire::FRAME_BYTES {
        return delta.clone();
    }
    Delta::announcement(delta.domain.clone(), delta.versions.clone())
}
