//! The ring: who is responsible for a key, kept by peers that come and go (Chord, made correct).
//!
//! [`Ring`] is a state machine: [`Ring::handle`] takes an [`Event`] with the time and a source of
//! randomness and returns [`Action`]s; [`Ring::next_timeout`] says when it wants to be woken. It
//! does no I/O; sockets, connections and identities belong to the overlay. [`sim`] runs thousands
//! of rings in one thread from a seed.

mod arc;
mod book;
mod cache;
mod contact;
mod counters;
mod event;
mod fingers;
mod in_flight;
mod lookup;
mod message;
mod neighbours;
mod ring;
mod roster;
mod round_trips;
mod settings;
pub mod sim;
mod status;
mod suspects;

pub use arc::{Arc, ArcChange};
pub use contact::{Addresses, Contact, Contacts, TooMany};
pub use event::{Action, Certainty, Event, Freshness, LookupId, NotFound, Phase};
pub use message::{
    Kind, Message, Notice, Predecessor, Request, RequestId, Response, Scale, Successors, Version,
};
pub use ring::{Ownership, Ring};
pub use settings::Settings;
pub use status::{Counter, Status};
