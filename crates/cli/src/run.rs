//! `apoidea run`: a peer until SIGINT or SIGTERM.

use crate::{
    arguments::{Place, RunOptions},
    pipe::say,
    progress::Progress,
};
use anyhow::Context;
use apoidea_model::PageUrl;
use apoidea_peer::{Config, Peer, end_process_within};
use std::{io, path::Path, process::ExitCode, time::Duration};

/// A peer that is told to stop has this long; then it is ended as by a crash, which loses nothing
/// either.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// A runtime whose clock hangs together with the disk is not waited for any longer than this.
const GRACE: Duration = Duration::from_secs(1);
/// The network and the pages share one thread, which does 3,000 pages a second; waking a second one
/// for every step of a page costs a tenth more processor time. Large pages and the disk have
/// threads of their own.
const WORKER_THREADS: usize = 1;

pub fn run(place: &Place, options: &RunOptions) -> anyhow::Result<ExitCode> {
    let mut config = place.config()?;
    for seed in &options.seeds {
        let url = PageUrl::parse(seed).with_context(|| format!("{seed:?} cannot be crawled"))?;
        config.crawl.seeds.add(url)?;
    }
    config.crawl.exit_when_done |= options.exit_when_done;
    runtime()?.block_on(crawl(config, &place.data()?))
}

/// The runtime that a peer runs on.
pub fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()?)
}

/// Runs a peer, showing its progress, until it is done or told to stop.
pub async fn crawl(config: Config, folder: &Path) -> anyhow::Result<ExitCode> {
    start_logging();
    // Listened for first, so that a signal during the start is not the end of it.
    let mut stop_signal = StopSignal::listen().context("cannot listen for signals")?;
    let peer = Peer::start(config, folder).await?;
    say(format_args!("Dashboard: {}", peer.dashboard_link()));
    let progress = Progress::follow(peer.handle());
    let ending = tokio::select! {
        signal = stop_signal.received() => signal,
        () = peer.handle().quit_asked() => "Asked to quit: finishing what is under way…",
        () = peer.done() => "Everything is crawled.",
    };
    progress.finish();
    say(ending);
    end_process_within(STOP_WITHIN + GRACE, folder, 1);
    match tokio::time::timeout(STOP_WITHIN, peer.stop()).await {
        Ok(last) => {
            say(format_args!(
                "{} pages in all, {} URLs wait for the next run.",
                last.totals.pages, last.queued
            ));
            Ok(ExitCode::SUCCESS)
        }
        Err(_) => {
            eprintln!(
                "apoidea: not everything could be written in time; the next start recovers the rest"
            );
            // Blocked threads would keep the runtime, and so the process, from ending.
            std::process::exit(1);
        }
    }
}

fn start_logging() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("APOIDEA_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
}

/// The system's wish that the program ends.
#[cfg(unix)]
pub struct StopSignal {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopSignal {
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(StopSignal {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Interrupted: finishing what is under way…",
            _ = self.terminate.recv() => "Told to stop: finishing what is under way…",
        }
    }
}

/// The system's wish that the program ends.
#[cfg(windows)]
pub struct StopSignal(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl StopSignal {
    pub fn listen() -> io::Result<Self> {
        Ok(StopSignal(tokio::signal::windows::ctrl_c()?))
    }

    pub async fn received(&mut self) -> &'static str {
        self.0.recv().await;
        "Interrupted: finishing what is under way…"
    }
}
