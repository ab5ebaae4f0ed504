//! Proofs that a peer keeps the body of a page.
//!
//! A page whose content is known is not kept again, so the word of the peer that answers decides
//! whether it is kept at all. It is not taken: the keeper has to show that it has the body, as a hash
//! of the body and a number that the asker chose. The asker has the body too and can compare.

use crate::clock::unblocked;
use apoidea_model::{ContentHash, PageUrl};
use apoidea_store::archive::Reader;
use tokio::sync::Semaphore;

/// A number that only the asker knows beforehand.
pub(crate) type Nonce = [u8; 16];
/// The hash of a number and a body.
pub(crate) type Proof = ContentHash;

/// Bodies that are looked for at a time. Each costs a look at the disk, on a stranger's wish.
const TURNS: usize = 2;

/// The proof that a peer with this body can give.
pub(crate) fn proof_of(nonce: &Nonce, body: &[u8]) -> Proof {
    ContentHash::keyed(nonce, body)
}

/// Gives proofs from this peer's archive.
pub(crate) struct Prover {
    /// None if this peer keeps no archive.
    archive: Option<Reader>,
    turns: Semaphore,
}

impl Prover {
    pub(crate) fn new(archive: Option<Reader>) -> Self {
        let turns = Semaphore::new(TURNS);
        Prover { archive, turns }
    }

    /// The proof that this peer keeps a page with this content; none if it does not.
    pub(crate) async fn prove(
        &self,
        page: PageUrl,
        content: ContentHash,
        nonce: Nonce,
    ) -> Option<Proof> {
        let archive = self.archive.clone()?;
        let _turn = self.turns.acquire().await.ok()?;
        unblocked(move || proof_from(&archive, &page, &content, &nonce)).await
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
