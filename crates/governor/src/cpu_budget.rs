//! A share of CPU time, kept by spacing the starts of work rather than by stopping and going.
//!
//! Each start is charged what a piece of work has cost lately, and may happen when earlier ones are
//! paid for; a few times a second the charges are settled against the time that the process really
//! took, which includes everything else it does. So starts are evenly spaced and the share holds in
//! the long run, whatever the pieces cost.

use std::time::Duration;

/// What may be used at once, as wall time: work between two measurements.
const BURST: f64 = 0.1;
/// A debt beyond this much wall time is forgiven: the database merging its files must not silence
/// the crawl for minutes.
const MAX_DEBT: f64 = 20.0;
/// Measurements over which the cost of a piece is averaged, about.
const MEMORY: f64 = 20.0;
/// What a piece costs before any was measured: a page of usual size on a slow machine.
const FIRST_GUESS: Duration = Duration::from_millis(2);
/// A piece costs at least this much, or an idle stretch would let all waiting ones start at once.
const LEAST_COST: f64 = 0.000_05;

/// CPU time that comes at a rate. Times are since any fixed moment.
#[derive(Debug, Clone, Copy)]
pub struct CpuBudget {
    share: f64,
    balance: f64,
    /// Charged since the last measurement.
    charged: f64,
    started: f64,
    /// Averages per measurement: CPU time and pieces started.
    cpu_average: f64,
    started_average: f64,
    used: Duration,
    at: Duration,
}

impl CpuBudget {
    /// A budget of so many percent of one core. `used` is the CPU time of the process so far.
    pub fn new(percent: u32, used: Duration, now: Duration) -> Self {
        CpuBudget {
            share: share(percent),
            balance: 0.0,
            charged: 0.0,
            started: 0.0,
            cpu_average: FIRST_GUESS.as_secs_f64(),
            started_average: 1.0,
            used,
            at: now,
        }
    }

    /// Changes the share from now on.
    pub fn set_percent(&mut self, percent: u32) {
        self.share = share(percent);
    }

    /// How long until earlier pieces of work are paid for; `None` if they are and the next may
    /// start.
    pub fn wait(&mut self, now: Duration) -> Option<Duration> {
        self.advance(now);
        (self.balance < 0.0).then(|| Duration::from_secs_f64(-self.balance / self.share))
    }

    /// Charges a piece of work that starts now.
    pub fn start(&mut self) {
        let cost = self.cost();
        self.balance -= cost;
        self.charged += cost;
        self.started += 1.0;
    }

    /// Takes a measurement of the process's CPU time so far; a few times a second.
    pub fn correct(&mut self, used: Duration, now: Duration) {
        self.advance(now);
        let spent = used.saturating_sub(self.used).as_secs_f64();
        self.balance += self.charged - spent;
        self.balance = self.balance.max(-MAX_DEBT * self.share);
        self.cpu_average += (spent - self.cpu_average) / MEMORY;
        self.started_average += (self.started - self.started_average) / MEMORY;
        self.used = used;
        (self.charged, self.started) = (0.0, 0.0);
    }

    /// What a piece costs, as far as is known.
    pub fn cost_seconds(&self) -> f64 {
        self.cost()
    }

    fn cost(&self) -> f64 {
        let measured = self.cpu_average / self.started_average.max(0.01);
        // A piece that costs more than a second of its share would stop the crawl on a wrong guess.
        measured.clamp(LEAST_COST, self.share.max(LEAST_COST))
    }

    fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.balance = (self.balance + passed * self.share).min(self.share * BURST);
    }
}

fn share(percent: u32) -> f64 {
    f64::from(percent.max(1)) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);

    /// Works for a minute on pieces that each take `cost` some time after they start, beside a
    /// steady `background` share. Gives the share used in every second.
    fn minute(percent: u32, cost: impl Fn(u64) -> f64, background: f64) -> Vec<f64> {
        let mut budget = CpuBudget::new(percent, Duration::ZERO, Duration::ZERO);
        let (mut used, mut seconds, mut count) = (0.0, vec![0.0; 60], 0);
        for millis in 0..60_000_u64 {
            let now = Duration::from_millis(millis);
            while budget.wait(now).is_none() {
                budget.start();
                count += 1;
                used += cost(count);
                seconds[millis as usize / 1000] += cost(count);
            }
            used += background / 1000.0;
            seconds[millis as usize / 1000] += background / 1000.0;
            if now.as_millis().is_multiple_of(TICK.as_millis()) {
                budget.correct(Duration::from_secs_f64(used), now);
            }
        }
        seconds
    }

    #[test]
    fn the_share_holds_for_cheap_and_dear_and_uneven_pieces() {
        for percent in [10, 25, 50, 100] {
            let share = f64::from(percent) / 100.0;
            let uneven = |count: u64| {
                if count.is_multiple_of(50) {
                    0.02
                } else {
                    0.0005
                }
            };
            for seconds in [
                minute(percent, |_| 0.0003, 0.0),
                minute(percent, |_| 0.004, 0.01),
                minute(percent, uneven, 0.02),
            ] {
                let mean = seconds[5..].iter().sum::<f64>() / 55.0;
                assert!((mean / share - 1.0).abs() < 0.1, "{percent} %: {mean}");
                let worst = seconds[5..]
                    .iter()
                    .fold(0.0_f64, |worst, second| worst.max(*second));
                assert!(worst < 2.0 * share, "{percent} %: {worst} in one second");
            }
        }
    }

    #[test]
    fn an_idle_stretch_is_not_made_up_for() {
        let mut budget = CpuBudget::new(50, Duration::ZERO, Duration::ZERO);
        for tick in 0..600 {
            budget.correct(Duration::ZERO, TICK * tick);
        }
        let mut started = 0;
        while budget.wait(Duration::from_secs(60)).is_none() {
            budget.start();
            started += 1;
        }
        assert!(started <= 1001, "{started} at once");
    }

    #[test]
    fn a_burst_of_other_work_is_paid_back_but_not_for_ever() {
        let mut budget = CpuBudget::new(10, Duration::ZERO, Duration::ZERO);
        budget.correct(Duration::from_secs(1000), TICK);
        let wait = budget.wait(TICK).unwrap();
        assert!(
            wait > Duration::from_secs(15) && wait < Duration::from_secs(25),
            "{wait:?}"
        );
    }
}
