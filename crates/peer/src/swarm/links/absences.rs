//! Owners that take no links at present, and when each is asked again.
//!
//! An owner may be gone for a day while the ring still names it. It must cost the others nothing:
//! it is asked ever more rarely, with one batch. An owner that answers, and refuses, may be taking
//! its domains over; only after a while does that count as well.

use crate::lock::lock;
use apoidea_model::PeerId;
use std::{collections::HashMap, sync::Mutex, time::Duration};
use tokio::time::Instant;

/// After the first failure; twice as long after each further one.
const FIRST: Duration = Duration::from_secs(1);
/// But no longer than this.
const LONGEST: Duration = Duration::from_secs(60);
/// After so many silences in a row, some seconds, an owner counts as absent.
const SILENCES: u32 = 3;
/// And after so many refusals: a minute or more.
const REFUSALS: u32 = 60;
/// Owners that are remembered. More of them mean that this peer is cut off itself.
const MAX_OWNERS: usize = 4096;

/// Failures to reach owners.
#[derive(Default)]
pub(crate) struct Absences(Mutex<HashMap<PeerId, Absence>>);

struct Absence {
    silences: u32,
    refusals: u32,
    again: Instant,
}

impl Absence {
    fn is_long(&self) -> bool {
        self.silences >= SILENCES || self.refusals >= REFUSALS
    }
}

impl Absences {
    /// May the owner be asked now?
    pub(super) fn is_due(&self, owner: PeerId) -> bool {
        let absences = lock(&self.0);
        let absence = absences.get(&owner);
        absence.is_none_or(|absence| absence.again <= Instant::now())
    }

    /// Was it silent the last time?
    pub(super) fn is_doubtful(&self, owner: PeerId) -> bool {
        let absences = lock(&self.0);
        let absence = absences.get(&owner);
        absence.is_some_and(|absence| absence.silences > 0)
    }

    /// Has it failed to answer for long?
    pub(super) fn is_absent(&self, owner: PeerId) -> bool {
        let absences = lock(&self.0);
        let absence = absences.get(&owner);
        absence.is_some_and(Absence::is_long)
    }

    /// Is anybody absent?
    pub(super) fn is_any_absent(&self) -> bool {
        let absences = lock(&self.0);
        absences.values().any(Absence::is_long)
    }

    /// It has answered.
    pub(super) fn note_answer(&self, owner: PeerId) {
        lock(&self.0).remove(&owner);
    }

    /// It has not. Several batches that fail together are one silence.
    pub(super) fn note_silence(&self, owner: PeerId) {
        self.change(owner, |absence, now| {
            if absence.again <= now {
                let wait = FIRST * (1 << absence.silences.min(10));
                absence.silences += 1;
                absence.again = now + wait.min(LONGEST);
            }
        });
    }

    /// It has refused a batch.
    pub(super) fn note_refusal(&self, owner: PeerId) {
        self.change(owner, |absence, _| {
            absence.refusals = absence.refusals.saturating_add(1);
            absence.silences = 0;
        });
    }

    fn change(&self, owner: PeerId, change: impl FnOnce(&mut Absence, Instant)) {
        let (mut absences, now) = (lock(&self.0), Instant::now());
        if absences.len() >= MAX_OWNERS {
            absences.clear();
        }
        let absence = absences.entry(owner).or_insert(Absence {
            silences: 0,
            refusals: 0,
            again: now,
        });
        change(absence, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::peer;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_fails_is_asked_ever_more_rarely() {
        let absences = Absences::default();
        assert!(absences.is_due(peer(1)) && !absences.is_doubtful(peer(1)));
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            absences.note_silence(peer(1));
            absences.note_silence(peer(1));
            advance(Duration::from_secs(wait) - Duration::from_millis(1)).await;
            assert!(!absences.is_due(peer(1)), "after {wait} s");
            advance(Duration::from_millis(1)).await;
            assert!(absences.is_due(peer(1)), "after {wait} s");
        }
        assert!(absences.is_absent(peer(1)) && absences.is_any_absent());
        assert!(absences.is_due(peer(2)));
        absences.note_answer(peer(1));
        assert!(!absences.is_doubtful(peer(1)) && !absences.is_any_absent());
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_refuses_is_asked_on_and_counts_as_absent_after_a_while() {
        let absences = Absences::default();
        for _ in 1..REFUSALS {
            absences.note_refusal(peer(1));
        }
        assert!(absences.is_due(peer(1)) && !absences.is_absent(peer(1)));
        absences.note_refusal(peer(1));
        assert!(absences.is_due(peer(1)) && absences.is_absent(peer(1)));
    }
}
