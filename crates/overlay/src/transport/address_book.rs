//! Where peers were last seen. An address is only a hint: whoever answers there must still prove
//! its id.
//!
//! The book is bounded, forgets the peers longest unheard of, and never lets hearsay push out an
//! address that has worked. The caller keeps its [`Snapshot`](AddressBook::snapshot) on disk
//! between runs.

use super::AddressPolicy;
use apoidea_model::PeerId;
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, net::SocketAddr};

/// Where an address came from, the most trusted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// Another peer said so; subject to the [`AddressPolicy`].
    Told,
    /// The peer proved its id there.
    Proven,
    /// The user said so.
    Configured,
}

/// The addresses of one peer, as they are remembered on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Whose addresses.
    pub id: PeerId,
    /// Best first.
    pub addresses: Vec<(SocketAddr, Source)>,
}

/// The addresses of all peers known.
#[derive(Debug, Clone, Default)]
pub struct AddressBook {
    entries: HashMap<PeerId, Listing>,
    clock: u64,
}

#[derive(Debug, Clone, Default)]
struct Listing {
    addresses: Vec<(SocketAddr, Source)>,
    heard: u64,
}

impl AddressBook {
    /// Peers remembered; 10,000 would be a large ring, and any few hundred suffice to join again.
    pub const PEERS: usize = 4096;
    /// Addresses remembered per peer: two families, at home, abroad and on the road.
    pub const ADDRESSES: usize = 8;

    /// The book as it was remembered. Only as much as fits is taken.
    pub fn from_snapshot(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut book = AddressBook::default();
        for entry in entries.into_iter().take(Self::PEERS) {
            for (address, source) in entry.addresses.into_iter().take(Self::ADDRESSES) {
                book.learn(entry.id, address, source);
            }
        }
        book
    }

    /// What to remember, the peers heard of most recently last. What the user configures is asked
    /// anew at every start, so it is remembered as merely proven.
    pub fn snapshot(&self) -> Vec<Entry> {
        let mut listings: Vec<_> = self.entries.iter().collect();
        listings.sort_by_key(|(id, listing)| (listing.heard, **id));
        let remembered =
            |(address, source): &(SocketAddr, Source)| (*address, (*source).min(Source::Proven));
        let entry = |(&id, listing): (&PeerId, &Listing)| Entry {
            id,
            addresses: listing.addresses.iter().map(remembered).collect(),
        };
        listings.into_iter().map(entry).collect()
    }

    /// Takes note of an address. What is known from a better source stays.
    pub fn learn(&mut self, id: PeerId, address: SocketAddr, source: Source) {
        self.clock += 1;
        if !self.entries.contains_key(&id) && self.entries.len() >= Self::PEERS {
            self.forget_the_oldest();
        }
        let listing = self.entries.entry(id).or_default();
        listing.heard = self.clock;
        listing.learn(address, source);
    }

    /// The address did not lead to the peer: it is tried last from now on, and hearsay is dropped.
    pub fn failed(&mut self, id: PeerId, address: SocketAddr) {
        let Some(listing) = self.entries.get_mut(&id) else {
            return;
        };
        let Some(at) = listing
            .addresses
            .iter()
            .position(|(known, _)| *known == address)
        else {
            return;
        };
        match listing.addresses.remove(at) {
            (_, Source::Told) => {}
            (address, Source::Proven) => listing.addresses.push((address, Source::Told)),
            configured => listing.addresses.push(configured),
        }
    }

    /// The addresses to dial, best first.
    pub fn addresses(&self, id: PeerId, policy: AddressPolicy) -> Vec<SocketAddr> {
        let listed = self
            .entries
            .get(&id)
            .map_or(&[][..], |listing| &listing.addresses);
        let allowed = listed
            .iter()
            .filter(|(address, source)| *source == Source::Configured || policy.allows(*address));
        allowed.map(|(address, _)| *address).collect()
    }

    /// Every peer with at least one address.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.entries
            .iter()
            .filter(|(_, listing)| !listing.addresses.is_empty())
            .map(|(id, _)| *id)
    }

    fn forget_the_oldest(&mut self) {
        let trust = |listing: &Listing| listing.addresses.iter().map(|(_, source)| *source).max();
        let oldest = self
            .entries
            .iter()
            .min_by_key(|(_, listing)| (trust(listing), listing.heard));
        if let Some(id) = oldest.map(|(id, _)| *id) {
            self.entries.remove(&id);
        }
    }
}

