//! Runs one simulation and prints its table: `simulate SCENARIO [PEERS] [SEED] [SUCCESSORS]
//! [LOSS] [LIARS] [cabal]`.

use apoidea_chord::sim::{self, LiarKind, RingSimOptions, Scenario};
use std::{env, process::ExitCode, time::Instant};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize, default: f64| {
        arguments
            .get(at)
            .and_then(|a| a.parse().ok())
            .unwrap_or(default)
    };
    let scenario = match arguments
        .first()
        .map_or("steady", String::as_str)
        .parse::<Scenario>()
    {
        Ok(scenario) => scenario,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut options =
        RingSimOptions::new(scenario, number(1, 1000.0) as usize, number(2, 1.0) as u64);
    options.successors = number(3, options.successors as f64) as usize;
    options.loss = number(4, 0.0);
    options.liars = number(5, 0.0);
    if arguments.get(6).is_some_and(|kind| kind == "cabal") {
        options.liar_kind = LiarKind::Cabal;
    }
    let start = Instant::now();
    let report = sim::run(&options);
    print!("{report}");
    eprintln!("  {:.1} s of real time", start.elapsed().as_secs_f64());
    if report.is_sound() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
