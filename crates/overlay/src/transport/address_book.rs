//! The routes on which peers were last reached. A route is only a hint: the peer at its end must
//! still prove its id.
//!
//! The book is bounded, forgets the peers longest unheard of, and never lets hearsay push out a
//! route that has worked. The caller keeps its [`snapshot`](AddressBook::snapshot) on disk between
//! runs.

use super::AddressPolicy;
use apoidea_model::{PeerId, Route};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The origin of a route, the most trusted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// Another peer said so; subject to the [`AddressPolicy`].
    Told,
    /// The peer proved its id there.
    Proven,
    /// The user said so.
    Configured,
}

/// One peer and its routes, as they are remembered on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPeer {
    /// The peer.
    pub id: PeerId,
    /// Its routes, the most trusted first.
    pub routes: Vec<(Route, Source)>,
}

/// The routes of all peers known.
#[derive(Debug, Clone, Default)]
pub struct AddressBook {
    entries: HashMap<PeerId, Listing>,
    clock: u64,
}

#[derive(Debug, Clone, Default)]
struct Listing {
    /// The most trusted first.
    routes: Vec<(Route, Source)>,
    heard: u64,
}

impl AddressBook {
    /// Peers remembered; 10,000 would be a large ring, and any few hundred suffice to join again.
    pub const PEERS: usize = 4096;
    /// Routes remembered per peer: two families, at home, abroad and on the road.
    pub const ROUTES: usize = 8;

    /// The book as it was remembered. Only as much as fits is taken.
    pub fn from_snapshot(peers: impl IntoIterator<Item = KnownPeer>) -> Self {
        let mut book = AddressBook::default();
        for peer in peers.into_iter().take(Self::PEERS) {
            for (route, source) in peer.routes.into_iter().take(Self::ROUTES) {
                book.learn(peer.id, route, source);
            }
        }
        book
    }

    /// The peers to remember, those heard of most recently last. The user's settings are read
    /// anew at every start, so a configured route is remembered as merely proven.
    pub fn snapshot(&self) -> Vec<KnownPeer> {
        let mut listings: Vec<_> = self.entries.iter().collect();
        listings.sort_by_key(|(id, listing)| (listing.heard, **id));
        let remembered =
            |(route, source): &(Route, Source)| (*route, (*source).min(Source::Proven));
        let known = |(&id, listing): (&PeerId, &Listing)| KnownPeer {
            id,
            routes: listing.routes.iter().map(remembered).collect(),
        };
        listings.into_iter().map(known).collect()
    }

    /// Takes note of a route. A route known from a better source stays, and a peer that would be
    /// its own relay is refused.
    pub fn learn(&mut self, id: PeerId, route: Route, source: Source) {
        if !route.may_lead_to(id) {
            return;
        }
        self.clock += 1;
        if !self.entries.contains_key(&id) && self.entries.len() >= Self::PEERS {
            self.forget_the_oldest();
        }
        let listing = self.entries.entry(id).or_default();
        listing.heard = self.clock;
        listing.learn(route, source);
    }

    /// The route did not lead to the peer: it is tried last from now on, and hearsay is dropped.
    pub fn note_failure(&mut self, id: PeerId, route: Route) {
        let Some(listing) = self.entries.get_mut(&id) else {
            return;
        };
        let Some(at) = listing.position(route) else {
            return;
        };
        match listing.routes.remove(at) {
            (_, Source::Told) => {}
            (route, Source::Proven) => listing.routes.push((route, Source::Told)),
            configured => listing.routes.push(configured),
        }
    }

    /// The routes to dial, best first: those of the peer itself before those through a relay, and
    /// among these the most trusted first.
    pub fn routes(&self, id: PeerId, policy: AddressPolicy) -> Vec<Route> {
        let listed = self
            .entries
            .get(&id)
            .map_or(&[][..], |listing| &listing.routes);
        let allowed = listed
            .iter()
            .filter(|(route, source)| *source == Source::Configured || policy.allows_route(*route));
        let mut routes: Vec<Route> = allowed.map(|(route, _)| *route).collect();
        routes.sort_by_key(|route| route.relay().is_some());
        routes
    }

