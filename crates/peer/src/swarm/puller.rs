//! Fetches copies of domains from those who have newer ones.

use super::{
    orders::Orders,
    value::Value,
    wire::{self, Parcel, PieceAsk},
};
use apoidea_model::{Domain, PeerId};
use apoidea_overlay::{Overlay, RequestError};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time};

/// Domains that wait to be fetched; what does not fit is found by the next sweep.
const MAX_WANTED: usize = 100_000;
/// Domains asked for at a time.
const AT_ONCE: usize = 64;
/// Largest value that is fetched: the longest queue of the longest URLs is smaller when compressed.
const MAX_VALUE_BYTES: u32 = 64 << 20;
/// Wishes collect for so long: changes come in bursts.
const COLLECT: Duration = Duration::from_millis(100);

/// What is to be fetched from whom; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Puller {
    wanted: Arc<Mutex<BTreeMap<PeerId, BTreeSet<Domain>>>>,
    bell: Arc<Notify>,
}

impl Puller {
    /// Fetches a domain from a peer, soon.
    pub(crate) fn want(&self, domain: Domain, from: PeerId) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.values().map(BTreeSet::len).sum::<usize>() < MAX_WANTED {
            wanted.entry(from).or_default().insert(domain);
            self.bell.notify_one();
        }
    }

    /// Fetches until the task is dropped.
    pub(crate) async fn run(self, overlay: Arc<dyn Overlay>, orders: Orders) {
        loop {
            while let Some((from, domains)) = self.next() {
                if let Err(error) = pull(overlay.as_ref(), &orders, from, domains).await {
                    tracing::debug!(?from, %error, "copies were not fetched");
                }
            }
            self.bell.notified().await;
            time::sleep(COLLECT).await;
        }
    }

    fn next(&self) -> Option<(PeerId, Vec<Domain>)> {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entry = wanted.first_entry()?;
        let from = *entry.key();
        let domains: Vec<Domain> = entry.get().iter().take(AT_ONCE).cloned().collect();
        domains
            .iter()
            .for_each(|domain| _ = entry.get_mut().remove(domain));
        if entry.get().is_empty() {
            entry.remove();
        }
        Some((from, domains))
    }
}

/// Fetches copies of domains and hands them to the crawler.
pub(crate) async fn pull(
    overlay: &dyn Overlay,
    orders: &Orders,
    from: PeerId,
    mut domains: Vec<Domain>,
) -> Result<(), RequestError> {
    while !domains.is_empty() {
        let asked: Vec<Domain> = domains.iter().take(wire::MAX_NAMES).cloned().collect();
        let answer = overlay
            .request(from, wire::VALUES, wire::encode(&asked))
            .await?;
        let parcels: Vec<Parcel> = wire::decode(&answer)?;
        // Whoever answers does so in order, and for at least one; the rest did not fit.
        let answered = parcels.len().max(1);
        for parcel in parcels {
            let (domain, value) = match parcel {
                Parcel::Whole(domain, value) => (domain, Some(value)),
                Parcel::Unknown(domain) => (domain, None),
                Parcel::Large { domain, id, bytes } => {
                    let value = pieces(overlay, from, &domain, id, bytes).await?;
                    (domain, value)
                }
            };
            if let Some(value) = value.filter(|_| asked.contains(&domain))
                && orders.adopt(from, domain, value).await.is_err()
            {
                return Err(RequestError::Closed);
            }
        }
        domains.drain(..answered.min(domains.len()));
    }
    Ok(())
}

async fn pieces(
    overlay: &dyn Overlay,
    from: PeerId,
    domain: &Domain,
    id: u64,
    bytes: u32,
) -> Result<Option<Value>, RequestError> {
    if bytes > MAX_VALUE_BYTES {
        return Ok(None);
    }
    let mut whole: Vec<u8> = Vec::new();
    while whole.len() < bytes as usize {
        let ask = PieceAsk {
            domain: domain.clone(),
            id,
            offset: whole.len() as u32,
        };
        let piece = overlay
            .request(from, wire::PIECE, wire::encode(&ask))
            .await?;
        if piece.is_empty() {
            // It has changed meanwhile; a later wish fetches it anew.
            return Ok(None);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(postcard::from_bytes(&whole).ok())
}
