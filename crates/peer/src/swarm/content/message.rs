//! Questions about content on the wire.

use crate::{
    page::{content::Standing, proof::Nonce},
    swarm::rights::Right,
};
use apoidea_model::{ContentHash, Key, PageUrl, Time};
use apoidea_overlay::{Arc, Kind};
use apoidea_store::Fact;
use serde::{Deserialize, Serialize};

/// "Is this content known?"
pub(crate) const CONTENT: Kind = Kind::free(1);
/// Content facts for the replicas.
pub(crate) const FACTS: Kind = Kind::free(2);
/// "Which content facts of this arc do you have?"
pub(crate) const FACTS_IN: Kind = Kind::free(8);

/// "Show that you keep this content."
pub(crate) const PROOF: Kind = Kind::free(14);

/// The right that the sender of each kind needs.
pub(in crate::swarm) const RIGHTS: &[(Kind, Right)] = &[
    (CONTENT, Right::Member),
    (PROOF, Right::Member),
    (FACTS, Right::HandOver),
    (FACTS_IN, Right::Near),
];

/// Facts in one message: a hash and a URL each.
pub(crate) const MAX_FACTS: usize = 256;

/// A question about a page's content.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ContentAsk {
    pub content: ContentHash,
    pub page: PageUrl,
    pub time: Time,
    pub standing: Standing,
}

/// A question for the proof that a peer keeps a page's content.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProofAsk {
    pub content: ContentHash,
    pub page: PageUrl,
    pub nonce: Nonce,
}

/// A question for the content facts of an arc.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FactsAsk {
    pub arc: Arc,
    /// The last one read so far.
    pub after: Option<Key>,
}

pub(crate) type Facts = Vec<(ContentHash, Fact)>;
