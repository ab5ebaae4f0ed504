//! Doors for the simulator only: putting a peer into its final place, and looking closer than
//! others can.

use super::Ring;
use crate::{Contact, event::Phase, message::Scale};
use apoidea_model::{Key, Time};
use rand::{Rng, RngExt};

impl Ring {
    /// Puts this peer at its place among all members, which are sorted by position, as if it had
    /// long been there.
    pub(crate) fn place(&mut self, sorted: &[Contact], place: usize, now: Time, rng: &mut dyn Rng) {
        let (r, count) = (self.settings.successors, sorted.len());
        assert!(count > self.most_few(), "a small ring grows by joining");
        let after: Vec<Contact> = (1..=r)
            .map(|offset| sorted[(place + offset) % count].clone())
            .collect();
        let before: Vec<Contact> = (1..=r)
            .map(|offset| sorted[(place + count - offset) % count].clone())
            .collect();
        self.neighbours.set_successors(&after);
        self.neighbours.set_predecessors(&before);
        self.phase = Phase::Member;
        self.scale = Scale::Large;
        self.fit_fingers();
        while self.fingers.is_incomplete()
            && let Some(exponent) = self.fingers.next_exponent()
        {
            let start = self.me.key().plus_power_of_two(exponent);
            let owner = sorted.partition_point(|contact| contact.key() < start) % count;
            self.fingers.set(exponent, sorted[owner].clone());
            self.book.met(&sorted[owner], rng);
        }
        (self.now, self.told_phase, self.told_arc) = (now, self.phase, self.arc());
        self.round_at = now
            + self
                .settings
                .stabilize_every
                .mul_f64(rng.random_range(0.0..1.0));
        self.check_at = now
            + self
                .settings
                .check_every
                .mul_f64(rng.random_range(0.0..1.5));
    }

    pub(crate) fn set_parallel(&mut self, parallel: usize) {
        self.settings.parallel = parallel;
    }

    pub(crate) fn successors_version(&self) -> u32 {
        self.neighbours.successors_version().0
    }

    pub(crate) fn most_successors(&self) -> usize {
        self.settings.successors
    }

    pub(crate) fn predecessors(&self) -> &[Contact] {
        self.neighbours.predecessors()
    }

    /// Every finger that should exist, by its exponent.
    pub(crate) fn fingers_by_exponent(&self) -> Vec<(usize, Option<Contact>)> {
        let exponents = (0..self.fingers.len()).map(|index| Key::BITS - 1 - index);
        exponents
            .map(|exponent| (exponent, self.fingers.finger(exponent).cloned()))
            .collect()
    }
}
