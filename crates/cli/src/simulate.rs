//! `apoidea simulate`: thousands of peers in one process, from a seed.

use crate::arguments::SimulateOptions;
use anyhow::{Context, ensure};
use apoidea_chord::sim::{self, LiarKind, RingSimOptions};
use apoidea_crawl::sim::{self as crawl, freshness};
use serde::Serialize;
use std::{fmt::Display, fs, path::Path, process::ExitCode, time::Duration};

pub fn simulate(options: &SimulateOptions) -> anyhow::Result<ExitCode> {
    ensure!(
        (0.0..=0.5).contains(&options.liars),
        "--liars is a share of the peers: accepted are 0 to 0.5"
    );
    match (&options.changes, options.crawl) {
        (Some(file), _) => compare_revisits(options, file),
        (None, Some(pages)) => simulate_crawl(options, pages),
        (None, None) => simulate_ring(options),
    }
}

/// Longer than any crawl at the pace of the contract takes.
const CRAWL_AT_MOST: Duration = Duration::from_secs(30 * 24 * 3600);

fn simulate_crawl(options: &SimulateOptions, pages: u64) -> anyhow::Result<ExitCode> {
    let report = crawl::run(&crawl::CrawlSimOptions {
        peers: usize::try_from(options.peers)?,
        hosts: usize::try_from(options.hosts.min(pages))?,
        pages: usize::try_from(pages)?,
        seed: options.seed,
        fetches: usize::try_from(options.fetches)?,
        helpers: usize::try_from(options.helpers)?,
        crashes: usize::try_from(options.crashes)?,
        addresses: None,
        liars: options.liars,
        duration: CRAWL_AT_MOST,
    });
    show(&report, options)?;
    Ok(if report.is_sound() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn compare_revisits(options: &SimulateOptions, file: &Path) -> anyhow::Result<ExitCode> {
    let context = || format!("cannot read {}", file.display());
    let bytes = fs::read(file).with_context(context)?;
    let record = freshness::ChangeRecord::read(&bytes).with_context(context)?;
    show(&freshness::compare(&record), options)?;
    Ok(ExitCode::SUCCESS)
}

fn simulate_ring(options: &SimulateOptions) -> anyhow::Result<ExitCode> {
    ensure!(
        (0.0..=0.5).contains(&options.loss),
        "--loss is a share of messages: accepted are 0 to 0.5"
    );
    let report = sim::run(&RingSimOptions {
        scenario: options.scenario,
        peers: usize::try_from(options.peers)?,
        seed: options.seed,
        successors: usize::try_from(options.successors)?,
        lookups: options.lookups,
        duration: Duration::from_secs(60 * options.minutes),
        loss: options.loss,
        liars: options.liars,
        liar_kind: if options.cabal {
            LiarKind::Cabal
        } else {
            LiarKind::Naive
        },
    });
    show(&report, options)?;
    Ok(if report.is_sound() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn show(report: &(impl Serialize + Display), options: &SimulateOptions) -> anyhow::Result<()> {
    if options.output.json {
        println!("{}", serde_json::to_string_pretty(report)?);
    } else {
        println!("{report}");
    }
    Ok(())
}
