//! A peer and how to reach it, as peers tell each other about peers.
//!
//! The ring orders and names peers by id alone; addresses travel along untouched, for the
//! transport. Both types are bounded when they are decoded, so that nothing a stranger sends grows
//! without limit.

use apoidea_model::{Key, PeerId};
use serde::{Deserialize, Serialize, Serializer};
use std::{fmt, net::SocketAddr, sync::Arc};

/// Where a peer may be reached; shared, because the same peer stands in many lists.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "Vec<SocketAddr>")]
pub struct Addresses(Arc<[SocketAddr]>);

/// A peer and its addresses.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Contact {
    /// Who it is and where it sits on the ring.
    pub id: PeerId,
    /// Where it said it can be reached.
    pub addresses: Addresses,
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

impl Addresses {
    /// Most addresses of one peer: two families, each local and observed.
    pub const MAX: usize = 4;

    /// The addresses, at most [`Self::MAX`]; further ones are left out.
    pub fn new(addresses: &[SocketAddr]) -> Self {
        Addresses(addresses[..addresses.len().min(Self::MAX)].into())
    }

    /// The addresses, in the order in which the peer prefers them.
    pub fn as_slice(&self) -> &[SocketAddr] {
        &self.0
    }
}

impl Contact {
    /// A peer reachable at these addresses.
    pub fn new(id: PeerId, addresses: &[SocketAddr]) -> Self {
        Contact {
            id,
            addresses: Addresses::new(addresses),
        }
    }

    /// Its position on the ring.
    pub fn key(&self) -> Key {
        self.id.key()
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

impl TryFrom<Vec<SocketAddr>> for Addresses {
    type Error = TooMany;

    fn try_from(addresses: Vec<SocketAddr>) -> Result<Self, TooMany> {
        check_length(addresses.len(), Self::MAX)?;
        Ok(Addresses(addresses.into()))
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

impl Serialize for Addresses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Serialize for Contacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl fmt::Debug for Addresses {
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

    #[test]
    fn a_list_longer_than_its_bound_is_refused_when_decoded() {
        let address: SocketAddr = "192.0.2.1:4433".parse().unwrap();
        let contact = Contact::new(PeerId::at(Key::hash("a")), &[address; 9]);
        assert_eq!(contact.addresses.as_slice().len(), Addresses::MAX);
        let most = postcard::to_stdvec(&vec![contact.clone(); Contacts::MAX]).unwrap();
        let more = postcard::to_stdvec(&vec![contact; Contacts::MAX + 1]).unwrap();
        assert!(postcard::from_bytes::<Contacts>(&most).is_ok());
        assert!(postcard::from_bytes::<Contacts>(&more).is_err());
        let addresses = postcard::to_stdvec(&vec![address; Addresses::MAX + 1]).unwrap();
        assert!(postcard::from_bytes::<Addresses>(&addresses).is_err());
    }
}
