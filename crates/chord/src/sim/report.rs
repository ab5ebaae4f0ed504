//! The result of a simulation: figures with their targets, as a table for people and as data for
//! scripts.

use super::RingSimOptions;
use serde::Serialize;
use std::fmt;

/// The outcome of one simulation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RingSimReport {
    /// The simulation's input.
    pub options: RingSimOptions,
    /// The figures, in the order in which they are shown.
    pub figures: Vec<Figure>,
    /// Invariants that were broken, each with its moment and peer; empty in a sound run.
    pub violations: Vec<String>,
}

/// One measured value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The quantity, with its unit.
    pub name: String,
    /// The value.
    pub value: f64,
    /// The target in words; empty where there is none.
    pub target: String,
    /// Whether the value meets the target; none where there is no target.
    pub met: Option<bool>,
}

impl Figure {
    /// A value without a target.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Figure {
            name: name.into(),
            value,
            target: String::new(),
            met: None,
        }
    }

    /// The value should not be larger.
    pub fn at_most(self, most: f64) -> Self {
        Figure {
            target: format!("at most {most:.4}"),
            met: Some(self.value <= most),
            ..self
        }
    }

    /// The value should not be smaller.
    pub fn at_least(self, least: f64) -> Self {
        Figure {
            target: format!("at least {least:.4}"),
            met: Some(self.value >= least),
            ..self
        }
    }

    /// The value should be in this range.
    pub fn within(self, least: f64, most: f64) -> Self {
        let met = Some((least..=most).contains(&self.value));
        Figure {
            target: format!("{least:.3} to {most:.3}"),
            met,
            ..self
        }
    }
}

impl RingSimReport {
    /// Whether every target was met and no invariant broken.
    pub fn is_sound(&self) -> bool {
        self.violations.is_empty() && self.figures.iter().all(|figure| figure.met != Some(false))
    }
}

impl fmt::Display for RingSimReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RingSimOptions {
            scenario,
            peers,
            seed,
            ..
        } = &self.options;
        writeln!(f, "{scenario}: {peers} peers, seed {seed}")?;
        for Figure {
            name,
            value,
            target,
            met,
        } in &self.figures
        {
            let mark = match met {
                Some(true) => "ok",
                Some(false) => "MISSED",
                None => "",
            };
            writeln!(f, "  {name:<44} {value:>14.4}  {target:<24} {mark}")?;
        }
        self.violations
            .iter()
            .try_for_each(|violation| writeln!(f, "  BROKEN {violation} (seed {seed})"))
    }
}
