//! The overlay: peers find and reach each other by id.
//!
//! [`Overlay`] is the crawler's view of any lookup system: it names the peers responsible for a
//! key, and carries requests to them. [`Fixed`] answers from a known list of members, [`Chord`]
//! from a ring that anyone may join. Both use one [`Transport`]: QUIC between peers that prove
//! their ids by their keys.
//!
//! The meaning of requests is left to the crate above, which registers a [`Service`].

mod chord;
mod clock;
mod fixed;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod identity;
mod kind;
mod lock;
mod overlay;
mod service;
mod transport;

pub use apoidea_chord::{Arc, ArcChange, Contact, Membership, Phase, Settings as RingSettings};
pub use chord::{
    Chord, ChordSettings, EntryPlace, EntryPoint, InvalidEntryPoint, LocalDiscovery, RingStanding,
    SettingOut,
};
pub use fixed::{Fixed, FixedSettings, Member};
pub use identity::{Identity, IdentityError};
pub use kind::Kind;
pub use overlay::{LookupError, Overlay, RequestError};
pub use service::{Refusal, Request, Service, Silent};
pub use transport::{
    AddressBook, AddressPolicy, Bandwidth, Capabilities, DialError, Dialler, InvalidNetworkId,
    KindTotals, KnownPeer, Limits, MAX_BODY_BYTES, NetworkId, OverlayStartError, PeerView, Rate,
    Sockets, Source, TlsError, Traffic, Transport, TransportSettings,
};
