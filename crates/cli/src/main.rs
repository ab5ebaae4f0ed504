//! `apoidea`: the headless peer and its command line.
//!
//! Answers for people by default and JSON with `--json`; errors go to stderr and end the program
//! with a code other than 0.

mod arguments;
mod client;
mod control;
mod demo;
mod demo_swarm;
mod export;
mod invites;
mod limits;
mod manual;
mod pipe;
mod progress;
mod run;
mod seeds;
mod simulate;
mod tools;
mod watch;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    apoidea_peer::governor::heap::share();
    apoidea_peer::governor::open_files::allow_all();
    let arguments = Arguments::parse();
    match execute(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("apoidea: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { place, command } = arguments;
    if !matches!(command, Command::Run(_) | Command::Demo(_)) {
        pipe::end_with_reader();
    }
    match command {
        Command::Run(options) => run::run(&place, &options),
        Command::Demo(options) => demo::demo(&options),
        Command::Status(output) => control::status(&place, output),
        Command::Seed { urls, output } => control::seed(&place, urls, output),
        Command::Seeds(options) => seeds::seeds(&place, &options),
        Command::Watch(options) => watch::watch(&place, options),
        Command::Quit => control::quit(&place),
        Command::Pause => control::pause(&place),
        Command::Resume => control::resume(&place),
        Command::Snooze { length } => limits::snooze(&place, &length.join(" ")),
        Command::Limits(options) => limits::limits(&place, &options),
        Command::Domains {
            prefix,
            limit,
            output,
        } => control::domains(&place, &prefix, limit, output),
        Command::Invite(output) => invites::invite(&place, output),
        Command::Join(options) => invites::join(&place, &options),
        Command::Peers(output) => control::peers(&place, output),
        Command::Owners {
            domain,
            count,
            output,
        } => control::owners(&place, &domain, count, output),
        Command::Simulate(options) => simulate::simulate(&options),
        Command::Pages(output) => control::pages(&place, output),
        Command::Dashboard => control::dashboard(&place),
        Command::Config => control::config(&place),
        Command::Export(options) => export::export(&place, &options),
        Command::Canonical { url } => tools::canonical(&url),
        Command::Links { base, file } => tools::links(&base, &file),
        Command::Robots { file, agent, url } => tools::robots(&file, &agent, &url),
        Command::Manual { folder } => manual::manual(&folder),
    }
}
