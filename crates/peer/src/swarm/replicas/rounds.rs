//! The last rounds of the owners around this peer, as they signed them.
//!
//! When an owner crashes, its last changes may be with one of its replicas only, and not with the
//! one that becomes the owner. The new owner then asks the others for the rounds themselves: an
//! owner signs each, once for all replicas, so that nobody can add to them or forge one. Rounds are
//! kept unread for a short while, since only the last ones can be lacking.

use super::message::{Delta, MAX_NAMES};
use crate::{
    lock::lock,
    swarm::wire::{FRAME_BYTES, List},
};
use apoidea_crawl::Step;
use apoidea_model::{Key, PeerId, Time};
use apoidea_overlay::{Arc as RingArc, Purpose, Signed, Signer};
use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
};
use tokio::time::Instant;

/// The purpose of a round's signature.
const ROUND: Purpose = Purpose::new("round");
/// Rounds kept of one owner: those of the last seconds.
pub(crate) const MAX_ROUNDS: usize = 32;
/// Bytes kept of one owner.
const MAX_BYTES: usize = 8 * FRAME_BYTES;
/// Owners whose rounds are kept: those before this peer, and a few that were there lately.
const MAX_OWNERS: usize = 8;

/// The last rounds, by owner.
#[derive(Default)]
pub(crate) struct Rounds(Mutex<HashMap<PeerId, OwnerRounds>>);

#[derive(Default)]
struct OwnerRounds {
    /// The oldest first.
    kept: VecDeque<Signed>,
    bytes: usize,
    /// When the last one came.
    at: Option<Instant>,
}

/// Signs changes as this peer.
pub(crate) fn sign(signer: &Signer, deltas: &[Delta]) -> Signed {
    signer.sign(ROUND, &deltas)
}

/// The changes of a round, by whoever sent it; none if it cannot be read.
pub(crate) fn read(round: &Signed) -> Option<Vec<Delta>> {
    let List(deltas) = round.peek::<List<Delta, MAX_NAMES>>()?;
    Some(deltas)
}

/// The changes of a round that its owner made to domains of an arc, under its own tenure; none of a
/// forged one.
pub(crate) fn open(
    signer: &Signer,
    round: &Signed,
    owner: PeerId,
    arc: RingArc,
    now: Time,
) -> Vec<Delta> {
    let Ok((by, List(mut deltas))) = signer.open::<List<Delta, MAX_NAMES>>(ROUND, round) else {
        return Vec::new();
    };
    if by != owner {
        return Vec::new();
    }
    deltas.retain(|delta| arc.contains(delta.domain.key()) && is_own_step(owner, delta.step, now));
    deltas
}

/// May this peer have made the step?
pub(crate) fn is_own_step(owner: PeerId, step: Step, now: Time) -> bool {
    let changes_nothing = step.base == step.version;
    !step.tenure.is_in_the_future(now) && (changes_nothing || step.tenure.is_of(owner))
}

impl Rounds {
    /// Keeps a round of an owner in this peer's view. One that carries another key proves nothing,
    /// and is not kept.
    pub(crate) fn keep(&self, owner: PeerId, round: Signed) {
        if round.signer() != owner {
            return;
        }
        let mut owners = lock(&self.0);
        if owners.len() >= MAX_OWNERS && !owners.contains_key(&owner) {
            let oldest = owners.iter().min_by_key(|(_, rounds)| rounds.at);
            if let Some(oldest) = oldest.map(|(owner, _)| *owner) {
                owners.remove(&oldest);
            }
        }
        let rounds = owners.entry(owner).or_default();
        rounds.bytes += round.content_bytes();
        rounds.kept.push_back(round);
        rounds.at = Some(Instant::now());
        while (rounds.kept.len() > MAX_ROUNDS || rounds.bytes > MAX_BYTES)
            && let Some(oldest) = rounds.kept.pop_front()
        {
            rounds.bytes -= oldest.content_bytes();
        }
    }

    /// One of the rounds of an owner, counted from the oldest.
    pub(crate) fn of(&self, owner: PeerId, place: u16) -> Option<Signed> {
        let owners = lock(&self.0);
        owners.get(&owner)?.kept.get(usize::from(place)).cloned()
    }

