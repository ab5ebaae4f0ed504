//! A seeded discrete-event simulator that runs thousands of [`crate::Ring`]s in one thread.
//!
//! Every run is a pure function of its [`Options`]: the same seed gives the same report, bit for
//! bit, and a broken invariant names the seed that replays it.

mod judge;
mod network;
mod options;
mod play;
mod queue;
mod report;
mod sessions;
mod tally;
mod world;

pub use judge::{Disarray, survey};
pub use network::{InvalidMatrix, Network, RoundTripMatrix, Wall};
pub use options::{Options, Scenario, UnknownScenario};
pub use report::{Figure, Report};
pub use tally::Tally;
pub use world::World;

/// Runs one scenario from its seed to its end.
pub fn run(options: &Options) -> Report {
    let (figures, violations) = play::play(options);
    Report {
        options: options.clone(),
        figures,
        violations,
    }
}
