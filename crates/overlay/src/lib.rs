//! The overlay: peers find and reach each other by id.
//!
//! [`Overlay`] is the crawler's view of any lookup system: it names the peers responsible for a
//! key, and carries requests to them. [`Fixed`] answers from a known list of members, [`Chord`]
//! from a ring that anyone may join. Both use one [`Transport`]: QUIC between peers that prove
//! their ids by their keys. A [`Signed`] statement proves its maker to third peers, too.
//!
//! The meaning of requests is left to the crate above, which registers a [`Service`].

mod chord;
mod clock;
mod fixed;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod identity;
mod invite;
mod kind;
mod lock;
mod overlay;
mod rendezvous;
mod service;
mod signed;
mod toil_file;
mod transport;

pub use apoidea_chord::{
    Arc, ArcChange, Contact, Effort, Membership, Phase, Prefix, Seat, Seating,
    Settings as RingSettings, Touch,
};
pub use chord::{
    Chord, ChordSettings, Entries, EntryPlace, EntryPoint, EntryState, EntryStatus, EntryWay,
    InvalidEntryPoint, LocalDiscovery, Reachability, RendezvousUse, RingStanding, SettingOut,
};
pub use fixed::{Fixed, FixedSettings, Member};
pub use identity::{Identity, IdentityError};
pub use invite::{InvalidInvite, Invite, InvitedPeer};
pub use kind::Kind;
pub use overlay::{LookupError, Overlay, RequestError};
pub use service::{Refusal, Request, Service, Silent};
pub use signed::{Forged, Purpose, Signed, Signer};
pub use toil_file::ToilFile;
pub use transport::{
    AddressBook, AddressPolicy, Bandwidth, Capabilities, DialError, Dialler, InvalidNetworkId,
    KindTotals, KnownPeer, Limits, MAX_BODY_BYTES, NetworkId, OverlayStartError, PeerView, Rate,
    Sockets, Source, TlsError, Traffic, Transport, TransportSettings,
};
