//! A seeded discrete-event simulator that runs thousands of [`crate::Ring`]s in one thread.
//!
//! Every run is a pure function of its [`RingSimOptions`]: the same seed gives the same report, bit for
//! bit, and a broken invariant names the seed that replays it.

mod hostile;
mod judge;
mod liars;
mod network;
mod options;
mod play;
mod queue;
mod report;
mod sessions;
mod tally;
mod world;

pub use judge::{Disarray, survey};
pub use liars::LiarKind;
pub use network::{InvalidMatrix, Network, RoundTripMatrix, Wall};
pub use options::{RingSimOptions, Scenario, UnknownScenario};
pub use report::{Figure, RingSimReport};
pub use tally::Tally;
pub use world::World;

/// Runs one scenario from its seed to its end.
pub fn run(options: &RingSimOptions) -> RingSimReport {
    let (figures, violations) = play::play(options);
    RingSimReport {
        options: options.clone(),
        figures,
        violations,
    }
}
