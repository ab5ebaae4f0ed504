//! `apoidea simulate`: thousands of peers in one process, from a seed.

use crate::arguments::SimulateOptions;
use anyhow::ensure;
use apoidea_chord::sim::{self, Options};
use std::{process::ExitCode, time::Duration};

pub fn simulate(options: &SimulateOptions) -> anyhow::Result<ExitCode> {
    ensure!((0.0..=0.5).contains(&options.loss), "--loss is a share of messages: accepted are 0 to 0.5");
    let report = sim::run(&Options {
        scenario: options.scenario,
        peers: usize::try_from(options.peers)?,
        seed: options.seed,
        successors: usize::try_from(options.successors)?,
        lookups: options.lookups,
        duration: Duration::from_secs(60 * options.minutes),
        loss: options.loss,
    });
    if options.output.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
