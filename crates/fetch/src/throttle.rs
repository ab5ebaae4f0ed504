//! Keeps the crawl to its allowance, smoothly: when work may start, when bytes may flow, and
//! whether there is room for them.
//!
//! CPU time is held by spacing the starts of fetches; bytes by buckets that every request and every
//! piece of an answer draws from. What the overlay sends and receives is charged to the same
//! buckets afterwards, so that both together keep to the rate: the crawl's fetches give way to the
//! ring.

use crate::body_memory::BodyMemory;
use apoidea_governor::{Allowance, CpuBudget, TokenBucket};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// How often what is used is measured while it is limited, and while it is only counted.
const MEASURE_EVERY: Duration = Duration::from_millis(100);
const COUNT_EVERY: Duration = Duration::from_millis(500);
/// An answer is expected to be this large before any was seen.
const FIRST_GUESS_BYTES: f64 = 16_384.0;
/// Answers over which the expected size is averaged, about.
const MEMORY: f64 = 20.0;
/// Longest that anyone waits before looking at the rate again: it may have changed.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// The part of a rate that is aimed at. The heads of TCP and IP take 3 to 5 % that cannot be seen
/// from here, and a burst on top of it still fits into a second's worth.
const AIM: f64 = 0.94;

/// The allowance at work; shared by all who consume.
pub struct Throttle {
    cpu: Mutex<Option<CpuBudget>>,
    down: Mutex<Flow>,
    up: Mutex<Flow>,
    bodies: Arc<BodyMemory>,
    /// Bytes since they were last taken into account.
    counted: AtomicU64,
    is_paused: AtomicBool,
    since: Instant,
}

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Unsent,
    Sent,
}

/// One direction of bytes.
struct Flow {
    bucket: Option<TokenBucket>,
    rate: Option<u64>,
    expected: f64,
}

/// A request that may be sent, and what its answer was expected to be.
pub struct Ticket<'a> {
    throttle: &'a Throttle,
    expected: u64,
    received: u64,
}

impl Default for Throttle {
    fn default() -> Self {
        Throttle::new()
    }
}

impl Throttle {
    /// Without limits.
    pub fn new() -> Self {
        let flow = || {
            Mutex::new(Flow {
                bucket: None,
                rate: None,
                expected: FIRST_GUESS_BYTES,
            })
        };
        Throttle {
            cpu: Mutex::new(None),
            down: flow(),
            up: flow(),
            bodies: Arc::default(),
            counted: AtomicU64::new(0),
            is_paused: AtomicBool::new(false),
            since: Instant::now(),
        }
    }

    /// Takes new limits.
    pub fn allow(&self, allowance: &Allowance) {
        let now = self.since.elapsed();
        self.is_paused.store(allowance.is_paused(), Relaxed);
        let mut cpu = lock(&self.cpu);
        match (allowance.cpu_percent, cpu.as_mut()) {
            (Some(percent), Some(budget)) => budget.set_percent(percent),
            (Some(percent), None) => *cpu = Some(CpuBudget::new(percent, cpu_time(), now)),
            (None, _) => *cpu = None,
        }
        lock(&self.down).set(allowance.down_bytes, now);
        lock(&self.up).set(allowance.up_bytes, now);
        self.bodies.allow(allowance);
    }

    /// Room for bodies on their way.
    pub fn bodies(&self) -> &Arc<BodyMemory> {
        &self.bodies
    }

    /// How long to wait before the next piece of work may start; `None` if it may now.
    pub fn wait(&self) -> Option<Duration> {
        let now = self.since.elapsed();
        lock(&self.cpu).as_mut().and_then(|budget| budget.wait(now))
    }

    /// Charges a piece of work that starts now.
    pub fn start(&self) {
        if let Some(budget) = lock(&self.cpu).as_mut() {
            budget.start();
        }
    }

