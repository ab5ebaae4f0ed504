//! Sends changes to the holders of copies.

use super::{
    COPIES,
    change::Delta,
    puller::Puller,
    wire::{self, DeltaAnswer},
};
use apoidea_model::PeerId;
use apoidea_overlay::Overlay;
use futures::future;
use std::collections::HashMap;

/// Sends each change to all holders but this peer. When it returns, each has it, or is gone, or will fetch a new copy.
pub(crate) async fn replicate(overlay: &dyn Overlay, puller: &Puller, deltas: Vec<Delta>) {
    let mut by_holder: HashMap<PeerId, Vec<&Delta>> = HashMap::new();
    for delta in &deltas {
        // Whoever is not known now fetches a copy when the ring is whole again.
        let Ok(owners) = overlay.owners(delta.domain.key(), COPIES).await else { continue };
        for owner in owners.into_iter().filter(|owner| *owner != overlay.me()) {
            by_holder.entry(owner).or_default().push(delta);
        }
    }
    let sends = by_holder.into_iter().map(|(holder, deltas)| send(overlay, puller, holder, deltas));
    future::join_all(sends).await;
}

async fn send(overlay: &dyn Overlay, puller: &Puller, holder: PeerId, deltas: Vec<&Delta>) {
    let deltas = deltas.into_iter().map(fitting).collect();
    for frame in wire::portions(deltas, wire::MAX_NAMES) {
        let answer = match overlay.request(holder, wire::DELTAS, wire::encode(&frame)).await {
            Ok(answer) => wire::decode::<Vec<DeltaAnswer>>(&answer),
            Err(error) => {
                tracing::debug!(?holder, %error, "changes were not delivered");
                return;
            }
        };
        for (delta, answer) in frame.iter().zip(answer.unwrap_or_default()) {
            if let DeltaAnswer::Stale(_) = answer {
                puller.want(delta.domain.clone(), holder);
            }
        }
    }
}

/// A change that does not fit into a frame is only announced: the holder then fetches the whole copy.
fn fitting(delta: &Delta) -> Delta {
    if wire::plain_bytes(delta) <= wire::FRAME_BYTES {
        return delta.clone();
    }
    let Delta { domain, stamp, .. } = delta;
    Delta {
        domain: domain.clone(),
        base: *stamp,
        stamp: *stamp,
        puts: Vec::new(),
        removes: Vec::new(),
        state: None,
    }
}
