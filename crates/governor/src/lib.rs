//! How much of a volunteer's computer the crawl may use right now.
//!
//! [`Preferences`] say what the volunteer wants, [`Readings`] what the sensors saw, and
//! [`Governor::decide`] turns both and the time into one [`Allowance`] with one [`Reason`]. That
//! part is pure; [`sensors`] is where the world is looked at, and [`precedence`] where it is given
//! way to. Whoever consumes (fetches, processing, buckets, caches) keeps to the allowance;
//! [`CpuBudget`] and [`TokenBucket`] are the arithmetic of keeping to it smoothly.

mod allowance;
mod clock;
mod cpu_budget;
mod desktop;
mod governor;
pub mod heap;
mod latch;
pub mod open_files;
pub mod precedence;
mod preferences;
mod preset;
mod range;
mod readings;
mod reason;
mod schedule;
pub mod sensors;
mod snooze;
mod squeeze;
pub mod startup_pages;
mod token_bucket;
mod usage;

pub use allowance::{Allowance, Pace};
pub use clock::Moment;
pub use cpu_budget::CpuBudget;
pub use desktop::{Desktop, Switch};
pub use governor::Governor;
pub use preferences::{PreferenceRefused, Preferences, Priority, Profile, Run, Toward, WhileInUse};
pub use preset::Preset;
pub use range::{Range, ranges};
pub use readings::{Metering, Power, Readings, Screen};
pub use reason::Reason;
pub use schedule::{Day, Hours, InvalidDay, Schedule};
pub use snooze::{InvalidSnooze, Snooze, SnoozeFor};
pub use squeeze::Squeeze;
pub use token_bucket::TokenBucket;
pub use usage::MonthlyUsage;
