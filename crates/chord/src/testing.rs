//! Contacts for the unit tests of this crate.

use crate::Contact;
use apoidea_model::{Key, PeerId};

/// The peer whose id begins with this byte; all other bytes are zero.
pub(crate) fn peer(position: u8) -> Contact {
    let mut bytes = [0; 32];
    bytes[0] = position;
    Contact::new(PeerId::at(Key::from_bytes(bytes)), &[])
}

/// The peer with this number, anywhere on the ring.
pub(crate) fn numbered(number: u32) -> Contact {
    Contact::new(PeerId::at(Key::hash(number.to_be_bytes())), &[])
}