impl Listing {
    fn learn(&mut self, address: SocketAddr, source: Source) {
        let known = self
            .addresses
            .iter()
            .position(|(known, _)| *known == address);
        let before = known.map(|at| self.addresses.remove(at).1);
        let source = before.map_or(source, |before| before.max(source));
        let worse = |(_, other): &(SocketAddr, Source)| *other <= source;
        let at = self
            .addresses
            .iter()
            .position(worse)
            .unwrap_or(self.addresses.len());
        self.addresses.insert(at, (address, source));
        self.addresses.truncate(AddressBook::ADDRESSES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    fn peer(n: u32) -> PeerId {
        PeerId::at(Key::hash(n.to_be_bytes()))
    }

    fn address(n: u32) -> SocketAddr {
        format!("9.{}.{}.{}:1", n >> 16 & 255, n >> 8 & 255, n & 255)
            .parse()
            .unwrap()
    }

    #[test]
    fn proven_addresses_come_first_and_hearsay_never_displaces_them() {
        let mut book = AddressBook::default();
        book.learn(peer(1), address(1), Source::Proven);
        for n in 2..100 {
            book.learn(peer(1), address(n), Source::Told);
        }
        let addresses = book.addresses(peer(1), AddressPolicy::Global);
        assert_eq!(addresses.len(), AddressBook::ADDRESSES);
        assert_eq!(addresses[0], address(1));
        book.learn(peer(1), address(99), Source::Proven);
        assert_eq!(
            book.addresses(peer(1), AddressPolicy::Global)[..2],
            [address(99), address(1)]
        );
    }

    #[test]
    fn hearing_of_a_proven_address_again_does_not_demote_it() {
        let mut book = AddressBook::default();
        book.learn(peer(1), address(1), Source::Proven);
        book.learn(peer(1), address(2), Source::Told);
        book.learn(peer(1), address(1), Source::Told);
        assert_eq!(
            book.addresses(peer(1), AddressPolicy::Global),
            [address(1), address(2)]
        );
    }

    #[test]
    fn an_address_that_failed_is_tried_last_and_hearsay_forgotten() {
        let mut book = AddressBook::default();
        book.learn(peer(1), address(1), Source::Proven);
        book.learn(peer(1), address(2), Source::Proven);
        book.failed(peer(1), address(2));
        assert_eq!(
            book.addresses(peer(1), AddressPolicy::Global),
            [address(1), address(2)]
        );
        book.failed(peer(1), address(2));
        assert_eq!(book.addresses(peer(1), AddressPolicy::Global), [address(1)]);
    }

    #[test]
    fn only_the_user_can_name_an_inner_address_in_the_open_network() {
        let mut book = AddressBook::default();
        let (inner, mine) = (
            "192.168.0.1:1".parse().unwrap(),
            "192.168.0.2:1".parse().unwrap(),
        );
        book.learn(peer(1), inner, Source::Told);
        book.learn(peer(1), mine, Source::Configured);
        assert_eq!(book.addresses(peer(1), AddressPolicy::Global), [mine]);
        assert_eq!(
            book.addresses(peer(1), AddressPolicy::Private),
            [mine, inner]
        );
    }

    #[test]
    fn the_book_is_bounded_and_forgets_strangers_before_acquaintances() {
        let mut book = AddressBook::default();
        book.learn(peer(0), address(0), Source::Proven);
        for n in 1..AddressBook::PEERS as u32 + 10 {
            book.learn(peer(n), address(n), Source::Told);
        }
        assert_eq!(book.peers().count(), AddressBook::PEERS);
        assert_eq!(book.addresses(peer(0), AddressPolicy::Global), [address(0)]);
        assert!(book.addresses(peer(1), AddressPolicy::Global).is_empty());
    }

    #[test]
    fn a_snapshot_restores_the_book() {
        let mut book = AddressBook::default();
        for n in 0..20 {
            book.learn(
                peer(n % 5),
                address(n),
                if n < 10 { Source::Told } else { Source::Proven },
            );
        }
        book.learn(
            peer(9),
            "192.168.0.1:1".parse().unwrap(),
            Source::Configured,
        );
        let restored = AddressBook::from_snapshot(book.snapshot());
        assert!(
            restored
                .addresses(peer(9), AddressPolicy::Global)
                .is_empty(),
            "the user may have changed their mind"
        );
        for n in 0..5 {
            let sorted = |book: &AddressBook| {
                let mut addresses = book.addresses(peer(n), AddressPolicy::Global);
                addresses.sort();
                addresses
            };
            assert_eq!(sorted(&restored), sorted(&book));
        }
    }
}
