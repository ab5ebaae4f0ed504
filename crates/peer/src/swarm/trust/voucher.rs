//! An owner's signed word that it has taken links, which it cannot take back.

use crate::{
    clock::now,
    swarm::wire::{self, List},
};
use apoidea_model::{Domain, Key, LinkBatch, PageUrl, PeerId, Time};
use apoidea_overlay::{Purpose, Signed, Signer};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const PURPOSE: Purpose = Purpose::new("links taken");
const MOST: usize = LinkBatch::MAX_LINKS;

/// The fingerprints of links, by their domains; all in order.
pub(crate) type Fingerprints = List<(Domain, List<u64, MOST>), MOST>;

/// The owner's signature under the links that it has taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal(Signed);

/// The signed words. The links themselves need not travel with the seal.
#[derive(Serialize, Deserialize)]
struct Words {
    time: Time,
    /// The hash of the sender's name and of its links.
    links: Key,
}

/// Links that an owner says it has taken, with its seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Voucher {
    sender: PeerId,
    links: Fingerprints,
    seal: Seal,
}

impl Seal {
    /// This peer has taken these links of a sender.
    pub(crate) fn set(signer: &Signer, sender: PeerId, links: &Fingerprints) -> Self {
        let words = Words {
            time: now(),
            links: digest(sender, links),
        };
        Seal(signer.sign(PURPOSE, &words))
    }
}

impl Voucher {
    /// The word of an owner; none if the seal is not its own, or belongs to other links.
    pub(crate) fn new(
        owner: PeerId,
        links: Fingerprints,
        seal: Seal,
        signer: &Signer,
    ) -> Option<Self> {
        let voucher = Voucher {
            sender: signer.me(),
            links,
            seal,
        };
        (voucher.owner() == owner && voucher.is_sound(signer)).then_some(voucher)
    }

    /// The peer that has taken the links.
    pub(crate) fn owner(&self) -> PeerId {
        self.seal.0.signer()
    }

    /// Has that peer signed it?
    pub(crate) fn is_sound(&self, signer: &Signer) -> bool {
        let opened = signer.open::<Words>(PURPOSE, &self.seal.0);
        let links = digest(self.sender, &self.links);
        let is_fitting = |(_, words): (PeerId, Words)| words.links == links;
        !self.links.0.is_empty() && opened.is_ok_and(is_fitting)
    }

    /// The links.
    pub(crate) fn links(&self) -> &[(Domain, List<u64, MOST>)] {
        &self.links.0
    }

    /// The number of links.
    pub(crate) fn count(&self) -> u32 {
        let count: usize = self.links.0.iter().map(|(_, links)| links.0.len()).sum();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// The fingerprints of links, in the order that both sides sign.
pub(crate) fn fingerprints<'a>(urls: impl Iterator<Item = &'a PageUrl>) -> Fingerprints {
    let mut by_domain: BTreeMap<Domain, BTreeSet<u64>> = BTreeMap::new();
    for url in urls {
        let hash = url.hash().0;
        by_domain.entry(url.domain()).or_default().insert(hash);
    }
    let list = |(domain, links): (Domain, BTreeSet<u64>)| (domain, List(Vec::from_iter(links)));
    List(by_domain.into_iter().map(list).collect())
}

fn digest(sender: PeerId, links: &Fingerprints) -> Key {
    Key::hash(wire::plain(&(sender, links)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{peer, signer_at};

    fn links(numbers: &[u32]) -> Fingerprints {
        let url =
            |number| PageUrl::parse(&format!("http://h{}.test/{number}", number % 3)).unwrap();
        let urls: Vec<PageUrl> = numbers.iter().map(url).collect();
        fingerprints(urls.iter())
    }

    #[test]
    fn the_order_of_links_does_not_matter_and_each_counts_once() {
        assert_eq!(links(&[5, 1, 4, 1]), links(&[4, 5, 1]));
        assert_eq!(links(&[5, 1, 4]).0.len(), 2);
    }

    #[test]
    fn a_seal_fits_its_owner_its_sender_and_its_links_only() {
        let (owner, me, other) = (signer_at(1), signer_at(2), signer_at(3));
        let seal = Seal::set(&owner, me.me(), &links(&[1, 2]));
        let new = |owner, numbers, me| Voucher::new(owner, links(numbers), seal.clone(), me);
        let voucher = new(owner.me(), &[1, 2], &me).unwrap();
        assert_eq!((voucher.owner(), voucher.count()), (owner.me(), 2));
        assert!(voucher.is_sound(&other), "others can read it");
        assert_eq!(new(peer(9), &[1, 2], &me), None);
        assert_eq!(new(owner.me(), &[1, 2], &other), None);
        assert_eq!(new(owner.me(), &[1, 2, 3], &me), None);
        assert_eq!(wire::decode(&wire::encode(&voucher)), Ok(voucher));
    }
}
