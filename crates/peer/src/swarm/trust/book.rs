//! The record that this peer keeps of the work of others, across restarts.

use crate::{
    clock::now,
    lock::{lock, read, write},
    swarm::trust::standing::Standing,
};
use apoidea_crawl::{Matter, Record, Trust, Verdict};
use apoidea_model::PeerId;
use apoidea_store::{Commit, ReadError, Store};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, RwLock},
};
use tokio::sync::Notify;

const NAME_PREFIX: &str = "trust ";
/// Records read at the start; the value itself keeps fewer.
const MAX_READ: usize = 8192;

/// The peers that this one may come to distrust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Openness {
    /// Anybody may be a member, and nobody vouches for it.
    Open,
    /// The settings list the members: their work is checked and shown, and no more.
    Listed,
}

/// The record of all peers, shared by all parts that check or believe.
pub(crate) struct TrustBook {
    store: Store,
    openness: Openness,
    trust: Mutex<Trust>,
    distrusted: RwLock<Arc<BTreeSet<PeerId>>>,
    bell: Notify,
}

impl TrustBook {
    /// The record of earlier runs.
    pub(crate) fn open(store: Store, openness: Openness) -> Result<Self, ReadError> {
        let stored = store.values(NAME_PREFIX, MAX_READ)?;
        let record = |(name, value): (String, Vec<u8>)| -> Option<(PeerId, Record)> {
            let peer = name.strip_prefix(NAME_PREFIX)?.parse().ok()?;
            Some((peer, postcard::from_bytes(&value).ok()?))
        };
        let trust = Trust::new(stored.into_iter().filter_map(record));
        let book = TrustBook {
            store,
            openness,
            trust: Mutex::new(trust),
            distrusted: Default::default(),
            bell: Notify::new(),
        };
        book.look_at_the_clock();
        Ok(book)
    }

    /// Is the next work of a peer to be checked? As chance has it.
    pub(crate) fn wants_check(&self, peer: PeerId) -> bool {
        rand::random::<f64>() < lock(&self.trust).chance(peer)
    }

    /// Takes in a check of so many things, some of which were wrong.
    pub(crate) fn note(&self, peer: PeerId, matter: Matter, looked_at: u32, wrong: u32) -> Verdict {
        let mut trust = lock(&self.trust);
        let (verdict, forgotten) = trust.note(peer, matter, looked_at, wrong, now());
        let mut commit = Commit::new();
        if let Some(record) = trust.record(peer) {
            let bytes = postcard::to_stdvec(record).expect("numbers always serialise");
            commit.set_value(&name(peer), &bytes);
        }
        drop(trust);
        if let Some(forgotten) = forgotten {
            commit.remove_value(&name(forgotten));
        }
        if let Err(error) = self.store.apply(&commit) {
            tracing::warn!(%error, "a check of another peer's work was not written down");
        }
        if verdict == Verdict::Distrusted {
            tracing::warn!(%peer, ?matter, looked_at, wrong, "a peer does not do what it says");
            self.look_at_the_clock();
        }
        verdict
    }

    /// The peers that are distrusted now.
    pub(crate) fn distrusted(&self) -> Arc<BTreeSet<PeerId>> {
        read(&self.distrusted).clone()
    }

    /// Is the peer distrusted now?
    pub(crate) fn is_distrusted(&self, peer: PeerId) -> bool {
        read(&self.distrusted).contains(&peer)
    }

    /// Terms of distrust may have begun or ended.
    pub(crate) fn look_at_the_clock(&self) {
        if self.openness == Openness::Listed {
            return;
        }
        let distrusted: BTreeSet<PeerId> = lock(&self.trust).distrusted(now()).collect();
        if **read(&self.distrusted) != distrusted {
            *write(&self.distrusted) = Arc::new(distrusted);
            self.bell.notify_one();
        }
    }

    /// Resolves when other peers are distrusted than before.
    pub(crate) async fn changed(&self) {
        self.bell.notified().await;
    }

    /// The standing of every peer that was checked, liars first.
    pub(crate) fn standings(&self) -> Vec<Standing> {
        let (trust, now) = (lock(&self.trust), now());
        let standing = |(peer, record)| Standing::of(peer, record, now);
        let mut standings: Vec<Standing> = trust.records().map(standing).collect();
        standings.sort_by_key(|standing| std::cmp::Reverse(standing.distrusted_until));
        standings
    }
}

fn name(peer: PeerId) -> String {
    format!("{NAME_PREFIX}{peer}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::peer;

    #[test]
    fn a_liar_is_a_liar_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let book = TrustBook::open(store.clone(), Openness::Open).unwrap();
        book.note(peer(2), Matter::Links, 7, 0);
        assert_eq!(book.note(peer(1), Matter::Links, 7, 7), Verdict::Distrusted);
        assert!(book.is_distrusted(peer(1)) && !book.is_distrusted(peer(2)));
        let book = TrustBook::open(store, Openness::Open).unwrap();
        assert_eq!(*book.distrusted(), BTreeSet::from([peer(1)]));
        let standings = book.standings();
        assert_eq!([standings[0].peer, standings[1].peer], [peer(1), peer(2)]);
        assert_eq!((standings[1].checked, standings[1].right), (1, 1));
    }

    #[test]
    fn listed_members_are_checked_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let book = TrustBook::open(store, Openness::Listed).unwrap();
        book.note(peer(1), Matter::Links, 7, 7);
        assert!(!book.is_distrusted(peer(1)));
        assert_eq!(book.standings()[0].lies.len(), 1);
    }
}
