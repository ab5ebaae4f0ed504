//! Proofs that a peer keeps the body of a page.
//!
//! A page whose content is known is not kept again, so the word of the peer that answers decides
//! whether it is kept at all. It is not taken: the keeper has to show that it has the body, as a hash
//! of the body and a number that the asker chose. The asker has the body too and can compare.

use crate::{clock::unblocked, page::recent_contents::RecentContents};
use apoidea_model::{ContentHash, PageUrl, PeerId};
use apoidea_store::archive::Reader;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

/// A number that only the asker knows beforehand.
pub(crate) type Nonce = [u8; 16];
/// The hash of a number and a body.
pub(crate) type Proof = ContentHash;

/// A keeper's answer to the question for a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Evidence {
    /// Its proof, right or wrong.
    Shown(Proof),
    /// It has just fetched the page, and is about to keep it.
    Soon,
    /// It has none.
    Lacking,
}

/// Bodies that are looked for at a time. Each costs a look at the disk, on a stranger's wish.
const TURNS: usize = 2;

/// The proof that a peer with this body can give.
pub(crate) fn proof_of(nonce: &Nonce, body: &[u8]) -> Proof {
    ContentHash::keyed(nonce, body)
}

/// Gives proofs from this peer's archive.
pub(crate) struct Prover {
    /// This peer.
    pub me: PeerId,
    /// None if this peer keeps no archive.
    archive: Option<Reader>,
    turns: Semaphore,
    /// Content that this peer was first to show, lately: it may not be on the disk yet.
    recent: RecentContents,
    /// Content that another peer has shown to this one, lately.
    shown: RecentContents,
}

impl Prover {
    pub(crate) fn new(me: PeerId, archive: Option<Reader>) -> Self {
        Prover {
            me,
            archive,
            turns: Semaphore::new(TURNS),
            recent: RecentContents::default(),
            shown: RecentContents::default(),
        }
    }

    /// This peer's archive, if it keeps one.
    pub(crate) fn archive(&self) -> Option<&Reader> {
        self.archive.as_ref()
    }

    /// This peer is about to keep a page with this content.
    pub(crate) fn note_kept(&self, content: &ContentHash) {
        self.recent.insert(content);
    }

    /// A keeper has shown this content.
    pub(crate) fn note_shown(&self, content: &ContentHash) {
        self.shown.insert(content);
    }

    /// Has a keeper shown this content lately? Some pages have hundreds of copies.
    pub(crate) fn was_shown(&self, content: &ContentHash) -> bool {
        self.shown.contains(content)
    }

    /// Has this peer kept such a page lately, or is it about to?
    pub(crate) fn has_kept(&self, content: &ContentHash) -> bool {
        self.recent.contains(content)
    }

    /// The proof that this peer keeps a page with this content.
    pub(crate) async fn prove(
        &self,
        page: PageUrl,
        content: ContentHash,
        nonce: Nonce,
    ) -> Evidence {
        let Some(archive) = self.archive.clone() else {
            return Evidence::Lacking;
        };
        let _turn = self.turns.acquire().await;
        let proof = unblocked(move || proof_from(&archive, &page, &content, &nonce)).await;
        match proof {
            Some(proof) => Evidence::Shown(proof),
            None if self.has_kept(&content) => Evidence::Soon,
            None => Evidence::Lacking,
        }
    }
}

fn proof_from(
    archive: &Reader,
    page: &PageUrl,
    content: &ContentHash,
    nonce: &Nonce,
) -> Option<Proof> {
    let captures = archive.find(page).ok()?.into_iter().rev();
    let mut bodies = captures
        .filter(|entry| !entry.is_revisit())
        .filter_map(|entry| archive.page(&entry).ok()?.body);
    let body = bodies.find(|body| ContentHash::of_body(body) == *content)?;
    Some(proof_of(nonce, &body))
}
