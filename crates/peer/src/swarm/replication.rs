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
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{self, Instant},
};

/// Whoever does not answer within this is gone or overloaded, and fetches a copy later: the others
/// must not wait for it.
const WITHIN: Duration = Duration::from_secs(2);

/// So long a round waits for everybody; then it is enough that each change is with somebody.
const TOGETHER: Duration = Duration::from_millis(300);

/// Who was reached.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// Domains whose changes reached nobody.
    pub unheld: Vec<Domain>,
}

/// Brings changes to the holders of copies.
pub(crate) struct Replication {
    pub overlay: Arc<dyn Overlay>,
    pub puller: Puller,
    /// Rung when a holder was not reached: it fetches later what it missed.
    pub sweep: Arc<Notify>,
}

impl Replication {
    /// Sends each change to all holders but this peer. When it returns, each has it or did not
    /// answer in time; one that is only slow may still be at it, if another has the change.
    pub(crate) async fn send(self, deltas: Vec<Delta>) -> Reach {
        let (by_holder, mut unheld) = self.sort(deltas).await;
        let this = Arc::new(self);
        let mut sends: JoinSet<Option<Vec<Domain>>> = JoinSet::new();
        for (holder, deltas) in by_holder {
            sends.spawn(this.clone().tell(holder, deltas));
        }
        let together = Instant::now() + TOGETHER;
        loop {
            let next = match unheld.is_empty() {
                true => time::timeout_at(together, sends.join_next())
                    .await
                    .ok()
                    .flatten(),
                false => sends.join_next().await,
            };
            let Some(told) = next else { break };
            told.ok()
                .flatten()
                .into_iter()
                .flatten()
                .for_each(|domain| _ = unheld.remove(&domain));
        }
        sends.detach_all();
        Reach {
            unheld: unheld.into_iter().collect(),
        }
    }

    /// The changes by holder, and the domains that somebody has to hold.
    async fn sort(&self, deltas: Vec<Delta>) -> (HashMap<PeerId, Vec<Delta>>, BTreeSet<Domain>) {
        let mut by_holder: HashMap<PeerId, Vec<Delta>> = HashMap::new();
        let mut unheld = BTreeSet::new();
        for delta in deltas {
            let owners = self.overlay.owners(delta.domain.key(), COPIES).await;
            let others = owners
                .iter()
                .flatten()
                .filter(|owner| **owner != self.overlay.me());
            others
                .clone()
                .for_each(|holder| by_holder.entry(*holder).or_default().push(delta.clone()));
            // With nobody else on the ring there is nobody to have it.
            if owners.is_err() || others.count() > 0 {
                unheld.insert(delta.domain);
            }
        }
        (by_holder, unheld)
    }

    /// The domains that the holder has the changes of; none if it was not reached.
    async fn tell(self: Arc<Self>, holder: PeerId, deltas: Vec<Delta>) -> Option<Vec<Domain>> {
        let domains = deltas.iter().map(|delta| delta.domain.clone()).collect();
        let sent = send(self.overlay.as_ref(), &self.puller, holder, deltas).await;
        if let Err(error) = &sent {
            tracing::debug!(%error, "changes were not delivered to everybody");
            self.sweep.notify_one();
        }
        sent.is_ok().then_some(domains)
    }
}

async fn send(
    overlay: &dyn Overlay,
    puller: &Puller,
    holder: PeerId,
    deltas: Vec<Delta>,
) -> Result<(), RequestError> {
    let deltas = deltas.into_iter().map(fitting).collect();
    let mut behind: Vec<Domain> = Vec::new();
    for frame in wire::portions(deltas, wire::MAX_NAMES) {
        let answer = ask(overlay, holder, wire::DELTAS, wire::encode(&frame)).await?;
        for (delta, answer) in frame
            .into_iter()
            .zip(wire::decode::<Vec<DeltaAnswer>>(&answer)?)
        {
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

/// A change that does not fit into a frame is only announced: the holder then fetches the whole
/// copy.
fn fitting(delta: Delta) -> Delta {
    if wire::plain_bytes(&delta) <= wire::FRAME_BYTES {
        return delta;
    }
    Delta::announcement(delta.domain, delta.versions)
}
