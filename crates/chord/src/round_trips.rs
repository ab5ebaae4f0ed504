//! Measured round trips and the timeouts that follow from them (RFC 6298, per peer).

use crate::settings::Settings;
use apoidea_model::PeerId;
use std::time::Duration;

/// Peers whose round trip is remembered: neighbours, fingers and then some.
const MAX_PEERS: usize = 64;

/// Requests that stay unanswered in a row before timeouts double: more than a lookup has in flight.
const PATIENT_AFTER: u32 = 4;

/// Smoothed round trips of the peers asked lately, and of all of them together.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoundTrips {
    peers: Vec<(PeerId, Estimate)>,
    anyone: Option<Estimate>,
    replace: usize,
    /// Requests in a row that nobody answered in time.
    unanswered: u32,
}

#[derive(Debug, Clone, Copy)]
struct Estimate {
    smoothed_ms: f32,
    variation_ms: f32,
}

impl RoundTrips {
    /// Takes in a measurement of a request that was answered at its first attempt.
    pub fn measured(&mut self, peer: PeerId, round_trip: Duration) {
        let millis = round_trip.as_secs_f32() * 1000.0;
        self.unanswered = 0;
        self.anyone = Some(Estimate::after(self.anyone, millis));
        match self.place(peer) {
            Ok(at) => self.peers[at].1 = Estimate::after(Some(self.peers[at].1), millis),
            Err(at) => self.insert(at, peer, Estimate::after(None, millis)),
        }
    }

    /// A request was not answered in time.
    pub fn unanswered(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// The time to wait for this peer.
    pub fn timeout(&self, peer: PeerId, settings: &Settings) -> Duration {
        let known = self
            .place(peer)
            .ok()
            .map(|at| self.peers[at].1)
            .or(self.anyone);
        let timeout = known.map_or(settings.first_timeout, Estimate::timeout);
        // If nobody answers in time, the own line may be slow: otherwise every answer would come
        // too late, for ever.
        let timeout = timeout * (1 << (self.unanswered / PATIENT_AFTER).min(4));
        timeout.clamp(settings.least_timeout, settings.most_timeout)
    }

    /// Whether the timeout for this peer follows from its own round trips.
    pub fn has_measured(&self, peer: PeerId) -> bool {
        self.place(peer).is_ok()
    }

    /// The smoothed round trips.
    pub fn all(&self) -> Vec<(PeerId, Duration)> {
        let millis =
            |estimate: &Estimate| Duration::from_secs_f32(estimate.smoothed_ms.max(0.0) / 1000.0);
        self.peers
            .iter()
            .map(|(peer, estimate)| (*peer, millis(estimate)))
            .collect()
    }

    fn insert(&mut self, at: usize, peer: PeerId, estimate: Estimate) {
        if self.peers.len() < MAX_PEERS {
            self.peers.insert(at, (peer, estimate));
            return;
        }
        self.replace = (self.replace + 1) % MAX_PEERS;
        self.peers.remove(self.replace);
        let at = if at > self.replace { at - 1 } else { at };
        self.peers.insert(at, (peer, estimate));
    }

    fn place(&self, peer: PeerId) -> Result<usize, usize> {
        self.peers.binary_search_by_key(&peer, |(id, _)| *id)
    }
}

impl Estimate {
    fn after(before: Option<Estimate>, millis: f32) -> Self {
        let Some(before) = before else {
            return Estimate {
                smoothed_ms: millis,
                variation_ms: millis / 2.0,
            };
        };
        let off = (before.smoothed_ms - millis).abs();
        Estimate {
            smoothed_ms: before.smoothed_ms * 0.875 + millis * 0.125,
            variation_ms: before.variation_ms * 0.75 + off * 0.25,
        }
    }

    fn timeout(self) -> Duration {
        Duration::from_secs_f32(
            (self.smoothed_ms + 4.0 * self.variation_ms).clamp(0.0, 60_000.0) / 1000.0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::numbered;

    fn peer(n: u32) -> PeerId {
        numbered(n).id
    }

    #[test]
    fn timeouts_follow_the_measurements_within_their_bounds() {
        let settings = Settings::default();
        let mut trips = RoundTrips::default();
        assert_eq!(trips.timeout(peer(1), &settings), settings.first_timeout);
        for _ in 0..50 {
            trips.measured(peer(1), Duration::from_millis(400));
        }
        let near = trips.timeout(peer(1), &settings).as_millis();
        assert!((400..450).contains(&near), "{near}");
        assert!(
            trips.timeout(peer(2), &settings) < settings.first_timeout,
            "a stranger is judged by the others"
        );
        trips.measured(peer(3), Duration::from_millis(1));
        assert_eq!(trips.timeout(peer(3), &settings), settings.least_timeout);
        trips.measured(peer(4), Duration::from_secs(1000));
        assert_eq!(trips.timeout(peer(4), &settings), settings.most_timeout);
    }

    #[test]
    fn behind_a_slow_line_timeouts_grow_until_an_answer_comes_in_time() {
        let settings = Settings::default();
        let mut trips = RoundTrips::default();
        (0..8).for_each(|_| trips.unanswered());
        assert_eq!(trips.timeout(peer(1), &settings), settings.most_timeout);
        trips.measured(peer(1), Duration::from_millis(100));
        assert!(trips.timeout(peer(2), &settings) < settings.first_timeout);
    }

    #[test]
    fn memory_is_bounded_and_stays_searchable() {
        let mut trips = RoundTrips::default();
        for n in 0..1000 {
            trips.measured(peer(n), Duration::from_millis(5));
            assert!(trips.place(peer(n)).is_ok());
        }
        assert_eq!(trips.all().len(), MAX_PEERS);
        assert!(trips.peers.is_sorted_by_key(|(id, _)| *id));
    }
}
