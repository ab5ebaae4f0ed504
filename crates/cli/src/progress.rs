//! Live progress: one line that renews itself on a terminal, a plain line now and then otherwise.

use crate::pipe::say;
use apoidea_peer::{EntryState, EntryStatus, Handle, Status, words};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use std::{
    io::{self, IsTerminal},
    time::Duration,
};
use tokio::{task::JoinHandle, time::Instant};

/// Plain lines come so often.
const PLAIN_PERIOD: Duration = Duration::from_secs(10);
/// The spinner turns so fast: visibly alive, at no cost.
const SPIN_PERIOD: Duration = Duration::from_millis(250);

/// Shows a peer's progress until finished.
pub struct Progress {
    bar: Option<ProgressBar>,
    task: JoinHandle<()>,
}

impl Progress {
    /// Follows a peer.
    pub fn follow(handle: &Handle) -> Self {
        let bar = io::stdout().is_terminal().then(spinner);
        let task = tokio::spawn(show(handle.clone(), bar.clone()));
        Progress { bar, task }
    }

    /// Leaves the last state on the screen.
    pub fn finish(self) {
        self.task.abort();
        if let Some(bar) = self.bar {
            bar.abandon();
        }
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner:.yellow} {wide_msg}")
            .expect("the template is a constant"),
    );
    bar.enable_steady_tick(SPIN_PERIOD);
    bar
}

async fn show(handle: Handle, bar: Option<ProgressBar>) {
    let mut statuses = handle.watch_status();
    let mut next_line = Instant::now();
    loop {
        let line = line(&statuses.borrow_and_update());
        match &bar {
            Some(bar) => bar.set_message(line),
            None if Instant::now() >= next_line => {
                say(line);
                next_line = Instant::now() + PLAIN_PERIOD;
            }
            None => {}
        }
        if statuses.changed().await.is_err() {
            return;
        }
    }
}

fn line(status: &Status) -> String {
    let Status {
        totals,
        usage,
        queued,
        domains,
        fetching,
        ..
    } = status;
    let told = match (&status.attention, tried(status)) {
        (Some(attention), _) => words::attention(attention),
        (None, Some(tried)) => format!("{} · {tried}", status.reason),
        (None, None) => status.reason.clone(),
    };
    format!(
        "{told} · {speed:.1} pages/s · {pages} pages · {rate}/s · {queue} waiting · {hosts} hosts · {fetching} under way",
        speed = usage.pages_per_second,
        pages = HumanCount(totals.pages),
        rate = HumanBytes(usage.bytes_per_second as u64),
        queue = HumanCount(*queued),
        hosts = HumanCount(*domains),
    )
}

/// The ways to other peers that were tried, while none is found.
fn tried(status: &Status) -> Option<String> {
    status.door.missing?;
    let is_tried = |entry: &&EntryStatus| {
        let state = entry.state;
        matches!(
            state,
            EntryState::Trying | EntryState::Silent | EntryState::Closed
        )
    };
    let tried = status.door.entry.iter().filter(is_tried);
    let tried = tried.map(|entry| {
        let way = words::entry_way(entry.way);
        format!("{way}: {}", words::entry(entry))
    });
    let tried = tried.collect::<Vec<_>>().join(", ");
    (!tried.is_empty()).then_some(tried)
}