    /// Settles what was charged against the CPU time that was really used.
    pub fn measure(&self) {
        if let Some(budget) = lock(&self.cpu).as_mut() {
            budget.correct(cpu_time(), self.since.elapsed());
        }
    }

    /// How soon to measure again.
    pub fn measure_in(&self) -> Duration {
        let is_limited = lock(&self.cpu).is_some() || self.rates() != (None, None);
        if is_limited {
            MEASURE_EVERY
        } else {
            COUNT_EVERY
        }
    }

    /// Waits until a request of this size may be sent; none if a pause comes first.
    pub async fn request(&self, bytes: u64) -> Option<Ticket<'_>> {
        self.draw(&self.up, bytes, Phase::Unsent).await?;
        self.counted.fetch_add(bytes, Relaxed);
        let expected = lock(&self.down).expected as u64;
        self.draw(&self.down, expected, Phase::Unsent).await?;
        Some(Ticket {
            throttle: self,
            expected,
            received: 0,
        })
    }

    /// Charges what others have sent and received already.
    pub fn charge(&self, down: u64, up: u64) {
        self.counted.fetch_add(down + up, Relaxed);
        lock(&self.down).correct(0, down);
        lock(&self.up).correct(0, up);
    }

    /// Bytes both ways since this was last asked.
    pub fn take_counted(&self) -> u64 {
        self.counted.swap(0, Relaxed)
    }

    /// Bytes per second that may be received and sent.
    pub fn rates(&self) -> (Option<u64>, Option<u64>) {
        (lock(&self.down).rate, lock(&self.up).rate)
    }

    /// How much longer than usual an answer of this size may take.
    pub fn slack(&self, bytes: usize) -> Duration {
        let rate = lock(&self.down).rate;
        rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs(4 * bytes as u64 / rate.max(1))
        })
    }

    /// Waits for the rate. A request that had to wait is not sent into a pause.
    async fn draw(&self, flow: &Mutex<Flow>, bytes: u64, phase: Phase) -> Option<()> {
        loop {
            let drawn = lock(flow).take(bytes, self.since.elapsed());
            match drawn {
                Ok(()) => return Some(()),
                Err(wait) => sleep(wait.min(LOOK_AGAIN)).await,
            }
            if phase == Phase::Unsent && self.is_paused.load(Relaxed) {
                return None;
            }
        }
    }
}

impl Ticket<'_> {
    /// Notes a piece of the answer, and waits while more came than the rate allows.
    pub async fn receive(&mut self, bytes: u64) {
        self.received += bytes;
        if self.received > self.expected {
            let beyond = self.received - self.expected;
            self.expected = self.received;
            self.throttle
                .draw(&self.throttle.down, beyond, Phase::Sent)
                .await;
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.throttle.counted.fetch_add(self.received, Relaxed);
        let mut down = lock(&self.throttle.down);
        down.correct(self.expected, self.received);
        down.expected += (self.received as f64 - down.expected) / MEMORY;
    }
}

impl Flow {
    fn set(&mut self, rate: Option<u64>, now: Duration) {
        if self.rate == rate {
            return;
        }
        self.rate = rate;
        let aim = rate.map(|rate| (rate as f64 * AIM) as u64);
        match (aim, self.bucket.as_mut()) {
            (Some(aim), Some(bucket)) => bucket.set_rate(aim, now),
            (Some(aim), None) => self.bucket = Some(TokenBucket::new(aim, now)),
            (None, _) => self.bucket = None,
        }
    }

    fn take(&mut self, bytes: u64, now: Duration) -> Result<(), Duration> {
        self.bucket
            .as_mut()
            .map_or(Ok(()), |bucket| bucket.take(bytes, now))
    }

    fn correct(&mut self, expected: u64, actual: u64) {
        if let Some(bucket) = &mut self.bucket {
            bucket.correct(expected, actual);
        }
    }
}

/// CPU time of the whole process so far.
pub fn cpu_time() -> Duration {
    cpu_time::ProcessTime::now().as_duration()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