    /// The owners in an arc whose rounds came to this peer, each at the position that is given for
    /// it.
    pub(crate) fn owners_in(&self, arc: RingArc, position: impl Fn(PeerId) -> Key) -> Vec<PeerId> {
        let owners = lock(&self.0);
        let known = owners.keys().copied();
        known
            .filter(|owner| arc.contains(position(*owner)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        tenancy::whole_ring,
        testing::{TestRing, peer},
    };
    use apoidea_crawl::{Tenure, Versions};
    use apoidea_model::Domain;
    use apoidea_overlay::{Identity, NetworkId};

    const NOW: Time = Time::from_millis(1_000_000_000);

    fn signer() -> Signer {
        Signer::new(Identity::ephemeral().unwrap(), NetworkId::default())
    }

    fn domain() -> Domain {
        TestRing::new([peer(1)]).domain_of(peer(1))
    }

    /// A step of a peer that began its tenure at some time.
    fn delta(by: PeerId, begun: Time) -> Delta {
        let mut versions = Versions::default();
        let step = versions.advance(Tenure::begin(by, begun, Tenure::default()));
        Delta {
            step,
            ..Delta::announcement(domain(), versions)
        }
    }

    #[test]
    fn a_round_proves_its_owner_and_nobody_elses() {
        let (owner, liar) = (signer(), signer());
        let round = sign(&owner, &[delta(owner.me(), NOW)]);
        let opened = |round: &Signed, by| open(&liar, round, by, whole_ring(), NOW).len();
        assert_eq!(opened(&round, owner.me()), 1);
        assert_eq!(opened(&round, liar.me()), 0, "another peer's");
        let forged = sign(&liar, &[delta(owner.me(), NOW)]);
        assert_eq!(opened(&forged, owner.me()), 0, "another key");
        assert_eq!(opened(&forged, liar.me()), 0, "another's tenure");
    }

    #[test]
    fn a_round_of_another_network_purpose_arc_or_time_proves_nothing() {
        let identity = Identity::ephemeral().unwrap();
        let owner = Signer::new(identity.clone(), NetworkId::default());
        let elsewhere = Signer::new(identity, "other".parse().unwrap());
        let deltas = [delta(owner.me(), NOW)];
        let opened = |round: &Signed, arc| open(&owner, round, owner.me(), arc, NOW).len();
        assert_eq!(opened(&sign(&elsewhere, &deltas), whole_ring()), 0);
        let other_purpose = owner.sign(Purpose::new("facts"), &deltas);
        assert_eq!(opened(&other_purpose, whole_ring()), 0);
        let key = domain().key();
        let beside = RingArc {
            from: key,
            to: peer(1).key(),
        };
        assert_eq!(opened(&sign(&owner, &deltas), beside), 0);
        let year_two_million = Time::from_millis(63_000_000_000_000_000);
        let later = sign(&owner, &[delta(owner.me(), year_two_million)]);
        assert_eq!(opened(&later, whole_ring()), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_last_rounds_of_the_last_owners_are_kept() {
        let (owner, other) = (signer(), signer());
        let rounds = Rounds::default();
        let round = |number: u32| owner.sign(ROUND, &number);
        rounds.keep(other.me(), round(0));
        assert_eq!(
            rounds.owners_in(whole_ring(), PeerId::key),
            [],
            "signed by another"
        );
        for number in 0..MAX_ROUNDS as u32 + 2 {
            rounds.keep(owner.me(), round(number));
        }
        let number = |place| rounds.of(owner.me(), place).and_then(|round| round.peek());
        assert_eq!((number(0), number(1)), (Some(2u32), Some(3)));
        assert_eq!(rounds.of(owner.me(), MAX_ROUNDS as u16), None);
        assert_eq!(rounds.owners_in(whole_ring(), PeerId::key), [owner.me()]);
        let large = owner.sign(ROUND, &vec![0u8; MAX_BYTES / 2]);
        (0..5).for_each(|_| rounds.keep(owner.me(), large.clone()));
        assert!(lock(&rounds.0)[&owner.me()].bytes <= MAX_BYTES);
        for _ in 0..MAX_OWNERS {
            tokio::time::advance(std::time::Duration::from_secs(1)).await;
            let next = signer();
            rounds.keep(next.me(), sign(&next, &[]));
        }
        assert_eq!(lock(&rounds.0).len(), MAX_OWNERS);
        assert_eq!(rounds.of(owner.me(), 0), None, "the oldest is forgotten");
    }
}
