//! How peers find and reach each other.
//!
//! [`Overlay`] is what the crawler needs of any lookup system: who is responsible for a key, and a
//! way to ask that peer something. [`Fixed`] answers from a known list of members, [`Chord`] from a
//! ring that anyone may join. Both speak through one [`Transport`]: QUIC between peers that prove
//! who they are by their keys.
//!
//! What the requests mean is left to the crate above, which registers a [`Service`].

mod chord;
mod clock;
mod fixed;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod identity;
mod kind;
mod overlay;
mod service;
mod transport;

pub use apoidea_chord::{Arc, ArcChange, Contact, Phase, Settings as RingSettings};
pub use chord::{
    Chord, ChordSettings, EntryPoint, InvalidEntryPoint, LocalDiscovery, Place, SettingOut,
    Standing,
};
pub use fixed::{Fixed, FixedSettings, Member};
pub use identity::{Identity, IdentityError};
pub use kind::Kind;
pub use overlay::{LookupError, Overlay, RequestError};
pub use service::{Refusal, Request, Service, Silent};
pub use transport::{
    AddressBook, AddressPolicy, Bandwidth, Capabilities, DialError, Dialler, Entry,
    InvalidNetworkId, KindTotals, Limits, MAX_BODY_BYTES, NetworkId, PeerView, Rate, Settings,
    Sockets, Source, StartError, TlsError, Traffic, Transport,
};
