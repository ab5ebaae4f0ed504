//! A deterministic web for testing a crawler: many hosts under `.test`, real DNS, HTTP and HTTPS on
//! loopback, and the truth about what a crawler must and must not fetch.
//!
//! Pages are written on request from a seed, so a web of millions of pages costs nothing until it
//! is crawled. Hosts with quirks misbehave in every way seen on the real web. Everything that is
//! asked of the web is logged.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! let web = apoidea_toyweb::ToyWeb::builder(1).hosts(300).pages(30_000).start().await?;
//! println!("crawl {:?} using the name server at {}", web.seeds(), web.dns_address());
//! let missed = web.truth().must_fetch().filter(|url| web.log().requests_for(url.as_str()) == 0).count();
//! # Ok(()) }
//! ```

mod access_log;
mod atlas;
mod authority;
mod builder;
mod connection;
mod control;
mod description;
mod dns;
mod draw;
mod honeypot;
mod links;
mod listen;
mod log;
mod pages;
mod prose;
mod quirk;
mod reply;
mod service;
mod shape;
mod site;
mod slowness;
mod spelling;
mod truth;
mod web;
mod world;

pub use access_log::{AccessLog, Connection, Lookup, Visit};
pub use builder::Builder;
pub use description::Description;
pub use honeypot::{Honeypot, Intruder};
pub use quirk::Quirk;
pub use shape::Shape;
pub use truth::{Fate, Truth};
pub use web::ToyWeb;
