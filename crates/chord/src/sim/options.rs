//! The input of a simulation: the scenario, the number of peers, the seed.

use super::LiarKind;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, time::Duration};

/// One simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RingSimOptions {
    /// The events that are played.
    pub scenario: Scenario,
    /// Number of peers.
    pub peers: usize,
    /// Source of all randomness.
    pub seed: u64,
    /// Length r of the successor lists.
    pub successors: usize,
    /// Number of lookups measured.
    pub lookups: usize,
    /// Simulated time of the scenarios that have no natural end.
    pub duration: Duration,
    /// Share of messages lost.
    pub loss: f64,
    /// Share of the peers that lie.
    pub liars: f64,
    /// Their lies.
    pub liar_kind: LiarKind,
}

/// The events of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// A ring at rest: hops of lookups, cost of maintenance.
    Steady,
    /// 10 to 50 % of the peers dead and nothing repaired: do lookups arrive?
    Dead,
    /// Half of the ring dies at once: does it heal?
    Crash,
    /// Peers come and go, with exponential sessions of 60 minutes in the median.
    Churn,
    /// The same with Weibull sessions: many short ones, some very long.
    Weibull,
    /// The network splits in two and heals: do the rings merge?
    Partition,
    /// A fifth of the machines sleep for ten minutes and wake.
    Sleep,
    /// A ring grows from one peer, one join after the other.
    Growth,
}

/// The scenario's name is not one that exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scenario {0:?}; there are {names}", names = Scenario::names())]
pub struct UnknownScenario(String);

impl Scenario {
    /// All scenarios.
    pub const ALL: [Scenario; 8] = [
        Scenario::Steady,
        Scenario::Dead,
        Scenario::Crash,
        Scenario::Churn,
        Scenario::Weibull,
        Scenario::Partition,
        Scenario::Sleep,
        Scenario::Growth,
    ];

    fn name(self) -> &'static str {
        match self {
            Scenario::Steady => "steady",
            Scenario::Dead => "dead",
            Scenario::Crash => "crash",
            Scenario::Churn => "churn",
            Scenario::Weibull => "weibull",
            Scenario::Partition => "partition",
            Scenario::Sleep => "sleep",
            Scenario::Growth => "growth",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scenario {
    type Err = UnknownScenario;

    fn from_str(text: &str) -> Result<Self, UnknownScenario> {
        Self::ALL
            .into_iter()
            .find(|s| s.name() == text)
            .ok_or_else(|| UnknownScenario(text.to_owned()))
    }
}

impl RingSimOptions {
    /// This scenario with so many peers, and otherwise the program's own parameters.
    pub fn new(scenario: Scenario, peers: usize, seed: u64) -> Self {
        RingSimOptions {
            scenario,
            peers,
            seed,
            successors: crate::Settings::default().successors,
            lookups: 10_000,
            duration: Duration::from_secs(1800),
            loss: 0.0,
            liars: 0.0,
            liar_kind: LiarKind::default(),
        }
    }
}
