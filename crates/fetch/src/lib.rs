//! Asking a web server for one thing, politely: the lower half of a peer, which knows neither
//! queues nor other peers.
//!
//! A [`WebRequest`] passes these in order: `crawl::Contactable` (may this address be contacted?),
//! [`Resolver`] (which address is it?), [`BodyMemory`] (is there room for the answer?),
//! [`Throttle`] (does the allowance permit it now?), [`Gate`] (is it this host's turn?), and
//! [`Fetcher`], which sends it. [`judge`] says what the answer means.

pub mod body;
mod body_memory;
mod config;
mod fetcher;
mod gate;
pub mod judge;
mod own_networks;
mod request;
mod resolver;
pub mod robots;
mod throttle;
mod trust;

pub use body::{Body, Extent};
pub use body_memory::{BodyMemory, Holding};
pub use config::FetchConfig;
pub use fetcher::{
    FetchError, Fetcher, MAX_BODY_BYTES, PRODUCT_TOKEN, Response, SetupError, USER_AGENT,
};
pub use gate::{Gaps, Gate};
pub use own_networks::{own_interfaces, own_networks};
pub use request::{RequestHead, Wanted, WebRequest};
pub use resolver::{ResolveError, Resolver};
pub use robots::RobotsAnswer;
pub use throttle::{Throttle, Ticket, cpu_time};
pub use trust::TrustError;
