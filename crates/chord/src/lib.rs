//! The ring: it says which peer owns a key, while peers come and go (Chord, made correct).
//!
//! [`Ring`] is a state machine: [`Ring::handle`] takes an [`RingEvent`] with the time and a source of
//! randomness and returns [`RingAction`]s; [`Ring::next_timeout`] says when it wants to be woken. It
//! does no I/O; sockets, connections and identities belong to the overlay. [`sim`] runs thousands
//! of rings in one thread from a seed.

mod arc;
mod book;
mod cache;
mod candidate;
mod contact;
mod counters;
mod event;
mod fingers;
mod heard;
mod in_flight;
mod lookup;
mod lost;
mod message;
mod neighbourhood;
mod neighbours;
mod ring;
mod roster;
mod round_trips;
mod seat;
mod settings;
pub mod sim;
mod status;
mod suspects;
#[cfg(test)]
mod testing;
mod toil;

pub use arc::{Arc, ArcChange};
pub use contact::{Contact, Contacts, OwnRelay, Routes, TooMany};
pub use event::{Certainty, Freshness, LookupId, NotFound, Phase, RingAction, RingEvent};
pub use lost::Touch;
pub use message::{
    Introduction, Message, MessageKind, Notice, Predecessor, RequestId, RingRequest, RingResponse,
    Scale, Successors, Version,
};
pub use neighbourhood::{Extent, Membership, Neighbourhood};
pub use ring::{Ownership, Ring};
pub use seat::{Prefix, Seat, Seating};
pub use settings::Settings;
pub use status::{Counter, RingStatus};
pub use toil::{Effort, Toil};
