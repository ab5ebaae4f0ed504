//! The decisions of a crawl, without sockets, disks or clocks.
//!
//! What a page links to and how it wishes to be treated is read here; time and randomness are
//! passed in.

mod admission;
mod directives;
mod domain_state;
pub mod extract;
mod frontier;
mod order;
mod origin;
mod outcome;
pub mod politeness;
mod reduced_seen;
mod refuse;
mod retry_after;
mod robots;
mod robots_copy;
mod seen;
pub mod sim;
mod sitemap;
mod traps;
mod versions;

pub use admission::{Admission, Admitted, Decision, DropReason, Quotas};
pub use directives::{Directives, Permission};
pub use domain_state::{Counters, DomainState, Effort, Stop};
pub use extract::{Extracted, extract, visible_text};
pub use frontier::{Action, Connection, Event, Frontier, FrontierConfig, Report};
pub use order::{BreadthFirst, Order};
pub use origin::Origin;
pub use outcome::{Failure, Health, Outcome, Settlement};
pub use politeness::{Pace, PrivatePace};
pub use reduced_seen::{InvalidSeen, ReducedSeen, Reduction, Reductions};
pub use refuse::{InvalidList, Refusals};
pub use retry_after::{MAX_RETRY_AFTER, retry_after};
pub use robots::{Access, Effect, Robots, Rule, Verdict};
pub use robots_copy::Standing;
pub use seen::{OneIn, SeenFilter, Sight};
pub use sitemap::Sitemap;
pub use traps::{Trap, without_session};
pub use versions::{InvalidVersions, Stance, Step, Tenure, Versions};
