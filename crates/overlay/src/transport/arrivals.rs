//! Connections that came in although this peer had called nobody there: the proof that others can
//! reach it.
//!
//! A router lets packets in from where some were sent to lately. So an arrival counts only from an
//! address that this peer has not spoken with for a while.

use super::ballot::Region;
use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

/// Time for which a router may remember that packets were sent to an address.
const REMEMBERED_BY_ROUTERS: Duration = Duration::from_secs(300);
/// Time for which an arrival counts.
const COUNTS_FOR: Duration = Duration::from_secs(2 * 3600);
/// Addresses and arrivals kept at most.
const MOST: usize = 4096;

/// The addresses spoken with lately, and the arrivals of strangers.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    spoken: HashMap<IpAddr, Instant>,
    arrived: HashMap<Region, Instant>,
}

impl Arrivals {
    /// Packets are sent to this address.
    pub fn note_spoken(&mut self, to: IpAddr, now: Instant) {
        if self.spoken.len() >= MOST {
            self.spoken
                .retain(|_, at| now.saturating_duration_since(*at) < REMEMBERED_BY_ROUTERS);
        }
        // When it is full all the same, an arrival might count too early: better none counts.
        if self.spoken.len() < MOST {
            self.spoken.insert(to.to_canonical(), now);
        } else {
            self.arrived.clear();
        }
    }

    /// A connection came from this address. Returns whether it shows that this peer can be reached.
    pub fn note_arrival(&mut self, from: IpAddr, now: Instant) -> bool {
        let spoken = self.spoken.get(&from.to_canonical());
        let is_stranger =
            spoken.is_none_or(|at| now.saturating_duration_since(*at) >= REMEMBERED_BY_ROUTERS);
        let region = Region::of(from);
        let counts = is_stranger && region != Region::Own && self.arrived.len() < MOST;
        if counts {
            self.arrived.insert(region, now);
        }
        self.note_spoken(from, now);
        counts
    }

    /// The regions of the Internet from which strangers have arrived lately.
    pub fn regions(&mut self, now: Instant) -> usize {
        self.arrived
            .retain(|_, at| now.saturating_duration_since(*at) < COUNTS_FOR);
        self.arrived.len()
    }

    /// Forgets everything: this peer may be somewhere else now.
    pub fn clear(&mut self) {
        self.arrived.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_an_address_that_was_not_called_proves_anything() {
        let (mut arrivals, now) = (Arrivals::default(), Instant::now());
        arrivals.note_spoken(ip("20.1.0.1"), now);
        assert!(!arrivals.note_arrival(ip("20.1.0.1"), now));
        assert!(!arrivals.note_arrival(ip("192.168.1.1"), now));
        assert_eq!(arrivals.regions(now), 0);
        assert!(arrivals.note_arrival(ip("20.2.0.1"), now));
        assert!(!arrivals.note_arrival(ip("20.2.0.1"), now), "it was here");
        assert!(arrivals.note_arrival(ip("20.2.9.9"), now));
        assert_eq!(arrivals.regions(now), 1, "one region");
        let later = now + REMEMBERED_BY_ROUTERS;
        assert!(arrivals.note_arrival(ip("20.1.0.1"), later));
        assert_eq!(arrivals.regions(later + COUNTS_FOR), 0);
    }

    #[test]
    fn both_tables_are_bounded() {
        let (mut arrivals, now) = (Arrivals::default(), Instant::now());
        for n in 0..10_000u32 {
            let [_, _, a, b] = n.to_be_bytes();
            arrivals.note_arrival(IpAddr::from([20, a, b, 1]), now);
        }
        assert!(arrivals.spoken.len() <= MOST && arrivals.arrived.len() <= MOST);
    }
}
