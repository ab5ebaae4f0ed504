//! The decisions of a crawl, without sockets, disks or clocks.
//!
//! A page's links and its wishes about robots are read here; time and randomness are
//! passed in.

mod address_clock;
mod admission;
mod contactable;
mod directives;
mod domain_state;
pub mod extract;
mod frontier;
mod home;
mod known_robots;
mod ledger;
pub mod lending;
mod order;
mod origin;
mod outcome;
mod pages;
pub mod politeness;
mod reduced_seen;
mod refuse;
mod retry_after;
mod revisit;
mod robots;
mod scope;
mod seen;
mod shares;
pub mod sim;
mod site_hosts;
mod sitemap;
mod traps;
mod versions;

pub use address_clock::{AddressClock, AddressWish, Grant};
pub use admission::{Admission, Admitted, Decision, DropReason, Quotas};
pub use contactable::{ContactRefused, Contactable};
pub use directives::{Directives, Permission};
pub use domain_state::{Counters, DamagedState, DomainState, Effort, Stop};
pub use extract::{Extracted, extract, visible_text};
pub use frontier::{Action, Clock, Connection, Event, FetchReport, Frontier, FrontierConfig};
pub use home::{Change, Home};
pub use known_robots::RobotsStanding;
pub use ledger::{ChangeExtent, DomainChange, Ledger, PageLinks, Round};
pub use order::{BreadthFirst, Order};
pub use origin::Origin;
pub use outcome::{Failure, Health, Outcome, Settlement};
pub use pages::{Pages, PagesLoad, Sent, Stage};
pub use politeness::{Pace, PrivatePace};
pub use reduced_seen::{InvalidSeen, ReducedSeen, Reduction, Reductions};
pub use refuse::{InvalidList, Refusals};
pub use retry_after::{MAX_RETRY_AFTER, retry_after};
pub use revisit::{Novelty, Revisit};
pub use robots::{Access, Effect, PathVerdict, Robots, Rule};
pub use scope::{Company, Scope, Unwanted, is_within_one};
pub use seen::{OneIn, SeenFilter, Sight};
pub use shares::Shares;
pub use site_hosts::SiteHosts;
pub use sitemap::Sitemap;
pub use traps::{Trap, without_session};
pub use versions::{InvalidVersions, Stance, Step, Tenure, Versions};
