//! Replicas on the wire.

use super::{known_pages::SentPage, replica::Replica};
use crate::swarm::rights::Right;
use apoidea_crawl::{DomainChange, PageLinks, PageNote, Step, Versions};
use apoidea_model::{Domain, PeerId, Pending, Slot, UrlHash};
use apoidea_overlay::{Arc, Kind};
use serde::{Deserialize, Serialize};

/// Changes to domains for their replicas.
pub(crate) const DELTAS: Kind = Kind::free(3);
/// "Which domains of this arc do you have?"
pub(crate) const CENSUS: Kind = Kind::free(4);
/// "I have these domains; do you?"
pub(crate) const OFFER: Kind = Kind::free(5);
/// "Give me your replicas of these domains."
pub(crate) const REPLICAS: Kind = Kind::free(6);
/// A piece of a replica that is larger than a frame.
pub(crate) const PIECE: Kind = Kind::free(7);
/// "Fetch my replicas of these domains from me, now."
pub(crate) const FETCH: Kind = Kind::free(9);

/// "Which rounds of this owner do you have?"
pub(crate) const ROUNDS: Kind = Kind::free(16);
/// "Give me your records of the pages of this domain."
pub(crate) const PAGES: Kind = Kind::free(15);

/// The right that the sender of each kind needs.
pub(in crate::swarm) const RIGHTS: &[(Kind, Right)] = &[
    (DELTAS, Right::HandOver),
    (FETCH, Right::HandOver),
    (OFFER, Right::HandOver),
    (CENSUS, Right::Near),
    (REPLICAS, Right::Near),
    (PIECE, Right::Near),
    (ROUNDS, Right::Near),
    (PAGES, Right::Near),
];

/// Domains named in one message: 500 of the longest names fit into a frame when compressed a
/// little.
pub(crate) const MAX_NAMES: usize = 500;

/// Changes to one domain, as they are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delta {
    pub domain: Domain,
    /// The step that they make.
    pub step: Step,
    /// The versions of the sender's replica with them.
    pub versions: Versions,
    /// URLs that entered the queue, or wait there for another try.
    pub puts: Vec<Pending>,
    /// URLs that left it.
    pub removes: Vec<Slot>,
    /// Links of pages that left it, which are not with their owners yet.
    pub errands: Vec<PageLinks>,
    /// Pages whose links are with their owners now.
    pub delivered: Vec<Slot>,
    /// Visits of pages that left it.
    pub visits: Vec<PageNote>,
    /// The domain's state, where more of it changed than follows from the rest.
    pub state: Option<Vec<u8>>,
}

/// The answer of a replica to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DeltaAnswer {
    /// The replica has it.
    Applied,
    /// The replica lacks more than the change; a new one has to be fetched.
    Behind,
    /// The replica has all of it, and more: another peer has become the owner meanwhile.
    Ahead,
    /// Either lacks something that the other has.
    Apart,
    /// The sender is nowhere near the domain on the ring: nothing is taken from it.
    Stranger,
}

/// A question for the domains of an arc.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CensusAsk {
    pub arc: Arc,
    /// The last one read so far.
    pub after: Option<Domain>,
}

/// A part of the answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CensusPage {
    pub held: Vec<(Domain, Versions)>,
    /// Where to go on; none at the end.
    pub after: Option<Domain>,
}

/// The answer to an offered replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OfferAnswer {
    /// Everything in it is here.
    Held,
    /// It is being fetched.
    Wanted,
    /// The one here is newer.
    Newer,
    /// The sender is not near the domain, or the domain is not for this peer: nothing is taken.
    Stranger,
}

/// One of the replicas that were asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Parcel {
    /// All of it.
    Whole(Domain, Replica),
    /// It has to be fetched in pieces.
    Large { domain: Domain, id: u64, bytes: u32 },
    /// There is none.
    Unknown(Domain),
}

/// A question for the pages of a domain.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PagesAsk {
    pub domain: Domain,
    /// The last one read so far.
    pub after: Option<UrlHash>,
}

/// A part of the answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PagesPart {
    pub pages: Vec<SentPage>,
    /// Where to go on; none at the end.
    pub after: Option<UrlHash>,
}

/// A question for a piece of a large replica.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PieceAsk {
    pub domain: Domain,
    pub id: u64,
    pub offset: u32,
}

/// A question for a round that an owner has signed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RoundsAsk {
    /// The owner.
    pub owner: PeerId,
    /// The place of the round among those that are kept, the oldest first.
    pub place: u16,
}

impl Delta {
    /// A change as it is sent. A URL that came and went needs no place in the replica's queue, but
    /// must be known there as seen: it is put and removed.
    pub(crate) fn of(
        change: DomainChange,
        domain: Domain,
        versions: Versions,
        state: Option<Vec<u8>>,
    ) -> Self {
        let DomainChange {
            step,
            puts,
            removes,
            errands,
            delivered,
            visits,
            ..
        } = change;
        Delta {
            domain,
            step,
            versions,
            puts,
            removes,
            errands,
            delivered,
            visits,
            state,
        }
    }

    /// Only the versions of the sender's replica: a replica that lacks something fetches it.
    pub(crate) fn announcement(domain: Domain, versions: Versions) -> Self {
        let tenure = versions.latest();
        let version = versions.of(tenure);
        Delta {
            domain,
            step: Step {
                tenure,
                base: version,
                version,
            },
            versions,
            puts: Vec::new(),
            removes: Vec::new(),
            errands: Vec::new(),
            delivered: Vec::new(),
            visits: Vec::new(),
            state: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{TestRing, peer, versions};

    fn domain() -> Domain {
        TestRing::new([peer(1)]).domain_of(peer(1))
    }

    #[test]
    fn an_announcement_names_the_versions_and_changes_nothing() {
        let versions = versions(&[(peer(1), 3), (peer(2), 5)]);
        let delta = Delta::announcement(domain(), versions.clone());
        assert_eq!(delta.step.base, delta.step.version);
        assert_eq!(versions.after(delta.step), versions);
        assert!(delta.puts.is_empty() && delta.removes.is_empty() && delta.state.is_none());
    }
}
