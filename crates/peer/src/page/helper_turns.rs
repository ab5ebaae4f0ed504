//! The turns of a helper at the hosts of other owners.
//!
//! An owner spaces its requests to a host, whoever sends them. A hostile owner does not: it could
//! lend the same host to all its helpers at once. So a helper takes its turn at a host no more often
//! than it would if all helpers shared the host's pace.

use crate::lock::lock;
use apoidea_model::Domain;
use std::{collections::HashMap, sync::Mutex, time::Duration};
use tokio::time::Instant;

/// Hosts that are remembered; those whose next turn has come are forgotten first.
const MAX_HOSTS: usize = 4096;

/// The last turn at each host.
#[derive(Default)]
pub(crate) struct HelperTurns(Mutex<HashMap<Domain, Turn>>);

struct Turn {
    at: Instant,
    gap: Duration,
}

impl HelperTurns {
    /// This peer asks the host for another one, and the host is to have this pause after a request.
    pub(crate) fn note(&self, host: &Domain, gap: Duration) {
        let mut turns = lock(&self.0);
        if turns.len() >= MAX_HOSTS {
            turns.retain(|_, turn| turn.at.elapsed() < turn.gap);
        }
        if turns.len() < MAX_HOSTS {
            let at = Instant::now();
            turns.insert(host.clone(), Turn { at, gap });
        }
    }

    /// Is it this peer's turn, where so many peers help?
    pub(crate) fn has_come(&self, host: &Domain, helpers: u32) -> bool {
        let turns = lock(&self.0);
        let next = |turn: &Turn| turn.gap.saturating_mul(helpers.max(1));
        let turn = turns.get(host);
        turn.is_none_or(|turn| turn.at.elapsed() >= next(turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time;

    const GAP: Duration = Duration::from_secs(5);

    fn host(number: usize) -> Domain {
        format!("h{number}.test").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn helpers_share_the_pace_of_a_host() {
        let turns = HelperTurns::default();
        assert!(turns.has_come(&host(1), 8));
        turns.note(&host(1), GAP);
        assert!(turns.has_come(&host(2), 8));
        time::advance(GAP * 4).await;
        assert!(!turns.has_come(&host(1), 8) && turns.has_come(&host(1), 4));
        time::advance(GAP * 4).await;
        assert!(turns.has_come(&host(1), 8));
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_hosts_is_bounded_and_old_ones_make_room() {
        let turns = HelperTurns::default();
        (0..MAX_HOSTS + 10).for_each(|number| turns.note(&host(number), GAP));
        assert_eq!(lock(&turns.0).len(), MAX_HOSTS);
        time::advance(GAP).await;
        turns.note(&host(MAX_HOSTS + 99), GAP);
        assert!(!turns.has_come(&host(MAX_HOSTS + 99), 1));
        assert_eq!(lock(&turns.0).len(), 1);
    }
}
