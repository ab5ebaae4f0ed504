//! A long pause: the peer leaves the ring in good order, so that others crawl its domains, and
//! returns when it may run.
//!
//! Until then it stays and answers: a short pause moves nothing. Leaving waits until nothing is
//! under way any more and the holders of copies know it, so that whoever takes over does nothing
//! twice. What is handed over is the swarm's business, as with any peer that goes.

use crate::{
    config::Consent, network::Network, swarm::orders::Orders, volunteer::steward::Steward,
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

/// How often a pause is looked at; its end is noticed at once.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// In a pause nothing new begins, so rest comes soon, unless other peers cannot be reached; then it
/// is tried again.
const REST_WITHIN: Duration = Duration::from_secs(20);

/// The others take what a peer says right after its goodbye for an echo, for 3 seconds; until then
/// it is not let in again.
const AWAY_AT_LEAST: Duration = Duration::from_secs(5);

/// Follows the pauses.
pub(crate) struct Absence {
    pub steward: Arc<Steward>,
    pub network: Arc<Network>,
    pub orders: Orders,
    pub consent: Consent,
}

/// What is to be done about the peer's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Leave,
    Return,
}

/// How the peer is.
#[derive(Debug, Clone, Copy)]
struct Look {
    is_paused: bool,
    is_member: bool,
    leave_after: Option<Duration>,
}

/// What is remembered between looks.
#[derive(Debug, Default)]
struct Rest {
    paused_since: Option<Instant>,
    left_at: Option<Instant>,
}

impl Absence {
    /// Leaves and returns until it is stopped.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut allowance = self.steward.watch();
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A peer whose volunteer has not agreed yet is away from the beginning.
        let left_at = (self.consent == Consent::Awaited).then(Instant::now);
        let mut rest = Rest {
            left_at,
            ..Rest::default()
        };
        loop {
            tokio::select! {
                _ = looks.tick() => {}
                Ok(()) = allowance.changed() => {}
                () = stop.cancelled() => return,
            }
            self.network
                .allow_rendezvous(self.steward.preferences().rendezvous);
            match rest.step(self.look(), Instant::now()) {
                Some(Step::Leave) => rest.left_at = self.leave(&stop).await,
                Some(Step::Return) => {
                    tracing::info!("the pause is over: back to the ring");
                    self.network.enter();
                }
                None => {}
            }
        }
    }

    /// Leaves once there is rest, unless the pause ends before; gives when it left.
    async fn leave(&self, stop: &CancellationToken) -> Option<Instant> {
        let mut allowance = self.steward.watch();
        let mut stillness = self.orders.quiesce().await;
        let is_at_rest = tokio::select! {
            rested = timeout(REST_WITHIN, stillness.reached()) => matches!(rested, Ok(Ok(()))),
            _ = allowance.wait_for(|allowance| !allowance.is_paused()) => false,
            () = stop.cancelled() => false,
        };
        if !is_at_rest {
            return None;
        }
        tracing::info!("a long pause: others take the domains over");
        self.network.leave().await;
        Some(Instant::now())
    }

    fn look(&self) -> Look {
        let seconds = self.steward.preferences().leave_after_seconds;
        Look {
            is_paused: self.steward.watch().borrow().is_paused(),
            is_member: self.network.is_member(),
            leave_after: (seconds > 0).then(|| Duration::from_secs(seconds.into())),
        }
    }
}

impl Rest {
    fn step(&mut self, look: Look, now: Instant) -> Option<Step> {
        if !look.is_paused {
            self.paused_since = None;
            let is_back = self
                .left_at
                .take_if(|left| now - *left >= AWAY_AT_LEAST)
                .is_some();
            return is_back.then_some(Step::Return);
        }
        let paused_for = now - *self.paused_since.get_or_insert(now);
        let is_long = look
            .leave_after
            .is_some_and(|leave_after| paused_for >= leave_after);
        if self.left_at.is_some() || !is_long || !look.is_member {
            return None;
        }
        self.left_at = Some(now);
        Some(Step::Leave)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSED: Look = Look {
        is_paused: true,
        is_member: true,
        leave_after: Some(Duration::from_secs(1800)),
    };
    const RUNNING: Look = Look {
        is_paused: false,
        ..PAUSED
    };

    /// What a story of looks, each so many seconds after the first, leads to.
    fn steps(story: &[(u64, Look)]) -> Vec<Option<Step>> {
        let (mut rest, begun) = (Rest::default(), Instant::now());
        story
            .iter()
            .map(|(at, look)| rest.step(*look, begun + Duration::from_secs(*at)))
            .collect()
    }

    #[test]
    fn a_long_pause_leads_away_once_and_its_end_leads_back_once() {
        let story = [
            (0, RUNNING),
            (1, PAUSED),
            (1800, PAUSED),
            (1801, PAUSED),
            (1900, PAUSED),
        ];
        assert_eq!(steps(&story), [None, None, None, Some(Step::Leave), None]);
        let story = [
            (0, PAUSED),
            (1800, PAUSED),
            (1801, RUNNING),
            (1805, RUNNING),
            (1806, RUNNING),
        ];
        assert_eq!(
            steps(&story),
            [None, Some(Step::Leave), None, Some(Step::Return), None]
        );
    }

    #[test]
    fn short_pauses_do_not_add_up() {
        let story = [
            (0, PAUSED),
            (1799, PAUSED),
            (1799, RUNNING),
            (1800, PAUSED),
            (3599, PAUSED),
        ];
        assert_eq!(steps(&story), [None; 5]);
    }

    #[test]
    fn nobody_leaves_who_wants_to_stay_or_is_alone() {
        for look in [
            Look {
                leave_after: None,
                ..PAUSED
            },
            Look {
                is_member: false,
                ..PAUSED
            },
        ] {
            assert_eq!(steps(&[(0, look), (9999, look)]), [None, None]);
        }
    }
}
