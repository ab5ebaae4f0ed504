//! Counting requests, their latencies and the CPU time of both processes.

use futures::{StreamExt, stream};
use std::{
    future::Future,
    time::{Duration, Instant},
};

/// Ticks per second of the times in `/proc`.
const TICKS: f64 = 100.0;

/// The figures of one or several runs.
#[derive(Default)]
pub struct Row {
    latencies: Vec<Duration>,
    lasted: Duration,
    cpu_s: f64,
}

impl Row {
    /// Takes another run in.
    pub fn add(&mut self, other: Row) {
        self.latencies.extend(other.latencies);
        self.lasted += other.lasted;
        self.cpu_s += other.cpu_s;
    }

    /// CPU microseconds of both processes together per request.
    pub fn cpu_per_request(&self) -> f64 {
        self.cpu_s * 1e6 / self.latencies.len() as f64
    }

    /// The row's figures.
    pub fn show(&mut self, size: usize) -> String {
        self.latencies.sort();
        let quantile = |q: f64| {
            let at = (self.latencies.len() as f64 * q) as usize;
            self.latencies[at.min(self.latencies.len() - 1)].as_secs_f64() * 1e3
        };
        let rate = self.latencies.len() as f64 / self.lasted.as_secs_f64();
        let mib = rate * size as f64 / f64::from(1 << 20);
        let (p50, p99, cpu) = (quantile(0.5), quantile(0.99), self.cpu_per_request());
        format!("{rate:>9.0} {mib:>8.1} {p50:>8.2} {p99:>8.2} {cpu:>12.1}")
    }
}

/// Asks for so long, so many at a time.
pub async fn measure<F: Future<Output = usize>>(
    ask: impl Fn() -> F,
    parallel: usize,
    lasting: Duration,
    server: u32,
) -> Row {
    for _ in 0..parallel {
        ask().await;
    }
    let before = cpu_s(std::process::id()) + cpu_s(server);
    let start = Instant::now();
    let requests = stream::repeat_with(|| async {
        let start = Instant::now();
        ask().await;
        start.elapsed()
    });
    let running = requests
        .buffer_unordered(parallel)
        .take_while(|_| std::future::ready(start.elapsed() < lasting));
    let latencies = running.collect().await;
    let lasted = start.elapsed();
    let cpu_s = cpu_s(std::process::id()) + cpu_s(server) - before;
    Row {
        latencies,
        lasted,
        cpu_s,
    }
}

/// User and system time of a process.
fn cpu_s(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may contain spaces; the times are the 12th and 13th field after it.
    let fields = stat
        .rsplit_once(')')
        .map_or("", |(_, fields)| fields)
        .split_whitespace();
    fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS
}