    /// Every peer with at least one route.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.entries
            .iter()
            .filter(|(_, listing)| !listing.routes.is_empty())
            .map(|(id, _)| *id)
    }

    fn forget_the_oldest(&mut self) {
        let trust = |listing: &Listing| listing.routes.iter().map(|(_, source)| *source).max();
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
    fn position(&self, route: Route) -> Option<usize> {
        self.routes.iter().position(|(known, _)| *known == route)
    }

    fn learn(&mut self, route: Route, source: Source) {
        let before = self.position(route).map(|at| self.routes.remove(at).1);
        let source = before.map_or(source, |before| before.max(source));
        let worse = |(_, other): &(Route, Source)| *other <= source;
        let at = self
            .routes
            .iter()
            .position(worse)
            .unwrap_or(self.routes.len());
        self.routes.insert(at, (route, source));
        self.routes.truncate(AddressBook::ROUTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    fn peer(n: u32) -> PeerId {
        PeerId::at(Key::hash(n.to_be_bytes()))
    }

    fn address(n: u32) -> Route {
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
        let addresses = book.routes(peer(1), AddressPolicy::Global);
        assert_eq!(addresses.len(), AddressBook::ROUTES);
        assert_eq!(addresses[0], address(1));
        book.learn(peer(1), address(99), Source::Proven);
        assert_eq!(
            book.routes(peer(1), AddressPolicy::Global)[..2],
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
            book.routes(peer(1), AddressPolicy::Global),
            [address(1), address(2)]
        );
    }

    #[test]
    fn an_address_that_failed_is_tried_last_and_hearsay_forgotten() {
        let mut book = AddressBook::default();
        book.learn(peer(1), address(1), Source::Proven);
        book.learn(peer(1), address(2), Source::Proven);
        book.note_failure(peer(1), address(2));
        assert_eq!(
            book.routes(peer(1), AddressPolicy::Global),
            [address(1), address(2)]
        );
        book.note_failure(peer(1), address(2));
        assert_eq!(book.routes(peer(1), AddressPolicy::Global), [address(1)]);
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
        assert_eq!(book.routes(peer(1), AddressPolicy::Global), [mine]);
        assert_eq!(book.routes(peer(1), AddressPolicy::Private), [mine, inner]);
    }

    #[test]
    fn the_book_is_bounded_and_forgets_strangers_before_acquaintances() {
        let mut book = AddressBook::default();
        book.learn(peer(0), address(0), Source::Proven);
        for n in 1..AddressBook::PEERS as u32 + 10 {
            book.learn(peer(n), address(n), Source::Told);
        }
        assert_eq!(book.peers().count(), AddressBook::PEERS);
        assert_eq!(book.routes(peer(0), AddressPolicy::Global), [address(0)]);
        assert!(book.routes(peer(1), AddressPolicy::Global).is_empty());
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
            restored.routes(peer(9), AddressPolicy::Global).is_empty(),
            "the user may have changed their mind"
        );
        for n in 0..5 {
            let sorted = |book: &AddressBook| {
                let mut addresses = book.routes(peer(n), AddressPolicy::Global);
                addresses.sort();
                addresses
            };
            assert_eq!(sorted(&restored), sorted(&book));
        }
    }

    #[test]
    fn a_route_of_the_peer_itself_comes_before_any_relay() {
        let mut book = AddressBook::default();
        let via = Route::Via { relay: peer(2) };
        book.learn(peer(1), via, Source::Proven);
        book.learn(peer(1), address(1), Source::Told);
        assert_eq!(
            book.routes(peer(1), AddressPolicy::Global),
            [address(1), via]
        );
        for n in 2..100 {
            book.learn(peer(1), address(n), Source::Told);
        }
        let routes = book.routes(peer(1), AddressPolicy::Global);
        assert_eq!(routes.len(), AddressBook::ROUTES);
        assert_eq!(routes.last(), Some(&via), "hearsay does not displace it");
    }

    #[test]
    fn a_peer_that_is_its_own_relay_is_not_listed() {
        let mut book = AddressBook::default();
        book.learn(peer(1), Route::Via { relay: peer(1) }, Source::Configured);
        assert_eq!(book.peers().count(), 0);
        book.learn(peer(1), Route::Via { relay: peer(2) }, Source::Told);
        let restored = AddressBook::from_snapshot(book.snapshot());
        assert_eq!(
            restored.routes(peer(1), AddressPolicy::Global),
            [Route::Via { relay: peer(2) }]
        );
    }
}
