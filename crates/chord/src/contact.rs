//! A peer and the ways to reach it, as peers tell each other about peers.
//!
//! The ring names peers by id and orders them by the position that their seat gives them. Routes
//! travel along untouched, for the transport. Both lists are bounded when they are decoded, so
//! nothing that a stranger sends grows without limit.

use crate::Seat;
use apoidea_model::{Key, PeerId, Route};
use serde::{Deserialize, Serialize, Serializer};
use std::{fmt, sync::Arc};

/// The ways to reach a peer; shared, because the same peer stands in many lists.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "Vec<Route>")]
pub struct Routes(Arc<[Route]>);

/// A peer, its seat and its routes. No peer is its own relay.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Told", into = "Told")]
pub struct Contact {
    /// The peer.
    pub id: PeerId,
    /// The ways on which it said it can be reached.
    pub routes: Routes,
    seat: Seat,
    /// The position that the seat gives it.
    key: Key,
}

/// A contact as it travels.
#[derive(Serialize, Deserialize)]
struct Told {
    id: PeerId,
    seat: Seat,
    routes: Routes,
}

/// A list of contacts as it travels in a message.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "Vec<Contact>")]
pub struct Contacts(Vec<Contact>);

/// A list in a message is longer than its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a list of {found} is longer than {most}")]
pub struct TooMany {
    found: usize,
    most: usize,
}

/// A contact names a peer as its own relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a peer is not its own relay")]
pub struct OwnRelay;

impl Routes {
    /// Most routes of one peer: two families, each local and observed. A peer behind a router
    /// names relays in their place.
    pub const MAX: usize = 4;

    /// The routes, at most [`Self::MAX`]; further ones are left out.
    pub fn new(routes: &[Route]) -> Self {
        Routes(routes[..routes.len().min(Self::MAX)].into())
    }

    /// The routes, in the order in which the peer prefers them.
    pub fn as_slice(&self) -> &[Route] {
        &self.0
    }

    fn may_lead_to(&self, peer: PeerId) -> bool {
        self.0.iter().all(|route| route.may_lead_to(peer))
    }
}

impl Contact {
    /// A peer at its own id, reachable on these routes. A route on which the peer is its own relay
    /// is left out.
    pub fn new(id: PeerId, routes: &[Route]) -> Self {
        Self::seated(id, Seat::Free, Routes::new(routes))
    }

    /// A peer that says it sits there, reachable on these routes, which are shared where they can
    /// be.
    pub fn seated(id: PeerId, seat: Seat, routes: Routes) -> Self {
        let routes = if routes.may_lead_to(id) {
            routes
        } else {
            let possible = routes.0.iter().copied();
            Routes(possible.filter(|route| route.may_lead_to(id)).collect())
        };
        Contact {
            id,
            routes,
            seat,
            key: seat.key(id),
        }
    }

    /// The same peer in another seat.
    pub fn at(&self, seat: Seat) -> Self {
        if seat == self.seat {
            return self.clone();
        }
        Self::seated(self.id, seat, self.routes.clone())
    }

    /// Its seat, by its own word or by another's.
    pub fn seat(&self) -> Seat {
        self.seat
    }

    /// Its position on the ring.
    pub fn key(&self) -> Key {
        self.key
    }
}

impl Contacts {
    /// Longest list in any message: the full membership of the largest small ring with 32
    /// successors, less oneself.
    pub const MAX: usize = 64;

    /// The first [`Self::MAX`] of these.
    pub fn new(contacts: impl IntoIterator<Item = Contact>) -> Self {
        Contacts(contacts.into_iter().take(Self::MAX).collect())
    }

    /// The contacts in the order in which they were sent.
    pub fn as_slice(&self) -> &[Contact] {
        &self.0
    }

    /// The contacts themselves.
    pub fn into_vec(self) -> Vec<Contact> {
        self.0
    }
}

impl TryFrom<Vec<Route>> for Routes {
    type Error = TooMany;

    fn try_from(routes: Vec<Route>) -> Result<Self, TooMany> {
        check_length(routes.len(), Self::MAX)?;
        Ok(Routes(routes.into()))
    }
}

impl TryFrom<Told> for Contact {
    type Error = OwnRelay;

    fn try_from(Told { id, seat, routes }: Told) -> Result<Self, OwnRelay> {
        if routes.may_lead_to(id) {
            Ok(Contact::seated(id, seat, routes))
        } else {
            Err(OwnRelay)
        }
    }
}

impl From<Contact> for Told {
    fn from(contact: Contact) -> Self {
        Told {
            id: contact.id,
            seat: contact.seat,
            routes: contact.routes,
        }
    }
}

impl TryFrom<Vec<Contact>> for Contacts {
    type Error = TooMany;

    fn try_from(contacts: Vec<Contact>) -> Result<Self, TooMany> {
        check_length(contacts.len(), Self::MAX)?;
        Ok(Contacts(contacts))
    }
}

fn check_length(found: usize, most: usize) -> Result<(), TooMany> {
    if found > most {
        Err(TooMany { found, most })
    } else {
        Ok(())
    }
}

impl Serialize for Routes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Serialize for Contacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter()).finish()
    }
}

impl fmt::Debug for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.id)
    }
}

impl fmt::Debug for Contacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::peer;

    fn via(relay: u8) -> Route {
        Route::Via {
            relay: peer(relay).id,
        }
    }

    #[test]
    fn a_list_longer_than_its_bound_is_refused_when_decoded() {
        let route: Route = "192.0.2.1:4433".parse().unwrap();
        let contact = Contact::new(PeerId::at(Key::hash("a")), &[route; 9]);
        assert_eq!(contact.routes.as_slice().len(), Routes::MAX);
        let most = postcard::to_stdvec(&vec![contact.clone(); Contacts::MAX]).unwrap();
        let more = postcard::to_stdvec(&vec![contact; Contacts::MAX + 1]).unwrap();
        assert!(postcard::from_bytes::<Contacts>(&most).is_ok());
        assert!(postcard::from_bytes::<Contacts>(&more).is_err());
        let routes = postcard::to_stdvec(&vec![route; Routes::MAX + 1]).unwrap();
        assert!(postcard::from_bytes::<Routes>(&routes).is_err());
    }

    #[test]
    fn a_relayed_contact_travels_like_any_other() {
        let direct = "192.0.2.1:4433".parse().unwrap();
        let contact = Contact::new(peer(1).id, &[direct, via(2), via(3)]);
        let bytes = postcard::to_stdvec(&contact).unwrap();
        assert_eq!(postcard::from_bytes::<Contact>(&bytes).unwrap(), contact);
        assert_eq!(contact.routes.as_slice(), [direct, via(2), via(3)]);
    }

    #[test]
    fn a_peer_that_is_its_own_relay_is_refused_when_decoded() {
        let own = postcard::to_stdvec(&(peer(1).id, Seat::Free, vec![via(2), via(1)])).unwrap();
        assert!(postcard::from_bytes::<Contact>(&own).is_err());
        let other = postcard::to_stdvec(&(peer(1).id, Seat::Free, vec![via(2)])).unwrap();
        assert!(postcard::from_bytes::<Contact>(&other).is_ok());
        let made_here = Contact::new(peer(1).id, &[via(2), via(1)]);
        assert_eq!(made_here.routes.as_slice(), [via(2)]);
    }
}
